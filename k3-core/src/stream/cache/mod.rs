//! Which routed experts are in memory: the bookkeeping of the expert cache, without bytes or threads.
//!
//! Experts come in *batches*: those that one layer needs for one chunk of positions, each once. A batch obeys three rules,
//! so that hits do not depend on when reads finish, and a recorded run can be replayed exactly:
//!
//! 1. What is resident when the batch begins is a hit. Hits come first, in ascending order, then misses in ascending order.
//! 2. A miss takes an unused slot, or that of an expert outside the batch, which the policy chooses.
//! 3. Only if all slots hold experts of the batch, one of those goes: the earliest of rule 1's order that is still there. An
//!    expert of the batch must therefore have been used before its slot is filled again.

mod layer_share;
mod policy;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

pub use layer_share::LayerShare;
pub use policy::Policy;

/// Marks an expert that has no slot.
const NO_SLOT: u32 = u32::MAX;

/// The experts of a model, numbered through: expert `e` of layer `l` has the number `l · experts + e`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertGrid {
    /// Layers, those without experts included.
    pub layers: usize,
    /// Experts of a layer.
    pub experts: usize,
}

impl ExpertGrid {
    /// How many numbers there are.
    #[must_use]
    pub fn len(self) -> usize {
        self.layers * self.experts
    }

    /// Whether there is no expert.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The number of an expert.
    #[must_use]
    pub fn number(self, layer: usize, expert: usize) -> usize {
        layer * self.experts + expert
    }
}

/// Whether an expert has to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// No: it is in its slot.
    Hit,
    /// Yes, into its slot.
    Miss,
}

/// How one expert of a batch is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Its place in the batch.
    pub place: usize,
    /// The slot that holds it, or is to hold it.
    pub slot: usize,
    /// Whether it has to be read.
    pub outcome: Outcome,
}

/// What was asked of a cache so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Experts asked for; always the sum of the other two.
    pub requests: u64,
    /// Those that were resident.
    pub hits: u64,
    /// Those that were not.
    pub misses: u64,
}

/// Says which expert is in which slot.
///
/// Invariants: (1) a slot is unused or has one occupant, and an expert has one slot or none, each naming the other; (2) the
/// policy holds exactly the resident experts.
#[derive(Debug)]
pub struct ExpertCache<P = LayerShare> {
    grid: ExpertGrid,
    policy: P,
    /// For each expert, its slot or [`NO_SLOT`].
    slots: Vec<u32>,
    /// Slots without an occupant; the last is taken next.
    unused: Vec<u32>,
    counters: Counters,
}

impl<P: Policy> ExpertCache<P> {
    /// An empty cache. Slots beyond the number of experts are not made.
    ///
    /// # Panics
    /// If the experts cannot be numbered in 32 bits.
    #[must_use]
    pub fn new(grid: ExpertGrid, slots: NonZeroUsize, policy: P) -> Self {
        let most =
            u32::try_from(grid.len()).ok().filter(|most| *most < NO_SLOT).expect("experts are numbered in 32 bits");
        let count = u32::try_from(slots.get()).map_or(most, |slots| slots.min(most));
        let unused = (0..count).rev().collect();
        Self { grid, policy, slots: vec![NO_SLOT; grid.len()], unused, counters: Counters::default() }
    }

    /// Serves a batch: `experts` of `layer`, ascending. `accesses` then has one entry for each of them, in the order of
    /// rule 1, which is the order in which they have to be used where a slot occurs twice. It is the caller's so that it
    /// can be used again: nothing is allocated once it has room for the largest batch.
    ///
    /// # Panics
    /// If an expert does not exist, or they do not ascend.
    pub fn request(&mut self, layer: usize, experts: &[usize], accesses: &mut Vec<Access>) {
        assert!(layer < self.grid.layers, "layer {layer} of {}", self.grid.layers);
        assert!(experts.last().is_none_or(|last| *last < self.grid.experts), "an expert above {}", self.grid.experts);
        assert!(experts.is_sorted_by(|one, next| one < next), "the experts of a batch ascend");
        accesses.clear();
        self.policy.begin(layer);
        self.counters.requests += experts.len() as u64;
        self.serve_hits(layer, experts, accesses);
        self.serve_misses(layer, experts, accesses);
    }

    fn serve_hits(&mut self, layer: usize, experts: &[usize], accesses: &mut Vec<Access>) {
        for (place, &expert) in experts.iter().enumerate() {
            let number = self.grid.number(layer, expert);
            if let Some(slot) = self.slot_of(number) {
                self.policy.touch(number);
                self.counters.hits += 1;
                accesses.push(Access { place, slot, outcome: Outcome::Hit });
            }
        }
    }

    /// Admits whatever is not among the hits, which `accesses` holds.
    fn serve_misses(&mut self, layer: usize, experts: &[usize], accesses: &mut Vec<Access>) {
        let hits = accesses.len();
        let mut next_hit = 0;
        // The earliest access whose expert may still have its slot: see rule 3.
        let mut oldest = 0;
        for (place, &expert) in experts.iter().enumerate() {
            if next_hit < hits && accesses[next_hit].place == place {
                next_hit += 1;
                continue;
            }
            let number = self.grid.number(layer, expert);
            let slot = self.unused.pop().or_else(|| self.evict()).unwrap_or_else(|| {
                let Access { place, slot, .. } = accesses[oldest];
                oldest += 1;
                let evicted = self.grid.number(layer, experts[place]);
                self.policy.remove(evicted);
                self.slots[evicted] = NO_SLOT;
                slot as u32
            });
            self.policy.touch(number);
            self.policy.admit(number);
            self.slots[number] = slot;
            self.counters.misses += 1;
            accesses.push(Access { place, slot: slot as usize, outcome: Outcome::Miss });
        }
    }

    /// Frees the slot of an expert outside the batch.
    fn evict(&mut self) -> Option<u32> {
        let victim = self.policy.evict()?;
        Some(core::mem::replace(&mut self.slots[victim], NO_SLOT))
    }

    /// Takes an expert out whose bytes are not in its slot, because a read failed or was never begun. Experts that are
    /// not resident are left as they are.
    ///
    /// # Panics
    /// If there is no such expert.
    pub fn forget(&mut self, layer: usize, expert: usize) {
        assert!(layer < self.grid.layers && expert < self.grid.experts, "no expert {expert} in layer {layer}");
        let number = self.grid.number(layer, expert);
        if let Some(slot) = self.slot_of(number) {
            self.policy.remove(number);
            self.slots[number] = NO_SLOT;
            self.unused.push(slot as u32);
        }
    }

    /// What was asked for so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether an expert is in its slot, or is being read into it.
    ///
    /// # Panics
    /// If there is no such expert.
    #[must_use]
    pub fn is_resident(&self, layer: usize, expert: usize) -> bool {
        self.slot_of(self.grid.number(layer, expert)).is_some()
    }

    fn slot_of(&self, number: usize) -> Option<usize> {
        let slot = self.slots[number];
        (slot != NO_SLOT).then_some(slot as usize)
    }
}
