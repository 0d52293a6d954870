//! A sequence being fed to a model: prompts in chunks, then token by token, going on from what was fed before.

use alloc::vec::Vec;
use core::ops::Range;

use super::compute::Compute;
use super::scratch::{Scratch, Sizes, WantedLogits};
use super::state::State;
use super::state_file::Saved;
use super::{Model, Pass};
use crate::{Error, Result};

/// A state with the ids that led to it and the room to work on it.
pub struct Sequence<'a> {
    model: &'a Model,
    compute: Compute<'a>,
    scratch: Scratch,
    chunk: usize,
    fed: Saved,
}

/// Takes the logits `[rows, vocabulary]` of consecutive positions, whose range is the first argument.
pub type LogitSink<'a, E> = dyn FnMut(Range<usize>, &[f32]) -> core::result::Result<(), E> + 'a;

/// How much of a transcript need not be fed again. A recurrent state is valid only at its own length, so it is all that
/// was fed, or nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// The transcript begins with all that was fed.
    Positions(usize),
    /// Nothing was fed before.
    Empty,
    /// The transcript departs from what was fed after this many of the positions fed.
    Departs {
        /// Ids that agree.
        common: usize,
        /// Ids that were fed.
        fed: usize,
    },
}

impl Reuse {
    /// How many positions need not be fed again.
    #[must_use]
    pub fn positions(self) -> usize {
        match self {
            Self::Positions(positions) => positions,
            Self::Empty | Self::Departs { .. } => 0,
        }
    }
}

impl<'a> Sequence<'a> {
    /// A sequence of no positions yet.
    #[must_use]
    pub fn new(model: &'a Model, compute: Compute<'a>, sizes: Sizes) -> Self {
        let config = model.config();
        let fed = Saved { state: State::new(config, sizes.capacity), ids: Vec::new(), logits: Vec::new() };
        Self { model, compute, scratch: Scratch::new(config, sizes), chunk: sizes.chunk, fed }
    }

    /// Goes on from what was saved.
    pub fn restore(&mut self, saved: Saved) {
        self.fed = saved;
    }

    /// What was fed so far.
    #[must_use]
    pub fn fed(&self) -> &Saved {
        &self.fed
    }

    /// The number of positions there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.fed.state.capacity()
    }

    /// Forgets what was fed.
    pub fn reset(&mut self) {
        self.fed.state.reset();
        self.fed.ids.clear();
        self.fed.logits.clear();
    }

    /// Keeps what was fed if `transcript` begins with it, and forgets it otherwise.
    pub fn keep_prefix_of(&mut self, transcript: &[u32]) -> Reuse {
        let fed = self.fed.ids.len();
        if fed == 0 {
            return Reuse::Empty;
        }
        let common = self.fed.ids.iter().zip(transcript).take_while(|(fed, id)| fed == id).count();
        if common == fed {
            return Reuse::Positions(fed);
        }
        self.reset();
        Reuse::Departs { common, fed }
    }

    /// Feeds what is new of `transcript`, which must begin with what was fed, and returns the logits after its last id.
    ///
    /// # Errors
    /// Those of [`Model::forward`]; the sequence is then empty.
    pub fn extend_to(&mut self, transcript: &[u32]) -> Result<&[f32]> {
        self.extend_while(transcript, &mut |_| true)?;
        Ok(&self.fed.logits)
    }

    /// As [`Self::extend_to`], but asks `go_on` before each pass, with the number of positions fed so far. If it says no,
    /// there are no logits; what was fed until then stays and can be gone on from.
    ///
    /// # Errors
    /// Those of [`Model::forward`]; the sequence is then empty.
    pub fn extend_while(&mut self, transcript: &[u32], go_on: &mut dyn FnMut(usize) -> bool) -> Result<Option<&[f32]>> {
        let new = self.unfed(transcript);
        let split = new.len().saturating_sub(1) / self.chunk * self.chunk;
        let (before, last) = new.split_at(split);
        let unwanted = before.chunks(self.chunk).map(|tokens| (tokens, WantedLogits::None));
        let wanted = (!last.is_empty()).then_some((last, WantedLogits::Last));
        for (tokens, logits) in unwanted.chain(wanted) {
            if !go_on(self.fed.ids.len()) {
                return Ok(None);
            }
            self.pass(tokens, logits)?;
        }
        Ok(Some(&self.fed.logits))
    }

    /// As [`Self::extend_to`], and hands the logits of every new position to `sink`. The scratch must have been made for
    /// that.
    ///
    /// # Errors
    /// Those of [`Model::forward`] and of `sink`.
    pub fn extend_observed<E: From<Error>>(
        &mut self,
        transcript: &[u32],
        sink: &mut LogitSink<'_, E>,
    ) -> core::result::Result<&[f32], E> {
        self.extend_observed_while(transcript, sink, &mut |_| true)?;
        Ok(&self.fed.logits)
    }

    /// Both [`Self::extend_observed`] and [`Self::extend_while`].
    ///
    /// # Errors
    /// Those of [`Model::forward`] and of `sink`.
    pub fn extend_observed_while<E: From<Error>>(
        &mut self,
        transcript: &[u32],
        sink: &mut LogitSink<'_, E>,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> core::result::Result<Option<&[f32]>, E> {
        for tokens in self.unfed(transcript).chunks(self.chunk) {
            let start = self.fed.ids.len();
            if !go_on(start) {
                return Ok(None);
            }
            let logits = self.pass(tokens, WantedLogits::All)?;
            sink(start..start + tokens.len(), logits)?;
        }
        Ok(Some(&self.fed.logits))
    }

    /// What is still to be fed of `transcript`: all of it if passes that were stopped before the last one of a prompt left
    /// no logits to choose from.
    fn unfed<'t>(&mut self, transcript: &'t [u32]) -> &'t [u32] {
        if self.fed.ids.len() == transcript.len() && self.fed.logits.is_empty() {
            self.reset();
        }
        &transcript[self.fed.ids.len()..]
    }

    /// Feeds one chunk and returns the logits it asks for.
    fn pass(&mut self, tokens: &[u32], wanted: WantedLogits) -> Result<&[f32]> {
        let Self { model, compute, scratch, fed, .. } = self;
        match model.forward(compute, &mut fed.state, scratch, Pass { tokens, logits: wanted }) {
            Ok(logits) => {
                fed.ids.extend_from_slice(tokens);
                fed.logits.clear();
                fed.logits.extend_from_slice(&logits[logits.len().saturating_sub(model.config().vocabulary)..]);
                Ok(logits)
            }
            Err(error) => {
                fed.state.reset();
                fed.ids.clear();
                fed.logits.clear();
                Err(error)
            }
        }
    }
}
