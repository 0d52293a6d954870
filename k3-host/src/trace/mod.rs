//! Traces of what a run asked its expert cache for: written by the engine, read and replayed here.
//!
//! `docs/formats.md` describes the file, `k3-trace/1`.

pub mod plot;
mod policies;
mod ranks;
mod raw;
mod reader;
mod replay;
pub mod report;
#[cfg(test)]
mod tests;
mod writer;

use std::num::NonZeroUsize;

use k3_core::stream::cache::{Counters, ExpertGrid};

pub use raw::{Batching, RawReading};
pub use reader::read;
pub use replay::{PolicyName, replay};
pub use writer::{Setting, TraceWriter};

/// The most experts of all layers together that are believed.
const MOST_EXPERTS: usize = 1 << 20;

/// The batches of a run, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    grid: ExpertGrid,
    /// The layer of each batch, and where its experts end in `experts`.
    batches: Vec<(usize, usize)>,
    experts: Vec<usize>,
}

impl Trace {
    /// No batches yet.
    ///
    /// # Errors
    /// If there are no experts, or more than is believed.
    pub fn new(grid: ExpertGrid) -> Result<Self, String> {
        let count = grid.layers.checked_mul(grid.experts).filter(|count| (1..=MOST_EXPERTS).contains(count));
        match count {
            Some(_) => Ok(Self { grid, batches: Vec::new(), experts: Vec::new() }),
            None => Err(format!(
                "{} layers of {} experts: 1 to {MOST_EXPERTS} experts in all are believed",
                grid.layers, grid.experts
            )),
        }
    }

    /// Appends a batch.
    ///
    /// # Errors
    /// If the layer or an expert does not exist, or the experts do not ascend.
    pub fn push(&mut self, layer: usize, experts: &[usize]) -> Result<(), String> {
        if layer >= self.grid.layers {
            return Err(format!("layer {layer}: layers go up to {}", self.grid.layers - 1));
        }
        if let Some(expert) = experts.iter().find(|expert| **expert >= self.grid.experts) {
            return Err(format!("expert {expert}: experts go up to {}", self.grid.experts - 1));
        }
        if !experts.is_sorted_by(|one, next| one < next) {
            return Err("the experts of a batch must ascend".to_owned());
        }
        self.experts.extend_from_slice(experts);
        self.batches.push((layer, self.experts.len()));
        Ok(())
    }

    /// The experts there may be.
    #[must_use]
    pub fn grid(&self) -> ExpertGrid {
        self.grid
    }

    /// Each batch: its layer, and its experts, ascending.
    pub fn batches(&self) -> impl DoubleEndedIterator<Item = (usize, &[usize])> + ExactSizeIterator {
        self.batches.iter().enumerate().map(|(index, &(layer, end))| {
            let begin = index.checked_sub(1).map_or(0, |before| self.batches[before].1);
            (layer, &self.experts[begin..end])
        })
    }

    /// How many experts are asked for in all.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.experts.len()
    }

    /// How many different ones.
    #[must_use]
    pub fn distinct(&self) -> usize {
        let mut seen = vec![false; self.grid.len()];
        for (layer, experts) in self.batches() {
            experts.iter().for_each(|&expert| seen[self.grid.number(layer, expert)] = true);
        }
        seen.iter().filter(|seen| **seen).count()
    }
}

/// What the engine that wrote a trace did with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineRun {
    /// How it chose who leaves the cache.
    pub policy: PolicyName,
    /// How many experts the cache held at most.
    pub slots: NonZeroUsize,
    /// What it counted.
    pub counters: Counters,
}

/// What a trace file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFile {
    /// The batches.
    pub trace: Trace,
    /// The bytes of one expert, where the file says.
    pub expert_bytes: Option<u64>,
    /// The engine's own account, where the file has one.
    pub engine: Option<EngineRun>,
}
