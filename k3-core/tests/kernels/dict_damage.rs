//! Runs that are not what an encoder writes: refused, and harmless even to those who do not look.

use k3_core::kernels::dict::{self, DictError};
use k3_core::kernels::{Matrix, OutputTile};

use crate::data::{Random, all_kernels};
use crate::dict::weights;

const ROWS: usize = 3;
const COLUMNS: usize = 256;
/// Where the parts of a record begin.
const LOW: usize = 16;
const CODES: usize = LOW + COLUMNS;
const SLOTS: usize = CODES + COLUMNS / 2;

/// A sound run whose second row has the columns 7, 100 and 200 escaped, in four slots; the third has all of its four used.
struct Run {
    data: Vec<u8>,
    escapes: usize,
}

impl Run {
    fn new() -> Self {
        let mut bf16 = vec![0x3c; 2 * ROWS * COLUMNS];
        let mut set = |row: usize, column: usize, high: u8| bf16[2 * (row * COLUMNS + column) + 1] = high;
        for row in 0..ROWS {
            // Fourteen more high bytes, twice each, fill the dictionary: what there is once has no code.
            (0..28).for_each(|index| set(row, 40 + index, 0x20 + index as u8 / 2));
        }
        for (row, column) in [(1, 7), (1, 100), (1, 200), (2, 0), (2, 1), (2, 128), (2, 255)] {
            set(row, column, 0x70 + column as u8 % 16);
        }
        let run = dict::encode(&bf16, ROWS, COLUMNS).unwrap();
        assert_eq!(run.escapes, 4, "the run is as described");
        let run = Self { data: run.data, escapes: run.escapes };
        assert_eq!((run.slot(1, 0), run.slot(1, 1), run.slot(1, 2), run.slot(1, 3)), (7, 100, 200, 0xffff));
        assert_eq!(run.check(), Ok(()));
        run
    }

    /// A byte of a row's record.
    fn at(&mut self, row: usize, place: usize) -> &mut u8 {
        let stride = dict::stride(COLUMNS, self.escapes).unwrap();
        &mut self.data[row * stride + place]
    }

    fn slot(&self, row: usize, slot: usize) -> u16 {
        let start = row * dict::stride(COLUMNS, self.escapes).unwrap() + SLOTS + 2 * slot;
        u16::from_le_bytes([self.data[start], self.data[start + 1]])
    }

    fn set_slot(&mut self, row: usize, slot: usize, column: u16) {
        let [low, high] = column.to_le_bytes();
        *self.at(row, SLOTS + 2 * slot) = low;
        *self.at(row, SLOTS + 2 * slot + 1) = high;
    }

    /// Gives an element another code.
    fn set_code(&mut self, row: usize, column: usize, code: u8) {
        let byte = self.at(row, CODES + column / 32 * 16 + column % 16);
        *byte = if column % 32 < 16 { *byte & 0xf0 | code } else { *byte & 0x0f | code << 4 };
    }

    fn check(&self) -> Result<(), DictError> {
        dict::check(&self.data, ROWS, COLUMNS, self.escapes)
    }

    /// Refused by the check and by decoding, which then writes nothing; products run through.
    #[track_caller]
    fn is_refused(&self, expected: DictError) {
        assert_eq!(self.check(), Err(expected));
        let matrix = Matrix::dict(&self.data, ROWS, COLUMNS, self.escapes);
        for kernels in all_kernels() {
            let mut bf16 = vec![0xee; 2 * ROWS * COLUMNS];
            assert_eq!(kernels.decode_dict(&matrix, &mut bf16), Err(expected), "{}", kernels.backend());
            assert!(bf16.iter().all(|byte| *byte == 0xee));
        }
        compute(&matrix);
    }
}

/// Computes with a matrix whose results mean nothing.
fn compute(matrix: &Matrix<'_>) {
    for kernels in all_kernels() {
        for tokens in [1, 4] {
            let (x, mut y) = (vec![1.0; tokens * matrix.columns()], vec![0.0; tokens * matrix.rows()]);
            kernels.matmul(matrix, &x, &mut OutputTile::new(&mut y, matrix.rows()));
        }
        kernels.column_sums(matrix, &vec![1.0; matrix.rows()], &mut vec![0.0; matrix.columns()]);
    }
    for row in 0..matrix.rows() {
        matrix.row_to_f32(row, &mut vec![0.0; matrix.columns()]);
    }
}

