//! Products of a packed matrix with the inputs of one or more tokens, in tiles of rows and tokens that share loads.
//!
//! Every element is summed in the order of [`super::order`] by itself; tiles only decide what is computed side by side.

use super::dict::ENTRIES;
use super::escapes::{Escapes, exact_group};
use super::lanes::{Kernel, Lanes};
use super::matrix::{Encoding, Matrix};
use super::order::{BLOCK_LENGTH, BlockTree, GROUP_COLUMNS, Group, group_sum, lane_sum};
use super::output::OutputTile;
use super::prefetch::prefetch_rows;
use super::rows::{Bf16Row, DictRow, F32Row, Mxfp4Row, Ones, WeightRow};

/// How many rows are computed side by side for one token. Each is a stream of its own from memory: on an AMD Zen 5, four
/// of them reached 82 % of the read bandwidth, eight 94 %.
pub(super) const STREAMED_ROWS: usize = 8;
/// How many rows are computed side by side for several tokens, as registers allow.
const TILE_ROWS: usize = 4;
/// How many tokens are computed side by side, where there are that many.
const TILE_TOKENS: usize = 4;

/// `y[t, r] = Σ_c W[r, c]·x[t, c]`.
pub(super) struct Matmul<'a, 'y> {
    /// W, `[rows, columns]`.
    pub weights: &'a Matrix<'a>,
    /// x, `[tokens, columns]`.
    pub inputs: &'a [f32],
    /// y, `[tokens, rows]`.
    pub output: &'a mut OutputTile<'y>,
}

impl Kernel for Matmul<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        match self.weights.encoding() {
            Encoding::F32 => self.product::<L, F32Row>(lanes),
            Encoding::Bf16 => self.product::<L, Bf16Row>(lanes),
            Encoding::Mxfp4 => self.product::<L, Mxfp4Row>(lanes),
            Encoding::Dict { .. } => self.product::<L, DictRow>(lanes),
        }
    }
}

impl<'a> Matmul<'a, '_> {
    #[inline(always)]
    fn product<L: Lanes, W: WeightRow<'a>>(mut self, lanes: L) {
        let mut row = 0;
        if self.output.tokens() == 1 {
            row = self.rows_from::<L, W, STREAMED_ROWS>(lanes, row);
        }
        row = self.rows_from::<L, W, TILE_ROWS>(lanes, row);
        self.rows_from::<L, W, 1>(lanes, row);
    }

    /// As many times `R` rows as there are from `row` on; returns the first row that is left.
    #[inline(always)]
    fn rows_from<L: Lanes, W: WeightRow<'a>, const R: usize>(&mut self, lanes: L, mut row: usize) -> usize {
        while row + R <= self.weights.rows() {
            self.rows::<L, W, R>(lanes, row);
            row += R;
        }
        row
    }

    /// `R` rows for all tokens.
    #[inline(always)]
    fn rows<L: Lanes, W: WeightRow<'a>, const R: usize>(&mut self, lanes: L, row: usize) {
        let mut weights = [W::new(self.weights, row); R];
        for (r, weights) in weights.iter_mut().enumerate() {
            *weights = W::new(self.weights, row + r);
        }
        let mut token = 0;
        while token + TILE_TOKENS <= self.output.tokens() {
            self.tile::<L, W, R, TILE_TOKENS>(lanes, &weights, [row, token]);
            token += TILE_TOKENS;
        }
        while token < self.output.tokens() {
            self.tile::<L, W, R, 1>(lanes, &weights, [row, token]);
            token += 1;
        }
    }

    #[inline(always)]
    fn tile<L: Lanes, W: WeightRow<'a>, const R: usize, const T: usize>(
        &mut self,
        lanes: L,
        weights: &[W; R],
        [row, token]: [usize; 2],
    ) {
        let columns = self.weights.columns();
        let mut inputs = [self.inputs; T];
        for (t, input) in inputs.iter_mut().enumerate() {
            *input = &self.inputs[(token + t) * columns..][..columns];
        }
        let sums = dot_tile(lanes, weights, &inputs);
        for (r, sums) in sums.iter().enumerate() {
            for (t, sum) in sums.iter().enumerate() {
                self.output.set(token + t, row + r, lane_sum(lanes, *sum));
            }
        }
    }
}

/// The dot product of two vectors of the same length.
pub(super) struct Dot<'a> {
    pub a: &'a [f32],
    pub b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f32 {
        let row = F32Row::new(&Matrix::from_f32(self.a, 1, self.a.len()), 0);
        lane_sum(lanes, dot_tile(lanes, &[row], &[self.b])[0][0])
    }
}

/// The sum of the values.
pub(super) struct Sum<'a>(pub &'a [f32]);

impl Kernel for Sum<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f32 {
        lane_sum(lanes, dot_tile(lanes, &[Ones], &[self.0])[0][0])
    }
}

