//! bf16 in three quarters of its size, without loss.
//!
//! The high byte of a bf16 holds the sign and the upper seven bits of the exponent. In a row of trained weights nearly all
//! high bytes are among fifteen values, so four bits name one; the low byte is as good as random and stays as it is. A
//! general compressor would do a little better and decode ten times slower; this form is multiplied as it lies, and a
//! product that waits for memory gets faster by what need not be read.
//!
//! A *run* is rows of one matrix, each a record of the same length, the *stride*, for `columns` columns, a multiple of 32
//! below 65535, and `escapes` slots:
//!
//! | field | bytes | |
//! |---|---|---|
//! | `dictionary` | 16 | entry `c` is the high byte that code `c` stands for; entry 15 is 0xFF and stands for none |
//! | `low` | `columns` | the low byte of each element |
//! | `codes` | `columns / 2` | four bits for each element. In the 16 bytes of a group of 32 columns, byte `j` holds column `j` in its low half and column `16 + j` in its high half, which every vector unit takes apart with one shift and one mask |
//! | `slots` | `2 · escapes` | little-endian columns, strictly ascending, of the elements with code 15; then 0xFFFF for slots without use |
//! | `values` | `escapes` | the high byte of each of these elements; then zeros |

mod decode;
mod encode;

use super::matrix::Matrix;
use super::order::{GROUP_COLUMNS, Group};

pub(super) use decode::Decode;
pub use encode::{Encoded, encode};

/// Entries of a dictionary.
pub(super) const ENTRIES: usize = 16;
/// The code of an element whose high byte is not in the dictionary, and the entry that holds its place.
const ESCAPE: u8 = 15;
const ESCAPE_ENTRY: u8 = 0xff;
/// The column of a slot without use.
const UNUSED: u16 = 0xffff;

/// The bytes of a row, or `None` if there are no such rows: `columns` must be a multiple of 32 below 65535, and `escapes` at
/// most `columns`.
#[must_use]
pub fn stride(columns: usize, escapes: usize) -> Option<usize> {
    let fits = columns.is_multiple_of(GROUP_COLUMNS) && columns < usize::from(UNUSED) && escapes <= columns;
    fits.then(|| ENTRIES + columns + columns / 2 + 3 * escapes)
}

/// Why the bytes of a run cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DictError {
    /// Rows that the form does not have.
    #[error("no rows of {columns} columns and {escapes} escapes")]
    Shape {
        /// The columns as given.
        columns: usize,
        /// The escapes as given.
        escapes: usize,
    },
    /// Too few bytes, or too many.
    #[error("{bytes} bytes are not {rows} rows of {stride}")]
    Length {
        /// The bytes as given.
        bytes: usize,
        /// The rows as given.
        rows: usize,
        /// The bytes of a row.
        stride: usize,
    },
    /// The last entry of a dictionary is not that of the escape.
    #[error("row {row}: the last entry of the dictionary is not 0xff")]
    Dictionary {
        /// The row, counted from the first of the run.
        row: usize,
    },
    /// The slots are not columns in ascending order and then unused, without a value.
    #[error("row {row}: the escapes are not in order")]
    Slots {
        /// The row, counted from the first of the run.
        row: usize,
    },
    /// The codes and the slots name different elements as escaped.
    #[error("row {row}: the escapes are not where the codes say")]
    Codes {
        /// The row, counted from the first of the run.
        row: usize,
    },
}

/// Whether `data` is a run of `rows` rows, as [`encode`] would write them. It reads every code, and is much faster than the
/// disk that the run comes from.
///
/// # Errors
/// The first fault found.
pub fn check(data: &[u8], rows: usize, columns: usize, escapes: usize) -> Result<(), DictError> {
    let stride = stride(columns, escapes).ok_or(DictError::Shape { columns, escapes })?;
    if rows.checked_mul(stride) != Some(data.len()) {
        return Err(DictError::Length { bytes: data.len(), rows, stride });
    }
    check_rows(&Matrix::dict(data, rows, columns, escapes))
}

/// As [`check`], for a matrix of this encoding.
pub(super) fn check_rows(matrix: &Matrix<'_>) -> Result<(), DictError> {
    (0..matrix.rows()).try_for_each(|row| Record::new(matrix, row).check(row))
}

/// One row.
///
/// Nothing is known of its contents but their length: whatever they are, the methods stay within the record and return.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub dictionary: &'a [u8; ENTRIES],
    pub low: &'a [[u8; GROUP_COLUMNS]],
    pub codes: &'a [[u8; GROUP_COLUMNS / 2]],
    slots: &'a [[u8; 2]],
    values: &'a [u8],
}

