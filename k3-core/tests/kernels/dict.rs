//! bf16 with a dictionary: the bytes come back, and products have the bits of the bf16 they were made from.

use k3_core::host::Serial;
use k3_core::kernels::dict::{self, Encoded};
use k3_core::kernels::{Kernels, Matrix, OutputTile, matmul_parallel};
use proptest::prelude::*;

use crate::data::{Kind, Random, all_kernels, assert_same};
use crate::parallel::Threads;

/// Normal numbers, nearly, as bf16; then in each row `strangers` elements, at random, of any bits at all.
pub fn weights([rows, columns]: [usize; 2], strangers: usize, random: &mut Random) -> Vec<u8> {
    let mut elements = Vec::new();
    for _ in 0..rows {
        let first = elements.len();
        elements.extend((0..columns).map(|_| {
            let value = (0..4).map(|_| random.unit()).sum::<f32>() * 0.02;
            (value.to_bits() >> 16) as u16
        }));
        for _ in 0..strangers {
            elements[first + random.below(columns)] = random.bits() as u16;
        }
    }
    elements.into_iter().flat_map(u16::to_le_bytes).collect()
}

/// The elements, read from the layout as it is documented, one by one.
fn read(run: &Encoded, rows: usize, columns: usize) -> Vec<u8> {
    let stride = run.data.len() / rows;
    assert_eq!(stride, 16 + columns * 3 / 2 + 3 * run.escapes);
    let mut bf16 = Vec::new();
    for record in run.data.chunks(stride) {
        let (dictionary, rest) = record.split_at(16);
        let (low, rest) = rest.split_at(columns);
        let (codes, rest) = rest.split_at(columns / 2);
        let (slots, values) = rest.split_at(2 * run.escapes);
        let escaped = |column: usize| {
            let slot = slots.chunks(2).position(|slot| usize::from(u16::from_le_bytes([slot[0], slot[1]])) == column);
            values[slot.expect("a slot for each escaped element")]
        };
        for (column, &low) in low.iter().enumerate() {
            let (group, place) = (column / 32, column % 32);
            let byte = codes[16 * group + place % 16];
            let code = if place < 16 { byte & 15 } else { byte >> 4 };
            let high = if code == 15 { escaped(column) } else { dictionary[usize::from(code)] };
            bf16.extend([low, high]);
        }
    }
    bf16
}

/// Encodes, and decodes in every way there is.
#[track_caller]
fn round_trip(bf16: &[u8], [rows, columns]: [usize; 2]) -> Encoded {
    let run = dict::encode(bf16, rows, columns).expect("smaller than raw");
    assert!(run.data.len() < bf16.len());
    assert_eq!(read(&run, rows, columns), bf16, "by the documented layout");
    assert_eq!(dict::check(&run.data, rows, columns, run.escapes), Ok(()));
    let matrix = Matrix::dict(&run.data, rows, columns, run.escapes);
    for kernels in all_kernels() {
        let mut decoded = vec![0xee; bf16.len()];
        kernels.decode_dict(&matrix, &mut decoded).unwrap();
        assert!(decoded == bf16, "{}", kernels.backend());
    }
    let (raw, mut found, mut expected) = (Matrix::bf16(bf16, rows, columns), vec![0.0; columns], vec![0.0; columns]);
    for row in 0..rows {
        matrix.row_to_f32(row, &mut found);
        raw.row_to_f32(row, &mut expected);
        assert_same(&found, &expected, &format!("row {row}"));
    }
    run
}

