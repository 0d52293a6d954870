//! Products on many threads: the one place that hands parts of an output to workers.

use super::Kernels;
use super::matmul::STREAMED_ROWS;
use super::matrix::Matrix;
use super::output::OutputTile;
use crate::host::{Workers, piece};

/// [`Kernels::matmul`] with the rows of the matrix shared out among the workers. Every element is computed whole by one
/// worker, so the number of threads changes no bit.
///
/// # Panics
/// As [`Kernels::matmul`].
pub fn matmul_parallel(kernels: &Kernels, workers: &dyn Workers, w: &Matrix<'_>, x: &[f32], y: OutputTile<'_>) {
    assert_eq!(w.rows(), y.rows(), "rows of the matrix and of the output");
    let pieces = workers.threads();
    workers.run(pieces, &|index| {
        let rows = piece(w.rows(), STREAMED_ROWS, index, pieces);
        // SAFETY: `piece` gives disjoint ranges, and a worker is called once per index.
        let mut part = unsafe { y.rows_aliased(rows.clone()) };
        kernels.matmul(&w.slice_rows(rows), x, &mut part);
    });
}
