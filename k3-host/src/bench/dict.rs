//! bf16 with a dictionary against bf16 as it is.

use std::hint::black_box;

use k3_core::Result;
use k3_core::host::Workers;
use k3_core::kernels::dict::{self, Encoded};
use k3_core::kernels::{Kernels, Matrix, OutputTile, matmul_parallel};
use memmap2::MmapMut;

use super::turns::{Candidate, medians};
use crate::streaming::buffer::allocate;
use crate::synth;

/// Rows and columns of the largest projections of the released model.
const SHAPE: (usize, usize) = (12288, 7168);
/// How many of them are multiplied in turn, so that none stays in a cache.
const MATRICES: u64 = 2;
/// Rows that stay in a cache together with what they are decoded to.
const CACHED_ROWS: usize = 16;
/// How often they are decoded in one measurement.
const CACHE_REPEATS: usize = 64;

/// What was measured. Rates count the bytes of the bf16 that the dictionary stands for.
#[derive(Debug, Clone, Copy)]
pub struct DictRates {
    /// Bytes of the form with a dictionary for each byte of bf16.
    pub size: f64,
    /// Bytes per second of bf16 in a matrix-vector product from memory, on all threads.
    pub bf16_product: f64,
    /// The same with a dictionary.
    pub dict_product: f64,
    /// Bytes per second of decoding in cache, checks included, on one thread.
    pub decode: f64,
    /// Bytes per second of checking in cache, on one thread.
    pub check: f64,
}

/// A matrix in both forms, in large pages.
struct Pair {
    bf16: MmapMut,
    coded: MmapMut,
    escapes: usize,
}

impl Pair {
    fn new(seed: u64) -> Result<Self> {
        let (rows, columns) = SHAPE;
        let mut bf16 = allocate(2 * rows * columns)?;
        synth::fill_projection(seed, columns, &mut bf16);
        let Encoded { data, escapes } = dict::encode(&bf16, rows, columns).expect("a projection is smaller for it");
        let mut coded = allocate(data.len())?;
        coded.copy_from_slice(&data);
        Ok(Self { bf16, coded, escapes })
    }

    fn bf16(&self) -> Matrix<'_> {
        Matrix::bf16(&self.bf16, SHAPE.0, SHAPE.1)
    }

    fn coded(&self) -> Matrix<'_> {
        Matrix::dict(&self.coded, SHAPE.0, SHAPE.1, self.escapes)
    }
}

/// Measures all of them in turns.
///
/// # Errors
/// If the system refuses the memory.
pub fn measure(kernels: &Kernels, workers: &dyn Workers, rounds: usize) -> Result<DictRates> {
    let pairs = (0..MATRICES).map(Pair::new).collect::<Result<Vec<_>>>()?;
    let cached = pairs[0].coded().slice_rows(0..CACHED_ROWS);
    let mut decoded = vec![0; 2 * CACHED_ROWS * SHAPE.1];
    let cached_data = &pairs[0].coded[..cached.bytes()];
    let mut candidates = [
        products("bf16", kernels, workers, pairs.iter().map(Pair::bf16).collect()),
        products("dictionary", kernels, workers, pairs.iter().map(Pair::coded).collect()),
        Candidate::new("decode", || {
            for _ in 0..CACHE_REPEATS {
                black_box(kernels.decode_dict(&cached, black_box(&mut decoded))).expect("as encoded");
            }
        }),
        Candidate::new("check", || {
            for _ in 0..CACHE_REPEATS {
                black_box(dict::check(black_box(cached_data), CACHED_ROWS, SHAPE.1, pairs[0].escapes))
                    .expect("as encoded");
            }
        }),
    ];
    let seconds = medians(&mut candidates, rounds);
    drop(candidates);
    let bytes = pairs[0].bf16.len() as f64;
    let cached_bytes = (decoded.len() * CACHE_REPEATS) as f64;
    Ok(DictRates {
        size: pairs[0].coded.len() as f64 / bytes,
        bf16_product: bytes * MATRICES as f64 / seconds[0],
        dict_product: bytes * MATRICES as f64 / seconds[1],
        decode: cached_bytes / seconds[2],
        check: cached_bytes / seconds[3],
    })
}

/// The product of each matrix with one token.
fn products<'a>(
    name: &str,
    kernels: &'a Kernels,
    workers: &'a dyn Workers,
    matrices: Vec<Matrix<'a>>,
) -> Candidate<'a> {
    let x: Vec<f32> = (0..SHAPE.1).map(|index| (index % 17) as f32 / 8.0 - 1.0).collect();
    let mut y = vec![0.0; SHAPE.0];
    Candidate::new(name, move || {
        for matrix in &matrices {
            matmul_parallel(kernels, workers, matrix, &x, OutputTile::new(&mut y, SHAPE.0));
            black_box(&y);
        }
    })
}
