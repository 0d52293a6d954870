//! The one place that decides between reading ahead, pinned trunk and expert cache.

use std::collections::BTreeSet;

use k3_core::checkpoint::names::TensorId;

use super::sizes::{MatrixSizes, WeightSizes};
use crate::streaming::Allotment;

/// Runs that are read ahead in the smallest memory: fewer, and the drive waits.
const FEWEST_BUFFERS: usize = 4;
/// Runs that are read ahead where there is memory: more gained nothing.
const ENOUGH_BUFFERS: usize = 8;
/// Routed experts in memory in the smallest: one to compute with while others are being read.
const FEWEST_SLOTS: usize = 4;
/// Routed experts in memory before any trunk is pinned: those of one layer and token.
const ENOUGH_SLOTS: usize = 16;

/// What the user wants of the parts, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wishes {
    /// At most so much of the trunk is pinned, and if there is more, so much.
    pub trunk: Option<u64>,
    /// So much for the expert cache.
    pub cache: Option<u64>,
}

impl Wishes {
    /// Whether there are none.
    #[must_use]
    pub fn are_none(&self) -> bool {
        *self == Self::default()
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
        let pinned = wishes.trunk.map_or_else(BTreeSet::new, |bytes| pin(sizes, bytes));
        let slots = wishes.cache.map_or(FEWEST_SLOTS, |bytes| slots_in(sizes, bytes));
        Self::of(sizes, Allotment { pinned, read_ahead: FEWEST_BUFFERS, expert_slots: slots })
    }

    /// The best use of `bytes`; `None` if they are too few.
    ///
    /// First enough slots for the experts of a layer, then enough buffers: both are small, and either one speeds up every
    /// read. Then the trunk, of which each byte saves a byte of every pass. What is left is for the expert cache, which
    /// saves next to nothing until it is large.
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
            for slots in FEWEST_SLOTS..=ENOUGH_SLOTS {
                try_with(&|allotment| allotment.expert_slots = slots);
            }
        }
        for buffers in FEWEST_BUFFERS..=ENOUGH_BUFFERS {
            try_with(&|allotment| allotment.read_ahead = buffers);
        }
        if wishes.trunk.is_none() {
            best = best.with_trunk_pinned(sizes, bytes);
        }
        if wishes.cache.is_none() {
            let left = bytes.saturating_sub(best.bytes());
            let more = slots_in(sizes, best.experts + left).max(best.allotment.expert_slots);
            best = Self::of(sizes, Allotment { expert_slots: more, ..best.allotment });
        }
        (best.bytes() <= bytes).then_some(best)
    }

    /// The same, with as much of the trunk pinned as `bytes` in all allow.
    fn with_trunk_pinned(self, sizes: &WeightSizes, bytes: u64) -> Self {
        let with = |pinned| Self::of(sizes, Allotment { pinned, ..self.allotment.clone() });
        let room = |split: &Self| bytes.saturating_sub(split.read_ahead + split.experts);
        let first = with(pin(sizes, room(&self)));
        // What is left to stream may need smaller buffers.
        with(pin(sizes, room(&first)))
    }

    /// What an allotment takes.
    fn of(sizes: &WeightSizes, allotment: Allotment) -> Self {
        let is_pinned = |matrix: &&MatrixSizes| allotment.pinned.contains(&matrix.id);
        let longest = sizes.matrices.iter().filter(|matrix| !is_pinned(matrix)).map(|matrix| matrix.buffer).max();
        let slots = allotment.expert_slots.clamp(1, sizes.experts.max(1));
        Self {
            pinned: sizes.matrices.iter().filter(is_pinned).map(|matrix| matrix.pinned).sum(),
            read_ahead: longest.unwrap_or(0) * allotment.read_ahead as u64,
            experts: sizes.expert_slot * slots as u64,
            allotment: Allotment { expert_slots: slots, ..allotment },
        }
    }

    /// All of it, in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.pinned + self.read_ahead + self.experts
    }
}

/// The matrices that fit into `bytes`, considered in order. Of more bytes this never pins less: where two choices part, the
/// one takes a matrix that is larger than all that the other had left.
fn pin(sizes: &WeightSizes, bytes: u64) -> BTreeSet<TensorId> {
    let mut left = bytes;
    let fitting = sizes.matrices.iter().filter(|matrix| {
        let fits = matrix.pinned <= left;
        left -= if fits { matrix.pinned } else { 0 };
        fits
    });
    fitting.map(|matrix| matrix.id).collect()
}

fn slots_in(sizes: &WeightSizes, bytes: u64) -> usize {
    usize::try_from(bytes / sizes.expert_slot.max(1)).unwrap_or(usize::MAX).clamp(1, sizes.experts.max(1))
}
