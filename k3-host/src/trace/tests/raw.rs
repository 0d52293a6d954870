//! Pairs without a header.

use std::fs;

use super::*;
use crate::failure::Outcome;

fn read_pairs(pairs: &[(u32, u32)], batching: Batching, top_k: usize) -> Outcome<TraceFile> {
    let bytes: Vec<u8> = pairs.iter().flat_map(|pair| [pair.0, pair.1]).flat_map(u32::to_le_bytes).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs");
    fs::write(&path, bytes).unwrap();
    read(&path, RawReading { batching, top_k: slots(top_k) })
}

/// Two passes over layers 1 and 2, two experts a position: one position, then the same again and another.
const PAIRS: [(u32, u32); 12] =
    [(1, 7), (1, 2), (2, 5), (2, 0), (1, 2), (1, 7), (1, 7), (1, 3), (2, 5), (2, 0), (2, 4), (2, 5)];

fn batches(batching: Batching) -> Vec<(usize, Vec<usize>)> {
    let file = read_pairs(&PAIRS, batching, 2).map_err(|failure| failure.error).unwrap();
    assert_eq!((file.engine, file.expert_bytes), (None, None));
    file.trace.batches().map(|(layer, experts)| (layer, experts.to_vec())).collect()
}

#[test]
fn passes_positions_and_decode_steps() {
    let owned = |batches: &[(usize, &[usize])]| -> Vec<_> {
        batches.iter().map(|(layer, experts)| (*layer, experts.to_vec())).collect()
    };
    assert_eq!(batches(Batching::Pass), owned(&[(1, &[2, 7]), (2, &[0, 5]), (1, &[2, 3, 7]), (2, &[0, 4, 5])]));
    let each = [(1, &[2, 7][..]), (2, &[0, 5]), (1, &[2, 7]), (1, &[3, 7]), (2, &[0, 5]), (2, &[4, 5])];
    assert_eq!(batches(Batching::Position), owned(&each));
    assert_eq!(batches(Batching::Decode), owned(&[(1, &[2, 7]), (2, &[0, 5]), (1, &[3, 7]), (2, &[4, 5])]));
}

#[test]
fn pairs_that_do_not_fit_are_refused() {
    let changed = |at: usize, pair: (u32, u32)| {
        let mut pairs = PAIRS.to_vec();
        pairs[at] = pair;
        pairs
    };
    use Batching::{Decode, Pass, Position};
    for (pairs, batching, top_k, expected) in [
        (vec![], Pass, 2, "0 layers of 0 experts"),
        (changed(2, (u32::MAX, 7)), Pass, 2, "pair 3 is of layer 4294967295 and expert 7: the file is not a trace"),
        (changed(2, (1, 1 << 20)), Pass, 2, "pair 3 is of layer 1 and expert 1048576"),
        (changed(2, (1, (1 << 20) - 1)), Pass, 2, "3 layers of 1048576 experts"),
        (PAIRS.to_vec(), Position, 3, "layer 1: 2 pairs are no whole positions of 3 experts"),
        (changed(0, (1, 2)), Position, 2, "must ascend"),
        (changed(4, (1, 5)), Decode, 2, "layer 1: a pass does not repeat the positions"),
        (PAIRS[..8].to_vec(), Decode, 2, "layer 2: 1 positions, where another layer has 2"),
    ] {
        let refusal = read_pairs(&pairs, batching, top_k).err().unwrap();
        let reason = format!("{:#}", refusal.error);
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn a_pair_that_is_cut_short_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pairs");
    fs::write(&path, [0; 15]).unwrap();
    let refusal = read(&path, RawReading { batching: Batching::Pass, top_k: slots(1) }).err().unwrap();
    assert!(format!("{:#}", refusal.error).contains("pair 2 is cut short"), "{:#}", refusal.error);
}
