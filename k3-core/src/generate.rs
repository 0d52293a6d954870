//! Generating greedily: the loop around the model that every host shares.

use alloc::vec::Vec;

use crate::Error;
use crate::model::sequence::{LogitSink, Sequence};
use crate::ops::arg_max;
use crate::report::{Step, logits_hash};

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

impl Request<'_> {
    /// How many positions are fed. The last id is not, since nothing follows it.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.prompt.len() + self.count.saturating_sub(1)
    }

    /// Feeds the prompt and then each generated id. `clock` counts seconds; `sink`, if there is one, sees the logits of
    /// every position that is fed.
    ///
    /// # Errors
    /// Those of [`Sequence::extend_to`] and of `sink`.
    pub fn generate<E: From<Error>>(
        &self,
        sequence: &mut Sequence<'_>,
        clock: &dyn Fn() -> f64,
        mut sink: Option<&mut LogitSink<'_, E>>,
    ) -> Result<Vec<Step>, E> {
        let mut transcript = self.prompt.to_vec();
        let mut steps: Vec<Step> = Vec::new();
        loop {
            let started = clock();
            if self.feeding == Feeding::FullRecompute {
                sequence.reset();
            }
            let logits = match sink.as_deref_mut() {
                None => sequence.extend_to(&transcript)?,
                Some(sink) => sequence.extend_observed(&transcript, sink)?,
            };
            if steps.len() == self.count {
                return Ok(steps);
            }
            let id = arg_max(logits) as u32;
            steps.push(Step { id, seconds: clock() - started, logits_hash: logits_hash(logits) });
            if steps.len() == self.count || self.stop_ids.contains(&id) {
                return Ok(steps);
            }
            transcript.push(id);
        }
    }
}
