//! A weight source that counts the bytes it hands out.

use std::sync::atomic::{AtomicU64, Ordering};

use k3_core::Result;
use k3_core::checkpoint::names::TensorId;
use k3_core::kernels::Matrix;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::source::{ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};

/// Counts what passes from another source.
pub struct Counting<'a> {
    source: &'a dyn WeightSource,
    bytes: AtomicU64,
}

impl<'a> Counting<'a> {
    /// Counts what `source` hands out.
    #[must_use]
    pub fn new(source: &'a dyn WeightSource) -> Self {
        Self { source, bytes: AtomicU64::new(0) }
    }

    /// The bytes of all matrices handed out since the last call.
    pub fn take(&self) -> u64 {
        self.bytes.swap(0, Ordering::Relaxed)
    }

    fn count(&self, matrix: &Matrix<'_>) {
        self.bytes.fetch_add(matrix.bytes() as u64, Ordering::Relaxed);
    }
}

impl WeightSource for Counting<'_> {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        self.source.vector(id, out)
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        self.source.row(id, row, out)
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        self.source.matrix(id, &mut |first_row, rows| {
            self.count(&rows);
            visit(first_row, rows)
        })
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        self.source.whole_matrix(id, &mut |matrix| {
            self.count(matrix);
            visit(matrix)
        })
    }

    fn begin_pass(&self, logits: WantedLogits) -> Result<()> {
        self.source.begin_pass(logits)
    }

    fn end_pass(&self) -> Result<()> {
        self.source.end_pass()
    }

    fn announce_experts(&self, layer: usize, ids: &[usize]) {
        self.source.announce_experts(layer, ids);
    }

    fn guesses_wanted(&self) -> usize {
        self.source.guesses_wanted()
    }

    fn suggest_experts(&self, layer: usize, ids: &[usize]) {
        self.source.suggest_experts(layer, ids);
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        self.source.experts(layer, ids, &mut |place, expert| {
            [expert.gate, expert.up, expert.down].iter().for_each(|matrix| self.count(matrix));
            visit(place, expert)
        })
    }
}
