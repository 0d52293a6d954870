//! What a forward pass computes with: kernels, workers, weights, and a place to watch from.

use super::chunks::{Chunks, for_each_chunk};
use super::source::WeightSource;
use crate::Result;
use crate::checkpoint::names::TensorId;
use crate::host::Workers;
use crate::kernels::{Kernels, OutputTile, matmul_parallel};

/// The means of a forward pass. None of them can change a result.
#[derive(Clone, Copy)]
pub struct Compute<'a> {
    /// The arithmetic.
    pub kernels: &'a Kernels,
    /// The threads.
    pub workers: &'a dyn Workers,
    /// The weights.
    pub source: &'a dyn WeightSource,
    /// Sees intermediate values, where one is given.
    pub observer: Option<&'a dyn Observer>,
}

/// Sees intermediate values of a forward pass.
pub trait Observer: Sync {
    /// `values` is `[positions of the chunk, width]`.
    fn observe(&self, point: Point, values: &[f32]);

    /// The experts that each position of the chunk uses in `layer`, `[positions, top_k]` of both.
    fn observe_choice(&self, layer: usize, ids: &[usize], weights: &[f32]) {
        let _ = (layer, ids, weights);
    }
}

/// Where in the pass a value was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// The mix that enters the attention half of a layer.
    AttentionMix(usize),
    /// The same, normed.
    AttentionIn(usize),
    /// What attention returns.
    AttentionOut(usize),
    /// The mix that enters the feed-forward half.
    MlpMix(usize),
    /// The same, normed.
    MlpIn(usize),
    /// What the feed-forward half returns.
    MlpOut(usize),
    /// The sum of the block so far, after the layer.
    PrefixSum(usize),
    /// The weighted sum of the routed experts' outputs.
    RoutedSum(usize),
    /// The same, normed.
    RoutedNormed(usize),
    /// The mix after the last layer.
    FinalMix,
    /// The same, normed: what the head multiplies.
    FinalNormed,
}

impl Compute<'_> {
    /// `y[t] = W · x[t]` for the matrix `id`, with `x` `[positions, columns]` and `y` `[positions, rows]`.
    ///
    /// # Errors
    /// Those of the weight source.
    pub(crate) fn linear(&self, id: TensorId, x: &[f32], y: &mut [f32]) -> Result<()> {
        self.source.matrix(id, &mut |first_row, rows| {
            let positions = x.len() / rows.columns();
            let stride = y.len() / positions;
            let mut whole = OutputTile::new(y, stride);
            let tile = whole.rows_mut(first_row..first_row + rows.rows());
            matmul_parallel(self.kernels, self.workers, &rows, x, tile);
            Ok(())
        })
    }

    /// Calls `work` for each chunk of `length` numbers of `data`, with its number, on the workers.
    pub(crate) fn for_each(&self, data: &mut [f32], length: usize, work: &(dyn Fn(usize, &mut [f32]) + Sync)) {
        for_each_chunk(self.workers, [Chunks { data, length }], &mut [], &|index, [chunk], _| work(index, chunk));
    }

    pub(crate) fn observe(&self, point: Point, values: &[f32]) {
        if let Some(observer) = self.observer {
            observer.observe(point, values);
        }
    }
}
