//! Sums over rows: every output column adds one term per row, in blocks of 16 rows that merge in the tree.

use core::ops::Range;

use super::escapes::exact_group;
use super::lanes::{Kernel, Lanes};
use super::matrix::{Encoding, Matrix};
use super::order::{BLOCK_LENGTH, BlockTree, GROUP_COLUMNS, Group};
use super::rows::{Bf16Row, DictRow, F32Row, Mxfp4Row, WeightRow};

/// How many groups, of columns or of vectors, are summed side by side.
pub(super) const SLOTS: usize = 4;

/// What is summed: for every row, the terms of one group of columns.
pub(super) trait RowTerms {
    /// The terms of row `row` for the group in slot `slot`; called once for each.
    fn terms<L: Lanes>(&mut self, lanes: L, row: usize, slot: usize) -> [L::Half; 2];
}

/// The sums over rows `0..rows` of the terms of `N` groups.
#[inline(always)]
pub(super) fn sum_rows<L: Lanes, T: RowTerms, const N: usize>(
    lanes: L,
    rows: usize,
    source: &mut T,
) -> [[L::Half; 2]; N] {
    let mut tree = BlockTree::new(lanes);
    let mut row = 0;
    while row < rows {
        let end = (row + BLOCK_LENGTH).min(rows);
        let mut block = [lanes.splat(0.0); N];
        for (slot, sums) in block.iter_mut().enumerate() {
            for row in row..end {
                let terms = source.terms(lanes, row, slot);
                *sums = lanes.add(*sums, terms);
            }
        }
        tree.push(block);
        row = end;
    }
    tree.finish()
}

/// The columns of group `group` of `columns`; the last group may be shorter.
#[inline(always)]
pub(super) fn group_columns(group: usize, columns: usize) -> Range<usize> {
    group * GROUP_COLUMNS..((group + 1) * GROUP_COLUMNS).min(columns)
}

/// Up to 32 values as a group, padded with zeros.
#[inline(always)]
pub(super) fn load_columns<L: Lanes>(lanes: L, values: &[f32]) -> [L::Half; 2] {
    if let [group] = values.as_chunks().0.as_chunks().0 {
        return lanes.load_group(group);
    }
    let mut padded = Group::default();
    padded.as_flattened_mut()[..values.len()].copy_from_slice(values);
    lanes.load_group(&padded)
}

/// The first values of a group to memory, as many as there is room for.
#[inline(always)]
pub(super) fn store_columns<L: Lanes>(lanes: L, halves: [L::Half; 2], values: &mut [f32]) {
    if let [group] = values.as_chunks_mut().0.as_chunks_mut().0 {
        return lanes.store_group(halves, group);
    }
    let mut padded = Group::default();
    lanes.store_group(halves, &mut padded);
    values.copy_from_slice(&padded.as_flattened()[..values.len()]);
}

/// `out[v, c] = Σ_r weights[v, r]·W[r, c]`.
pub(super) struct ColumnSums<'a> {
    /// W, `[rows, columns]`.
    pub matrix: &'a Matrix<'a>,
    /// `[vectors, weight_stride]`, of which the first `rows` of each vector count.
    pub weights: &'a [f32],
    pub weight_stride: usize,
    /// `[vectors, columns]`.
    pub out: &'a mut [f32],
}

impl Kernel for ColumnSums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match self.matrix.encoding() {
            Encoding::F32 => self.sums::<L, F32Row>(lanes),
            Encoding::Bf16 => self.sums::<L, Bf16Row>(lanes),
            Encoding::Mxfp4 => self.sums::<L, Mxfp4Row>(lanes),
            Encoding::Dict { .. } => self.sums::<L, DictRow>(lanes),
        }
    }
}

impl<'a> ColumnSums<'a> {
    #[inline(always)]
    fn sums<L: Lanes, W: WeightRow<'a>>(mut self, lanes: L) {
        let columns = self.matrix.columns();
        let vectors = self.out.len().checked_div(columns).unwrap_or(0);
        let groups = columns.div_ceil(GROUP_COLUMNS);
        for vector in 0..vectors {
            let mut group = 0;
            while group + SLOTS <= groups {
                self.tile::<L, W, SLOTS>(lanes, vector, group);
                group += SLOTS;
            }
            while group < groups {
                self.tile::<L, W, 1>(lanes, vector, group);
                group += 1;
            }
        }
    }

    /// `N` groups of columns of one vector.
    #[inline(always)]
    fn tile<L: Lanes, W: WeightRow<'a>, const N: usize>(&mut self, lanes: L, vector: usize, group: usize) {
        let rows = self.matrix.rows();
        let weights = &self.weights[vector * self.weight_stride..][..rows];
        let mut terms = MatrixTerms::<W> { matrix: self.matrix, weights, group, row: core::marker::PhantomData };
        let sums: [_; N] = sum_rows(lanes, rows, &mut terms);
        let columns = self.matrix.columns();
        let out = &mut self.out[vector * columns..][..columns];
        for (slot, sums) in sums.into_iter().enumerate() {
            store_columns(lanes, sums, &mut out[group_columns(group + slot, columns)]);
        }
    }
}

/// The terms of groups `group + slot` for one vector of weights.
struct MatrixTerms<'a, W> {
    matrix: &'a Matrix<'a>,
    weights: &'a [f32],
    group: usize,
    row: core::marker::PhantomData<W>,
}

impl<'a, W: WeightRow<'a>> RowTerms for MatrixTerms<'a, W> {
    #[inline(always)]
    fn terms<L: Lanes>(&mut self, lanes: L, row: usize, slot: usize) -> [L::Half; 2] {
        let values = row_values(lanes, W::new(self.matrix, row), self.group + slot, self.matrix.columns());
        lanes.mul(lanes.splat(self.weights[row]), values)
    }
}

/// The exact values of one group of a row, the last one padded with zeros.
#[inline(always)]
fn row_values<'a, L: Lanes, W: WeightRow<'a>>(lanes: L, row: W, group: usize, columns: usize) -> [L::Half; 2] {
    if group_columns(group, columns).len() < GROUP_COLUMNS {
        return lanes.load_group(&row.tail());
    }
    row.scale(lanes, group, exact_group(lanes, row, group))
}
