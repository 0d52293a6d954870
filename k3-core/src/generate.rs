//! Generating: the loop around the model that every host shares.

use crate::Error;
use crate::model::sequence::{LogitSink, Sequence};
use crate::report::{Step, Stop, logits_hash};
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

/// Takes each step as soon as its id is chosen.
pub type StepSink<'a, E> = dyn FnMut(Step) -> Result<(), E> + 'a;

/// Says whether to go on. Asked before each pass, with the number of positions fed so far.
pub type GoOn<'a> = dyn FnMut(usize) -> bool + 'a;

/// What follows a run.
pub struct Hooks<'h, 'f, E> {
    /// Counts seconds.
    pub clock: &'h dyn Fn() -> f64,
    /// Takes what is generated.
    pub steps: &'h mut StepSink<'f, E>,
    /// Sees the logits of every position that is fed.
    pub logits: Option<&'h mut LogitSink<'f, E>>,
    /// Ends the run early. What was fed until then can be gone on from.
    pub go_on: Option<&'h mut GoOn<'f>>,
}

impl<'h, 'f, E> Hooks<'h, 'f, E> {
    /// A clock and a taker of steps, and nothing else.
    #[must_use]
    pub fn new(clock: &'h dyn Fn() -> f64, steps: &'h mut StepSink<'f, E>) -> Self {
        Self { clock, steps, logits: None, go_on: None }
    }
}

impl Request<'_> {
    /// How many positions are fed. The last id is not, since nothing follows it.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.prompt.len() + self.count.saturating_sub(1)
    }

    /// Feeds the prompt and then each id that `sampler` chooses; says why it ended. A step that was handed out stands,
    /// whatever comes after it.
    ///
    /// # Errors
    /// Those of [`Sequence::extend_to`], [`Sampler::draw`] and the hooks.
    pub fn generate<E: From<Error>>(
        &self,
        sequence: &mut Sequence<'_>,
        sampler: &mut Sampler,
        mut hooks: Hooks<'_, '_, E>,
    ) -> Result<Stop, E> {
        let mut transcript = self.prompt.to_vec();
        loop {
            let started = (hooks.clock)();
            if self.feeding == Feeding::FullRecompute {
                sequence.reset();
            }
            let Some(logits) = hooks.extend(sequence, &transcript)? else { return Ok(Stop::Interrupted) };
            if self.count == 0 {
                return Ok(Stop::Count);
            }
            let id = sampler.draw(logits)?;
            let logits_hash = logits_hash(logits);
            (hooks.steps)(Step { id, seconds: (hooks.clock)() - started, logits_hash, reads: None })?;
            if self.stop_ids.contains(&id) {
                return Ok(Stop::StopId);
            }
            transcript.push(id);
            if transcript.len() - self.prompt.len() == self.count {
                return Ok(Stop::Count);
            }
        }
    }
}

impl<E: From<Error>> Hooks<'_, '_, E> {
    /// Feeds what is new of `transcript`; no logits if the run is to end here.
    fn extend<'s>(&mut self, sequence: &'s mut Sequence<'_>, transcript: &[u32]) -> Result<Option<&'s [f32]>, E> {
        let mut always = |_| true;
        let go_on = match self.go_on.as_deref_mut() {
            Some(go_on) => go_on as &mut GoOn<'_>,
            None => &mut always,
        };
        match self.logits.as_deref_mut() {
            Some(sink) => sequence.extend_observed_while(transcript, sink, go_on),
            None => Ok(sequence.extend_while(transcript, go_on)?),
        }
    }
}
