//! What memory is spent on.

use serde::Serialize;

/// The bytes of every part of the process's memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// The program, its threads, and what opening a checkpoint leaves behind.
    pub program: u64,
    /// Where every tensor lies.
    pub index: u64,
    /// The small vectors of the model.
    pub vectors: u64,
    /// What a sequence carries on: recurrent states and the latent cache.
    pub state: u64,
    /// Intermediate values and logits of a pass.
    pub scratch: u64,
    /// What the command takes itself.
    pub command: u64,
    /// All weights, if they are in memory.
    pub weights: u64,
    /// The trunk that is pinned.
    pub pinned_trunk: u64,
    /// The buffers that the rest of it is read ahead into.
    pub read_ahead: u64,
    /// The slots for routed experts.
    pub expert_cache: u64,
}

impl Parts {
    /// Each part with its name, in the order in which they are decided.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, u64); 10] {
        [
            ("program and threads", self.program),
            ("index", self.index),
            ("small vectors", self.vectors),
            ("state", self.state),
            ("scratch and logits", self.scratch),
            ("command", self.command),
            ("weights in memory", self.weights),
            ("read-ahead", self.read_ahead),
            ("expert cache", self.expert_cache),
            ("pinned trunk", self.pinned_trunk),
        ]
    }

    /// All of them together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.rows().iter().map(|(_, bytes)| bytes).sum()
    }
}
