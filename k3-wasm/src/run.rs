//! `run`: ids in, ids out.

use std::ops::Range;
use std::time::Instant;

use k3_core::generate::{Feeding, Hooks, Request};
use k3_core::model::scratch::WantedLogits;
use k3_core::report::{RunReport, Step, Stop};
use k3_core::sample::Sampler;

use crate::args::RunArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::files::Output;
use crate::model::Engine;

/// Runs the command.
pub fn run(args: &RunArgs) -> Outcome {
    let engine = Engine::open(&args.checkpoint, &args.engine)?;
    check_ids(args, engine.vocabulary())?;
    let dump = args.dump_logits.as_deref().map(Output::create).transpose()?;
    let print_report = args.out.as_ref().is_some_and(|path| path.as_os_str() == "-");
    let out = args.out.as_deref().filter(|_| !print_report).map(Output::create).transpose()?;

    let mut steps = Vec::new();
    let stop = generate(&engine, args, dump, &mut steps)?;

    let report = RunReport::new(engine.means(), &args.ids, &steps).with_ending(Ok(stop));
    let json = serde_json::to_string_pretty(&report).map_err(|error| Failure::new(Exit::NotWritten, error))?;
    if print_report {
        println!("{json}");
    } else {
        let ids: Vec<String> = steps.iter().map(|step| step.id.to_string()).collect();
        println!("{}", ids.join(","));
    }
    if let Some(mut out) = out {
        out.write(json.as_bytes())?;
        out.write(b"\n")?;
        out.commit()?;
    }
    Ok(())
}

fn check_ids(args: &RunArgs, vocabulary: usize) -> Outcome {
    for (flag, ids) in [("--ids", &args.ids), ("--stop-id", &args.stop_ids)] {
        if let Some(id) = ids.iter().find(|&&id| id as usize >= vocabulary) {
            let last = vocabulary - 1;
            let message = format!("{flag}: {id} is outside the vocabulary: ids go from 0 to {last}");
            return Err(Failure::new(Exit::Refused, message));
        }
    }
    Ok(())
}

/// Generates what was asked for into `steps`.
fn generate(engine: &Engine, args: &RunArgs, dump: Option<Output>, steps: &mut Vec<Step>) -> Outcome<Stop> {
    let feeding = if args.full_recompute { Feeding::FullRecompute } else { Feeding::Incremental };
    let count = args.generate as usize;
    let request = Request { prompt: &args.ids, count, stop_ids: &args.stop_ids, feeding };
    let wanted = if dump.is_some() { WantedLogits::All } else { WantedLogits::Last };
    let mut sequence = engine.sequence(request.positions(), wanted)?;
    let started = Instant::now();
    let clock = || started.elapsed().as_secs_f64();
    let mut keep = |step| {
        steps.push(step);
        Ok(())
    };
    let hooks = Hooks::new(&clock, &mut keep);
    let Some(mut dump) = dump else {
        return request.generate(&mut sequence, &mut Sampler::greedy(), hooks);
    };
    let mut written = 0;
    let mut sink = |positions: Range<usize>, logits: &[f32]| {
        let width = logits.len() / positions.len();
        let known = (written.max(positions.start) - positions.start).min(positions.len());
        written = written.max(positions.end);
        logits[known * width..].iter().try_for_each(|logit| dump.write(&logit.to_le_bytes()))
    };
    let hooks = Hooks { logits: Some(&mut sink), ..hooks };
    let stop = request.generate(&mut sequence, &mut Sampler::greedy(), hooks)?;
    dump.commit()?;
    Ok(stop)
}