#[test]
fn every_bf16_comes_back() {
    // Sixteen high bytes in each row, each with all low bytes: one high byte of each row is escaped.
    let element = |row: usize, column: usize| (row * 4096 + column) as u16;
    let ascending: Vec<u16> = (0..16).flat_map(|row| (0..4096).map(move |column| element(row, column))).collect();
    // The same elements of each row in another order, so that the escaped ones lie apart: 1365 is odd.
    let mixed: Vec<u16> =
        (0..16).flat_map(|row| (0..4096).map(move |column| element(row, column * 1365 % 4096))).collect();
    for elements in [ascending, mixed] {
        let bf16: Vec<u8> = elements.into_iter().flat_map(u16::to_le_bytes).collect();
        assert_eq!(round_trip(&bf16, [16, 4096]).escapes, 256);
    }
    // Fifteen high bytes, and as in no other row none is escaped.
    let bf16: Vec<u8> = (0..3840_u16).flat_map(u16::to_le_bytes).collect();
    assert_eq!(round_trip(&bf16, [1, 3840]).escapes, 0);
}

#[test]
fn the_record_of_a_row_is_as_documented() {
    // High bytes 0x10 to 0x1d twice each, and 0x0f, 0x0e, 0x0d and 0x0c once: of these four, only the lowest is not escaped.
    let high: Vec<u8> = (0x10..=0x1d).flat_map(|byte| [byte; 2]).chain([0x0f, 0x0e, 0x0d, 0x0c]).collect();
    // A second group brings the record below the size of raw bf16.
    let high: Vec<u8> = high.into_iter().chain([0x10; 96]).collect();
    let bf16: Vec<u8> = (0_u8..).zip(&high).flat_map(|(low, high)| [low, *high]).collect();
    let run = dict::encode(&bf16, 1, 128).unwrap();
    let mut expected: Vec<u8> = (0x10..=0x1d).chain([0x0c, 0xff]).collect();
    expected.extend(0..128);
    // Columns 0 to 15 have codes 0 0 1 1 … 7 7, columns 16 to 31 have 8 8 9 9 … 13 13 15 15 15 14.
    expected.extend([0x80, 0x80, 0x91, 0x91, 0xa2, 0xa2, 0xb3, 0xb3, 0xc4, 0xc4, 0xd5, 0xd5, 0xf6, 0xf6, 0xf7, 0xe7]);
    expected.extend([0; 48]);
    expected.extend([28, 0, 29, 0, 30, 0, 0x0f, 0x0e, 0x0d]);
    assert_eq!(run, Encoded { data: expected, escapes: 3 });
    round_trip(&bf16, [1, 128]);
}

#[test]
fn rows_with_fewer_escapes_leave_slots_unused() {
    let mut random = Random(21);
    let mut bf16 = vec![0x3c; 2 * 2 * 512];
    for column in 0..20 {
        bf16[2 * (512 + 25 * column) + 1] = 0x80 + random.below(8) as u8 * 16 + column as u8 % 16;
    }
    let run = round_trip(&bf16, [2, 512]);
    assert!(run.escapes > 0);
    let first_row = &run.data[..run.data.len() / 2];
    let (slots, values) = first_row[16 + 768..].split_at(2 * run.escapes);
    assert!(slots.iter().all(|byte| *byte == 0xff) && values.iter().all(|byte| *byte == 0));
}

#[test]
fn what_does_not_shrink_is_left_alone() {
    let mut random = Random(22);
    let noise: Vec<u8> = (0..2 * 4 * 1024).map(|_| random.bits() as u8).collect();
    assert_eq!(dict::encode(&noise, 4, 1024), None);
    // One such row decides for all.
    let mut one = vec![0; 2 * 4 * 1024];
    one[2048..4096].copy_from_slice(&noise[..2048]);
    assert_eq!(dict::encode(&one, 4, 1024), None);
    // A dictionary is longer than what 32 columns save, and there is none for these widths.
    assert_eq!(dict::encode(&[0; 64], 1, 32), None);
    assert_eq!(dict::encode(&[0; 2 * 1000], 1, 1000), None);
    assert_eq!(dict::encode(&vec![0; 2 * 65536], 1, 65536), None);
    assert_eq!(dict::encode(&[], 0, 64), None);
    assert_eq!(dict::encode(&[], 5, 0), None);
    assert!(dict::encode(&vec![0; 2 * 65504], 1, 65504).is_some());
}

