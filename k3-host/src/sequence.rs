//! A sequence being fed to a model: prompts in chunks, then token by token.

use std::ops::Range;

use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::state::State;
use k3_core::model::{Model, Pass, compute::Compute};

use crate::failure::Outcome;

/// A state with the room to work on it.
pub struct Sequence<'a> {
    model: &'a Model,
    compute: Compute<'a>,
    state: State,
    scratch: Scratch,
    chunk: usize,
}

/// Takes the logits `[rows, vocabulary]` of consecutive positions, whose range is the first argument.
pub type LogitSink<'a> = dyn FnMut(Range<usize>, &[f32]) -> Outcome + 'a;

impl<'a> Sequence<'a> {
    /// A sequence of no positions yet.
    #[must_use]
    pub fn new(model: &'a Model, compute: Compute<'a>, sizes: Sizes) -> Self {
        let config = model.config();
        Self {
            model,
            compute,
            state: State::new(config, sizes.capacity),
            scratch: Scratch::new(config, sizes),
            chunk: sizes.chunk,
        }
    }

    /// The state after what was fed.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The number of logits of a position.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.model.config().vocabulary
    }

    /// Forgets what was fed.
    pub fn reset(&mut self) {
        self.state.reset();
    }

    /// Feeds `tokens` and returns the logits after the last.
    ///
    /// # Errors
    /// Those of [`Model::forward`].
    pub fn feed(&mut self, tokens: &[u32]) -> k3_core::Result<&[f32]> {
        let split = tokens.len().saturating_sub(1) / self.chunk * self.chunk;
        let (before, last) = tokens.split_at(split);
        for tokens in before.chunks(self.chunk) {
            self.pass(tokens, WantedLogits::None)?;
        }
        self.pass(last, WantedLogits::Last)
    }

    /// Feeds `tokens` and hands the logits of every position to `sink`. The scratch must have been made for that.
    ///
    /// # Errors
    /// Those of [`Model::forward`] and of `sink`.
    pub fn feed_observed(&mut self, tokens: &[u32], sink: &mut LogitSink<'_>) -> Outcome {
        for tokens in tokens.chunks(self.chunk) {
            let start = self.state.positions();
            let logits = self.pass(tokens, WantedLogits::All)?;
            sink(start..start + tokens.len(), logits)?;
        }
        Ok(())
    }

    fn pass(&mut self, tokens: &[u32], logits: WantedLogits) -> k3_core::Result<&[f32]> {
        self.model.forward(&self.compute, &mut self.state, &mut self.scratch, Pass { tokens, logits })
    }
}
