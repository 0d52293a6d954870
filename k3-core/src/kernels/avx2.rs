//! Eight lanes in one AVX2 register.

use core::arch::x86_64::*;

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::mxfp4::E2M1;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, LANES};

cpufeatures::new!(avx2, "avx2");

/// Proof that the processor has AVX2 and the system saves its registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the machine.
    pub(super) fn detect() -> Option<Self> {
        avx2::get().then_some(Self(()))
    }
}

/// Compiles `kernel`, and all that is inlined into it, for AVX2.
#[target_feature(enable = "avx2")]
fn run<K: Kernel>(lanes: Avx2, kernel: K) -> K::Output {
    kernel.run(lanes)
}

/// The upper bytes (`BYTE` 1) or lower bytes (`BYTE` 0) of the upper half of each E2M1 value, once per register half.
/// The lower half of every value is zero.
const fn e2m1_bytes<const BYTE: usize>() -> [u8; 32] {
    let mut bytes = [0; 32];
    let mut i = 0;
    while i < 32 {
        bytes[i] = E2M1[i % 16].to_bits().to_le_bytes()[2 + BYTE];
        i += 1;
    }
    bytes
}

/// A byte of zeros, to the instruction that rearranges bytes.
const NOTHING: u8 = 0x80;

/// Which byte of codes each 16-bit word of a register is made from. The bytes with columns 0–3, 8–11, 16–19 and 24–27 go
/// to the lower half and the others to the upper one, so that all come in their natural order out of the unpack
/// instructions, which work within halves.
const SPREAD: [u8; 32] = {
    let order = [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15];
    let mut bytes = [NOTHING; 32];
    let mut i = 0;
    while i < 16 {
        bytes[2 * i] = order[i];
        i += 1;
    }
    bytes
};

#[inline]
#[target_feature(enable = "avx2")]
fn load_integers(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are readable and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_half(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: 16 bytes are readable and the instruction takes any alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_f32(bytes: &[u8; 32]) -> __m256 {
    _mm256_castsi256_ps(load_integers(bytes))
}

/// The bytes of eight bf16 as the upper halves of eight f32, columns 0–3 in the lower half of the register.
const WIDEN: [u8; 32] = {
    let mut bytes = [NOTHING; 32];
    let mut i = 0;
    while i < 16 {
        bytes[i / 2 * 4 + 2 + i % 2] = i as u8;
        i += 1;
    }
    bytes
};

/// One rearrangement for eight columns instead of a widening and a shift, which on some processors share the same two units.
#[inline]
#[target_feature(enable = "avx2")]
fn widen_bf16(bytes: &[u8; 16]) -> __m256 {
    let both_halves = _mm256_broadcastsi128_si256(load_half(bytes));
    _mm256_castsi256_ps(_mm256_shuffle_epi8(both_halves, load_integers(&WIDEN)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_e2m1(bytes: &[u8; 16]) -> [[__m256; 2]; 2] {
    let half = load_half(bytes);
    let words = _mm256_shuffle_epi8(_mm256_set_m128i(half, half), load_integers(&SPREAD));
    // Every word 0x00HL becomes the bytes L and H of the two columns it holds.
    let shifted = _mm256_or_si256(words, _mm256_slli_epi16::<4>(words));
    let codes = _mm256_and_si256(shifted, _mm256_set1_epi8(0x0f));
    let lower = _mm256_shuffle_epi8(load_integers(&const { e2m1_bytes::<0>() }), codes);
    let upper = _mm256_shuffle_epi8(load_integers(&const { e2m1_bytes::<1>() }), codes);
    let first = _mm256_unpacklo_epi8(lower, upper);
    let second = _mm256_unpackhi_epi8(lower, upper);
    [upper_halves(first), upper_halves(second)]
}

/// Words as the upper halves of f32.
#[inline]
#[target_feature(enable = "avx2")]
fn upper_halves(words: __m256i) -> [__m256; 2] {
    let zero = _mm256_setzero_si256();
    [_mm256_castsi256_ps(_mm256_unpacklo_epi16(zero, words)), _mm256_castsi256_ps(_mm256_unpackhi_epi16(zero, words))]
}

#[inline]
#[target_feature(enable = "avx2")]
fn widen_dict(dictionary: &[u8; 16], low: &[u8; 32], codes: &[u8; 16]) -> [[__m256; 2]; 2] {
    // Four columns at a time, those of the even quarters to the lower half and the others to the upper one, so that all
    // come in their natural order out of the unpack instructions, which work within halves.
    let low = _mm256_permutevar8x32_epi32(load_integers(low), _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7));
    let pairs = _mm256_castsi128_si256(load_half(codes));
    let pairs = _mm256_permutevar8x32_epi32(pairs, _mm256_setr_epi32(0, 2, 0, 2, 1, 3, 1, 3));
    let codes = _mm256_srlv_epi32(pairs, _mm256_setr_epi32(0, 0, 4, 4, 0, 0, 4, 4));
    let codes = _mm256_and_si256(codes, _mm256_set1_epi8(0x0f));
    let high = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load_half(dictionary)), codes);
    [upper_halves(_mm256_unpacklo_epi8(low, high)), upper_halves(_mm256_unpackhi_epi8(low, high))]
}

impl Arithmetic<__m256> for Avx2 {
    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { _mm256_mul_ps(a, b) }
    }
}

impl Lanes for Avx2 {
    type Vector = __m256;
    type Half = [__m256; 2];

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { run(self, kernel) }
    }

    #[inline(always)]
    fn split(self, half: Self::Half) -> [Self::Vector; 2] {
        half
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]) {
        // SAFETY: `self` exists only where AVX2 was detected; eight values are writable at any alignment.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) }
    }

    #[inline(always)]
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { [[load_f32(a), load_f32(b)], [load_f32(c), load_f32(d)]] }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [a, b, c, d] = bytes;
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { [[widen_bf16(a), widen_bf16(b)], [widen_bf16(c), widen_bf16(d)]] }
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2] {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { widen_e2m1(bytes) }
    }

    #[inline(always)]
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2] {
        // SAFETY: `self` exists only where AVX2 was detected.
        unsafe { widen_dict(dictionary, low, codes) }
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: prefetching is a hint that never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
