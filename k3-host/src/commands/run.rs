//! `run`: a prompt in, what follows it out; both as ids or both as text.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::state_file::Saved;
use k3_core::sample::Sampler;
use k3_core::tokenizer::{Tokenizer, Utf8Stream};

use crate::args::EngineArgs;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::prompt::{Prompt, PromptArgs};
use crate::replace::Replacement;
use crate::report::{Generated, LogitDump, RunReport, Step, logits_hash};
use crate::sampling::SamplingArgs;
use crate::sequence::{Reuse, Sequence};
use crate::{state_file, tokenizer};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// What to go on from
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// How many ids to generate
    #[arg(long = "gen", value_name = "N", default_value_t = 20)]
    pub generate: u32,
    /// End after this id was generated; may be given more than once. Text also ends at [EOS], <|end_of_msg|> and the ids
    /// that the config names
    #[arg(long = "stop-id", value_name = "ID")]
    pub stop_ids: Vec<u32>,
    /// Feed everything from the start again for each id: slow, and the same bits
    #[arg(long)]
    pub full_recompute: bool,
    /// Write the logits of every position that was fed, as rows of little-endian f32
    #[arg(long, value_name = "FILE")]
    pub dump_logits: Option<PathBuf>,
    /// Go on from this state file; the prompt must begin with the ids that it holds
    #[arg(long, value_name = "FILE", conflicts_with = "full_recompute")]
    pub load_state: Option<PathBuf>,
    /// Save the state after the last id that was fed
    #[arg(long, value_name = "FILE")]
    pub save_state: Option<PathBuf>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to choose among the ids
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say.
pub fn run(args: &RunArgs) -> Outcome {
    let sampler = args.sampling.sampler()?;
    let prompt = args.prompt.read(&args.checkpoint)?;
    let engine = Engine::open(&args.checkpoint, &args.engine)?;
    let config = engine.model().config();
    if let Some(text) = &prompt.text {
        text.tokenizer.check_model(config.vocabulary)?;
    }
    check_ids(args, &prompt, config.vocabulary)?;
    let mut dump = args.dump_logits.as_deref().map(LogitDump::create).transpose().map_err(Failure::not_written)?;
    let out = args.out.as_deref().map(Replacement::create).transpose().map_err(Failure::not_written)?;

    let output = Output::new(&engine, &prompt);
    let run = Run { engine: &engine, args, prompt: &prompt, sampler, output };
    let generated = engine.enter(|| run.generate(dump.as_mut()))?;

    if let Some(dump) = dump {
        dump.commit().map_err(Failure::not_written)?;
    }
    if let Some(out) = out {
        let report = RunReport::new(&engine, &args.sampling, &prompt, &generated);
        report.write(out).map_err(Failure::not_written)?;
    }
    Ok(())
}

fn check_ids(args: &RunArgs, prompt: &Prompt, vocabulary: usize) -> Outcome {
    for (flag, ids) in [("--ids", &prompt.ids), ("--stop-id", &args.stop_ids)] {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(Failure::refused(format!(
                "{flag}: {id} is outside the vocabulary: ids go from 0 to {}",
                vocabulary - 1
            )));
        }
    }
    Ok(())
}

/// A run that is ready to begin.
struct Run<'a> {
    engine: &'a Engine,
    args: &'a RunArgs,
    prompt: &'a Prompt,
    sampler: Sampler,
    output: Output<'a>,
}

impl Run<'_> {
    /// Feeds the prompt and then each generated id. The last one is not fed, since nothing follows it.
    fn generate(mut self, mut dump: Option<&mut LogitDump>) -> Outcome<Generated> {
        let args = self.args;
        let wanted = if dump.is_some() { WantedLogits::All } else { WantedLogits::Last };
        let mut fed = self.prompt.ids.clone();
        let capacity = fed.len() + args.generate.saturating_sub(1) as usize;
        let mut sequence = self.engine.sequence(capacity, wanted)?;
        if let Some(path) = &args.load_state {
            resume(&mut sequence, state_file::load(path, self.engine.model(), capacity)?, &fed)?;
        }
        let mut steps = Vec::new();
        loop {
            let started = Instant::now();
            if args.full_recompute {
                sequence.reset();
            }
            let logits = match dump.as_deref_mut() {
                None => sequence.extend_to(&fed)?,
                Some(dump) => sequence.extend_observed(&fed, &mut |positions, logits| {
                    dump.write_new(positions, logits).map_err(Failure::not_written)
                })?,
            };
            if steps.len() == args.generate as usize {
                break;
            }
            let id = self.sampler.draw(logits)?;
            steps.push(Step { id, seconds: started.elapsed().as_secs_f64(), logits_hash: logits_hash(logits) });
            fed.push(id);
            self.output.push(id)?;
            if steps.len() == args.generate as usize || self.output.ends_at(id) || args.stop_ids.contains(&id) {
                break;
            }
        }
        if let Some(path) = &args.save_state {
            state_file::save(path, self.engine.model(), sequence.fed())?;
        }
        Ok(Generated { steps, text: self.output.finish()? })
    }
}

/// Goes on from a saved state, which the prompt must begin with.
fn resume(sequence: &mut Sequence<'_>, saved: Saved, prompt: &[u32]) -> Outcome {
    sequence.restore(saved);
    match sequence.keep_prefix_of(prompt) {
        Reuse::Positions(_) | Reuse::Empty => Ok(()),
        Reuse::Departs { common, fed } => Err(Failure::refused(format!(
            "--load-state: the state holds {fed} positions, and the prompt departs from them after {common}; a state can \
             only be continued"
        ))),
    }
}

/// Prints what is generated.
enum Output<'a> {
    /// As ids on one line, at the end.
    Ids(Vec<u32>),
    /// As text, as soon as its characters are whole.
    Text { tokenizer: &'a Tokenizer, end_ids: Vec<u32>, stream: Utf8Stream, text: String },
}

impl<'a> Output<'a> {
    fn new(engine: &Engine, prompt: &'a Prompt) -> Self {
        match &prompt.text {
            None => Self::Ids(Vec::new()),
            Some(prompt) => Self::Text {
                tokenizer: &prompt.tokenizer,
                end_ids: tokenizer::end_ids(&prompt.tokenizer, engine.model().config()),
                stream: Utf8Stream::new(),
                text: String::new(),
            },
        }
    }

    /// Whether generation ends at `id` of itself.
    fn ends_at(&self, id: u32) -> bool {
        match self {
            Self::Ids(_) => false,
            Self::Text { end_ids, .. } => end_ids.contains(&id),
        }
    }

    fn push(&mut self, id: u32) -> Outcome {
        match self {
            Self::Ids(ids) => ids.push(id),
            Self::Text { end_ids, .. } if end_ids.contains(&id) => {}
            Self::Text { tokenizer, stream, text, .. } => {
                let piece = stream.push_text(tokenizer.token(id)?);
                print(&piece)?;
                text.push_str(&piece);
            }
        }
        Ok(())
    }

    /// Prints what is left, and returns the whole text if it is text.
    fn finish(self) -> Outcome<Option<String>> {
        match self {
            Self::Ids(ids) => {
                let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                print(&format!("{}\n", ids.join(",")))?;
                Ok(None)
            }
            Self::Text { mut stream, mut text, .. } => {
                let piece = stream.finish_text();
                print(&format!("{piece}\n"))?;
                text.push_str(&piece);
                Ok(Some(text))
            }
        }
    }
}

fn print(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.context("cannot write to standard output").map_err(Failure::not_written)
}
