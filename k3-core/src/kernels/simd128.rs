//! Eight lanes in two SIMD128 registers.
//!
//! WebAssembly has no way to ask: a module that holds SIMD128 instructions loads only where they exist. So this backend
//! is there if the module was compiled with them. Relaxed SIMD, which may round differently on each machine, is not used.

use core::arch::wasm32::*;

use super::lanes::{Kernel, Lanes};
use super::mxfp4::E2M1_UPPER_BYTES;
use super::order::{GROUP_VECTORS, LANES};

/// SIMD128, which this module cannot be loaded without.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simd128;

#[inline(always)]
fn load_register(bytes: &[u8; 16]) -> v128 {
    // SAFETY: 16 bytes are readable and the instruction takes any alignment.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

/// Eight 16-bit words as the upper halves of eight f32.
#[inline(always)]
fn widen(words: v128) -> [v128; 2] {
    let zero = u16x8_splat(0);
    [u16x8_shuffle::<0, 8, 1, 9, 2, 10, 3, 11>(zero, words), u16x8_shuffle::<4, 12, 5, 13, 6, 14, 7, 15>(zero, words)]
}

/// The lower halves of two registers, byte by byte in turn.
#[inline(always)]
fn interleave_low(a: v128, b: v128) -> v128 {
    u8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b)
}

/// The upper halves of two registers, byte by byte in turn.
#[inline(always)]
fn interleave_high(a: v128, b: v128) -> v128 {
    u8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b)
}

/// The values of sixteen codes, one in each byte.
#[inline(always)]
fn look_up(codes: v128) -> [[v128; 2]; 2] {
    let low = u8x16_swizzle(load_register(&E2M1_UPPER_BYTES[0]), codes);
    let high = u8x16_swizzle(load_register(&E2M1_UPPER_BYTES[1]), codes);
    [widen(interleave_low(low, high)), widen(interleave_high(low, high))]
}

impl Lanes for Simd128 {
    type Vector = [v128; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn zero(self) -> Self::Vector {
        [f32x4_splat(0.0); 2]
    }

    #[inline(always)]
    fn splat(self, value: f32) -> Self::Vector {
        [f32x4_splat(value); 2]
    }

    #[inline(always)]
    fn load(self, values: &[f32; LANES]) -> Self::Vector {
        // SAFETY: eight values are readable and the instruction takes any alignment.
        unsafe { [v128_load(values.as_ptr().cast()), v128_load(values.as_ptr().add(4).cast())] }
    }

    #[inline(always)]
    fn store(self, [first, second]: Self::Vector, values: &mut [f32; LANES]) {
        // SAFETY: eight values are writable and the instruction takes any alignment.
        unsafe {
            v128_store(values.as_mut_ptr().cast(), first);
            v128_store(values.as_mut_ptr().add(4).cast(), second);
        }
    }

    #[inline(always)]
    fn load_bytes(self, bytes: &[u8; 4 * LANES]) -> Self::Vector {
        // SAFETY: 32 bytes are readable and the instruction takes any alignment.
        unsafe { [v128_load(bytes.as_ptr().cast()), v128_load(bytes.as_ptr().add(16).cast())] }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[u8; 2 * LANES]) -> Self::Vector {
        widen(load_register(bytes))
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; 2 * LANES]) -> [Self::Vector; GROUP_VECTORS] {
        let codes = load_register(bytes);
        let even = v128_and(codes, u8x16_splat(0x0f));
        let odd = u8x16_shr(codes, 4);
        let [first, second] = look_up(interleave_low(even, odd));
        let [third, fourth] = look_up(interleave_high(even, odd));
        [first, second, third, fourth]
    }

    #[inline(always)]
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        [f32x4_add(a[0], b[0]), f32x4_add(a[1], b[1])]
    }

    #[inline(always)]
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector {
        [f32x4_mul(a[0], b[0]), f32x4_mul(a[1], b[1])]
    }
}
