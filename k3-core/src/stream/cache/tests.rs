use std::collections::BTreeMap;
use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const GRID: ExpertGrid = ExpertGrid { layers: 4, experts: 9 };

fn cache(slots: usize) -> ExpertCache {
    ExpertCache::new(GRID, NonZeroUsize::new(slots).unwrap(), LayerShare::new(GRID))
}

/// The layer and the expert.
type Id = (usize, usize);

/// The cache and its policy as their descriptions say, without any structure that makes them fast.
#[derive(Default)]
struct Naive {
    slots: Vec<Option<Id>>,
    /// The layers of all batches so far, and what each asked for.
    past: Vec<(usize, Vec<usize>)>,
}

impl Naive {
    fn new(slots: usize) -> Self {
        Self { slots: vec![None; slots.min(GRID.len())], past: Vec::new() }
    }

    fn request(&mut self, layer: usize, experts: &[usize]) -> Vec<Access> {
        self.past.push((layer, experts.to_vec()));
        let slot_of = |slots: &[Option<Id>], expert| slots.iter().position(|id| *id == Some((layer, expert)));
        let (hits, misses): (Vec<usize>, Vec<usize>) =
            (0..experts.len()).partition(|&place| slot_of(&self.slots, experts[place]).is_some());
        let hit = |&place: &usize| Access {
            place,
            slot: slot_of(&self.slots, experts[place]).unwrap(),
            outcome: Outcome::Hit,
        };
        let mut accesses: Vec<Access> = hits.iter().map(hit).collect();
        for place in misses {
            let unused = self.slots.iter().position(Option::is_none);
            let slot = unused.or_else(|| self.victim(layer, experts));
            let slot = slot.unwrap_or_else(|| {
                let still_there = |access: &&Access| self.slots[access.slot] == Some((layer, experts[access.place]));
                accesses.iter().find(still_there).unwrap().slot
            });
            self.slots[slot] = Some((layer, experts[place]));
            accesses.push(Access { place, slot, outcome: Outcome::Miss });
        }
        accesses
    }

    fn victim(&self, layer: usize, batch: &[usize]) -> Option<usize> {
        let can_go: Vec<Id> =
            self.slots.iter().flatten().copied().filter(|id| id.0 != layer || !batch.contains(&id.1)).collect();
        let mut held = BTreeMap::<usize, usize>::new();
        self.slots.iter().flatten().for_each(|id| *held.entry(id.0).or_default() += 1);
        let most = can_go.iter().map(|id| held[&id.0]).max()?;
        let from = can_go.iter().map(|id| id.0).filter(|layer| held[layer] == most);
        let from = from.min_by_key(|&richest| (richest != layer, richest))?;
        let of_layer = can_go.iter().filter(|id| id.0 == from);
        let victim = of_layer.min_by_key(|id| (self.score(**id), id.1))?;
        self.slots.iter().position(|id| id.as_ref() == Some(victim))
    }

    /// Every use adds 2²⁴; every visit of the layer first takes away a 32nd, rounded down.
    fn score(&self, (layer, expert): Id) -> u64 {
        let visits = self.past.iter().filter(|visit| visit.0 == layer);
        visits.fold(0, |score, visit| score - score / 32 + if visit.1.contains(&expert) { 1 << 24 } else { 0 })
    }
}

/// Batches that go through the layers in turn, and some that do not.
fn batches() -> impl Strategy<Value = Vec<(usize, Vec<usize>)>> {
    let experts = prop_oneof![
        prop::collection::btree_set(0..GRID.experts, 0..5),
        prop::collection::btree_set(0..GRID.experts, 0..=GRID.experts),
    ];
    let batch = (prop::option::weighted(0.2, 0..GRID.layers), experts);
    prop::collection::vec(batch, 0..40).prop_map(|batches| {
        let numbered = batches.into_iter().enumerate();
        numbered
            .map(|(turn, (layer, experts))| (layer.unwrap_or(turn % GRID.layers), experts.into_iter().collect()))
            .collect()
    })
}

