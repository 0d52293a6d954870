//! Sixteen lanes in one AVX-512 register.

use core::arch::x86_64::*;

use super::lanes::{Arithmetic, Kernel, Lanes};
use super::mxfp4::E2M1;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, Group, LANES};

cpufeatures::new!(avx512, "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi");

/// Proof that the processor has AVX-512 with the byte instructions of VBMI, and that the system saves its registers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Asks the machine.
    pub(super) fn detect() -> Option<Self> {
        avx512::get().then_some(Self(()))
    }
}

/// Compiles `kernel`, and all that is inlined into it, for AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")]
fn run<K: Kernel>(lanes: Avx512, kernel: K) -> K::Output {
    kernel.run(lanes)
}

/// By how much each byte is shifted down within the 64 bits of sixteen codes, so that every fourth one begins with the
/// next code.
const SPREAD: [u8; 64] = {
    let mut shifts = [0; 64];
    let mut i = 0;
    while i < 16 {
        shifts[4 * i] = 4 * i as u8;
        i += 1;
    }
    shifts
};

/// Sixteen numbers, or whatever else takes 64 bytes.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_register<T: Copy, const N: usize>(values: &[T; N]) -> __m512i {
    const { assert!(size_of::<[T; N]>() == size_of::<__m512i>()) }
    // SAFETY: 64 bytes are readable, and the instruction takes any alignment and any contents.
    unsafe { _mm512_loadu_si512(core::ptr::from_ref(values).cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_half(bytes: &[u8; 32]) -> __m256i {
    // SAFETY: 32 bytes are readable and the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn widen_bf16(bytes: &[u8; 32]) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(load_half(bytes))))
}

/// The table is looked up by the low four bits of each index, whatever is above them.
#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn widen_e2m1(bytes: &[u8; 8]) -> __m512 {
    let codes = _mm512_set1_epi64(i64::from_le_bytes(*bytes));
    let indices = _mm512_multishift_epi64_epi8(load_register(&SPREAD), codes);
    _mm512_permutexvar_ps(indices, _mm512_castsi512_ps(load_register(&E2M1)))
}

/// Where the bytes of sixteen bf16 become the upper halves of f32, from column `FIRST` on, in a register of 32 low bytes and
/// 32 high bytes.
const fn joining<const FIRST: u8>() -> [u8; 64] {
    let mut bytes = [0; 64];
    let mut i = 0;
    while i < 16 {
        bytes[4 * i + 2] = FIRST + i as u8;
        bytes[4 * i + 3] = 32 + FIRST + i as u8;
        i += 1;
    }
    bytes
}

/// The bytes of all upper halves.
const UPPER_HALVES: u64 = 0xcccc_cccc_cccc_cccc;
/// The bytes of the upper half of a register.
const UPPER_BYTES: u64 = 0xffff_ffff_0000_0000;

/// The table is looked up by the low six bits of each index; it is there four times, so that the upper two do not matter.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
fn widen_dict(dictionary: &[u8; 16], low: &[u8; 32], codes: &[u8; 16]) -> [__m512; 2] {
    let table = broadcast(dictionary);
    let indices = _mm512_srlv_epi64(broadcast(codes), _mm512_setr_epi64(0, 0, 0, 0, 0, 0, 4, 4));
    let low = _mm512_zextsi256_si512(load_half(low));
    let bytes = _mm512_mask_permutexvar_epi8(low, UPPER_BYTES, indices, table);
    let first = _mm512_maskz_permutexvar_epi8(UPPER_HALVES, load_register(&const { joining::<0>() }), bytes);
    let second = _mm512_maskz_permutexvar_epi8(UPPER_HALVES, load_register(&const { joining::<16>() }), bytes);
    [_mm512_castsi512_ps(first), _mm512_castsi512_ps(second)]
}

/// Sixteen bytes in each quarter of a register.
#[inline]
#[target_feature(enable = "avx512f")]
fn broadcast(bytes: &[u8; 16]) -> __m512i {
    // SAFETY: 16 bytes are readable and the instruction takes any alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

impl Arithmetic<__m256> for Avx512 {
    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm256_mul_ps(a, b) }
    }
}

impl Arithmetic<__m512> for Avx512 {
    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { _mm512_mul_ps(a, b) }
    }
}

impl Lanes for Avx512 {
    type Vector = __m256;
    type Half = __m512;

    // Faster here than 2 KiB by an eighth, on an AMD Zen 5.
    const PREFETCH_BYTES: usize = 1024;

    fn run<K: Kernel>(self, kernel: K) -> K::Output {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { run(self, kernel) }
    }

    #[inline(always)]
    fn split(self, half: Self::Half) -> [Self::Vector; 2] {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { [_mm512_castps512_ps256(half), _mm512_extractf32x8_ps::<1>(half)] }
    }

    #[inline(always)]
    fn store(self, vector: Self::Vector, values: &mut [f32; LANES]) {
        // SAFETY: `self` exists only where AVX-512 was detected; eight values are writable at any alignment.
        unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) }
    }

    #[inline(always)]
    fn load_f32(self, bytes: &[[u8; 4 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [first, second] = bytes.as_chunks::<2>().0 else { unreachable!("two halves") };
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { [_mm512_castsi512_ps(load_register(first)), _mm512_castsi512_ps(load_register(second))] }
    }

    #[inline(always)]
    fn load_bf16(self, bytes: &[[u8; 2 * LANES]; GROUP_VECTORS]) -> [Self::Half; 2] {
        let [first, second] = bytes.as_flattened().as_chunks().0 else { unreachable!("two halves") };
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { [widen_bf16(first), widen_bf16(second)] }
    }

    #[inline(always)]
    fn load_e2m1(self, bytes: &[u8; GROUP_COLUMNS / 2]) -> [Self::Half; 2] {
        let [first, second] = bytes.as_chunks().0 else { unreachable!("two halves") };
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { [widen_e2m1(first), widen_e2m1(second)] }
    }

    #[inline(always)]
    fn load_dict(
        self,
        dictionary: &[u8; 16],
        low: &[u8; GROUP_COLUMNS],
        codes: &[u8; GROUP_COLUMNS / 2],
    ) -> [Self::Half; 2] {
        // SAFETY: `self` exists only where AVX-512 was detected.
        unsafe { widen_dict(dictionary, low, codes) }
    }

    #[inline(always)]
    fn store_group(self, [first, second]: [Self::Half; 2], group: &mut Group) {
        let values = group.as_flattened_mut().as_mut_ptr();
        // SAFETY: `self` exists only where AVX-512 was detected; 32 values are writable at any alignment.
        unsafe {
            _mm512_storeu_ps(values, first);
            _mm512_storeu_ps(values.add(LANES * 2), second);
        }
    }

    #[inline(always)]
    fn prefetch(self, address: *const u8) {
        // SAFETY: prefetching is a hint that never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
}
