//! The recorded run of the released model, where it is at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::*;

/// The trace, read as asked for; `None` after saying so if it is not there.
fn recorded(batching: Batching, top_k: usize) -> Option<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/trace/expert_trace.bin");
    if !path.exists() {
        println!("NOT RUN: {} is not there", path.display());
        return None;
    }
    let file = read(&path, RawReading { batching, top_k: slots(top_k) });
    Some(file.map_err(|failure| failure.error).unwrap().trace)
}

/// Hits of the textbook: one request at a time, what is missed is admitted, `key` says who goes (the lowest).
fn textbook_hits(requests: &[usize], slots: usize, key: impl Fn(usize) -> u64) -> u64 {
    let mut keys = BTreeMap::new();
    let mut order = BTreeSet::new();
    let mut hits = 0;
    for (time, &id) in requests.iter().enumerate() {
        match keys.remove(&id) {
            Some(old) => {
                hits += 1;
                order.remove(&(old, id));
            }
            None if order.len() == slots => {
                let (_, victim) = order.pop_first().unwrap();
                keys.remove(&victim);
            }
            None => {}
        }
        keys.insert(id, key(time));
        order.insert((key(time), id));
    }
    hits
}

/// One request a batch, where the engine's rules and the textbook's are the same.
#[test]
fn counts_what_the_textbook_counts() {
    let Some(trace) = recorded(Batching::Position, 1) else { return };
    let requests: Vec<usize> =
        trace.batches().flat_map(|(layer, experts)| experts.iter().map(move |expert| layer * 896 + expert)).collect();
    assert_eq!((requests.len(), trace.distinct()), (100_096, 10_010));
    let mut upcoming = BTreeMap::new();
    let mut next: Vec<u64> = requests
        .iter()
        .enumerate()
        .rev()
        .map(|(time, id)| upcoming.insert(*id, time as u64).unwrap_or(u64::MAX))
        .collect();
    next.reverse();
    for count in [1, 1472, 6006] {
        let lru = replay(&trace, slots(count), PolicyName::Lru);
        assert_eq!(lru.hits, textbook_hits(&requests, count, |time| time as u64), "{count} slots");
        let best = replay(&trace, slots(count), PolicyName::Belady);
        assert_eq!(best.hits, textbook_hits(&requests, count, |time| u64::MAX - next[time]), "{count} slots");
    }
}

/// Twelve positions through 92 layers, sixteen experts each; least-recently-used hits nothing before it holds nearly
/// all that one token uses.
#[test]
fn decodes_better_than_least_recently_used() {
    let Some(trace) = recorded(Batching::Decode, 16) else { return };
    assert_eq!((trace.batches().len(), trace.requests()), (12 * 92, 12 * 1472));
    let hits = |count, policy| replay(&trace, slots(count), policy).hits;
    assert_eq!(hits(1400, PolicyName::Lru), 0);
    for (count, least) in [(200, 1000), (500, 2300), (1000, 4100), (1400, 5200)] {
        assert!(hits(count, PolicyName::LayerShare) > least, "{count}: {}", hits(count, PolicyName::LayerShare));
    }
    for count in [2002, 3003, 4004, 6006] {
        assert!(hits(count, PolicyName::LayerShare) > hits(count, PolicyName::Lru), "{count}");
    }
}
