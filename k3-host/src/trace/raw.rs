//! Traces without a header: pairs of a layer and an expert, each a little-endian u32.
//!
//! They come from runs that fed everything again for each token: pass after pass, layer after layer, and in a layer
//! position after position, each with its experts.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::num::NonZeroUsize;

use k3_core::stream::cache::ExpertGrid;

use super::{MOST_EXPERTS, Trace, TraceFile};

const PAIR_BYTES: usize = 8;

/// How pairs become batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Batching {
    /// The pairs of one layer that follow each other are a batch: all positions of a pass
    Pass,
    /// Each position is a batch
    Position,
    /// Each position once, through all layers before the next: what a run that keeps its state asks for
    Decode,
}

/// How to read pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawReading {
    /// What a batch is.
    pub batching: Batching,
    /// How many experts each position has.
    pub top_k: NonZeroUsize,
}

/// The experts of one layer, for all positions of a pass, in the order of the file.
struct Run {
    layer: usize,
    experts: Vec<usize>,
}

/// Reads pairs into batches.
pub(super) fn file(input: impl BufRead, reading: RawReading) -> Result<TraceFile, String> {
    let runs = runs(input)?;
    let layers = runs.iter().map(|run| run.layer).max().map_or(0, |layer| layer + 1);
    let experts = runs.iter().flat_map(|run| &run.experts).max().map_or(0, |expert| expert + 1);
    let mut trace = Trace::new(ExpertGrid { layers, experts })?;
    match reading.batching {
        Batching::Pass => passes(&runs, &mut trace)?,
        Batching::Position => each_position(&runs, reading.top_k, &mut trace)?,
        Batching::Decode => decode(&runs, reading.top_k, &mut trace)?,
    }
    Ok(TraceFile { trace, expert_bytes: None, engine: None })
}

/// Reads pair by pair, so that a large file of another kind is refused at its first pair that cannot be one.
fn runs(mut input: impl BufRead) -> Result<Vec<Run>, String> {
    let mut runs = Vec::<Run>::new();
    let mut pair = Vec::with_capacity(PAIR_BYTES);
    let mut number = 0_u64;
    loop {
        pair.clear();
        input.by_ref().take(PAIR_BYTES as u64).read_to_end(&mut pair).map_err(|error| error.to_string())?;
        if pair.is_empty() {
            return Ok(runs);
        }
        number += 1;
        let (&[layer, expert], []) = pair.as_chunks() else { return Err(format!("pair {number} is cut short")) };
        let [layer, expert] = [layer, expert].map(|bytes| u32::from_le_bytes(bytes) as usize);
        if layer >= MOST_EXPERTS || expert >= MOST_EXPERTS {
            return Err(format!("pair {number} is of layer {layer} and expert {expert}: the file is not a trace"));
        }
        match runs.last_mut().filter(|run| run.layer == layer) {
            Some(run) => run.experts.push(expert),
            None => runs.push(Run { layer, experts: vec![expert] }),
        }
    }
}

fn passes(runs: &[Run], trace: &mut Trace) -> Result<(), String> {
    for run in runs {
        let mut experts = run.experts.clone();
        experts.sort_unstable();
        experts.dedup();
        trace.push(run.layer, &experts)?;
    }
    Ok(())
}

fn each_position(runs: &[Run], top_k: NonZeroUsize, trace: &mut Trace) -> Result<(), String> {
    for run in runs {
        for experts in positions(run, top_k)? {
            trace.push(run.layer, &experts)?;
        }
    }
    Ok(())
}

/// The experts of each position, ascending.
fn positions(run: &Run, top_k: NonZeroUsize) -> Result<Vec<Vec<usize>>, String> {
    let Run { layer, experts } = run;
    if experts.len() % top_k.get() != 0 {
        return Err(format!("layer {layer}: {} pairs are no whole positions of {top_k} experts", experts.len()));
    }
    let sorted = |experts: &[usize]| {
        let mut experts = experts.to_vec();
        experts.sort_unstable();
        experts
    };
    Ok(experts.chunks_exact(top_k.get()).map(sorted).collect())
}

/// A pass must repeat the positions of the pass before and may add more, as it does where nothing is kept.
fn decode(runs: &[Run], top_k: NonZeroUsize, trace: &mut Trace) -> Result<(), String> {
    let mut fed = BTreeMap::<usize, Vec<Vec<usize>>>::new();
    for run in runs {
        let positions = positions(run, top_k)?;
        let before = fed.insert(run.layer, positions).unwrap_or_default();
        if !fed[&run.layer].starts_with(&before) {
            return Err(format!("layer {}: a pass does not repeat the positions of the one before", run.layer));
        }
    }
    let count = fed.values().map(Vec::len).max().unwrap_or(0);
    for position in 0..count {
        for (layer, positions) in &fed {
            let experts = positions.get(position).ok_or_else(|| {
                format!("layer {layer}: {} positions, where another layer has {count}", positions.len())
            })?;
            trace.push(*layer, experts)?;
        }
    }
    Ok(())
}
