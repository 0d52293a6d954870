//! `run`: ids in, ids out.

use std::path::PathBuf;
use std::time::Instant;

use k3_core::model::scratch::WantedLogits;
use k3_core::model::state_file::Saved;
use k3_core::ops::arg_max;

use crate::args::EngineArgs;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::report::{LogitDump, RunReport, Step, logits_hash};
use crate::sequence::{Reuse, Sequence};
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
    /// Write the results as JSON
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
    let out = args.out.as_deref().map(Replacement::create).transpose().map_err(Failure::not_written)?;

    let steps = engine.enter(|| generate(&engine, args, dump.as_mut()))?;

    let ids: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
    println!("{}", ids.join(","));
    if let Some(dump) = dump {
        dump.commit().map_err(Failure::not_written)?;
    }
    if let Some(out) = out {
        RunReport::new(&engine, &args.ids, &steps).write(out).map_err(Failure::not_written)?;
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

/// Feeds the prompt and then each generated id. The last one is not fed, since nothing follows it.
fn generate(engine: &Engine, args: &RunArgs, mut dump: Option<&mut LogitDump>) -> Outcome<Vec<Step>> {
    let wanted = if dump.is_some() { WantedLogits::All } else { WantedLogits::Last };
    let capacity = args.ids.len() + args.generate.saturating_sub(1) as usize;
    let mut sequence = engine.sequence(capacity, wanted)?;
    if let Some(path) = &args.load_state {
        resume(&mut sequence, state_file::load(path, engine.model(), capacity)?, args)?;
    }
    let mut fed = args.ids.clone();
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
        if steps.len() < args.generate as usize {
            let id = arg_max(logits) as u32;
            steps.push(Step { id, seconds: started.elapsed().as_secs_f64(), logits_hash: logits_hash(logits) });
            fed.push(id);
        }
        if steps.len() == args.generate as usize || fed.last().is_some_and(|id| args.stop_ids.contains(id)) {
            break;
        }
    }
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
