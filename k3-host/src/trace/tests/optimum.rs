//! Belady's policy against every choice there is.

use std::collections::{BTreeSet, HashMap};

use super::*;

const GRID: ExpertGrid = ExpertGrid { layers: 2, experts: 4 };

type Id = (usize, usize);

/// The most hits that any sequence of choices has: what is not in the batch may go in any combination, as far as room is
/// needed.
struct Search<'a> {
    batches: Vec<(usize, &'a [usize])>,
    slots: usize,
    known: HashMap<(usize, BTreeSet<Id>), u64>,
}

impl Search<'_> {
    fn most_hits(&mut self, index: usize, resident: BTreeSet<Id>) -> u64 {
        let Some(&(layer, experts)) = self.batches.get(index) else { return 0 };
        let key = (index, resident);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let batch: BTreeSet<Id> = experts.iter().map(|&expert| (layer, expert)).collect();
        let hits = batch.intersection(&key.1).count() as u64;
        let others: Vec<Id> = key.1.difference(&batch).copied().collect();
        let kept = others.len().min(self.slots - batch.len());
        let mut most = 0;
        for choice in 0_u32..1 << others.len() {
            if choice.count_ones() as usize == kept {
                let chosen = others.iter().enumerate().filter(|(bit, _)| choice >> bit & 1 == 1).map(|(_, id)| *id);
                most = most.max(self.most_hits(index + 1, batch.iter().copied().chain(chosen).collect()));
            }
        }
        self.known.insert(key, hits + most);
        hits + most
    }
}

proptest! {
    #[test]
    fn no_choice_hits_more_often(trace in traces(GRID, 3, 14), count in 3_usize..8) {
        let mut search = Search { batches: trace.batches().collect(), slots: count, known: HashMap::new() };
        let most = search.most_hits(0, BTreeSet::new());
        prop_assert_eq!(replay(&trace, slots(count), PolicyName::Belady).hits, most);
    }
}