proptest! {
    /// Every access, slots included, and the counters.
    #[test]
    fn serves_as_the_rules_say(slots in 1_usize..40, batches in batches()) {
        let (mut cache, mut naive) = (cache(slots), Naive::new(slots));
        let mut accesses = Vec::new();
        let mut expected = Counters::default();
        for (layer, experts) in &batches {
            cache.request(*layer, experts, &mut accesses);
            prop_assert_eq!(&accesses, &naive.request(*layer, experts));
            let hits = accesses.iter().filter(|access| access.outcome == Outcome::Hit).count() as u64;
            expected.requests += experts.len() as u64;
            expected.hits += hits;
            expected.misses += experts.len() as u64 - hits;
        }
        prop_assert_eq!(cache.counters(), expected);
    }

    /// A failed expert is read again when it is next asked for; nothing else changes its place.
    #[test]
    fn what_is_forgotten_is_missed(slots in 1_usize..40, batches in batches(), failing in 0..GRID.experts) {
        let mut cache = cache(slots);
        let mut accesses = Vec::new();
        let mut where_is = BTreeMap::<Id, usize>::new();
        for (layer, experts) in &batches {
            cache.request(*layer, experts, &mut accesses);
            for access in &accesses {
                let id = (*layer, experts[access.place]);
                match access.outcome {
                    Outcome::Hit => prop_assert_eq!(where_is.get(&id), Some(&access.slot)),
                    Outcome::Miss => {
                        prop_assert!(!where_is.contains_key(&id));
                        where_is.retain(|_, slot| *slot != access.slot);
                        where_is.insert(id, access.slot);
                    }
                }
            }
            prop_assert!(where_is.values().all(|slot| *slot < slots));
            cache.forget(*layer, failing);
            where_is.remove(&(*layer, failing));
        }
    }
}

/// Each expert that is asked for, and whether it hits.
fn outcomes(cache: &mut ExpertCache, batches: &[(usize, &[usize])]) -> Vec<(usize, Outcome)> {
    let mut accesses = Vec::new();
    let mut all = Vec::new();
    for (layer, experts) in batches {
        cache.request(*layer, experts, &mut accesses);
        all.extend(accesses.iter().map(|access| (experts[access.place], access.outcome)));
    }
    all
}

/// Two tokens, three layers, one expert each, two slots. Least-recently-used would miss six times: it evicts layer 0's
/// expert for layer 2's. Here the third batch takes a slot from the first layer of equals, and layer 1 keeps its own.
#[test]
fn a_cycle_longer_than_the_cache_hits() {
    use Outcome::{Hit, Miss};
    let token: [(usize, &[usize]); 3] = [(0, &[5]), (1, &[6]), (2, &[7])];
    let mut cache = cache(2);
    assert_eq!(outcomes(&mut cache, &token), [(5, Miss), (6, Miss), (7, Miss)]);
    // Resident: 6 of layer 1, 7 of layer 2. Layer 0 takes the slot of layer 1, the first of equals; then 1 takes 0's.
    assert_eq!(outcomes(&mut cache, &token), [(5, Miss), (6, Miss), (7, Hit)]);
    assert_eq!(cache.counters(), Counters { requests: 6, hits: 1, misses: 5 });
}

/// Expert 3 was used three times, 4 once and last: 4 goes, where least-recently-used would keep it.
#[test]
fn the_least_used_of_a_layer_goes() {
    use Outcome::{Hit, Miss};
    let mut cache = cache(2);
    let seen = outcomes(&mut cache, &[(1, &[3]), (1, &[3]), (1, &[3]), (1, &[4]), (1, &[5]), (1, &[3, 4])]);
    assert_eq!(seen[3..], [(4, Miss), (5, Miss), (3, Hit), (4, Miss)]);
}

/// Old uses fade: after 200 visits without one, a hundred uses weigh less than a new one.
#[test]
fn uses_fade() {
    let mut cache = cache(2);
    outcomes(&mut cache, &[(1, &[3][..]); 100]);
    outcomes(&mut cache, &[(1, &[][..]); 200]);
    let seen = outcomes(&mut cache, &[(1, &[4]), (1, &[5]), (1, &[3, 4])]);
    assert_eq!(seen[2..], [(4, Outcome::Hit), (3, Outcome::Miss)]);
}

/// Hits first, then misses; each miss takes the slot of whoever was used earliest.
#[test]
fn a_batch_larger_than_the_cache_goes_through_all_slots() {
    let mut cache = cache(2);
    let mut accesses = Vec::new();
    cache.request(0, &[4, 8], &mut accesses);
    cache.request(0, &[1, 4, 5, 7, 8], &mut accesses);
    let seen: Vec<_> = accesses.iter().map(|access| (access.place, access.slot)).collect();
    assert_eq!(seen, [(1, 0), (4, 1), (0, 0), (2, 1), (3, 0)]);
    cache.request(0, &[5, 7], &mut accesses);
    assert!(accesses.iter().all(|access| access.outcome == Outcome::Hit));
}

#[test]
fn more_slots_than_experts_are_not_made() {
    let mut cache = cache(usize::MAX);
    let mut accesses = Vec::new();
    let all: Vec<usize> = (0..GRID.experts).collect();
    for _ in 0..2 {
        for layer in 0..GRID.layers {
            cache.request(layer, &all, &mut accesses);
        }
    }
    assert!(accesses.iter().all(|access| access.slot < GRID.len()));
    assert_eq!(cache.counters(), Counters { requests: 72, hits: 36, misses: 36 });
}
