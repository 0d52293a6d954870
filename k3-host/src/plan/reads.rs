//! What a token reads from drives.

use serde::Serialize;

use super::planner::Weights;
use super::sizes::WeightSizes;

/// The bytes that one token reads, with nothing in the expert cache that it could use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// Of the trunk.
    pub trunk: u64,
    /// Of routed experts.
    pub experts: u64,
    /// Of the embedding.
    pub embedding: u64,
}

impl Reads {
    /// Those of weights that are where a plan wants them. Weights that are mapped are read as if none were in memory.
    #[must_use]
    pub fn of(sizes: &WeightSizes, weights: &Weights) -> Self {
        let streamed = |is_pinned: &dyn Fn(&super::MatrixSizes) -> bool| Self {
            trunk: sizes.matrices.iter().filter(|matrix| !is_pinned(matrix)).map(|matrix| matrix.read).sum(),
            experts: sizes.experts_of_token as u64 * sizes.expert,
            embedding: sizes.embedding_row,
        };
        match weights {
            Weights::Resident => Self::default(),
            Weights::Mapped => streamed(&|_| false),
            Weights::Streamed(allotment) => streamed(&|matrix| allotment.pinned.contains(&matrix.id)),
        }
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.trunk + self.experts + self.embedding
    }
}
