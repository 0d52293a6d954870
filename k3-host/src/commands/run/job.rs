//! A run from its prompt to what it leaves behind.

use k3_core::generate::{Feeding, Request};
use k3_core::model::scratch::WantedLogits;
use k3_core::model::sequence::{Reuse, Sequence};
use k3_core::report::{RunReport, Stop};
use k3_core::sample::Sampler;

use super::RunArgs;
use super::files::Files;
use super::follower::{Followed, Follower};
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{Output, TextOutput, print};
use crate::plan::Demand;
use crate::progress::{Detail, Progress};
use crate::prompt::Prompt;
use crate::report::Results;
use crate::summary::{Phase, Rates, Summary};
use crate::{memory, state_file, tokenizer};

/// A run that was asked for.
pub struct Job<'a> {
    args: &'a RunArgs,
    prompt: Prompt,
    sampler: Sampler,
}

/// What a run meets besides the model.
pub struct Outside<'a> {
    /// Takes the ids or the text, or the results.
    pub output: &'a mut Output,
    /// Takes what is said of the run.
    pub notes: &'a mut Output,
    /// How much that is.
    pub detail: Detail,
    /// Ends the run early.
    pub interrupt: Interrupt,
}

impl<'a> Job<'a> {
    /// Reads what was asked for.
    ///
    /// # Errors
    /// A refusal if a setting is out of range; those of reading the prompt.
    pub fn read(args: &'a RunArgs) -> Outcome<Self> {
        let sampler = args.sampling.sampler()?;
        Ok(Self { args, prompt: args.prompt.read(&args.checkpoint)?, sampler })
    }

    /// What the run asks of an engine.
    #[must_use]
    pub fn demand(&self) -> Demand {
        let request = request(self.args, &self.prompt.ids);
        let at_once = match request.feeding {
            Feeding::Incremental => request.prompt.len(),
            Feeding::FullRecompute => request.positions(),
        };
        let demand = Demand {
            at_once,
            logits: self.wanted_logits(),
            states: if self.args.load_state.is_some() { 2 } else { 1 },
            ..Demand::positions(request.positions())
        };
        if self.prompt.text.is_some() { demand.with_tokenizer() } else { demand }
    }

    fn wanted_logits(&self) -> WantedLogits {
        if self.args.dump_logits.is_some() { WantedLogits::All } else { WantedLogits::Last }
    }

    /// Generates on `engine`. The steps before an error stand: they are printed and reported. The state is saved unless there
    /// is none: nothing was fed yet, or a pass failed.
    ///
    /// # Errors
    /// As the exit codes of the command say; if several things failed, the first. The others are noted.
    pub fn run(mut self, engine: &Engine, outside: Outside<'_>) -> Outcome {
        let Outside { output, notes, detail, interrupt } = outside;
        let end_ids = self.end_ids(engine)?;
        self.check_ids(engine.model().config().vocabulary)?;
        let mut files = Files::begin(self.args, engine)?;
        let mut sequence = self.sequence(engine)?;
        let reused = sequence.fed().ids.len();

        let prompt_text = self.prompt.text.as_ref();
        let streamed = (!self.args.prints_results()).then_some(&mut *output);
        let follower = Follower {
            engine,
            progress: Progress::new(&mut *notes, detail, prompt_text.map(|text| &text.tokenizer)),
            text: prompt_text.map(|text| TextOutput::new(&text.tokenizer, &end_ids, streamed)),
            logits: files.logits.as_mut(),
            interrupt,
        };
        let stop_ids = [&end_ids[..], &self.args.stop_ids].concat();
        let request = Request { stop_ids: &stop_ids, ..request(self.args, &self.prompt.ids) };
        let followed = follower.follow(&request, &mut sequence, &mut self.sampler);

        let state = sequence.fed();
        // After a failed pass the sequence is empty, but what came of it before was fed.
        let prompt_fed = if followed.steps.is_empty() { state.ids.len() } else { request.prompt.len() };
        let summary = summary(&followed, prompt_fed.saturating_sub(reused), engine);
        if detail >= Detail::Summary {
            // A convenience, like all notes.
            let _ = write!(notes, "{summary}");
        }
        let results = Results { run: self.report(engine, &followed), summary: &summary };
        let failed = followed.ending.is_err();
        let outcomes = [
            if state.ids.is_empty() { Ok(()) } else { files.save_state(engine.model(), state) },
            if failed { Ok(()) } else { files.finish_logits() },
            if failed { Ok(()) } else { files.finish_cache_trace() },
            files.write_results(&results),
            self.print(&results, &followed, output),
        ];
        conclude(followed.ending, outcomes, notes)
    }

