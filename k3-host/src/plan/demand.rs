//! What a command asks of an engine.

use k3_core::model::scratch::WantedLogits;

/// What a command asks of an engine, as far as it takes memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Demand {
    /// For how many positions there must be room.
    pub positions: Positions,
    /// The most of them that are fed in one go.
    pub at_once: usize,
    /// The most logits that a pass will want.
    pub logits: WantedLogits,
    /// How many states are in memory at once: one that was loaded from a file takes the place of another.
    pub states: u64,
    /// Bytes that the command takes itself, for a tokenizer or a sampler.
    pub other_bytes: u64,
}

/// For how many positions there must be room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Positions {
    /// So many.
    Exactly(usize),
    /// As many as the model was made for, in a sensible share of the memory.
    AsFit,
}

impl Demand {
    /// Room for so many positions, of which passes want the last logits.
    #[must_use]
    pub fn positions(count: usize) -> Self {
        Self { positions: Positions::Exactly(count), ..Self::as_many_as_fit() }
    }

    /// Room for as many positions as fit, of which passes want the last logits.
    #[must_use]
    pub fn as_many_as_fit() -> Self {
        let positions = Positions::AsFit;
        Self { positions, at_once: usize::MAX, logits: WantedLogits::Last, states: 1, other_bytes: 0 }
    }
}