/// Steps 1 to 4 for `R` rows of weights and the inputs, all of one length, of `T` tokens.
#[inline(always)]
fn dot_tile<'a, L: Lanes, W: WeightRow<'a>, const R: usize, const T: usize>(
    lanes: L,
    weights: &[W; R],
    inputs: &[&[f32]; T],
) -> [[L::Vector; T]; R] {
    let columns = inputs[0].len();
    let whole_groups = columns / GROUP_COLUMNS;
    let groups = columns.div_ceil(GROUP_COLUMNS);
    let tile = Tile::new(weights, inputs, whole_groups);
    let mut escapes = Escapes::new(weights);
    let mut tree = BlockTree::new(lanes);
    let mut group = 0;
    while group < groups {
        let end = (group + BLOCK_LENGTH).min(groups);
        let mut block = [[lanes.splat(0.0); T]; R];
        for group in group..end.min(whole_groups) {
            if T == 1 {
                prefetch_rows(lanes, &tile.weights, group, whole_groups);
            }
            if escapes.are_in::<W>(group) && escapes.are_crowded(tile.weights, group) {
                // On copies: what is reached by a computed index cannot stay in registers.
                let mut sums = block;
                tile.add_exact_group(lanes, group, &mut sums);
                block = sums;
            } else {
                tile.add_group(lanes, group, escapes.dictionaries(), &mut block);
            }
            if escapes.are_in::<W>(group) {
                escapes.pass(tile.weights, group);
            }
        }
        if end > whole_groups {
            add_tail(lanes, weights, inputs, &mut block);
        }
        tree.push(block);
        group = end;
    }
    tree.finish()
}

/// The whole groups of `R` rows of weights and of the inputs of `T` tokens.
#[derive(Clone, Copy)]
struct Tile<'t, W, const R: usize, const T: usize> {
    weights: [W; R],
    inputs: [&'t [Group]; T],
}

impl<'t, 'a, W: WeightRow<'a>, const R: usize, const T: usize> Tile<'t, W, R, T> {
    #[inline(always)]
    fn new(weights: &[W; R], inputs: &[&'t [f32]; T], groups: usize) -> Self {
        // All cut to one length, which the compiler then compares once for all of them.
        let mut tile = Self { weights: *weights, inputs: [&[]; T] };
        for row in &mut tile.weights {
            *row = row.first_groups(groups);
        }
        for (whole, input) in tile.inputs.iter_mut().zip(inputs) {
            *whole = &input.as_chunks().0.as_chunks().0[..groups];
        }
        tile
    }

    /// Steps 1 to 3 for one group: adds its sums to those of its block.
    #[inline(always)]
    fn add_group<L: Lanes>(
        &self,
        lanes: L,
        group: usize,
        dictionaries: &[[u8; ENTRIES]; R],
        block: &mut [[L::Vector; T]; R],
    ) {
        for r in 0..R {
            let elements = self.weights[r].group(lanes, group, &dictionaries[r]);
            self.add_products(lanes, (r, group), elements, &mut block[r]);
        }
    }

    /// The same with any number of escaped elements.
    #[inline(always)]
    fn add_exact_group<L: Lanes>(self, lanes: L, group: usize, block: &mut [[L::Vector; T]; R]) {
        for (r, sums) in block.iter_mut().enumerate() {
            self.add_products(lanes, (r, group), exact_group(lanes, self.weights[r], group), sums);
        }
    }

    #[inline(always)]
    fn add_products<L: Lanes>(
        &self,
        lanes: L,
        (r, group): (usize, usize),
        elements: [L::Half; 2],
        sums: &mut [L::Vector; T],
    ) {
        for (sum, input) in sums.iter_mut().zip(self.inputs) {
            let products = group_sum(lanes, elements, lanes.load_group(&input[group]));
            *sum = lanes.add(*sum, self.weights[r].scale(lanes, group, products));
        }
    }
}

/// Adds the columns after the last whole group, padded with zeros. MXFP4, the only encoding with scales, has none.
#[inline(always)]
fn add_tail<'a, L: Lanes, W: WeightRow<'a>, const R: usize, const T: usize>(
    lanes: L,
    weights: &[W; R],
    inputs: &[&[f32]; T],
    block: &mut [[L::Vector; T]; R],
) {
    for t in 0..T {
        let mut padded = Group::default();
        let tail = inputs[t].chunks_exact(GROUP_COLUMNS).remainder();
        padded.as_flattened_mut()[..tail.len()].copy_from_slice(tail);
        let input = lanes.load_group(&padded);
        for r in 0..R {
            let sum = group_sum(lanes, lanes.load_group(&weights[r].tail()), input);
            block[r][t] = lanes.add(block[r][t], sum);
        }
    }
}
