//! The routed experts that one layer needs in one pass, and how far they are.

use k3_core::stream::cache::{Access, Outcome};

/// A batch: which expert is served from which slot, and what of it was read and handed out.
#[derive(Debug, Default)]
pub struct Batch {
    layer: usize,
    /// The experts, ascending.
    experts: Vec<usize>,
    /// In the order in which the cache serves them: hits, then misses.
    accesses: Vec<Access>,
    /// Which of the accesses were handed out.
    handed_out: Vec<bool>,
    /// How many were begun to be read, or need no reading.
    begun: usize,
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
    /// Begins the batch of these experts; `serve` asks the cache for it.
    pub fn begin(&mut self, layer: usize, experts: &[usize], serve: impl FnOnce(&mut Vec<Access>)) {
        self.layer = layer;
        self.experts.clear();
        self.experts.extend_from_slice(experts);
        serve(&mut self.accesses);
        self.handed_out.clear();
        self.handed_out.resize(self.accesses.len(), false);
        self.begun = self.hits();
    }

    /// Ends the batch.
    pub fn end(&mut self) {
        self.experts.clear();
        self.accesses.clear();
        self.begun = 0;
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

    /// The next expert to read, if what was in its slot is used no more: an expert of another batch, or one that was handed
    /// out. It counts as begun then.
    pub fn begin_next(&mut self) -> Option<Next> {
        let (Access { slot, .. }, expert) = (self.begun < self.len()).then(|| self.access(self.begun))?;
        let earlier = self.accesses[..self.begun].iter().rposition(|access| access.slot == slot);
        if earlier.is_some_and(|earlier| !self.handed_out[earlier]) {
            return None;
        }
        self.begun += 1;
        Some(Next { access: self.begun - 1, expert, slot })
    }

    /// The experts that were never begun to be read.
    pub fn not_begun(&self) -> impl Iterator<Item = usize> {
        self.accesses[self.begun..].iter().map(|access| self.experts[access.place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_filled_again_only_after_its_expert_was_handed_out() {
        let access = |place, slot, outcome| Access { place, slot, outcome };
        let mut batch = Batch::default();
        batch.begin(4, &[10, 20, 30, 40], |accesses| {
            accesses.push(access(2, 0, Outcome::Hit));
            accesses.extend([(0, 1), (1, 0), (3, 1)].map(|(place, slot)| access(place, slot, Outcome::Miss)));
        });
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
