//! The one place that decides between reading ahead, pinned trunk and expert cache.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use k3_core::checkpoint::names::{LayerTensor, TensorId};

use super::sizes::{MatrixSizes, WeightSizes};
use crate::streaming::{Allotment, GUESS_BUFFERS};

/// Runs that are read ahead in the smallest memory: one is computed with while the drive is busy with the others.
const FEWEST_BUFFERS: usize = 4;
/// Runs that are read ahead where there is memory: 134 MB, which a drive of 7 GB/s takes 19 ms to deliver, so that it need not
/// wait while the experts of a layer are computed.
const ENOUGH_BUFFERS: usize = 8;
/// Routed experts in memory in the smallest: one is computed with while the drive is busy with the others.
const FEWEST_SLOTS: NonZeroUsize = NonZeroUsize::new(4).unwrap();
/// Routed experts in memory before any trunk is pinned: those of one layer and token.
const ENOUGH_SLOTS: usize = 16;

/// How many experts of the next layer are guessed, where guessing pays: of so many, four in five are right.
const GUESSES: usize = 6;

/// What the user wants of the parts, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// At most so much of the trunk is pinned, and if there is more, so much.
    pub trunk: Option<u64>,
    /// So much for the expert cache.
    pub cache: Option<u64>,
    /// The trunk is read as it was packed.
    pub packed: bool,
    /// So many experts of the next layer are guessed and read ahead. That takes every router in memory.
    pub guesses: Option<usize>,
}

impl Wishes {
    /// Whether all weights may be in memory.
    #[must_use]
    pub fn allow_resident(&self) -> bool {
        self.trunk.is_none() && self.cache.is_none() && !self.packed
    }
}

/// How memory for streamed weights is split.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// What is kept and how many.
    pub allotment: Allotment,
    /// The bytes of what is pinned.
    pub pinned: u64,
    /// The bytes of the buffers.
    pub read_ahead: u64,
    /// The bytes of the slots.
    pub experts: u64,
}

impl Split {
    /// The least that the wishes allow.
    #[must_use]
    pub fn smallest(sizes: &WeightSizes, wishes: Wishes) -> Self {
        let guesses = wishes.guesses.unwrap_or(0);
        let routers = sizes.matrices.iter().map(|matrix| matrix.id).filter(is_router);
        let needed = if guesses > 0 { routers.collect() } else { BTreeSet::new() };
        let pinned = match wishes.trunk {
            Some(bytes) => pin(sizes, needed, bytes),
            None => needed,
        };
        let expert_slots = wishes.cache.map_or(FEWEST_SLOTS, |bytes| slots_in(sizes, bytes));
        Self::of(sizes, Allotment { pinned, read_ahead: FEWEST_BUFFERS, expert_slots, guesses })
    }

    /// The best use of `bytes`; `None` if they are too few.
    ///
    /// First enough slots for the experts of a layer, then enough buffers: both are small, and either one keeps the drive
    /// busy. Only then, so that more memory never pins less, the trunk, of which each byte saves a byte of every pass. What
    /// is left is for the expert cache, of which a byte saves less than half a byte (`docs/results/experts.md`).
    #[must_use]
    pub fn best(sizes: &WeightSizes, bytes: u64, wishes: Wishes) -> Option<Self> {
        let mut best = Self::smallest(sizes, wishes);
        let mut try_with = |change: &dyn Fn(&mut Allotment)| {
            let mut allotment = best.allotment.clone();
            change(&mut allotment);
            let changed = Self::of(sizes, allotment);
            if changed.bytes() <= bytes {
                best = changed;
            }
        };
        if wishes.cache.is_none() {
            for slots in FEWEST_SLOTS.get()..=ENOUGH_SLOTS {
                try_with(&|allotment| allotment.expert_slots = at_least_one(slots));
            }
        }
        for buffers in FEWEST_BUFFERS..=ENOUGH_BUFFERS {
            try_with(&|allotment| allotment.read_ahead = buffers);
        }
        let enough_slots =
            wishes.cache.is_some() || best.allotment.expert_slots.get() >= ENOUGH_SLOTS.min(sizes.experts);
        if wishes.trunk.is_none() && enough_slots && best.allotment.read_ahead == ENOUGH_BUFFERS {
            best = best.with_trunk_pinned(sizes, bytes);
        }
        if wishes.guesses.is_none() {
            best = best.with_guesses(sizes, bytes);
        }
        if wishes.cache.is_none() {
            let left = bytes.saturating_sub(best.bytes());
            let more =
                left.checked_div(sizes.expert_slot).map_or(0, |slots| usize::try_from(slots).unwrap_or(usize::MAX));
            let expert_slots = best.allotment.expert_slots.saturating_add(more);
            best = Self::of(sizes, Allotment { expert_slots, ..best.allotment });
        }
        (best.bytes() <= bytes).then_some(best)
    }

