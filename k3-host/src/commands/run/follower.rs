//! What follows a run while it goes.

use std::cell::RefCell;
use std::ops::Range;
use std::time::Instant;

use k3_core::generate::{Hooks, Request};
use k3_core::model::sequence::Sequence;
use k3_core::report::{Step, Stop};
use k3_core::sample::Sampler;

use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::TextOutput;
use crate::progress::{Moment, Progress};
use crate::report::LogitDump;
use crate::traffic::Totals;

/// Follows a run: prints, counts and collects.
pub struct Follower<'a> {
    /// What computes, and counts what it reads.
    pub engine: &'a Engine,
    /// Says what is done.
    pub progress: Progress<'a>,
    /// Prints the text, if the run is one of text.
    pub text: Option<TextOutput<'a>>,
    /// Collects the logits, if somebody wants them.
    pub logits: Option<&'a mut LogitDump>,
    /// Ends the run early.
    pub interrupt: Interrupt,
}

/// What was followed.
pub struct Followed {
    /// Why it ended.
    pub ending: Outcome<Stop>,
    /// The ids generated before.
    pub steps: Vec<Step>,
    /// The text of them, if the run is one of text.
    pub text: Option<String>,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What was read meanwhile, if anything is counted.
    pub traffic: Option<Totals>,
}

impl Follower<'_> {
    /// Follows `request` to its end.
    pub fn follow(mut self, request: &Request<'_>, sequence: &mut Sequence<'_>, sampler: &mut Sampler) -> Followed {
        let clock = Clock { started: Instant::now(), engine: self.engine };
        let start = clock.now();
        self.progress.begin(request.prompt.len(), sequence.fed().ids.len(), start);
        let ending = self.engine.enter(|| self.generate(&clock, request, sequence, sampler));
        let end = clock.now();
        let steps = self.progress.into_steps();
        let (mut finished, mut whole) = (Ok(()), None);
        if let Some(mut text) = self.text {
            if ending.is_ok() || !steps.is_empty() {
                finished = text.finish();
            }
            whole = Some(text.into_text());
        }
        Followed {
            ending: ending.and_then(|stop| finished.map(|()| stop)),
            steps,
            text: whole,
            seconds: end.seconds - start.seconds,
            traffic: end.totals.map(|totals| totals.since(&start.totals.unwrap_or_default())),
        }
    }

    fn generate(
        &mut self,
        clock: &Clock<'_>,
        request: &Request<'_>,
        sequence: &mut Sequence<'_>,
        sampler: &mut Sampler,
    ) -> Outcome<Stop> {
        let wants_logits = self.logits.is_some();
        let follower = RefCell::new(self);
        let mut steps = |step| follower.borrow_mut().step(step, clock.now());
        let mut logits =
            |positions: Range<usize>, logits: &[f32]| follower.borrow_mut().collect_logits(positions, logits);
        let mut go_on = |fed| follower.borrow_mut().goes_on(fed, clock.now());
        let hooks = Hooks {
            clock: &|| clock.now().seconds,
            steps: &mut steps,
            logits: wants_logits.then_some(&mut logits),
            go_on: Some(&mut go_on),
        };
        request.generate(sequence, sampler, hooks)
    }

    fn goes_on(&mut self, fed: usize, now: Moment) -> bool {
        self.progress.before_pass(fed, now);
        !self.interrupt.is_requested()
    }

    fn step(&mut self, step: Step, now: Moment) -> Outcome {
        let id = step.id;
        self.progress.step(step, now);
        self.text.as_mut().map_or(Ok(()), |text| text.push(id))
    }

    fn collect_logits(&mut self, positions: Range<usize>, logits: &[f32]) -> Outcome {
        let Some(dump) = self.logits.as_deref_mut() else { return Ok(()) };
        dump.write_new(positions, logits).map_err(Failure::not_written)
    }
}

/// Tells the time and what was read.
struct Clock<'a> {
    started: Instant,
    engine: &'a Engine,
}

impl Clock<'_> {
    fn now(&self) -> Moment {
        Moment { seconds: self.started.elapsed().as_secs_f64(), totals: self.engine.traffic() }
    }
}
