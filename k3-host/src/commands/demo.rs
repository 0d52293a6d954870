//! `demo`: does this program compute what the model's published code computes?

use std::path::PathBuf;

use include_dir::{Dir, include_dir};
use k3_core::model::scratch::WantedLogits;
use k3_core::ops::arg_max;

use crate::args::EngineArgs;
use crate::bundled;
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::oracle::Oracle;
use crate::plan::Demand;

/// The bundled 13-layer model in the released layout, with logits from the model's published code.
static BUNDLED: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../fixtures/oracle/a");

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Check this model instead: a checkpoint directory with a folder `expected`
    #[arg(value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Runs the command.
///
/// # Errors
/// If any verdict is a mismatch.
pub fn run(args: &DemoArgs) -> Outcome {
    let (engine, oracle) = open(args)?;
    let layers = engine.model().config().layers.len();
    println!("{layers} layers, {} kernels, {} threads", engine.backend().name(), engine.threads());
    let verdicts = engine.enter(|| -> Outcome<_> {
        Ok([
            ("teacher forcing", teacher_forcing(&engine, &oracle)?),
            ("greedy decode", decode(&engine, &oracle, Decode::FullRecompute)?),
            ("incremental decode", decode(&engine, &oracle, Decode::Incremental)?),
        ])
    })?;
    for (name, verdict) in &verdicts {
        let (word, detail) = match verdict {
            Ok(detail) => ("ok", detail),
            Err(detail) => ("MISMATCH", detail),
        };
        println!("{name:<20}{word:<10}{detail}");
    }
    match verdicts.iter().all(|(_, verdict)| verdict.is_ok()) {
        true => Ok(()),
        false => Err(Failure::failed("the answer is not the published code's")),
    }
}

/// What was compared: fine, or the first difference.
type Verdict = Result<String, String>;

fn open(args: &DemoArgs) -> Outcome<(Engine, Oracle)> {
    match &args.checkpoint {
        Some(folder) => {
            let oracle = Oracle::read(&folder.join("expected"))?;
            let positions = oracle.full_ids.len().max(oracle.prompt_ids.len() + oracle.greedy_new_ids.len());
            let demand = Demand { logits: WantedLogits::All, ..Demand::positions(positions) };
            Ok((Engine::open(folder, &args.engine, &demand)?, oracle))
        }
        None => {
            let (config, source) = bundled::open(&BUNDLED)?;
            Ok((Engine::new(config, source, &args.engine)?, Oracle::bundled(&BUNDLED)?))
        }
    }
}

/// Feeds the whole reference sequence and compares the logits of every position.
fn teacher_forcing(engine: &Engine, oracle: &Oracle) -> Outcome<Verdict> {
    let ids = &oracle.full_ids;
    let mut sequence = engine.sequence(ids.len(), WantedLogits::All)?;
    let vocabulary = engine.model().config().vocabulary;
    let (mut worst, mut wrong) = (0.0_f64, None);
    sequence.extend_observed::<Failure>(ids, &mut |positions, logits| {
        for (position, logits) in positions.zip(logits.chunks_exact(vocabulary)) {
            worst = worst.max(oracle.worst_difference(position, logits));
            if arg_max(logits) as u32 != oracle.argmax_per_position[position] {
                wrong.get_or_insert(position);
            }
        }
        Ok(())
    })?;
    let tolerance = oracle.tolerance();
    Ok(match wrong {
        Some(position) => Err(format!("position {position} has another arg-max")),
        None if worst > tolerance => Err(format!("a logit is off by {worst:.2e}, more than {tolerance:.2e}")),
        None => Ok(format!("{} positions, logits within {worst:.2e} of {tolerance:.2e} allowed", ids.len())),
    })
}

/// How the state before a new token comes about.
#[derive(Clone, Copy, PartialEq)]
enum Decode {
    /// Everything is fed from the start again.
    FullRecompute,
    /// Only the new token is fed.
    Incremental,
}

/// Generates from the prompt and compares the ids.
fn decode(engine: &Engine, oracle: &Oracle, how: Decode) -> Outcome<Verdict> {
    let expected = &oracle.greedy_new_ids;
    let capacity = oracle.prompt_ids.len() + expected.len();
    let mut sequence = engine.sequence(capacity, WantedLogits::Last)?;
    let mut ids = oracle.prompt_ids.clone();
    for (step, &expected) in expected.iter().enumerate() {
        if how == Decode::FullRecompute {
            sequence.reset();
        }
        let id = arg_max(sequence.extend_to(&ids)?) as u32;
        if id != expected {
            return Ok(Err(format!("id {step} is {id}, not {expected}")));
        }
        ids.push(id);
    }
    Ok(Ok(format!("{} of {} ids", expected.len(), expected.len())))
}