    /// The same, with as much of the trunk pinned as `bytes` in all allow.
    fn with_trunk_pinned(self, sizes: &WeightSizes, bytes: u64) -> Self {
        let with = |bytes| {
            let pinned = pin(sizes, self.allotment.pinned.clone(), bytes);
            Self::of(sizes, Allotment { pinned, ..self.allotment.clone() })
        };
        let room = |split: &Self| bytes.saturating_sub(split.read_ahead + split.experts);
        let first = with(room(&self));
        // What is left to stream may need smaller buffers.
        with(room(&first))
    }

    /// The same, with guesses if they fit and the drive has time for them: none of the trunk is streamed.
    fn with_guesses(self, sizes: &WeightSizes, bytes: u64) -> Self {
        let is_idle = self.read_ahead == 0 && self.allotment.expert_slots.get() < sizes.experts;
        let with = Self::of(sizes, Allotment { guesses: GUESSES, ..self.allotment.clone() });
        if is_idle && with.bytes() <= bytes { with } else { self }
    }

    /// What an allotment takes.
    fn of(sizes: &WeightSizes, allotment: Allotment) -> Self {
        let is_pinned = |matrix: &&MatrixSizes| allotment.pinned.contains(&matrix.id);
        let longest = sizes.matrices.iter().filter(|matrix| !is_pinned(matrix)).map(|matrix| matrix.buffer).max();
        let slots = at_least_one(allotment.expert_slots.get().min(sizes.experts));
        Self {
            pinned: sizes.matrices.iter().filter(is_pinned).map(|matrix| matrix.pinned).sum(),
            read_ahead: longest.unwrap_or(0) * allotment.read_ahead as u64,
            experts: sizes.expert_slot * (slots.get() + allotment.guesses * GUESS_BUFFERS) as u64,
            allotment: Allotment { expert_slots: slots, ..allotment },
        }
    }

    /// All of it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pinned + self.read_ahead + self.experts
    }
}

fn is_router(id: &TensorId) -> bool {
    matches!(id, TensorId::Layer(_, LayerTensor::Router))
}

/// The matrices `needed`, and those that fit into what they leave of `bytes`, considered in order. Of more bytes this never
/// pins less: where two choices part, the one takes a matrix that is larger than all that the other had left.
fn pin(sizes: &WeightSizes, needed: BTreeSet<TensorId>, bytes: u64) -> BTreeSet<TensorId> {
    let (first, others): (Vec<&MatrixSizes>, Vec<_>) =
        sizes.matrices.iter().partition(|matrix| needed.contains(&matrix.id));
    let mut left = bytes.saturating_sub(first.iter().map(|matrix| matrix.pinned).sum());
    let fitting = others.into_iter().filter(|matrix| {
        let fits = matrix.pinned <= left;
        left -= if fits { matrix.pinned } else { 0 };
        fits
    });
    let mut pinned = needed;
    pinned.extend(fitting.map(|matrix| matrix.id));
    pinned
}

fn slots_in(sizes: &WeightSizes, bytes: u64) -> NonZeroUsize {
    let slots = bytes.checked_div(sizes.expert_slot).unwrap_or(0);
    at_least_one(usize::try_from(slots).unwrap_or(usize::MAX))
}

fn at_least_one(slots: usize) -> NonZeroUsize {
    NonZeroUsize::new(slots).unwrap_or(NonZeroUsize::MIN)
}
