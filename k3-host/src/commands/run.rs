//! `run`: a prompt in, what follows it out; both as ids or both as text.

use std::path::PathBuf;
use std::time::Instant;

use k3_core::generate::{Feeding, Hooks, Request};
use k3_core::model::scratch::WantedLogits;
use k3_core::model::sequence::{Reuse, Sequence};
use k3_core::model::state_file::Saved;
use k3_core::report::{RunReport, Step};
use k3_core::sample::Sampler;

use crate::args::EngineArgs;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::output::{Printing, TextOutput, print};
use crate::plan::Demand;
use crate::prompt::{Prompt, PromptArgs};
use crate::replace::Replacement;
use crate::report::{self, LogitDump};
use crate::sampling::SamplingArgs;
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
    /// End after this id was generated; may be given more than once. Text also ends at the ids of a turn's end
    /// and at those that the config names
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
    /// Write the results as JSON; `-` prints them instead of ids or text
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
    let engine = Engine::open(&args.checkpoint, &args.engine, &demand(args, &prompt))?;
    let config = engine.model().config();
    let end_ids = match &prompt.text {
        None => Vec::new(),
        Some(text) => {
            text.tokenizer.check_model(config.vocabulary)?;
            tokenizer::end_ids(&text.tokenizer, config)
        }
    };
    check_ids(args, &prompt, config.vocabulary)?;
    let mut dump = args.dump_logits.as_deref().map(LogitDump::create).transpose().map_err(Failure::not_written)?;
    let print_report = args.out.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let file = args.out.as_deref().filter(|_| !print_report);
    let file = file.map(Replacement::create).transpose().map_err(Failure::not_written)?;

    let printing = if print_report { Printing::Off } else { Printing::On };
    let mut text = prompt.text.as_ref().map(|text| TextOutput::new(&text.tokenizer, &end_ids, printing));
    let stop_ids = [&end_ids[..], &args.stop_ids].concat();
    let run = Run { engine: &engine, args, prompt: &prompt.ids, stop_ids: &stop_ids };
    let steps = engine.enter(|| run.generate(sampler, dump.as_mut(), text.as_mut()))?;
    let text = text.map(TextOutput::finish).transpose()?;

    let mut report = RunReport::new(engine.means(), &prompt.ids, &steps).with_sampling(args.sampling.settings());
    if let (Some(prompt), Some(text)) = (&prompt.text, &text) {
        report = report.with_text(&prompt.text, text);
    }
    if print_report {
        print(&format!("{}\n", serde_json::to_string_pretty(&report).map_err(anyhow::Error::from)?))?;
    } else if text.is_none() {
        let ids: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
        print(&format!("{}\n", ids.join(",")))?;
    }
    if let Some(dump) = dump {
        dump.commit().map_err(Failure::not_written)?;
    }
    if let Some(file) = file {
        report::write(&report, file).map_err(Failure::not_written)?;
    }
    Ok(())
}

/// What the run asks of an engine.
fn demand(args: &RunArgs, prompt: &Prompt) -> Demand {
    let positions = prompt.ids.len() + (args.generate as usize).saturating_sub(1);
    Demand {
        at_once: if args.full_recompute { positions } else { prompt.ids.len() },
        logits: if args.dump_logits.is_some() { WantedLogits::All } else { WantedLogits::Last },
        states: if args.load_state.is_some() { 2 } else { 1 },
        ..Demand::positions(positions)
    }
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
    prompt: &'a [u32],
    stop_ids: &'a [u32],
}

impl Run<'_> {
    /// Generates what was asked for.
    fn generate(
        &self,
        mut sampler: Sampler,
        dump: Option<&mut LogitDump>,
        text: Option<&mut TextOutput<'_>>,
    ) -> Outcome<Vec<Step>> {
        let Self { engine, args, prompt, stop_ids } = *self;
        let feeding = if args.full_recompute { Feeding::FullRecompute } else { Feeding::Incremental };
        let request = Request { prompt, count: args.generate as usize, stop_ids, feeding };
        let wanted = if dump.is_some() { WantedLogits::All } else { WantedLogits::Last };
        let capacity = request.positions();
        let mut sequence = engine.sequence(capacity, wanted)?;
        if let Some(path) = &args.load_state {
            resume(&mut sequence, state_file::load(path, engine.model(), capacity)?, prompt)?;
        }
        let started = Instant::now();
        let clock = || started.elapsed().as_secs_f64();
        let mut logit_sink = dump.map(|dump| {
            move |positions, logits: &[f32]| dump.write_new(positions, logits).map_err(Failure::not_written)
        });
        let mut id_sink = text.map(|text| move |id| text.push(id));
        let hooks = Hooks {
            clock: &clock,
            logits: logit_sink.as_mut().map(|sink| sink as _),
            ids: id_sink.as_mut().map(|sink| sink as _),
        };
        let steps = request.generate(&mut sequence, &mut sampler, hooks)?;
        if let Some(path) = &args.save_state {
            state_file::save(path, engine.model(), sequence.fed())?;
        }
        Ok(steps)
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
