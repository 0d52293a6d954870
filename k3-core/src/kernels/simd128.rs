//! Eight lanes in two SIMD128 registers.
//!
//! WebAssembly has no way to ask: a module that holds SIMD128 instructions loads only where they exist. So this backend
//! is there if the module was compiled with them. Relaxed SIMD, which may round differently on each machine, is not used.

use core::arch::wasm32::*;

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::mxfp4::E2M1_UPPER_BYTES;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, LANES};

/// SIMD128, which this module cannot be loaded without.
#[derive(Debug, Clone, Copy)]
pub(super) struct Simd128;

#[inline(always)]
fn load_register(bytes: &[u8; 16]) -> v128 {
    // SAFETY: 16 bytes are readable and the instruction takes any alignment.
    unsafe { v128_load(bytes.as_ptr().cast()) }
}

#[inline(always)]
fn load_f32(bytes: &[u8; 32]) -> [v128; 2] {
    // SAFETY: 32 bytes are readable and the instruction takes any alignment.
    unsafe { [v128_load(bytes.as_ptr().cast()), v128_load(bytes.as_ptr().add(16).cast())] }
}

/// Eight 16-bit words as the upper halves of eight f32. Interleaving with zeros would say the same, but engines have no one
/// instruction for that.
#[inline(always)]
fn widen(words: v128) -> [v128; 2] {
    [u32x4_shl(u32x4_extend_low_u16x8(words), 16), u32x4_shl(u32x4_extend_high_u16x8(words), 16)]
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
    join(low, high)
}

/// Sixteen f32 from their upper two bytes.
#[inline(always)]
fn join(low: v128, high: v128) -> [[v128; 2]; 2] {
    [widen(interleave_low(low, high)), widen(interleave_high(low, high))]
}

impl Arithmetic<v128> for Simd128 {
    #[inline(always)]
    fn splat(self, value: f32) -> v128 {
        f32x4_splat(value)
    }

    #[inline(always)]
    fn add(self, a: v128, b: v128) -> v128 {
        f32x4_add(a, b)
    }

    #[inline(always)]
    fn mul(self, a: v128, b: v128) -> v128 {
        f32x4_mul(a, b)
    }
}

impl Lanes for Simd128 {
    type Vector = [v128; 2];
    type Half = [[v128; 2]; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn split(self, half: Self::Half) -> [Self::Vector; 2] {
        half
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
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        [[load_f32(a), load_f32(b)], [load_f32(c), load_f32(d)]]
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        let widen_bf16 = |bytes| widen(load_register(bytes));
        [[widen_bf16(a), widen_bf16(b)], [widen_bf16(c), widen_bf16(d)]]
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2] {
        let codes = load_register(bytes);
        let even = v128_and(codes, u8x16_splat(0x0f));
        let odd = u8x16_shr(codes, 4);
        [look_up(interleave_low(even, odd)), look_up(interleave_high(even, odd))]
    }

    #[inline(always)]
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2] {
        let [first, second] = low.as_chunks().0 else { unreachable!("two registers") };
        let (dictionary, codes) = (load_register(dictionary), load_register(codes));
        [
            join(load_register(first), u8x16_swizzle(dictionary, v128_and(codes, u8x16_splat(0x0f)))),
            join(load_register(second), u8x16_swizzle(dictionary, u8x16_shr(codes, 4))),
        ]
    }
}
