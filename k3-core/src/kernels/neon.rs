//! Eight lanes in two NEON registers.
//!
//! NEON is part of every ARM64 machine that the standard library runs on, so this backend is there if the compiler was
//! told to use it, which is its default.

use core::arch::aarch64::*;

use super::lanes::{Kernel, Lanes};
use super::mxfp4::E2M1_UPPER_BYTES;
use super::order::{GROUP_VECTORS, LANES};

/// NEON, which this program was compiled for as a whole.
#[derive(Debug, Clone, Copy)]
pub(super) struct Neon;

#[inline]
#[target_feature(enable = "neon")]
fn load_register(bytes: &[u8; 16]) -> uint8x16_t {
    // SAFETY: 16 bytes are readable and the instruction takes any alignment.
    unsafe { vld1q_u8(bytes.as_ptr()) }
}

/// Eight 16-bit words as the upper halves of eight f32.
#[inline]
#[target_feature(enable = "neon")]
fn widen(words: uint16x8_t) -> [float32x4_t; 2] {
    let zero = vdupq_n_u16(0);
    [vreinterpretq_f32_u16(vzip1q_u16(zero, words)), vreinterpretq_f32_u16(vzip2q_u16(zero, words))]
}

/// The values of sixteen codes, one in each byte.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(codes: uint8x16_t) -> [[float32x4_t; 2]; 2] {
    let low = vqtbl1q_u8(load_register(&E2M1_UPPER_BYTES[0]), codes);
    let high = vqtbl1q_u8(load_register(&E2M1_UPPER_BYTES[1]), codes);
    [widen(vreinterpretq_u16_u8(vzip1q_u8(low, high))), widen(vreinterpretq_u16_u8(vzip2q_u8(low, high)))]
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_e2m1(bytes: &[u8; 16]) -> [[float32x4_t; 2]; GROUP_VECTORS] {
    let codes = load_register(bytes);
    let even = vandq_u8(codes, vdupq_n_u8(0x0f));
    let odd = vshrq_n_u8::<4>(codes);
    let [first, second] = look_up(vzip1q_u8(even, odd));
    let [third, fourth] = look_up(vzip2q_u8(even, odd));
    [first, second, third, fourth]
}

impl Lanes for Neon {
    type Vector = [float32x4_t; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn zero(self) -> Self::Vector {
        self.splat(0.0)
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { [vdupq_n_f32(value); 2] }
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON; eight values are readable.
        unsafe { [vld1q_f32(values.as_ptr()), vld1q_f32(values.as_ptr().add(4))] }
    }

    #[inline(always)]
    fn store(self, [first, second]: Self::Vector, values: &mut [f32; LANES]) {
        // SAFETY: the whole program is compiled for NEON; eight values are writable.
        unsafe {
            vst1q_f32(values.as_mut_ptr(), first);
            vst1q_f32(values.as_mut_ptr().add(4), second);
        }
    }

    #[inline(always)]
    fn load_bytes(self, bytes: &[u8; 4 * LANES]) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON; 32 bytes are readable, and loads of bytes take any alignment.
        unsafe {
            [vreinterpretq_f32_u8(vld1q_u8(bytes.as_ptr())), vreinterpretq_f32_u8(vld1q_u8(bytes.as_ptr().add(16)))]
        }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 2 * LANES]) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { widen(vreinterpretq_u16_u8(load_register(bytes))) }
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; 2 * LANES]) -> [Self::Vector; GROUP_VECTORS] {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { widen_e2m1(bytes) }
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { [vaddq_f32(a[0], b[0]), vaddq_f32(a[1], b[1])] }
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { [vmulq_f32(a[0], b[0]), vmulq_f32(a[1], b[1])] }
    }
}
