//! What holds for policies.

use clap::ValueEnum;

use super::*;

const GRID: ExpertGrid = ExpertGrid { layers: 3, experts: 8 };

/// Least-recently-used as it is defined: a list, from the one used longest ago to the latest.
fn lru_hits(trace: &Trace, slots: usize) -> u64 {
    let mut list = Vec::new();
    let mut hits = 0;
    for (layer, experts) in trace.batches() {
        let (found, missing): (Vec<_>, Vec<_>) =
            experts.iter().map(|expert| (layer, *expert)).partition(|id| list.contains(id));
        hits += found.len() as u64;
        list.retain(|id| !found.contains(id));
        list.extend(found);
        for id in missing {
            if list.len() == slots {
                list.remove(0);
            }
            list.push(id);
        }
    }
    hits
}

/// The same with a list for each layer: the longest gives, of equals the current one's, then the first.
fn layer_lru_hits(trace: &Trace, slots: usize) -> u64 {
    let mut lists = vec![Vec::new(); trace.grid().layers];
    let mut hits = 0;
    for (layer, experts) in trace.batches() {
        let (found, missing): (Vec<_>, Vec<_>) = experts.iter().partition(|expert| lists[layer].contains(*expert));
        hits += found.len() as u64;
        lists[layer].retain(|expert| !found.contains(expert));
        lists[layer].extend(found);
        for expert in missing {
            if lists.iter().map(Vec::len).sum::<usize>() == slots {
                let can_give = |index: &usize| *index != layer || lists[layer].iter().any(|one| !experts.contains(one));
                let longest = (0..lists.len())
                    .filter(|index| !lists[*index].is_empty() && can_give(index))
                    .max_by_key(|&index| (lists[index].len(), index == layer, std::cmp::Reverse(index)));
                lists[longest.unwrap_or(layer)].remove(0);
            }
            lists[layer].push(expert);
        }
    }
    hits
}

proptest! {
    #[test]
    fn lru_is_the_list(trace in traces(GRID, 8, 40), count in 1_usize..30) {
        prop_assert_eq!(replay(&trace, slots(count), PolicyName::Lru).hits, lru_hits(&trace, count));
    }

    #[test]
    fn layer_lru_is_the_lists(trace in traces(GRID, 8, 40), count in 1_usize..30) {
        prop_assert_eq!(replay(&trace, slots(count), PolicyName::LayerLru).hits, layer_lru_hits(&trace, count));
    }

    /// Every request is counted once; with room for all, only the first of each expert misses; Belady is never beaten.
    #[test]
    fn counters_add_up(trace in traces(GRID, 4, 60), count in 4_usize..30) {
        let best = replay(&trace, slots(count), PolicyName::Belady).hits;
        for policy in PolicyName::value_variants() {
            let some = replay(&trace, slots(count), *policy);
            prop_assert_eq!(some.requests, trace.requests() as u64);
            prop_assert_eq!(some.hits + some.misses, some.requests);
            prop_assert!(some.hits <= best, "{} hits {}, belady {}", policy.name(), some.hits, best);
            let all = replay(&trace, slots(trace.distinct()), *policy);
            prop_assert_eq!(all.misses, trace.distinct() as u64);
        }
    }

    /// One slot, and batches larger than the cache, whatever the policy.
    #[test]
    fn small_caches_serve_large_batches(trace in traces(GRID, 8, 40), count in 1_usize..8) {
        for policy in PolicyName::value_variants() {
            let Counters { requests, hits, misses } = replay(&trace, slots(count), *policy);
            prop_assert_eq!((requests, hits + misses), (trace.requests() as u64, requests));
            prop_assert!(misses >= trace.distinct() as u64);
        }
    }
}

/// Two slots. Newcomers start above the one that left, so that the one that was used often before does not stay for ever.
#[test]
fn aged_frequency_lets_newcomers_overtake() {
    let grid = ExpertGrid { layers: 1, experts: 4 };
    let trace = trace_of(grid, &[0, 0, 0, 1, 2, 1, 2, 1].map(|expert| (0, vec![expert])));
    // 0 hits twice and stands at 3. Then 1 comes to stand at 1; 2, for 1, at 2; 1, for 2, at 3; 2, for 0, the lower of
    // two at 3, at 4; and 1 hits. If all began at 1, then 0 would stay, and 1 and 2 would drive each other out.
    let counters = replay(&trace, slots(2), PolicyName::LfuAging);
    assert_eq!((counters.hits, counters.misses), (3, 5));
}

#[test]
fn names_are_those_of_the_arguments() {
    for policy in PolicyName::value_variants() {
        assert_eq!(policy.to_possible_value().unwrap().get_name(), policy.name());
        assert_eq!(PolicyName::from_name(policy.name()), Some(*policy));
    }
    assert_eq!(PolicyName::from_name("random"), None);
}
