mod files;
mod optimum;
mod raw;
mod recorded;
mod replays;

use std::num::NonZeroUsize;

use k3_core::stream::cache::ExpertGrid;
use proptest::prelude::*;

use super::*;

fn slots(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

fn trace_of(grid: ExpertGrid, batches: &[(usize, Vec<usize>)]) -> Trace {
    let mut trace = Trace::new(grid).unwrap();
    for (layer, experts) in batches {
        trace.push(*layer, experts).unwrap();
    }
    trace
}

/// Traces that go through the layers in turn, with up to `largest` experts in a batch.
fn traces(grid: ExpertGrid, largest: usize, batches: usize) -> impl Strategy<Value = Trace> {
    let experts = prop::collection::btree_set(0..grid.experts, 1..=largest);
    prop::collection::vec(experts, 1..batches).prop_map(move |batches| {
        let layered = batches.into_iter().enumerate();
        let layered: Vec<_> = layered.map(|(turn, set)| (turn % grid.layers, set.into_iter().collect())).collect();
        trace_of(grid, &layered)
    })
}
