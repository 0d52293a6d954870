//! Writing runs.

use alloc::vec::Vec;

use super::{ENTRIES, ESCAPE, ESCAPE_ENTRY, UNUSED, stride};
use crate::kernels::order::GROUP_COLUMNS;

/// A run, and the number of slots in each of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    /// The rows.
    pub data: Vec<u8>,
    /// Slots for escaped elements in each row: as many as the row with the most of them needs.
    pub escapes: usize,
}

/// Encodes rows of bf16, or returns `None` if they would not be smaller for it, or are too wide or not a multiple of 32 wide.
///
/// # Panics
/// If `bf16` is not exactly `rows · columns` elements.
#[must_use]
pub fn encode(bf16: &[u8], rows: usize, columns: usize) -> Option<Encoded> {
    assert_eq!(Some(bf16.len()), rows.checked_mul(columns).and_then(|size| size.checked_mul(2)), "{rows}x{columns}");
    stride(columns, 0)?;
    let row_bytes = (2 * columns).max(1);
    let chosen: Vec<Choice> = bf16.chunks_exact(row_bytes).map(Choice::of).collect();
    let escapes = chosen.iter().map(|choice| choice.escapes).max()?;
    let stride = stride(columns, escapes)?;
    if stride >= row_bytes {
        return None;
    }
    let mut data = Vec::with_capacity(rows * stride);
    for (row, choice) in bf16.chunks_exact(row_bytes).zip(&chosen) {
        choice.append(row.as_chunks().0, escapes, &mut data);
    }
    Some(Encoded { data, escapes })
}

/// What the codes of a row stand for.
struct Choice {
    dictionary: [u8; ENTRIES],
    /// How many elements have a high byte that is not in the dictionary.
    escapes: usize,
}

impl Choice {
    /// The fifteen high bytes that a row of bf16 has most often; of two that it has equally often, the lower.
    fn of(row: &[u8]) -> Self {
        let mut counts = [0_usize; 256];
        for [_, high] in row.as_chunks().0 {
            counts[usize::from(*high)] += 1;
        }
        let mut bytes: [u8; 256] = core::array::from_fn(|byte| byte as u8);
        // Stable, so that equal ones stay in ascending order.
        bytes.sort_by_key(|byte| core::cmp::Reverse(counts[usize::from(*byte)]));
        let mut dictionary = [ESCAPE_ENTRY; ENTRIES];
        dictionary[..usize::from(ESCAPE)].copy_from_slice(&bytes[..usize::from(ESCAPE)]);
        let escapes = bytes[usize::from(ESCAPE)..].iter().map(|byte| counts[usize::from(*byte)]).sum();
        Self { dictionary, escapes }
    }

    /// Appends the record of a row with `escapes` slots.
    fn append(&self, row: &[[u8; 2]], escapes: usize, data: &mut Vec<u8>) {
        let mut codes = [ESCAPE; 256];
        for (code, high) in (0..ESCAPE).zip(self.dictionary) {
            codes[usize::from(high)] = code;
        }
        let code = |[_, high]: [u8; 2]| codes[usize::from(high)];
        data.extend(self.dictionary);
        data.extend(row.iter().map(|[low, _]| low));
        for group in row.chunks_exact(GROUP_COLUMNS) {
            let (first, second) = group.split_at(GROUP_COLUMNS / 2);
            data.extend(first.iter().zip(second).map(|(first, second)| code(*first) | code(*second) << 4));
        }
        let escaped = || (0..).zip(row).filter(|(_, element)| code(**element) == ESCAPE);
        let unused = escapes - self.escapes;
        data.extend(
            escaped().map(|(column, _)| column).chain(core::iter::repeat_n(UNUSED, unused)).flat_map(u16::to_le_bytes),
        );
        data.extend(escaped().map(|(_, [_, high])| *high).chain(core::iter::repeat_n(0, unused)));
    }
}
