//! The routed experts that one layer needs in one pass, and how far they are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use k3_core::stream::cache::{Access, Outcome};

/// A batch: which expert is served from which slot, and what of it was read and handed out.
#[derive(Debug, Default)]
pub struct Batch {
    layer: usize,
    /// The experts, ascending.
    experts: Vec<usize>,
    /// In the order in which the cache serves them: hits, then misses.
    accesses: Vec<Access>,
    /// For each access, the one before it that has the same slot.
    earlier: Vec<Option<usize>>,
    /// Which of the accesses were handed out.
    handed_out: Vec<bool>,
    /// The accesses that have to be read and were not begun, the next last.
    to_read: Vec<usize>,
}

/// One expert that is to be read into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    /// The number of the access.
    pub access: usize,
    /// Which expert.
    pub expert: usize,
    /// Where to.
    pub slot: usize,
}

impl Batch {
    /// Begins the batch of these experts; `serve` asks the cache for it. What has to be read is read in ascending order of
    /// `position`, which says where an expert lies.
    pub fn begin<P: Ord>(
        &mut self,
        layer: usize,
        experts: &[usize],
        serve: impl FnOnce(&mut Vec<Access>),
        position: impl Fn(usize) -> P,
    ) {
        self.layer = layer;
        self.experts.clear();
        self.experts.extend_from_slice(experts);
        serve(&mut self.accesses);
        self.handed_out.clear();
        self.handed_out.resize(self.accesses.len(), false);
        let mut last_of_slot = BTreeMap::new();
        self.earlier.clear();
        let accesses = self.accesses.iter().enumerate();
        self.earlier.extend(accesses.map(|(number, access)| last_of_slot.insert(access.slot, number)));
        self.to_read.clear();
        self.to_read.extend(self.hits()..self.accesses.len());
        self.to_read.sort_by_key(|access| Reverse(position(self.experts[self.accesses[*access].place])));
    }

    /// Ends the batch.
    pub fn end(&mut self) {
        self.experts.clear();
        self.accesses.clear();
        self.to_read.clear();
    }

    /// The layer of the batch.
    #[must_use]
    pub fn layer(&self) -> usize {
        self.layer
    }

    /// Whether it is the batch of these experts. An ended batch is that of none.
    #[must_use]
    pub fn is_of(&self, layer: usize, experts: &[usize]) -> bool {
        self.layer == layer && self.experts == experts
    }

    /// How many experts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.accesses.len()
    }

    /// How many of the first accesses are hits.
    #[must_use]
    pub fn hits(&self) -> usize {
        self.accesses.iter().take_while(|access| access.outcome == Outcome::Hit).count()
    }

    /// An access, and its expert.
    #[must_use]
    pub fn access(&self, number: usize) -> (Access, usize) {
        let access = self.accesses[number];
        (access, self.experts[access.place])
    }

    /// Notes that an expert was handed out.
    pub fn hand_out(&mut self, access: usize) {
        self.handed_out[access] = true;
    }

    /// The next expert to read, of those whose slot is used no more: what was in it is an expert of another batch, or was
    /// handed out. It counts as begun then.
    pub fn begin_next(&mut self) -> Option<Next> {
        let next = self.to_read.iter().rposition(|access| self.may_begin(*access))?;
        let access = self.to_read.remove(next);
        let (Access { slot, .. }, expert) = self.access(access);
        Some(Next { access, expert, slot })
    }

    fn may_begin(&self, access: usize) -> bool {
        self.earlier[access].is_none_or(|earlier| self.handed_out[earlier])
    }

    /// The experts that were never begun to be read.
    pub fn not_begun(&self) -> impl Iterator<Item = usize> {
        self.to_read.iter().map(|access| self.experts[self.accesses[*access].place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is_read_in_the_order_in_which_it_lies() {
        let mut batch = Batch::default();
        let serve = |accesses: &mut Vec<Access>| {
            accesses.extend((0..4).map(|place| Access { place, slot: place % 3, outcome: Outcome::Miss }));
        };
        // Expert 40 lies first, and has to wait for expert 10, whose slot it gets.
        batch.begin(0, &[10, 20, 30, 40], serve, |expert| [3, 2, 1, 0][expert / 10 - 1]);
        let begun: Vec<_> = std::iter::from_fn(|| batch.begin_next()).map(|next| next.expert).collect();
        assert_eq!(begun, [30, 20, 10]);
        batch.hand_out(0);
        assert_eq!(batch.begin_next().map(|next| next.expert), Some(40));
    }

    #[test]
    fn a_slot_is_filled_again_only_after_its_expert_was_handed_out() {
        let access = |place, slot, outcome| Access { place, slot, outcome };
        let mut batch = Batch::default();
        let serve = |accesses: &mut Vec<Access>| {
            accesses.push(access(2, 0, Outcome::Hit));
            accesses.extend([(0, 1), (1, 0), (3, 1)].map(|(place, slot)| access(place, slot, Outcome::Miss)));
        };
        batch.begin(4, &[10, 20, 30, 40], serve, |expert| expert);
        assert_eq!((batch.hits(), batch.len(), batch.is_of(4, &[10, 20, 30, 40])), (1, 4, true));
        assert_eq!(batch.begin_next(), Some(Next { access: 1, expert: 10, slot: 1 }));
        assert_eq!(batch.begin_next(), None, "slot 0 still holds the hit");
        batch.hand_out(0);
        assert_eq!(batch.begin_next(), Some(Next { access: 2, expert: 20, slot: 0 }));
        assert_eq!(batch.begin_next(), None, "slot 1 is being read into");
        assert_eq!(batch.not_begun().collect::<Vec<_>>(), [40]);
        batch.hand_out(1);
        assert_eq!(batch.begin_next(), Some(Next { access: 3, expert: 40, slot: 1 }));
        assert_eq!(batch.begin_next(), None);
    }
}
