//! Where a product goes: some columns of a wider output, so that the rows of a matrix can be computed in pieces.

use core::marker::PhantomData;
use core::ops::Range;

/// A tile `[tokens, rows]` of an output `[tokens, token_stride]` of f32: for every token, the elements of some rows of
/// the matrix.
///
/// Tiles of the same output interleave in memory, so several of them cannot be held as slices.
///
/// Invariants: 1. `first_row + rows` is at most `token_stride`. 2. `data` is valid for `tokens · token_stride` elements
/// for `'a`. 3. During `'a` nobody else touches the elements of this tile.
#[derive(Debug)]
pub struct OutputTile<'a> {
    data: *mut f32,
    tokens: usize,
    token_stride: usize,
    first_row: usize,
    rows: usize,
    borrowed: PhantomData<&'a mut [f32]>,
}

// SAFETY: a tile is an exclusive borrow of its elements (invariant 3), which are plain numbers.
unsafe impl Send for OutputTile<'_> {}
// SAFETY: through a shared tile only its dimensions can be seen.
unsafe impl Sync for OutputTile<'_> {}

impl<'a> OutputTile<'a> {
    /// The whole of an output `[tokens, token_stride]`.
    ///
    /// # Panics
    /// If `data` is not a whole number of tokens.
    #[must_use]
    pub fn new(data: &'a mut [f32], token_stride: usize) -> Self {
        let tokens = data.len().checked_div(token_stride).unwrap_or(0);
        assert_eq!(tokens * token_stride, data.len(), "an output of {token_stride} per token");
        Self { data: data.as_mut_ptr(), tokens, token_stride, first_row: 0, rows: token_stride, borrowed: PhantomData }
    }

    /// The part of this tile for the given rows, counted from its own first row.
    ///
    /// # Panics
    /// If the range is not inside the tile.
    #[must_use]
    pub fn rows_mut(&mut self, range: Range<usize>) -> OutputTile<'_> {
        // SAFETY: the new tile borrows this one mutably, so no other is in use during its life.
        unsafe { self.rows_aliased(range) }
    }

    /// As [`Self::rows_mut`], from a shared borrow, so that several threads can hold their parts at once.
    ///
    /// # Safety
    /// The ranges of the parts in use at the same time must be disjoint.
    ///
    /// # Panics
    /// If the range is not inside the tile.
    pub(super) unsafe fn rows_aliased(&self, range: Range<usize>) -> OutputTile<'_> {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        OutputTile { first_row: self.first_row + range.start, rows: range.len(), borrowed: PhantomData, ..*self }
    }

    /// The number of rows of the matrix, the elements of each token.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of tokens.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Writes one element.
    ///
    /// # Panics
    /// If it is not inside the tile.
    #[inline(always)]
    pub fn set(&mut self, token: usize, row: usize, value: f32) {
        assert!(token < self.tokens && row < self.rows, "[{token}, {row}] of [{}, {}]", self.tokens, self.rows);
        // SAFETY: by invariants 1 and 2 the element is inside the allocation, by 3 it is ours.
        unsafe { self.data.add(token * self.token_stride + self.first_row + row).write(value) }
    }
}
