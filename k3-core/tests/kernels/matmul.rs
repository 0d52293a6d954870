//! Products: every backend, encoding and shape against the reference; alone, for one token and for many.

use k3_core::kernels::{Encoding, Kernels, Matrix, OutputTile};
use proptest::prelude::*;

use crate::data::{ENCODINGS, KINDS, Kind, Packed, Random, all_kernels, assert_same};
use crate::reference;

/// The product by the reference: `[tokens, rows]`.
fn expected(packed: &Packed, x: &[f32]) -> Vec<f32> {
    let mut y = Vec::new();
    for x in x.chunks(packed.columns) {
        for row in 0..packed.rows {
            let products: Vec<f32> = x.iter().enumerate().map(|(column, x)| packed.element(row, column) * x).collect();
            y.push(reference::dot(&products, &packed.row_scales(row)));
        }
    }
    y
}

fn matmul(kernels: &Kernels, matrix: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / matrix.columns() * matrix.rows()];
    kernels.matmul(matrix, x, &mut OutputTile::new(&mut y, matrix.rows()));
    y
}

/// One shape on every backend: many tokens at once, and each token alone.
fn check(encoding: Encoding, [rows, columns, tokens]: [usize; 3], kind: Kind, seed: u64) {
    let mut random = Random(seed);
    let packed = Packed::new(encoding, [rows, columns], kind, &mut random);
    let x = random.values(tokens * columns, kind);
    let expected = expected(&packed, &x);
    for kernels in all_kernels() {
        let what = format!("{} {encoding:?} {rows}x{columns}, {tokens} tokens, {kind:?}", kernels.backend());
        assert_same(&matmul(&kernels, &packed.matrix(), &x), &expected, &what);
        for (x, expected) in x.chunks(columns).zip(expected.chunks(rows)) {
            assert_same(&matmul(&kernels, &packed.matrix(), x), expected, &format!("{what}, alone"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_small_shape(
        encoding in proptest::sample::select(&ENCODINGS[..]),
        rows in 1..10_usize,
        columns in 1..200_usize,
        tokens in 1..10_usize,
        kind in proptest::sample::select(&KINDS[..]),
        seed: u64,
    ) {
        let columns = if encoding == Encoding::Mxfp4 { columns.next_multiple_of(32) } else { columns };
        check(encoding, [rows, columns, tokens], kind, seed);
    }
}

#[test]
fn every_number_of_columns_up_to_three_blocks() {
    for columns in 1..1600 {
        check(Encoding::F32, [1, columns, 1], Kind::Moderate, columns as u64);
        check(Encoding::Bf16, [4, columns, 1], Kind::Moderate, columns as u64);
    }
    for columns in (32..1600).step_by(32) {
        check(Encoding::Mxfp4, [4, columns, 1], Kind::Moderate, columns as u64);
    }
}

#[test]
fn the_widths_of_the_model() {
    for encoding in ENCODINGS {
        for columns in [128, 512, 576, 1536, 3072, 3584, 6144, 7168, 12288, 33792] {
            check(encoding, [9, columns, 9], Kind::Varied, columns as u64);
        }
    }
}

#[test]
fn a_dot_product_is_a_product_with_one_row() {
    let mut random = Random(1);
    for length in (0..600).chain([7168, 1_000_003]) {
        let (a, b) = (random.values(length, Kind::Varied), random.values(length, Kind::Varied));
        let products: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a * b).collect();
        for kernels in all_kernels() {
            let what = format!("{} {length}", kernels.backend());
            assert_same(&[kernels.dot(&a, &b)], &[reference::dot(&products, &[])], &what);
        }
    }
}

#[test]
fn a_sum_takes_the_values_as_products() {
    let mut random = Random(2);
    for length in (0..600).chain([7168, 1_000_003]) {
        for kind in KINDS {
            let values = random.values(length, kind);
            for kernels in all_kernels() {
                let what = format!("{} {length} {kind:?}", kernels.backend());
                assert_same(&[kernels.sum(&values)], &[reference::dot(&values, &[])], &what);
            }
        }
    }
}

#[test]
fn a_row_of_negative_zeros_sums_to_zero() {
    // The chain of a block starts from +0.0, and so does the empty sum.
    for kernels in all_kernels() {
        assert_eq!(kernels.sum(&[-0.0; 64]).to_bits(), 0);
        assert_eq!(kernels.sum(&[]).to_bits(), 0);
        assert_eq!(kernels.dot(&[], &[]).to_bits(), 0);
    }
}

#[test]
fn a_strided_view_skips_what_lies_between_its_rows() {
    let mut random = Random(3);
    let (rows, columns, stride) = (7, 75, 100);
    let padded = random.values((rows - 1) * stride + columns, Kind::Moderate);
    let dense: Vec<f32> = padded.chunks(stride).flat_map(|row| &row[..columns]).copied().collect();
    let x = random.values(3 * columns, Kind::Moderate);
    for kernels in all_kernels() {
        let strided = Matrix::from_f32_strided(&padded, rows, columns, stride);
        let expected = matmul(&kernels, &Matrix::from_f32(&dense, rows, columns), &x);
        assert_same(&matmul(&kernels, &strided, &x), &expected, "whole");
        let part: Vec<f32> = expected.chunks(rows).flat_map(|y| &y[2..]).copied().collect();
        assert_same(&matmul(&kernels, &strided.slice_rows(2..rows), &x), &part, "rows 2..7");
        assert_eq!(strided.slice_rows(rows..rows).rows(), 0);
    }
}

#[test]
fn a_tile_leaves_the_rest_of_the_output_alone() {
    let mut random = Random(4);
    let packed = Packed::new(Encoding::Bf16, [5, 64], Kind::Moderate, &mut random);
    let x = random.values(3 * 64, Kind::Moderate);
    for kernels in all_kernels() {
        let mut y = vec![9.0; 3 * 11];
        let mut whole = OutputTile::new(&mut y, 11);
        // Rows 4..9 of the output, by way of a tile of a tile.
        kernels.matmul(&packed.matrix(), &x, &mut whole.rows_mut(1..10).rows_mut(3..8));
        for (y, expected) in y.chunks(11).zip(expected(&packed, &x).chunks(5)) {
            assert_same(&y[4..9], expected, "the tile");
            assert_eq!((&y[..4], &y[9..]), (&[9.0; 4][..], &[9.0; 2][..]));
        }
    }
}

#[test]
fn no_columns_give_zeros_and_no_rows_give_nothing() {
    for kernels in all_kernels() {
        let mut y = [9.0; 6];
        kernels.matmul(&Matrix::bf16(&[], 3, 0), &[], &mut OutputTile::new(&mut y, 3));
        assert_eq!(y, [0.0; 6]);
        kernels.matmul(&Matrix::bf16(&[], 0, 8), &[], &mut OutputTile::new(&mut [], 0));
    }
}
