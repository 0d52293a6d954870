//! Generating: the loop around the model that every host shares.

use alloc::vec::Vec;

use crate::Error;
use crate::model::sequence::{LogitSink, Sequence};
use crate::report::{Step, logits_hash};
use crate::sample::Sampler;

/// What to generate.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What comes first, at least one id.
    pub prompt: &'a [u32],
    /// How many ids to generate.
    pub count: usize,
    /// The ids that end it, themselves included.
    pub stop_ids: &'a [u32],
    /// What is fed for each id.
    pub feeding: Feeding,
}

/// What is fed for each id. Both give the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feeding {
    /// What was not fed before.
    Incremental,
    /// Everything, from the start again.
    FullRecompute,
}

/// Takes each id as soon as it is chosen.
pub type IdSink<'a, E> = dyn FnMut(u32) -> Result<(), E> + 'a;

/// What follows a run.
pub struct Hooks<'h, 'f, E> {
    /// Counts seconds.
    pub clock: &'h dyn Fn() -> f64,
    /// Sees the logits of every position that is fed.
    pub logits: Option<&'h mut LogitSink<'f, E>>,
    /// Sees the ids.
    pub ids: Option<&'h mut IdSink<'f, E>>,
}

impl<'h, E> Hooks<'h, '_, E> {
    /// A clock and nothing else.
    #[must_use]
    pub fn clock(clock: &'h dyn Fn() -> f64) -> Self {
        Self { clock, logits: None, ids: None }
    }
}

impl Request<'_> {
    /// How many positions are fed. The last id is not, since nothing follows it.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.prompt.len() + self.count.saturating_sub(1)
    }

    /// Feeds the prompt and then each id that `sampler` chooses.
    ///
    /// # Errors
    /// Those of [`Sequence::extend_to`], [`Sampler::draw`] and the hooks.
    pub fn generate<E: From<Error>>(
        &self,
        sequence: &mut Sequence<'_>,
        sampler: &mut Sampler,
        mut hooks: Hooks<'_, '_, E>,
    ) -> Result<Vec<Step>, E> {
        let mut transcript = self.prompt.to_vec();
        let mut steps: Vec<Step> = Vec::new();
        loop {
            let started = (hooks.clock)();
            if self.feeding == Feeding::FullRecompute {
                sequence.reset();
            }
            let logits = match hooks.logits.as_deref_mut() {
                None => sequence.extend_to(&transcript)?,
                Some(sink) => sequence.extend_observed(&transcript, sink)?,
            };
            if steps.len() == self.count {
                return Ok(steps);
            }
            let id = sampler.draw(logits)?;
            steps.push(Step { id, seconds: (hooks.clock)() - started, logits_hash: logits_hash(logits) });
            if let Some(ids) = hooks.ids.as_deref_mut() {
                ids(id)?;
            }
            if steps.len() == self.count || self.stop_ids.contains(&id) {
                return Ok(steps);
            }
            transcript.push(id);
        }
    }
}
