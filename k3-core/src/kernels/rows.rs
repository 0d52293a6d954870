//! One row of weights, group by group, as lanes: what differs between the encodings, and nothing else.

use super::lanes::{Arithmetic, Lanes};
use super::matrix::Matrix;
use super::mxfp4::E8M0;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, Group, LANES};

/// A row of weights of one encoding.
pub(super) trait WeightRow<'a>: Copy {
    /// The bytes of the elements of a whole group.
    const GROUP_BYTES: usize;

    /// Row `row` of a matrix of this encoding.
    fn new(matrix: &Matrix<'a>, row: usize) -> Self;

    /// This row without what comes after its first `count` whole groups, the tail aside.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    fn first_groups(self, count: usize) -> Self;

    /// Where the elements begin; null if they are not in memory.
    fn start(self) -> *const u8;

    /// The elements of a whole group, before its scale.
    fn group<L: Lanes>(self, lanes: L, group: usize) -> [L::Half; 2];

    /// The columns after the last whole group, padded with zeros; if there are none, all zeros.
    fn tail(self) -> Group;

    /// `value` times the scale of a group.
    #[inline(always)]
    fn scale<V, L: Arithmetic<V>>(self, _lanes: L, _group: usize, value: V) -> V {
        value
    }
}

/// A row of f32.
#[derive(Clone, Copy)]
pub(super) struct F32Row<'a> {
    groups: &'a [[[u8; 4 * LANES]; GROUP_VECTORS]],
    tail: &'a [u8],
}

impl<'a> WeightRow<'a> for F32Row<'a> {
    const GROUP_BYTES: usize = 4 * GROUP_COLUMNS;

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        let data = matrix.row_data(row);
        let whole = data.len() / Self::GROUP_BYTES * Self::GROUP_BYTES;
        Self { groups: data[..whole].as_chunks().0.as_chunks().0, tail: &data[whole..] }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], ..self }
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.groups.as_ptr().cast()
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize) -> [L::Half; 2] {
        lanes.load_f32(&self.groups[group])
    }

    #[inline(always)]
    fn tail(self) -> Group {
        let mut group = Group::default();
        for (value, bytes) in group.as_flattened_mut().iter_mut().zip(self.tail.as_chunks().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        group
    }
}

/// A row of bf16.
#[derive(Clone, Copy)]
pub(super) struct Bf16Row<'a> {
    groups: &'a [[[u8; 2 * LANES]; GROUP_VECTORS]],
    tail: &'a [u8],
}

impl<'a> WeightRow<'a> for Bf16Row<'a> {
    const GROUP_BYTES: usize = 2 * GROUP_COLUMNS;

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        let data = matrix.row_data(row);
        let whole = data.len() / Self::GROUP_BYTES * Self::GROUP_BYTES;
        Self { groups: data[..whole].as_chunks().0.as_chunks().0, tail: &data[whole..] }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], ..self }
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.groups.as_ptr().cast()
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize) -> [L::Half; 2] {
        lanes.load_bf16(&self.groups[group])
    }

    #[inline(always)]
    fn tail(self) -> Group {
        let mut group = Group::default();
        for (value, bytes) in group.as_flattened_mut().iter_mut().zip(self.tail.as_chunks().0) {
            *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
        }
        group
    }
}

/// A row of MXFP4, which has no columns outside whole groups.
#[derive(Clone, Copy)]
pub(super) struct Mxfp4Row<'a> {
    groups: &'a [[u8; GROUP_COLUMNS / 2]],
    scales: &'a [u8],
}

impl<'a> WeightRow<'a> for Mxfp4Row<'a> {
    const GROUP_BYTES: usize = GROUP_COLUMNS / 2;

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        Self { groups: matrix.row_data(row).as_chunks().0, scales: matrix.row_scales(row) }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], scales: &self.scales[..count] }
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        self.groups.as_ptr().cast()
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize) -> [L::Half; 2] {
        lanes.load_e2m1(&self.groups[group])
    }

    #[inline(always)]
    fn tail(self) -> Group {
        Group::default()
    }

    #[inline(always)]
    fn scale<V, L: Arithmetic<V>>(self, lanes: L, group: usize, value: V) -> V {
        lanes.mul(value, lanes.splat(E8M0[usize::from(self.scales[group])]))
    }
}

/// A row of ones: multiplying by it is exact, so a product with it is a plain sum.
#[derive(Clone, Copy)]
pub(super) struct Ones;

impl<'a> WeightRow<'a> for Ones {
    const GROUP_BYTES: usize = 0;

    fn new(_matrix: &Matrix<'a>, _row: usize) -> Self {
        Self
    }

    #[inline(always)]
    fn first_groups(self, _count: usize) -> Self {
        self
    }

    #[inline(always)]
    fn start(self) -> *const u8 {
        core::ptr::null()
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, _group: usize) -> [L::Half; 2] {
        lanes.splat(1.0)
    }

    #[inline(always)]
    fn tail(self) -> Group {
        [[1.0; LANES]; GROUP_VECTORS]
    }
}
