//! What the weights of a model take.

use k3_core::checkpoint::CheckpointIndex;
use k3_core::checkpoint::names::TensorId;
use k3_core::config::{Config, FeedForward};
use k3_core::model::order::{is_used_whole, matrices_of_pass};
use k3_core::model::scratch::WantedLogits;
use k3_core::stream::trunk::{Run, Trunk};

use crate::streaming::{experts, trunk};

/// What the weights of a model take, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightSizes {
    /// The matrices of the trunk that every token needs, in the order in which pinning considers them.
    pub matrices: Vec<MatrixSizes>,
    /// What is read of the embedding for a token.
    pub embedding_row: u64,
    /// What is read of a routed expert, at most.
    pub expert: u64,
    /// What a slot for one takes.
    pub expert_slot: u64,
    /// How many routed experts there are, in all layers.
    pub experts: usize,
    /// How many of them a token uses, in all layers.
    pub experts_of_token: usize,
    /// All files that hold weights.
    pub files: u64,
    /// The tables that say where they lie.
    pub index: u64,
}

/// What a matrix of the trunk takes, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixSizes {
    /// Which matrix.
    pub id: TensorId,
    /// What a pass reads of it if it is streamed.
    pub read: u64,
    /// What it takes if it is pinned.
    pub pinned: u64,
    /// What a buffer needs for any run of it.
    pub buffer: u64,
}

impl WeightSizes {
    /// Those of a checkpoint with `config`'s layers, whose trunk lies as `trunk` says and whose files have `files` bytes.
    #[must_use]
    pub fn of(config: &Config, index: &CheckpointIndex, trunk: &Trunk, files: u64) -> Self {
        let mut matrices: Vec<_> =
            matrices_of_pass(config, WantedLogits::Last).into_iter().map(|id| MatrixSizes::of(id, trunk)).collect();
        // Buffers get by with less once no matrix is left that is read in one piece; after those, the largest.
        matrices.sort_by_key(|matrix| (!is_used_whole(matrix.id), std::cmp::Reverse(matrix.pinned)));
        let expert_layers = config.layers.iter().filter(|kind| kind.feed_forward == FeedForward::Moe).count();
        let first = index.expert_ids().next();
        Self {
            matrices,
            embedding_row: trunk.runs_of(TensorId::Embedding).first().map_or(0, row_bytes),
            expert: first.map_or(0, |id| experts::expert_bytes(index, id.layer, id.expert)),
            expert_slot: experts::slot_bytes(index) as u64,
            experts: expert_layers * config.moe.experts,
            experts_of_token: expert_layers * config.moe.top_k,
            files,
            index: index.memory_bytes() + size_of_val(trunk.runs()) as u64,
        }
    }

    /// What a pass reads of the trunk, if it is streamed whole.
    #[must_use]
    pub fn trunk(&self) -> u64 {
        self.matrices.iter().map(|matrix| matrix.read).sum()
    }
}

impl MatrixSizes {
    fn of(id: TensorId, trunk: &Trunk) -> Self {
        let runs: Vec<usize> = trunk.run_numbers(id).collect();
        Self {
            id,
            read: trunk.runs_of(id).iter().map(Run::bytes).sum(),
            pinned: trunk::pinned_bytes(trunk, id),
            buffer: trunk::buffer_bytes(trunk, &runs) as u64,
        }
    }
}

fn row_bytes(run: &Run) -> u64 {
    run.bytes() / run.rows.len() as u64
}