impl<'a> Record<'a> {
    /// Row `row` of a matrix of this encoding.
    #[inline(always)]
    pub(super) fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        let Some((dictionary, rest)) = matrix.row_data(row).split_first_chunk() else {
            unreachable!("a row is at least as long as its dictionary")
        };
        let (low, rest) = rest.split_at(matrix.columns());
        let (codes, rest) = rest.split_at(matrix.columns() / 2);
        let (slots, values) = rest.split_at(rest.len() / 3 * 2);
        Self { dictionary, low: low.as_chunks().0, codes: codes.as_chunks().0, slots: slots.as_chunks().0, values }
    }

    /// This row as if it had only the first `count` groups.
    #[inline(always)]
    pub(super) fn first_groups(self, count: usize) -> Self {
        Self { low: &self.low[..count], codes: &self.codes[..count], ..self }
    }

    /// The group of the escaped element in a slot and its high byte; `usize::MAX` if there is none.
    #[inline(always)]
    pub(super) fn escape(self, slot: usize) -> (usize, u8) {
        match (self.slots.get(slot).copied().map(u16::from_le_bytes), self.values.get(slot)) {
            (Some(column), Some(high)) if column != UNUSED => (usize::from(column) / GROUP_COLUMNS, *high),
            _ => (usize::MAX, 0),
        }
    }

    /// Puts the escaped elements of group `group` in their places.
    pub(super) fn patch(self, group: usize, elements: &mut Group) {
        let column = |slot: &[u8; 2]| usize::from(u16::from_le_bytes(*slot));
        let first = self.slots.partition_point(|slot| column(slot) < group * GROUP_COLUMNS);
        let from_first = self.slots[first..].iter().zip(&self.values[first..]);
        for (slot, high) in from_first.take_while(|(slot, _)| column(slot) / GROUP_COLUMNS == group) {
            let place = column(slot) % GROUP_COLUMNS;
            elements.as_flattened_mut()[place] = f32::from_le_bytes([0, 0, self.low[group][place], *high]);
        }
    }

    /// Widens the row into `values` of all its columns.
    pub(super) fn to_f32(self, values: &mut [f32]) {
        let groups = values.as_chunks_mut().0.as_chunks_mut().0;
        for (index, group) in groups.iter_mut().enumerate() {
            let (low, codes) = (&self.low[index], &self.codes[index]);
            for (column, value) in group.as_flattened_mut().iter_mut().enumerate() {
                let code = codes[column % 16] >> (column / 16 * 4) & 0xf;
                *value = f32::from_le_bytes([0, 0, low[column], self.dictionary[usize::from(code)]]);
            }
            self.patch(index, group);
        }
    }

    fn check(&self, row: usize) -> Result<(), DictError> {
        if self.dictionary[usize::from(ESCAPE)] != ESCAPE_ENTRY {
            return Err(DictError::Dictionary { row });
        }
        let columns = self.slots.iter().map(|slot| u16::from_le_bytes(*slot));
        let used = columns.clone().take_while(|column| *column != UNUSED).count();
        let mut escaped = columns.clone().take(used).map(usize::from);
        let inside = escaped.clone().all(|column| column < self.low.len() * GROUP_COLUMNS);
        let no_more = columns.skip(used).all(|column| column == UNUSED) && self.values[used..].iter().all(|v| *v == 0);
        if !inside || !no_more || !escaped.clone().is_sorted_by(|left, right| left < right) {
            return Err(DictError::Slots { row });
        }
        // As many codes as slots, and one for each slot.
        if self.escape_codes() != used || !escaped.all(|column| self.code(column) == ESCAPE) {
            return Err(DictError::Codes { row });
        }
        Ok(())
    }

    fn code(&self, column: usize) -> u8 {
        let place = column % GROUP_COLUMNS;
        self.codes[column / GROUP_COLUMNS][place % 16] >> (place / 16 * 4) & 0xf
    }

    /// How many elements have the code of the escape: all four bits set. Sixteen codes are looked at in one word, which gives
    /// each of its places a one; fifteen such words add up without a carry.
    fn escape_codes(&self) -> usize {
        const LOWEST_BITS: u64 = 0x1111_1111_1111_1111;
        const LOWER_HALVES: u64 = 0x0f0f_0f0f_0f0f_0f0f;
        const EACH_BYTE: u64 = 0x0101_0101_0101_0101;
        let words = self.codes.as_flattened().as_chunks().0;
        let counts = words.chunks(15).map(|words| {
            let escapes = words.iter().map(|word| {
                let codes = u64::from_le_bytes(*word);
                codes & codes >> 1 & codes >> 2 & codes >> 3 & LOWEST_BITS
            });
            let places: u64 = escapes.sum();
            let bytes = (places & LOWER_HALVES) + (places >> 4 & LOWER_HALVES);
            // At most 240 in all, so that the sum of the bytes fits the highest one.
            (bytes.wrapping_mul(EACH_BYTE) >> 56) as usize
        });
        counts.sum()
    }
}
