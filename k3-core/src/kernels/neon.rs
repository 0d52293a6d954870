//! Eight lanes in two NEON registers.
//!
//! NEON is part of every ARM64 machine that the standard library runs on, so this backend is there if the compiler was
//! told to use it, which is its default.

use core::arch::aarch64::*;

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::mxfp4::E2M1_UPPER_BYTES;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, LANES};

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

#[inline]
#[target_feature(enable = "neon")]
fn load_f32(bytes: &[u8; 32]) -> [float32x4_t; 2] {
    // SAFETY: 32 bytes are readable, and loads of bytes take any alignment.
    unsafe { [vreinterpretq_f32_u8(vld1q_u8(bytes.as_ptr())), vreinterpretq_f32_u8(vld1q_u8(bytes.as_ptr().add(16)))] }
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_bf16(bytes: &[u8; 16]) -> [float32x4_t; 2] {
    widen(vreinterpretq_u16_u8(load_register(bytes)))
}

/// The values of sixteen codes, one in each byte.
#[inline]
#[target_feature(enable = "neon")]
fn look_up(codes: uint8x16_t) -> [[float32x4_t; 2]; 2] {
    let low = vqtbl1q_u8(load_register(&E2M1_UPPER_BYTES[0]), codes);
    let high = vqtbl1q_u8(load_register(&E2M1_UPPER_BYTES[1]), codes);
    join(low, high)
}

/// Sixteen f32 from their upper two bytes.
#[inline]
#[target_feature(enable = "neon")]
fn join(low: uint8x16_t, high: uint8x16_t) -> [[float32x4_t; 2]; 2] {
    [widen(vreinterpretq_u16_u8(vzip1q_u8(low, high))), widen(vreinterpretq_u16_u8(vzip2q_u8(low, high)))]
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_e2m1(bytes: &[u8; 16]) -> [[[float32x4_t; 2]; 2]; 2] {
    let codes = load_register(bytes);
    let even = vandq_u8(codes, vdupq_n_u8(0x0f));
    let odd = vshrq_n_u8::<4>(codes);
    [look_up(vzip1q_u8(even, odd)), look_up(vzip2q_u8(even, odd))]
}

#[inline]
#[target_feature(enable = "neon")]
fn widen_dict(dictionary: &[u8; 16], low: &[u8; 32], codes: &[u8; 16]) -> [[[float32x4_t; 2]; 2]; 2] {
    let [first, second] = low.as_chunks().0 else { unreachable!("two registers") };
    let (dictionary, codes) = (load_register(dictionary), load_register(codes));
    [
        join(load_register(first), vqtbl1q_u8(dictionary, vandq_u8(codes, vdupq_n_u8(0x0f)))),
        join(load_register(second), vqtbl1q_u8(dictionary, vshrq_n_u8::<4>(codes))),
    ]
}

impl Arithmetic<float32x4_t> for Neon {
    #[inline(always)]
    fn splat(self, value: f32) -> float32x4_t {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { vdupq_n_f32(value) }
    }

    #[inline(always)]
    fn add(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { vaddq_f32(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: float32x4_t, b: float32x4_t) -> float32x4_t {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { vmulq_f32(a, b) }
    }
}

impl Lanes for Neon {
    type Vector = [float32x4_t; 2];
    type Half = [[float32x4_t; 2]; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn split(self, half: Self::Half) -> [Self::Vector; 2] {
        half
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
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        // SAFETY: the whole program is compiled for NEON.
        unsafe { [[load_f32(a), load_f32(b)], [load_f32(c), load_f32(d)]] }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        // SAFETY: the whole program is compiled for NEON.
        unsafe { [[widen_bf16(a), widen_bf16(b)], [widen_bf16(c), widen_bf16(d)]] }
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2] {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { widen_e2m1(bytes) }
    }

    #[inline(always)]
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2] {
        // SAFETY: the whole program is compiled for NEON.
        unsafe { widen_dict(dictionary, low, codes) }
    }
}
