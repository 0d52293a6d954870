//! Room for the intermediate values of a chunk, allocated once.

use alloc::vec::Vec;

use super::kda::KdaScratch;
use super::mla::MlaScratch;
use super::mlp::MlpScratch;
use super::moe::MoeScratch;
use super::residual::Residual;
use super::room::Room;
use crate::config::{Attention, Config, FeedForward};

/// Everything a step writes to apart from the state. One layer's values are overwritten by the next.
pub struct Scratch {
    pub(super) positions: usize,
    pub(super) residual: Residual,
    /// `[positions, hidden]`: what a sublayer reads.
    pub(super) input: Vec<f32>,
    /// `[positions, hidden]`: what a sublayer returns.
    pub(super) output: Vec<f32>,
    pub(super) kda: KdaScratch,
    pub(super) mla: MlaScratch,
    pub(super) dense: MlpScratch,
    pub(super) moe: MoeScratch,
    /// `[most wanted, vocabulary]`
    pub(super) logits: Vec<f32>,
}

/// How large the pieces are in which a sequence is worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Most positions in one pass.
    pub chunk: usize,
    /// Most positions in the state.
    pub capacity: usize,
    /// Threads of the workers.
    pub threads: usize,
    /// The most logits that a pass will want.
    pub logits: WantedLogits,
}

/// Which positions of a pass get logits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedLogits {
    /// None: there are more tokens to feed.
    None,
    /// The last one.
    Last,
    /// All.
    All,
}

impl WantedLogits {
    /// Of how many positions, in a pass over `positions`.
    pub(super) fn rows(self, positions: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Last => positions.min(1),
            Self::All => positions,
        }
    }
}

impl Scratch {
    /// The bytes of all buffers that [`Scratch::new`] would make.
    #[must_use]
    pub fn bytes(config: &Config, sizes: Sizes) -> u64 {
        Room::bytes(|room| Self::of(config, sizes, room))
    }

    /// Room for passes of the given sizes. Kinds of layers that the model does not have take none.
    #[must_use]
    pub fn new(config: &Config, sizes: Sizes) -> Self {
        Self::of(config, sizes, &mut Room::Made)
    }

    fn of(config: &Config, sizes: Sizes, room: &mut Room) -> Self {
        let Sizes { chunk, capacity, threads, logits } = sizes;
        let has_attention = |kind| config.layers.iter().any(|layer| layer.attention == kind);
        let has_feed_forward = |kind| config.layers.iter().any(|layer| layer.feed_forward == kind);
        let chunk_if = |used| if used { chunk } else { 0 };
        let has_cache = has_attention(Attention::Mla);
        let cached = if has_cache { capacity } else { 0 };
        Self {
            positions: chunk,
            residual: Residual::new(config, chunk, threads, room),
            input: room.zeros(chunk * config.hidden),
            output: room.zeros(chunk * config.hidden),
            kda: KdaScratch::new(&config.kda, chunk_if(has_attention(Attention::Kda)), threads, room),
            mla: MlaScratch::new(&config.mla, chunk_if(has_cache), [threads, cached], room),
            dense: MlpScratch::new(chunk_if(has_feed_forward(FeedForward::Dense)), config.dense_width, room),
            moe: MoeScratch::new(config, chunk_if(has_feed_forward(FeedForward::Moe)), room),
            logits: room.zeros(logits.rows(chunk) * config.vocabulary),
        }
    }
}
