//! The order in which every sum that crosses elements is taken. It decides the bits of the answer.
//!
//! Floating-point addition is not associative, so two machines agree only if they add in the same order. A plain loop
//! over the row would be an order too, but one that no vector unit can follow and whose error grows with the length.
//! This one keeps eight independent sums, which fit the vector units of every target, and is shallow.
//!
//! **A dot product** of a row `w` and an input `x` has 8 virtual lanes, groups of 32 columns and blocks of 16 groups:
//!
//! 1. *Product.* `p[i] = w[i]·x[i]`, rounded to f32, never fused with an addition. Columns beyond the end of the row
//!    count as `p = +0.0`.
//! 2. *Group.* Group `g` gives each lane `l` in `0..8` the sum
//!    `t_g[l] = (p[32g + l] + p[32g + 16 + l]) + (p[32g + 8 + l] + p[32g + 24 + l])`. For MXFP4, `p` is code times
//!    input, and `t_g` is then multiplied by the group's scale.
//! 3. *Block.* `s_b[l] = ((0 + t_0) + t_1) + …` over the 16 groups of the block; the last block may be shorter.
//! 4. *Tree.* The blocks merge like the bits of a binary counter (`BlockTree`). Block `b` arrives as a partial sum of
//!    one block; while the youngest partial sum held covers as many blocks as the arriving one, the two become
//!    `held + arriving`, which arrives in turn. So 16 blocks make a balanced tree, and after `b` blocks one partial sum
//!    is held for each bit set in `b`. At the end they are folded from the youngest to the oldest:
//!    `sum = older + sum`. No block at all sums to `+0.0`.
//! 5. *Lanes.* `h[l] = s[l] + s[l + 4]` for `l` in `0..4`, then `q[l] = h[l] + h[l + 2]` for `l` in `0..2`, then
//!    `q[0] + q[1]`.
//!
//! **A plain sum** of values is the same with `p[i]` the value itself.
//!
//! **A column sum** `out[c] = Σ_r weight[r]·W[r, c]` crosses rows instead of columns, so it needs no lanes. Each term is
//! the product, rounded to f32, of the weight and the exact value of the element; blocks are 16 rows, each summed as
//! `((0 + p_0) + p_1) + …`, and merge in the tree of step 4.
//!
//! **Accuracy.** A product of a row of n ≤ 2^20 columns is rounded at most 32 times on its way into the result: once
//! itself, 2 times in the group, 15 in the block (adding to zero is exact), 11 in the tree of at most 2^11 blocks, and 3
//! in the lanes. Each rounding is within 2^-24 of the result it rounds, so, underflow and overflow aside, a dot product
//! is within (1 + 2^-24)^32 − 1 < 2e-6 of the sum of the absolute products. Multiplying by a scale is exact.

use core::mem::MaybeUninit;

use super::lanes::{Arithmetic, Lanes};

/// How many sums run side by side along a row.
pub(super) const LANES: usize = 8;
/// How many vectors of lanes make a group.
pub(super) const GROUP_VECTORS: usize = 4;
/// How many columns make a group.
pub(super) const GROUP_COLUMNS: usize = LANES * GROUP_VECTORS;
/// How many groups of columns, or how many rows in a column sum, make a block.
pub(super) const BLOCK_LENGTH: usize = 16;

/// More levels than blocks that fit in any address space.
const LEVELS: usize = 48;

/// One group of 32 f32 values in memory.
pub(super) type Group = [[f32; LANES]; GROUP_VECTORS];

/// Steps 1 and 2: the lane sums of one group, given in halves.
#[inline(always)]
pub(super) fn group_sum<L: Lanes>(lanes: L, weights: [L::Half; 2], inputs: [L::Half; 2]) -> L::Vector {
    let [first, second] = lanes.mul(weights, inputs);
    let [even, odd] = lanes.split(lanes.add(first, second));
    lanes.add(even, odd)
}

/// Step 5: the sum of the lanes.
#[inline(always)]
pub(super) fn lane_sum<L: Lanes>(lanes: L, vector: L::Vector) -> f32 {
    let mut s = [0.0; LANES];
    lanes.store(vector, &mut s);
    let h = [s[0] + s[4], s[1] + s[5], s[2] + s[6], s[3] + s[7]];
    let q = [h[0] + h[2], h[1] + h[3]];
    q[0] + q[1]
}

/// Step 4 for a tile of `A` × `B` values of lanes that are summed independently and in step.
///
/// Invariant: `held[level]` has been written if bit `level` of `blocks` is set.
pub(super) struct BlockTree<L, V, const A: usize, const B: usize> {
    lanes: L,
    held: [MaybeUninit<[[V; B]; A]>; LEVELS],
    blocks: u64,
}

impl<L: Arithmetic<V>, V: Copy, const A: usize, const B: usize> BlockTree<L, V, A, B> {
    /// A tree of no blocks.
    #[inline(always)]
    pub(super) fn new(lanes: L) -> Self {
        Self { lanes, held: [const { MaybeUninit::uninit() }; LEVELS], blocks: 0 }
    }

    /// Adds the next block.
    #[inline(always)]
    pub(super) fn push(&mut self, block: [[V; B]; A]) {
        let mut arriving = block;
        let mut level = 0;
        while self.blocks >> level & 1 == 1 {
            arriving = self.held_plus(level, &arriving);
            level += 1;
        }
        self.held[level].write(arriving);
        self.blocks += 1;
    }

    /// The sum of all blocks.
    #[inline(always)]
    pub(super) fn finish(self) -> [[V; B]; A] {
        if self.blocks == 0 {
            return [[self.lanes.splat(0.0); B]; A];
        }
        let mut level = self.blocks.trailing_zeros() as usize;
        // SAFETY: bit `level` of `blocks` is set, so by the invariant the level has been written.
        let mut sum = unsafe { self.held[level].assume_init() };
        let mut older = self.blocks & (self.blocks - 1);
        while older != 0 {
            level = older.trailing_zeros() as usize;
            sum = self.held_plus(level, &sum);
            older &= older - 1;
        }
        sum
    }

    /// `held[level] + newer`, for a level whose bit in `blocks` is set.
    #[inline(always)]
    fn held_plus(&self, level: usize, newer: &[[V; B]; A]) -> [[V; B]; A] {
        debug_assert!(self.blocks >> level & 1 == 1);
        // SAFETY: both callers have just seen bit `level` of `blocks` set, so by the invariant the level has been written.
        let mut sum = unsafe { self.held[level].assume_init() };
        for a in 0..A {
            for b in 0..B {
                sum[a][b] = self.lanes.add(sum[a][b], newer[a][b]);
            }
        }
        sum
    }
}
