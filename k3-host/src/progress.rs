//! What a run says of itself while it runs: a line for each part of the prompt and for each id, and what they took.

use k3_core::report::{Step, StepReads};
use k3_core::tokenizer::Tokenizer;

use crate::memory::readable;
use crate::output::Output;
use crate::summary::{percent, readable_seconds};
use crate::traffic::Totals;

/// How much is said on standard error, besides errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// Nothing.
    Nothing,
    /// How it went in all.
    Summary,
    /// That, and each step as it is done.
    Steps,
}

/// A moment of a run.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Seconds since the start.
    pub seconds: f64,
    /// What was read until then, if anything is counted.
    pub totals: Option<Totals>,
}

/// Follows a run, and says so.
///
/// Its notes are a convenience: if they cannot be written, the run goes on.
pub struct Progress<'a> {
    notes: &'a mut Output,
    detail: Detail,
    tokenizer: Option<&'a Tokenizer>,
    prompt: usize,
    fed: usize,
    steps: Vec<Step>,
    last_line: Moment,
    last_step: Moment,
}

impl<'a> Progress<'a> {
    /// Begins to follow a run. Ids are shown with their text if there is a tokenizer.
    pub fn new(notes: &'a mut Output, detail: Detail, tokenizer: Option<&'a Tokenizer>) -> Self {
        let start = Moment { seconds: 0.0, totals: None };
        Self { notes, detail, tokenizer, prompt: 0, fed: 0, steps: Vec::new(), last_line: start, last_step: start }
    }

    /// A prompt of `ids` ids is about to be fed, `fed` of which were fed before.
    pub fn begin(&mut self, ids: usize, fed: usize, now: Moment) {
        (self.prompt, self.fed) = (ids, fed);
        (self.last_line, self.last_step) = (now, now);
        match fed {
            0 => self.say(&format!("prompt of {ids} ids")),
            _ => self.say(&format!("prompt of {ids} ids, {fed} of them from the state")),
        }
    }

    /// A pass is about to begin; `fed` positions are fed.
    pub fn before_pass(&mut self, fed: usize, now: Moment) {
        if self.steps.is_empty() && fed > self.fed {
            let took = readable_seconds(now.seconds - self.last_line.seconds);
            let reads = reads_between(&self.last_line, &now);
            self.say(&format!("prompt {fed} of {}  {took}  {}", self.prompt, describe(reads)));
            (self.fed, self.last_line) = (fed, now);
        }
    }

    /// An id was chosen.
    pub fn step(&mut self, step: Step, now: Moment) {
        let reads = reads_between(&self.last_step, &now);
        (self.last_line, self.last_step) = (now, now);
        let text = self.tokenizer.and_then(|tokenizer| tokenizer.token(step.id).ok()).map(quoted).unwrap_or_default();
        let number = self.steps.len() + 1;
        let took = readable_seconds(step.seconds);
        self.say(&format!("{number:>3}  id {}{text}  {took}  {}", step.id, describe(reads)));
        self.steps.push(Step { reads, ..step });
    }

    /// The steps, once there are no more.
    #[must_use]
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn say(&mut self, line: &str) {
        if self.detail >= Detail::Steps {
            let _ = writeln!(self.notes, "{line}");
        }
    }
}

fn reads_between(earlier: &Moment, now: &Moment) -> Option<StepReads> {
    let totals = now.totals?.since(&earlier.totals.unwrap_or_default());
    Some(StepReads {
        bytes_read: totals.bytes_read(),
        expert_requests: totals.expert_requests,
        resident_hits: totals.resident_hits,
        prefetch_hits: totals.prefetch_hits,
    })
}

fn describe(reads: Option<StepReads>) -> String {
    let Some(StepReads { bytes_read, expert_requests, resident_hits, .. }) = reads else {
        return "all in memory".into();
    };
    let rate = (expert_requests > 0).then(|| resident_hits as f64 / expert_requests as f64);
    format!("{} read  hits {}", readable(bytes_read), percent(rate))
}

/// The text of an id in quotes, with what cannot be shown escaped.
fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => format!("  {text:?}"),
        Err(_) => format!("  \"{}\"", bytes.escape_ascii()),
    }
}