#[test]
fn columns_that_are_not_in_order() {
    let mut run = Run::new();
    run.set_slot(1, 0, 100);
    run.set_slot(1, 1, 7);
    run.is_refused(DictError::Slots { row: 1 });
}

#[test]
fn a_column_listed_twice() {
    let mut run = Run::new();
    run.set_slot(1, 1, 7);
    run.is_refused(DictError::Slots { row: 1 });
}

#[test]
fn a_column_outside_the_row() {
    for column in [256, 257, 0xfffe] {
        let mut run = Run::new();
        run.set_slot(1, 2, column);
        run.is_refused(DictError::Slots { row: 1 });
    }
}

#[test]
fn a_slot_used_after_one_that_is_not() {
    let mut run = Run::new();
    run.set_slot(1, 2, 0xffff);
    run.set_slot(1, 3, 200);
    run.is_refused(DictError::Slots { row: 1 });
}

#[test]
fn a_value_without_a_column() {
    let mut run = Run::new();
    *run.at(1, SLOTS + 8 + 3) = 1;
    run.is_refused(DictError::Slots { row: 1 });
}

#[test]
fn a_code_of_the_escape_without_a_slot() {
    for column in [0, 15, 16, 31, 32, 254, 255] {
        let mut run = Run::new();
        run.set_code(1, column, 15);
        run.is_refused(DictError::Codes { row: 1 });
    }
}

#[test]
fn a_slot_for_an_element_with_another_code() {
    for (slot, column) in [(0, 7), (1, 100), (2, 200)] {
        let mut run = Run::new();
        run.set_code(1, column, 3);
        run.is_refused(DictError::Codes { row: 1 });
        // As many codes as slots, but elsewhere.
        let mut run = Run::new();
        run.set_slot(1, slot, column as u16 + 1);
        run.is_refused(DictError::Codes { row: 1 });
    }
}

#[test]
fn a_dictionary_without_the_escape() {
    for byte in [0, 0x7f, 0xfe] {
        let mut run = Run::new();
        *run.at(2, 15) = byte;
        run.is_refused(DictError::Dictionary { row: 2 });
    }
}

#[test]
fn bytes_that_are_no_rows() {
    let run = Run::new();
    let stride = dict::stride(COLUMNS, run.escapes).unwrap();
    for bytes in [0, 1, run.data.len() - 1, run.data.len() - stride] {
        let fault = DictError::Length { bytes, rows: ROWS, stride };
        assert_eq!(dict::check(&run.data[..bytes], ROWS, COLUMNS, run.escapes), Err(fault));
    }
    let overflow = DictError::Length { bytes: run.data.len(), rows: usize::MAX, stride };
    assert_eq!(dict::check(&run.data, usize::MAX, COLUMNS, run.escapes), Err(overflow));
    for (columns, escapes) in [(255, 4), (65536, 4), (usize::MAX - 31, 4), (256, 257), (256, usize::MAX)] {
        assert_eq!(dict::check(&run.data, ROWS, columns, escapes), Err(DictError::Shape { columns, escapes }));
    }
}

#[test]
fn any_changed_byte_is_refused_or_decodes_and_never_stops_a_product() {
    let mut random = Random(31);
    let bf16 = weights([2, COLUMNS], 6, &mut random);
    let run = dict::encode(&bf16, 2, COLUMNS).unwrap();
    let [kernels, ..] = all_kernels()[..] else { panic!("no kernels") };
    for place in 0..run.data.len() {
        let mut data = run.data.clone();
        data[place] ^= 1 << random.below(8);
        let matrix = Matrix::dict(&data, 2, COLUMNS, run.escapes);
        let mut decoded = vec![0; bf16.len()];
        if kernels.decode_dict(&matrix, &mut decoded).is_ok() {
            assert!(decoded != bf16 || place % (data.len() / 2) < 16, "byte {place} does not matter");
        }
        compute(&matrix);
    }
}

#[test]
fn noise_never_stops_a_product() {
    let mut random = Random(32);
    for escapes in [0, 1, 7, 100] {
        let stride = dict::stride(COLUMNS, escapes).unwrap();
        for _ in 0..20 {
            let noise: Vec<u8> = (0..9 * stride).map(|_| random.bits() as u8).collect();
            assert!(dict::check(&noise, 9, COLUMNS, escapes).is_err());
            compute(&Matrix::dict(&noise, 9, COLUMNS, escapes));
        }
    }
}
