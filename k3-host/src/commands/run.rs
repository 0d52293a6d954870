//! `run`: ids in, ids out.

use std::path::PathBuf;
use std::time::Instant;

use k3_core::generate::{Feeding, Request};
use k3_core::model::scratch::WantedLogits;
use k3_core::model::sequence::{Reuse, Sequence};
use k3_core::model::state_file::Saved;
use k3_core::report::{RunReport, Step};

use crate::args::EngineArgs;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::report::{self, LogitDump};
use crate::state_file;

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The prompt, as ids separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    pub ids: Vec<u32>,
    /// How many ids to generate
    #[arg(long = "gen", value_name = "N", default_value_t = 20)]
    pub generate: u32,
    /// End after this id was generated; may be given more than once
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
    /// Write the results as JSON; `-` prints them instead of the ids
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say.
pub fn run(args: &RunArgs) -> Outcome {
    let engine = Engine::open(&args.checkpoint, &args.engine)?;
    check_ids(args, engine.model().config().vocabulary)?;
    let mut dump = args.dump_logits.as_deref().map(LogitDump::create).transpose().map_err(Failure::not_written)?;
    let print_report = args.out.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let out = args
        .out
        .as_deref()
        .filter(|_| !print_report)
        .map(Replacement::create)
        .transpose()
        .map_err(Failure::not_written)?;

    let steps = engine.enter(|| generate(&engine, args, dump.as_mut()))?;

    let report = RunReport::new(engine.means(), &args.ids, &steps);
    if print_report {
        println!("{}", serde_json::to_string_pretty(&report).map_err(anyhow::Error::from)?);
    } else {
        let ids: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
        println!("{}", ids.join(","));
    }
    if let Some(dump) = dump {
        dump.commit().map_err(Failure::not_written)?;
    }
    if let Some(out) = out {
        report::write(&report, out).map_err(Failure::not_written)?;
    }
    Ok(())
}

fn check_ids(args: &RunArgs, vocabulary: usize) -> Outcome {
    for (flag, ids) in [("--ids", &args.ids), ("--stop-id", &args.stop_ids)] {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= vocabulary) {
            return Err(Failure::refused(format!(
                "{flag}: {id} is outside the vocabulary: ids go from 0 to {}",
                vocabulary - 1
            )));
        }
    }
    Ok(())
}

/// Generates what was asked for.
fn generate(engine: &Engine, args: &RunArgs, dump: Option<&mut LogitDump>) -> Outcome<Vec<Step>> {
    let feeding = if args.full_recompute { Feeding::FullRecompute } else { Feeding::Incremental };
    let count = args.generate as usize;
    let request = Request { prompt: &args.ids, count, stop_ids: &args.stop_ids, feeding };
    let wanted = if dump.is_some() { WantedLogits::All } else { WantedLogits::Last };
    let capacity = request.positions();
    let mut sequence = engine.sequence(capacity, wanted)?;
    if let Some(path) = &args.load_state {
        resume(&mut sequence, state_file::load(path, engine.model(), capacity)?, args)?;
    }
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let steps = match dump {
        None => request.generate::<Failure>(&mut sequence, &clock, None)?,
        Some(dump) => {
            let mut sink = |positions, logits: &[f32]| dump.write_new(positions, logits).map_err(Failure::not_written);
            request.generate(&mut sequence, &clock, Some(&mut sink))?
        }
    };
    if let Some(path) = &args.save_state {
        state_file::save(path, engine.model(), sequence.fed())?;
    }
    Ok(steps)
}

/// Goes on from a saved state, which the prompt must begin with.
fn resume(sequence: &mut Sequence<'_>, saved: Saved, args: &RunArgs) -> Outcome {
    sequence.restore(saved);
    match sequence.keep_prefix_of(&args.ids) {
        Reuse::Positions(_) | Reuse::Empty => Ok(()),
        Reuse::Departs { common, fed } => Err(Failure::refused(format!(
            "--load-state: the state holds {fed} positions, and the prompt departs from them after {common}; a state can \
             only be continued"
        ))),
    }
}