fn product(kernels: &Kernels, matrix: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let mut y = vec![f32::NAN; x.len() / matrix.columns() * matrix.rows()];
    kernels.matmul(matrix, x, &mut OutputTile::new(&mut y, matrix.rows()));
    y
}

/// Everything that is computed from the run against the bf16 it was made from.
fn check_products([rows, columns, tokens]: [usize; 3], strangers: usize, seed: u64) {
    let mut random = Random(seed);
    let bf16 = weights([rows, columns], strangers, &mut random);
    let Some(run) = dict::encode(&bf16, rows, columns) else { panic!("{strangers} strangers are too many") };
    // At an odd address.
    let data: Vec<u8> = std::iter::repeat_n(0xee, seed as usize % 16).chain(run.data).collect();
    let coded = Matrix::dict(&data[seed as usize % 16..], rows, columns, run.escapes);
    let raw = Matrix::bf16(&bf16, rows, columns);
    let (x, row_weights) = (random.values(tokens * columns, Kind::Varied), random.values(rows, Kind::Varied));
    for kernels in all_kernels() {
        let what = format!("{} {rows}x{columns}, {tokens} tokens, {strangers} strangers", kernels.backend());
        let expected = product(&kernels, &raw, &x);
        assert_same(&product(&kernels, &coded, &x), &expected, &what);
        for (x, expected) in x.chunks(columns).zip(expected.chunks(rows)) {
            assert_same(&product(&kernels, &coded, x), expected, &format!("{what}, alone"));
        }
        let part = 1.min(rows - 1)..rows;
        let (found, expected) =
            [coded, raw].map(|matrix| product(&kernels, &matrix.slice_rows(part.clone()), &x)).into();
        assert_same(&found, &expected, &format!("{what}, without the first row"));
        let mut sums = [vec![0.0; columns], vec![0.0; columns]];
        kernels.column_sums(&coded, &row_weights, &mut sums[0]);
        kernels.column_sums(&raw, &row_weights, &mut sums[1]);
        assert_same(&sums[0], &sums[1], &format!("{what}, column sums"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    #[test]
    fn any_shape_has_the_products_of_bf16(
        rows in 1..20_usize,
        groups in 8..40_usize,
        tokens in 1..10_usize,
        strangers in 0..25_usize,
        seed: u64,
    ) {
        check_products([rows, 32 * groups, tokens], strangers, seed);
    }

    #[test]
    fn any_weights_come_back(rows in 1..6_usize, groups in 8..40_usize, strangers in 0..25_usize, seed: u64) {
        round_trip(&weights([rows, 32 * groups], strangers, &mut Random(seed)), [rows, 32 * groups]);
    }
}

#[test]
fn the_widths_of_the_model_have_the_products_of_bf16() {
    for columns in [512, 1536, 7168, 12288, 33792] {
        check_products([9, columns, 5], 3, columns as u64);
    }
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "WASI has no threads")]
fn threads_change_no_bit() {
    let (rows, columns, mut random) = (37, 1056, Random(23));
    let bf16 = weights([rows, columns], 5, &mut random);
    let run = dict::encode(&bf16, rows, columns).unwrap();
    let matrix = Matrix::dict(&run.data, rows, columns, run.escapes);
    for tokens in [1, 5] {
        let x = random.values(tokens * columns, Kind::Varied);
        for kernels in all_kernels() {
            let expected = product(&kernels, &Matrix::bf16(&bf16, rows, columns), &x);
            let mut y = vec![9.0; tokens * rows];
            matmul_parallel(&kernels, &Serial, &matrix, &x, OutputTile::new(&mut y, rows));
            assert_same(&y, &expected, "serial");
            for threads in [2, 3, 8] {
                let mut y = vec![9.0; tokens * rows];
                matmul_parallel(&kernels, &Threads(threads), &matrix, &x, OutputTile::new(&mut y, rows));
                assert_same(&y, &expected, &format!("{} {threads} threads", kernels.backend()));
            }
        }
    }
}