    /// The ids at which a text ends.
    fn end_ids(&self, engine: &Engine) -> Outcome<Vec<u32>> {
        let Some(text) = &self.prompt.text else { return Ok(Vec::new()) };
        let config = engine.model().config();
        text.tokenizer.check_model(config.vocabulary)?;
        Ok(tokenizer::end_ids(&text.tokenizer, config))
    }

    fn check_ids(&self, vocabulary: usize) -> Outcome {
        for (flag, ids) in [("--ids", &self.prompt.ids), ("--stop-id", &self.args.stop_ids)] {
            if let Some(id) = ids.iter().find(|&&id| id as usize >= vocabulary) {
                return Err(Failure::refused(format!(
                    "{flag}: {id} is outside the vocabulary: ids go from 0 to {}",
                    vocabulary - 1
                )));
            }
        }
        Ok(())
    }

    /// A sequence with room for the run, which goes on from a state if one was given.
    fn sequence<'e>(&self, engine: &'e Engine) -> Outcome<Sequence<'e>> {
        let capacity = request(self.args, &self.prompt.ids).positions();
        let mut sequence = engine.sequence(capacity, self.wanted_logits())?;
        if let Some(path) = &self.args.load_state {
            sequence.restore(state_file::load(path, engine.model(), capacity)?);
            check_reuse(sequence.keep_prefix_of(&self.prompt.ids))?;
        }
        Ok(sequence)
    }

    fn report<'r>(&'r self, engine: &Engine, followed: &'r Followed) -> RunReport<'r> {
        let ending = followed.ending.as_ref().map_err(|failure| format!("{:#}", failure.error));
        let report = RunReport::new(engine.means(), &self.prompt.ids, &followed.steps)
            .with_sampling(self.args.sampling.settings())
            .with_ending(ending.copied());
        match (&self.prompt.text, &followed.text) {
            (Some(prompt), Some(text)) => report.with_text(&prompt.text, text),
            _ => report,
        }
    }

    /// Prints what was not printed on the way: the results, or the ids of a run without text.
    fn print(&self, results: &Results<'_>, followed: &Followed, output: &mut Output) -> Outcome {
        let nothing = followed.ending.is_err() && followed.steps.is_empty();
        if self.args.prints_results() {
            results.print(output)
        } else if followed.text.is_some() || nothing {
            Ok(())
        } else {
            let ids: Vec<String> = followed.steps.iter().map(|step| step.id.to_string()).collect();
            print(output, &format!("{}\n", ids.join(",")))
        }
    }
}

/// What is asked of the model.
fn request<'r>(args: &RunArgs, prompt: &'r [u32]) -> Request<'r> {
    let feeding = if args.full_recompute { Feeding::FullRecompute } else { Feeding::Incremental };
    Request { prompt, count: args.generate as usize, stop_ids: &[], feeding }
}

/// A saved state must be one that the prompt begins with.
fn check_reuse(reuse: Reuse) -> Outcome {
    match reuse {
        Reuse::Positions(_) | Reuse::Empty => Ok(()),
        Reuse::Departs { common, fed } => Err(Failure::refused(format!(
            "--load-state: the state holds {fed} positions, and the prompt departs from them after {common}; a state can \
             only be continued"
        ))),
    }
}

/// How it went, of a run that fed `prompt` positions of its prompt.
fn summary(followed: &Followed, prompt: usize, engine: &Engine) -> Summary {
    let steps = &followed.steps;
    let prompt_seconds = steps.first().map_or(followed.seconds, |step| step.seconds);
    let after = steps.get(1..).unwrap_or_default();
    Summary {
        prompt: Phase::new(prompt, prompt_seconds),
        decode: Phase::new(after.len(), after.iter().fold(0.0, |sum, step| sum + step.seconds)),
        seconds: followed.seconds,
        peak_bytes: memory::peak(),
        planned_bytes: engine.planned_bytes(),
        traffic: followed.traffic,
        rates: followed.traffic.as_ref().map(Rates::of),
    }
}

/// The first failure of a run and of what came after it, or else that it was interrupted. Further failures are noted.
fn conclude(ending: Outcome<Stop>, outcomes: [Outcome; 5], notes: &mut Output) -> Outcome {
    let interrupted = match &ending {
        Ok(Stop::Interrupted) => Err(Failure::interrupted("interrupted; what was computed until then is written")),
        _ => Ok(()),
    };
    let mut failures = [ending.map(|_| ())].into_iter().chain(outcomes).chain([interrupted]).filter_map(Outcome::err);
    let first = failures.next();
    for further in failures {
        let _ = writeln!(notes, "error: {:#}", further.error);
    }
    first.map_or(Ok(()), Err)
}
