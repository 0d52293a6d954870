//! The policy of the engine: every layer has the same share of the slots, and keeps in it what it uses most.
//!
//! A decode step goes through the layers in turn. Least-recently-used is at its worst there: with fewer slots than one
//! token uses, every expert is evicted shortly before its layer comes round again, and nothing is ever hit. So the layer
//! that holds most gives up a slot, which leaves each layer the same share; within the layer the expert with the least
//! use goes, where the uses of the past count less with every visit of the layer. Uses are counted for all experts, resident
//! or not, so that one that is often missed wins a slot in the end. `docs/results/experts.md` has the measurements.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::{ExpertGrid, Policy};

/// What one use adds to an expert's score.
const USE: u32 = 1 << 24;
/// At each visit of its layer an expert loses its score's 2⁻⁵th part: half of it in 22 visits. A score
/// grows to about 2²⁹ at most.
const DECAY_SHIFT: u32 = 5;

/// Where an expert stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Absent,
    Resident,
    /// Resident, and of the current batch.
    InBatch,
}

/// Equal shares for all layers, and within a layer the most used experts.
#[derive(Debug)]
pub struct LayerShare {
    grid: ExpertGrid,
    /// For each expert, its uses, each less by [`DECAY_SHIFT`] for every visit of the layer since.
    scores: Vec<u32>,
    /// For each expert.
    standings: Vec<Standing>,
    /// For each layer, how many of its experts are resident.
    held: Vec<usize>,
    /// The layer of the current batch.
    current: usize,
    /// How many experts are [`Standing::InBatch`]; all are of `current`.
    in_batch: usize,
}

impl LayerShare {
    /// The name that traces and results use.
    pub const NAME: &str = "layer-share";

    /// No expert is resident or was ever used.
    #[must_use]
    pub fn new(grid: ExpertGrid) -> Self {
        Self {
            grid,
            scores: vec![0; grid.len()],
            standings: vec![Standing::Absent; grid.len()],
            held: vec![0; grid.layers],
            current: 0,
            in_batch: 0,
        }
    }

    /// Ends the previous batch: its experts are like others.
    fn release(&mut self) {
        let row = self.grid.number(self.current, 0);
        for standing in &mut self.standings[row..][..self.grid.experts] {
            if *standing == Standing::InBatch {
                *standing = Standing::Resident;
            }
        }
        self.in_batch = 0;
    }

    /// The layer that holds most, among those that hold experts outside the batch; of equals the current one, or else the
    /// first.
    fn richest_layer(&self) -> Option<usize> {
        let batch = |layer| if layer == self.current { self.in_batch } else { 0 };
        let can_give = (0..self.grid.layers).filter(|&layer| self.held[layer] > batch(layer));
        can_give.max_by_key(|&layer| (self.held[layer], layer == self.current, Reverse(layer)))
    }
}

impl Policy for LayerShare {
    fn begin(&mut self, layer: usize) {
        self.release();
        self.current = layer;
        let row = self.grid.number(layer, 0);
        for score in &mut self.scores[row..][..self.grid.experts] {
            *score -= *score >> DECAY_SHIFT;
        }
    }

    fn touch(&mut self, number: usize) {
        self.scores[number] += USE;
        if self.standings[number] == Standing::Resident {
            self.standings[number] = Standing::InBatch;
            self.in_batch += 1;
        }
    }

    fn admit(&mut self, number: usize) {
        self.standings[number] = Standing::InBatch;
        self.in_batch += 1;
        self.held[number / self.grid.experts] += 1;
    }

    fn evict(&mut self) -> Option<usize> {
        let row = self.grid.number(self.richest_layer()?, 0);
        let numbers = row..row + self.grid.experts;
        let can_go = numbers.filter(|&number| self.standings[number] == Standing::Resident);
        let victim = can_go.min_by_key(|&number| self.scores[number])?;
        self.remove(victim);
        Some(victim)
    }

    fn remove(&mut self, number: usize) {
        if self.standings[number] == Standing::InBatch {
            self.in_batch -= 1;
        }
        self.standings[number] = Standing::Absent;
        self.held[number / self.grid.experts] -= 1;
    }
}
