//! How fast the kernels are on one thread, beside what the memory and the arithmetic units of this machine can do.
//!
//! `cargo bench -p k3-core --bench kernels [-- 'PART-OF-A-NAME|ANOTHER']`. Every candidate runs once per round, in turn, so that a
//! change in the machine's speed meets all of them; the median over the rounds and the best round are printed.

use std::hint::black_box;
use std::time::Instant;

use k3_core::kernels::dict::{self, Encoded};
use k3_core::kernels::{Backend, Kernels, Matrix, OutputTile, StateUpdate};

const ROUNDS: usize = 31;

/// Something to measure.
struct Candidate<'a> {
    name: String,
    /// Floating-point operations per call, products and sums counted apart.
    operations: f64,
    /// Bytes read per call.
    bytes: f64,
    /// Calls per round.
    repeats: usize,
    call: Box<dyn FnMut() + 'a>,
}

fn random_bytes(count: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend((state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// Strangers among them, as many as in trained weights: one in 5,000.
fn with_escapes(mut bf16: Vec<u8>) -> Vec<u8> {
    for element in (1..bf16.len() / 2).step_by(5003) {
        bf16[2 * element + 1] = 0x40 + (element % 61) as u8;
    }
    bf16
}

/// bf16 of magnitudes between 2^-8 and 1, and of either sign.
fn random_bf16(count: usize) -> Vec<u8> {
    let mut bytes = random_bytes(2 * count);
    for element in bytes.chunks_exact_mut(2) {
        element[1] = element[1] & 0x83 | 0x3c;
    }
    bytes
}

fn random_f32(count: usize) -> Vec<f32> {
    random_bytes(2 * count).chunks_exact(2).map(|b| f32::from(i16::from_le_bytes([b[0], b[1]])) / 32768.0).collect()
}

/// Reads everything once, eight registers of sums side by side.
fn read_all(words: &[u64]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(words: &[u64]) -> u64 {
            read_words(words)
        }
        // SAFETY: just detected.
        return unsafe { wide(words) };
    }
    read_words(words)
}

#[inline(always)]
fn read_words(words: &[u64]) -> u64 {
    let mut sums = [0_u64; 32];
    for chunk in words.as_chunks::<32>().0 {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}

/// `rounds` times 14 independent products and sums of eight lanes, all in registers.
fn arithmetic(rounds: usize) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[target_feature(enable = "avx2")]
        fn wide(rounds: usize) -> f32 {
            use std::arch::x86_64::*;
            let factor = _mm256_set1_ps(black_box(0.999));
            let mut sums = [_mm256_set1_ps(black_box(1.0)); 14];
            for _ in 0..rounds {
                for sum in &mut sums {
                    *sum = _mm256_add_ps(_mm256_mul_ps(*sum, factor), factor);
                }
            }
            sums.into_iter().fold(0.0, |total, sum| total + _mm256_cvtss_f32(sum))
        }
        // SAFETY: just detected.
        return unsafe { wide(rounds) };
    }
    rounds as f32
}

/// A product of a matrix with the inputs of `tokens` tokens.
fn product<'a>(name: &str, kernels: Kernels, matrix: Matrix<'a>, tokens: usize) -> Candidate<'a> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let x = random_f32(tokens * columns);
    let mut y = vec![0.0; tokens * rows];
    let operations = 2.0 * (rows * columns * tokens) as f64;
    Candidate {
        name: format!("{} {name} {rows}x{columns}, {tokens} tokens", kernels.backend()),
        operations,
        bytes: matrix.bytes() as f64,
        repeats: (1e8 / operations).max(1.0) as usize,
        call: Box::new(move || kernels.matmul(&matrix, &x, &mut OutputTile::new(&mut y, rows))),
    }
}

/// One step of delta attention over the states of many heads.
fn recurrence<'a>(kernels: Kernels, heads: usize) -> Candidate<'a> {
    let mut states = random_f32(heads * 128 * 128);
    let (a, b, decay) = (random_f32(128), random_f32(128), vec![0.5; 128]);
    let mut out = vec![0.0; 128];
    Candidate {
        name: format!("{} recurrence, {heads} heads of 128x128", kernels.backend()),
        operations: 7.0 * states.len() as f64,
        bytes: 4.0 * states.len() as f64,
        repeats: (200 / heads).max(1),
        call: Box::new(move || {
            for state in states.chunks_mut(128 * 128) {
                kernels.decay_and_read(state, &decay, &a, &mut out);
                kernels.update_and_read(state, StateUpdate { key: &a, delta: &b, query: &b }, &mut out);
            }
        }),
    }
}

fn column_sums<'a>(name: &str, kernels: Kernels, matrix: Matrix<'a>, vectors: usize) -> Candidate<'a> {
    let (rows, columns) = (matrix.rows(), matrix.columns());
    let weights = random_f32(vectors * rows);
    let mut out = vec![0.0; vectors * columns];
    Candidate {
        name: format!("{} {name} column sums {rows}x{columns}, {vectors} vectors", kernels.backend()),
        operations: 2.0 * (rows * columns * vectors) as f64,
        bytes: (rows * columns * 2) as f64,
        repeats: (50_000_000 / (rows * columns * vectors)).max(1),
        call: Box::new(move || kernels.column_sums(&matrix, &weights, &mut out)),
    }
}

