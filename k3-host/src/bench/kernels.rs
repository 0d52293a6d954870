//! The kernels against the machine's read bandwidth, and against each other in cache.

use std::hint::black_box;

use k3_core::host::{Workers, piece};
use k3_core::kernels::{Kernels, Matrix, OutputTile};
use xxhash_rust::xxh3::xxh3_64;

use super::turns::{Candidate, medians};

/// Rows and columns of the largest projections of the released model.
const PROJECTION: (usize, usize) = (12288, 7168);
/// Rows and columns of an expert's gate in the released model.
const EXPERT: (usize, usize) = (3072, 3584);
/// Tokens of a prompt that are multiplied together.
const TOKENS: usize = 32;
/// Words read to measure the bandwidth: more than any cache holds.
const READ_WORDS: usize = 1 << 26;
/// The bytes that these take.
pub const READ_BYTES: u64 = (READ_WORDS * size_of::<u64>()) as u64;
/// Products of a matrix in cache that make one measurement.
const CACHE_REPEATS: usize = 8;

/// What was measured, on one thread.
#[derive(Debug, Clone, Copy)]
pub struct KernelRates {
    /// Bytes read per second from memory.
    pub read: f64,
    /// Bytes of bf16 weights per second in a matrix-vector product from memory.
    pub bf16_memory: f64,
    /// Multiply-adds per second in cache: bf16 matrix-vector.
    pub bf16_cache: f64,
    /// Multiply-adds per second in cache: MXFP4 matrix-vector.
    pub mxfp4_cache: f64,
    /// Multiply-adds per second: bf16 times 32 tokens.
    pub bf16_tokens: f64,
    /// Multiply-adds per second: MXFP4 times 32 tokens.
    pub mxfp4_tokens: f64,
}

/// Measures all of them in turns.
#[must_use]
pub fn measure(kernels: &Kernels, rounds: usize) -> KernelRates {
    let words = vec![1_u64; READ_WORDS];
    let projection = bytes(PROJECTION.0 * PROJECTION.1 * 2, bf16_byte);
    let expert_bf16 = bytes(EXPERT.0 * EXPERT.1 * 2, bf16_byte);
    let codes = bytes(EXPERT.0 * EXPERT.1 / 2, |hash, _| hash as u8);
    let scales = bytes(EXPERT.0 * EXPERT.1 / 32, |hash, _| 118 + (hash % 5) as u8);
    let projection = Matrix::bf16(&projection, PROJECTION.0, PROJECTION.1);
    let expert_bf16 = Matrix::bf16(&expert_bf16, EXPERT.0, EXPERT.1);
    let expert = Matrix::mxfp4(&codes, &scales, EXPERT.0, EXPERT.1);
    let mut candidates = [
        Candidate::new("read", || {
            black_box(read(&words));
        }),
        product("bf16 from memory", kernels, projection, 1, 1),
        product("bf16 in cache", kernels, expert_bf16, 1, CACHE_REPEATS),
        product("MXFP4 in cache", kernels, expert, 1, CACHE_REPEATS),
        product("bf16, 32 tokens", kernels, expert_bf16, TOKENS, 1),
        product("MXFP4, 32 tokens", kernels, expert, TOKENS, 1),
    ];
    let seconds = medians(&mut candidates, rounds);
    let expert_size = (EXPERT.0 * EXPERT.1) as f64;
    KernelRates {
        read: READ_BYTES as f64 / seconds[0],
        bf16_memory: (PROJECTION.0 * PROJECTION.1 * 2) as f64 / seconds[1],
        bf16_cache: expert_size * CACHE_REPEATS as f64 / seconds[2],
        mxfp4_cache: expert_size * CACHE_REPEATS as f64 / seconds[3],
        bf16_tokens: expert_size * TOKENS as f64 / seconds[4],
        mxfp4_tokens: expert_size * TOKENS as f64 / seconds[5],
    }
}

/// Bytes read per second from memory by all workers together: the median of `rounds`.
#[must_use]
pub fn read_bandwidth(workers: &dyn Workers, rounds: usize) -> f64 {
    let words = vec![1_u64; READ_WORDS];
    let pieces = workers.threads();
    let mut candidates = [Candidate::new("read", || {
        workers.run(pieces, &|index| {
            black_box(read(&words[piece(words.len(), 8, index, pieces)]));
        });
    })];
    READ_BYTES as f64 / medians(&mut candidates, rounds)[0]
}

fn product<'a>(name: &str, kernels: &'a Kernels, matrix: Matrix<'a>, tokens: usize, repeats: usize) -> Candidate<'a> {
    let x: Vec<f32> = (0..tokens * matrix.columns()).map(|index| (index % 17) as f32 / 8.0 - 1.0).collect();
    let mut y = vec![0.0; tokens * matrix.rows()];
    Candidate::new(name, move || {
        for _ in 0..repeats {
            kernels.matmul(&matrix, &x, &mut OutputTile::new(&mut y, matrix.rows()));
            black_box(&y);
        }
    })
}

/// Sums words with the widest loads there are, so that only the memory limits it.
fn read(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(words: &[u64]) -> u64 {
            sum(words)
        }
        // SAFETY: the feature was just detected.
        return unsafe { wide(words) };
    }
    sum(words)
}

#[inline(always)]
fn sum(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    let (lines, rest) = words.as_chunks::<32>();
    for line in lines {
        for (sum, word) in sums.iter_mut().zip(line) {
            *sum = sum.wrapping_add(*word);
        }
    }
    rest.iter().chain(&sums).fold(0, |sum, word| sum.wrapping_add(*word))
}

/// Bytes that look random, made from a hash of their place.
fn bytes(count: usize, byte: impl Fn(u64, usize) -> u8) -> Vec<u8> {
    let hashed = |index: usize| (xxh3_64(&(index / 8).to_le_bytes()) >> (index % 8 * 8), index);
    (0..count).map(hashed).map(|(hash, index)| byte(hash, index)).collect()
}

/// A byte of a bf16 value of ordinary size: sign and a high exponent part in the odd bytes.
fn bf16_byte(hash: u64, index: usize) -> u8 {
    if index.is_multiple_of(2) { hash as u8 } else { 0x3d + (hash as u8 & 0x80) }
}
