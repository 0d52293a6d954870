//! Sums over rows against the reference.

use k3_core::kernels::{Encoding, Matrix};
use proptest::prelude::*;

use crate::data::{ENCODINGS, KINDS, Kind, Packed, Random, all_kernels, assert_same};
use crate::reference;

/// `weights` is `[vectors, stride]`.
fn expected(packed: &Packed, weights: &[f32], stride: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for weights in weights.chunks(stride) {
        for column in 0..packed.columns {
            let terms: Vec<f32> = (0..packed.rows).map(|row| weights[row] * packed.value(row, column)).collect();
            out.push(reference::blocks(&terms));
        }
    }
    out
}

fn check(encoding: Encoding, [rows, columns]: [usize; 2], [vectors, spare]: [usize; 2], kind: Kind, seed: u64) {
    let mut random = Random(seed);
    let packed = Packed::new(encoding, [rows, columns], kind, &mut random);
    let weights = random.values(vectors * (rows + spare), kind);
    let expected = expected(&packed, &weights, rows + spare);
    for kernels in all_kernels() {
        let mut out = vec![9.0; vectors * columns];
        kernels.column_sums(&packed.matrix(), &weights, &mut out);
        let what = format!("{} {encoding:?} {rows}x{columns}, {vectors} vectors, {kind:?}", kernels.backend());
        assert_same(&out, &expected, &what);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_small_shape(
        encoding in proptest::sample::select(&ENCODINGS[..]),
        rows in 1..100_usize,
        columns in 1..200_usize,
        vectors in 1..10_usize,
        spare in 0..3_usize,
        kind in proptest::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        let columns = if encoding == Encoding::Mxfp4 { columns.next_multiple_of(32) } else { columns };
        check(encoding, [rows, columns], [vectors, spare], kind, seed);
    }
}

#[test]
fn every_number_of_rows_up_to_nine_blocks() {
    for rows in 1..140 {
        check(Encoding::F32, [rows, 33], [1, 0], Kind::Moderate, rows as u64);
    }
}

#[test]
fn the_shapes_of_latent_attention() {
    // Latents summed over many positions for all heads, and a query absorbed by one head of bf16 weights.
    check(Encoding::F32, [1025, 512], [96, 7], Kind::Varied, 1);
    check(Encoding::Bf16, [128, 512], [3, 0], Kind::Varied, 2);
}

#[test]
fn no_rows_give_zeros() {
    for kernels in all_kernels() {
        let mut out = [9.0; 40];
        kernels.column_sums(&Matrix::from_f32(&[], 0, 40), &[], &mut out);
        assert_eq!(out, [0.0; 40]);
    }
}