/// What the candidates read.
struct Data {
    words: Vec<u64>,
    large: Vec<u8>,
    coded: Encoded,
    small: Vec<u8>,
    expert: Vec<u8>,
    codes: Vec<u8>,
    scales: Vec<u8>,
    latents: Vec<f32>,
}

impl Data {
    fn new() -> Self {
        let large = with_escapes(random_bf16(12288 * 7168));
        Self {
            words: vec![1; 64 << 20],
            coded: dict::encode(&large, 12288, 7168).expect("few exponents"),
            large,
            small: random_bf16(256 * 1024),
            expert: random_bf16(3072 * 3584),
            codes: random_bytes(3072 * 3584 / 2),
            scales: random_bytes(3072 * 3584 / 32).iter().map(|s| 118 + s % 6).collect(),
            latents: random_f32(4096 * 576),
        }
    }

    fn mxfp4(&self, rows: usize, columns: usize) -> Matrix<'_> {
        let size = rows * columns;
        Matrix::mxfp4(&self.codes[..size / 2], &self.scales[..size / 32], rows, columns)
    }
}

/// What the machine can do at best.
fn limits(data: &Data) -> Vec<Candidate<'_>> {
    vec![
        Candidate {
            name: "read 512 MiB".into(),
            operations: 0.0,
            bytes: (data.words.len() * 8) as f64,
            repeats: 1,
            call: Box::new(|| {
                black_box(read_all(&data.words));
            }),
        },
        Candidate {
            name: "arithmetic in registers".into(),
            operations: 1e6 * 14.0 * 16.0,
            bytes: 0.0,
            repeats: 2,
            call: Box::new(|| {
                black_box(arithmetic(1_000_000));
            }),
        },
    ]
}

fn kernels_of(kernels: Kernels, data: &Data) -> Vec<Candidate<'_>> {
    let large = Matrix::bf16(&data.large, 12288, 7168);
    let small = Matrix::bf16(&data.small, 256, 1024);
    let expert = Matrix::bf16(&data.expert, 3072, 3584);
    let mut candidates = vec![
        product("bf16", kernels, large, 1),
        product("bf16", kernels, large, 32),
        product("bf16", kernels, small, 1),
        product("mxfp4", kernels, data.mxfp4(256, 1024), 1),
    ];
    for tokens in [1, 2, 4, 8, 32, 128] {
        candidates.push(product("bf16", kernels, expert, tokens));
        candidates.push(product("mxfp4", kernels, data.mxfp4(3072, 3584), tokens));
    }
    let latents = Matrix::from_f32(&data.latents, 4096, 576);
    let values = Matrix::from_f32_strided(&data.latents, 4096, 512, 576);
    candidates.push(product("f32", kernels, latents, 96));
    candidates.push(column_sums("f32", kernels, values, 96));
    candidates.push(column_sums("bf16", kernels, Matrix::bf16(&data.small[..1 << 17], 128, 512), 1));
    candidates.push(product("dict", kernels, Matrix::dict(&data.coded.data, 12288, 7168, data.coded.escapes), 1));
    candidates.push(recurrence(kernels, 1));
    candidates.push(recurrence(kernels, 96 * 8));
    candidates
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let wanted = arguments.rfind(|argument| !argument.starts_with('-')).unwrap_or_default();
    let data = Data::new();
    let mut candidates = limits(&data);
    for kernels in Backend::available().into_iter().filter_map(Kernels::new) {
        candidates.extend(kernels_of(kernels, &data));
    }
    candidates.retain(|candidate| wanted.split('|').any(|part| candidate.name.contains(part)));

    let mut seconds = vec![Vec::new(); candidates.len()];
    for _ in 0..ROUNDS {
        for (candidate, seconds) in candidates.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            (0..candidate.repeats).for_each(|_| (candidate.call)());
            seconds.push(start.elapsed().as_secs_f64() / candidate.repeats as f64);
        }
    }
    for (candidate, seconds) in candidates.iter().zip(&mut seconds) {
        report(candidate, seconds);
    }
}

/// One line: the median over the rounds, and the best round.
fn report(candidate: &Candidate<'_>, seconds: &mut [f64]) {
    seconds.sort_by(f64::total_cmp);
    let (median, best) = (seconds[seconds.len() / 2], seconds[0]);
    let (gflop, gbyte) = (candidate.operations / 1e9, candidate.bytes / 1e9);
    println!(
        "{:45} {:9.3} ms {:6.1} GFLOP/s {:5.1} GB/s; best {:6.1} GFLOP/s {:5.1} GB/s",
        candidate.name,
        median * 1e3,
        gflop / median,
        gbyte / median,
        gflop / best,
        gbyte / best
    );
}
