//! What a session asks of a model.

use k3_core::model::sequence::{Reuse, Sequence};

use crate::engine::Engine;

/// Says what may follow a transcript, remembering what it was fed.
pub trait Predictor {
    /// The number of positions there is room for.
    fn capacity(&self) -> usize;

    /// The number of positions fed.
    fn positions(&self) -> usize;

    /// Keeps what was fed if `transcript` begins with it, and forgets it otherwise.
    fn keep_prefix_of(&mut self, transcript: &[u32]) -> Reuse;

    /// The logits `[vocabulary]` after the last id of `transcript`, which must begin with what was fed. `go_on` is asked
    /// before each pass, with the number of positions fed so far; if it says no, there are no logits, and what was fed
    /// stays.
    ///
    /// # Errors
    /// Those of the forward pass; what was fed is then forgotten.
    fn logits_after(
        &mut self,
        transcript: &[u32],
        go_on: &mut (dyn FnMut(usize) -> bool + Send),
    ) -> k3_core::Result<Option<&[f32]>>;
}

/// A sequence, fed on the threads of its engine.
pub struct ThreadedSequence<'a> {
    engine: &'a Engine,
    sequence: Sequence<'a>,
}

impl<'a> ThreadedSequence<'a> {
    /// A predictor on a sequence of `engine`.
    #[must_use]
    pub fn new(engine: &'a Engine, sequence: Sequence<'a>) -> Self {
        Self { engine, sequence }
    }

    /// The sequence.
    #[must_use]
    pub fn sequence(&self) -> &Sequence<'a> {
        &self.sequence
    }
}

impl Predictor for ThreadedSequence<'_> {
    fn capacity(&self) -> usize {
        self.sequence.capacity()
    }

    fn positions(&self) -> usize {
        self.sequence.fed().ids.len()
    }

    fn keep_prefix_of(&mut self, transcript: &[u32]) -> Reuse {
        self.sequence.keep_prefix_of(transcript)
    }

    fn logits_after(
        &mut self,
        transcript: &[u32],
        go_on: &mut (dyn FnMut(usize) -> bool + Send),
    ) -> k3_core::Result<Option<&[f32]>> {
        let Self { engine, sequence } = self;
        engine.enter(|| sequence.extend_while(transcript, go_on))
    }
}
