//! Decoding MXFP4: every byte of codes with every scale, and the claim that scaling sums is scaling weights.

use k3_core::kernels::{Encoding, Matrix, OutputTile};

use crate::data::{Kind, Packed, Random, all_kernels, assert_same, e2m1, e8m0};

/// The values of the specification, by code.
const TABLE: [f32; 16] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

#[test]
fn the_fields_of_a_code_give_the_table_of_the_specification() {
    let found: Vec<f32> = (0..16).map(e2m1).collect();
    assert_same(&found, &TABLE, "E2M1");
    assert_eq!(e8m0(0).to_bits(), 0x0040_0000);
    assert_eq!(e8m0(127), 1.0);
    assert_eq!(e8m0(254), f32::MAX / (2.0 - f32::EPSILON));
}

#[test]
fn every_byte_with_every_scale_decodes_to_the_table() {
    for scale in 0..=255 {
        for first in (0..=255).step_by(16) {
            let codes: Vec<u8> = (first..=first + 15).collect();
            let expected: Vec<f32> = codes
                .iter()
                .flat_map(|byte| [TABLE[usize::from(byte & 15)], TABLE[usize::from(byte >> 4)]])
                .map(|value| value * e8m0(scale))
                .collect();
            let scales = [scale];
            let matrix = Matrix::mxfp4(&codes, &scales, 1, 32);
            let mut row = [9.0; 32];
            matrix.row_to_f32(0, &mut row);
            assert_same(&row, &expected, &format!("row, scale {scale}"));
            for kernels in all_kernels() {
                // A column sum of one row with weight 1 adds the value to +0.0, which turns -0.0 into +0.0.
                let mut sums = [9.0; 32];
                kernels.column_sums(&matrix, &[1.0], &mut sums);
                let expected: Vec<f32> = expected.iter().map(|value| value + 0.0).collect();
                assert_same(&sums, &expected, &format!("{} scale {scale}", kernels.backend()));
            }
        }
    }
}

#[test]
fn scaling_group_sums_equals_scaling_weights() {
    let mut random = Random(7);
    let x = random.values(3584, Kind::Moderate);
    for first in (40..=200_u8).step_by(16) {
        let codes: Vec<u8> = (0..3584 / 2).map(|_| random.bits() as u8).collect();
        let scales: Vec<u8> = (0..3584 / 32).map(|_| first + random.below(16) as u8).collect();
        let matrix = Matrix::mxfp4(&codes, &scales, 1, 3584);
        let mut dequantised = vec![0.0; 3584];
        matrix.row_to_f32(0, &mut dequantised);
        for kernels in all_kernels() {
            let mut y = [0.0];
            kernels.matmul(&matrix, &x, &mut OutputTile::new(&mut y, 1));
            let what = format!("{} scales from {first}", kernels.backend());
            assert_same(&y, &[kernels.dot(&dequantised, &x)], &what);
        }
    }
}

#[test]
fn rows_of_every_encoding_widen_exactly() {
    let mut random = Random(8);
    for encoding in [Encoding::F32, Encoding::Bf16, Encoding::Mxfp4] {
        let packed = Packed::new(encoding, [5, 96], Kind::Special, &mut random);
        for row in 0..5 {
            let mut found = [9.0; 96];
            packed.matrix().row_to_f32(row, &mut found);
            let expected: Vec<f32> = (0..96).map(|column| packed.value(row, column)).collect();
            assert_same(&found, &expected, &format!("{encoding:?} row {row}"));
        }
    }
}
