//! The two passes over a state against single numbers and the reference.

use k3_core::kernels::StateUpdate;
use proptest::prelude::*;

use crate::data::{KINDS, Kind, Random, all_kernels, assert_same};
use crate::reference;

/// `out[v] = Σ_k S[k, v]·weight[k]`.
fn read(state: &[f32], weights: &[f32], values: usize) -> Vec<f32> {
    (0..values)
        .map(|v| {
            let terms: Vec<f32> =
                weights.iter().enumerate().map(|(k, weight)| state[k * values + v] * weight).collect();
            reference::blocks(&terms)
        })
        .collect()
}

fn check(keys: usize, values: usize, kind: Kind, seed: u64) {
    let mut random = Random(seed);
    let start = random.values(keys * values, kind);
    let (decay, key) = (random.values(keys, kind), random.values(keys, kind));
    let (query, delta) = (random.values(keys, kind), random.values(values, kind));
    let mut decayed = start.clone();
    let mut updated = Vec::new();
    for (k, row) in decayed.chunks_mut(values).enumerate() {
        row.iter_mut().for_each(|s| *s *= decay[k]);
        updated.extend(row.iter().zip(&delta).map(|(s, delta)| s + key[k] * delta));
    }
    for kernels in all_kernels() {
        let what = format!("{} {keys}x{values} {kind:?}", kernels.backend());
        let (mut state, mut out) = (start.clone(), vec![9.0; values]);
        kernels.decay_and_read(&mut state, &decay, &key, &mut out);
        assert_same(&state, &decayed, &format!("{what}, decayed state"));
        assert_same(&out, &read(&decayed, &key, values), &format!("{what}, read by key"));
        let update = StateUpdate { key: &key, delta: &delta, query: &query };
        kernels.update_and_read(&mut state, update, &mut out);
        assert_same(&state, &updated, &format!("{what}, updated state"));
        assert_same(&out, &read(&updated, &query, values), &format!("{what}, read by query"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_shape(
        keys in 1..140_usize,
        values in 1..140_usize,
        kind in proptest::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        check(keys, values, kind, seed);
    }
}

#[test]
fn the_shapes_of_the_model_and_of_a_small_one() {
    check(128, 128, Kind::Moderate, 1);
    check(20, 20, Kind::Moderate, 2);
}

#[test]
fn an_empty_state_reads_as_zeros() {
    for kernels in all_kernels() {
        let mut out = [9.0; 3];
        kernels.decay_and_read(&mut [], &[], &[], &mut out);
        assert_eq!(out, [0.0; 3]);
        kernels.decay_and_read(&mut [], &[1.0], &[1.0], &mut []);
    }
}
