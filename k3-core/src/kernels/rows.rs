//! One row of weights, group by group, as lanes: what differs between the encodings, and nothing else.

use core::ptr;

use super::dict::{ENTRIES, Record};
use super::lanes::{Arithmetic, Lanes};
use super::matrix::Matrix;
use super::mxfp4::E8M0;
use super::order::{GROUP_COLUMNS, GROUP_VECTORS, Group, LANES};

/// In how many places a row lies at most.
pub(super) const STREAMS: usize = 2;

/// A row of weights of one encoding.
pub(super) trait WeightRow<'a>: Copy {
    /// The bytes of a whole group in each of the places where a row lies; 0 where there is none.
    const GROUP_BYTES: [usize; STREAMS];
    /// Whether some elements are kept apart from their group.
    const ESCAPES: bool = false;

    /// Row `row` of a matrix of this encoding.
    fn new(matrix: &Matrix<'a>, row: usize) -> Self;

    /// This row without what comes after its first `count` whole groups, the tail aside.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    fn first_groups(self, count: usize) -> Self;

    /// Where the groups begin in each of these places; null if there is none.
    fn starts(self) -> [*const u8; STREAMS];

    /// The elements of a whole group, before its scale; those that have codes are looked up in `dictionary`.
    fn group<L: Lanes>(self, lanes: L, group: usize, dictionary: &[u8; ENTRIES]) -> [L::Half; 2];

    /// The columns after the last whole group, padded with zeros; if there are none, all zeros.
    fn tail(self) -> Group;

    /// The dictionary, if the encoding has one.
    #[inline(always)]
    fn dictionary(self) -> [u8; ENTRIES] {
        [0; ENTRIES]
    }

    /// The group of the escaped element in a slot and its high byte; `usize::MAX` if there is none.
    #[inline(always)]
    fn escape(self, _slot: usize) -> (usize, u8) {
        (usize::MAX, 0)
    }

    /// Puts the escaped elements of a group in their places.
    #[inline(always)]
    fn patch(self, _group: usize, _elements: &mut Group) {}

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
    const GROUP_BYTES: [usize; STREAMS] = [4 * GROUP_COLUMNS, 0];

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        let data = matrix.row_data(row);
        let whole = data.len() / Self::GROUP_BYTES[0] * Self::GROUP_BYTES[0];
        Self { groups: data[..whole].as_chunks().0.as_chunks().0, tail: &data[whole..] }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], ..self }
    }

    #[inline(always)]
    fn starts(self) -> [*const u8; STREAMS] {
        [self.groups.as_ptr().cast(), ptr::null()]
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize, _: &[u8; ENTRIES]) -> [L::Half; 2] {
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
    const GROUP_BYTES: [usize; STREAMS] = [2 * GROUP_COLUMNS, 0];

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        let data = matrix.row_data(row);
        let whole = data.len() / Self::GROUP_BYTES[0] * Self::GROUP_BYTES[0];
        Self { groups: data[..whole].as_chunks().0.as_chunks().0, tail: &data[whole..] }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], ..self }
    }

    #[inline(always)]
    fn starts(self) -> [*const u8; STREAMS] {
        [self.groups.as_ptr().cast(), ptr::null()]
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize, _: &[u8; ENTRIES]) -> [L::Half; 2] {
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
    const GROUP_BYTES: [usize; STREAMS] = [GROUP_COLUMNS / 2, 1];

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        Self { groups: matrix.row_data(row).as_chunks().0, scales: matrix.row_scales(row) }
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self { groups: &self.groups[..count], scales: &self.scales[..count] }
    }

    #[inline(always)]
    fn starts(self) -> [*const u8; STREAMS] {
        [self.groups.as_ptr().cast(), self.scales.as_ptr()]
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize, _: &[u8; ENTRIES]) -> [L::Half; 2] {
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

/// A row of bf16 with a dictionary, which has no columns outside whole groups.
#[derive(Clone, Copy)]
pub(super) struct DictRow<'a>(Record<'a>);

impl<'a> WeightRow<'a> for DictRow<'a> {
    const GROUP_BYTES: [usize; STREAMS] = [GROUP_COLUMNS, GROUP_COLUMNS / 2];
    const ESCAPES: bool = true;

    #[inline(always)]
    fn new(matrix: &Matrix<'a>, row: usize) -> Self {
        Self(Record::new(matrix, row))
    }

    #[inline(always)]
    fn first_groups(self, count: usize) -> Self {
        Self(self.0.first_groups(count))
    }

    #[inline(always)]
    fn starts(self) -> [*const u8; STREAMS] {
        [self.0.low.as_ptr().cast(), self.0.codes.as_ptr().cast()]
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, group: usize, dictionary: &[u8; ENTRIES]) -> [L::Half; 2] {
        lanes.load_dict(dictionary, &self.0.low[group], &self.0.codes[group])
    }

    #[inline(always)]
    fn dictionary(self) -> [u8; ENTRIES] {
        *self.0.dictionary
    }

    #[inline(always)]
    fn escape(self, slot: usize) -> (usize, u8) {
        self.0.escape(slot)
    }

    #[inline(always)]
    fn patch(self, group: usize, elements: &mut Group) {
        self.0.patch(group, elements);
    }

    #[inline(always)]
    fn tail(self) -> Group {
        Group::default()
    }
}

/// A row of ones: multiplying by it is exact, so a product with it is a plain sum.
#[derive(Clone, Copy)]
pub(super) struct Ones;

impl<'a> WeightRow<'a> for Ones {
    const GROUP_BYTES: [usize; STREAMS] = [0; STREAMS];

    fn new(_matrix: &Matrix<'a>, _row: usize) -> Self {
        Self
    }

    #[inline(always)]
    fn first_groups(self, _count: usize) -> Self {
        self
    }

    #[inline(always)]
    fn starts(self) -> [*const u8; STREAMS] {
        [ptr::null(); STREAMS]
    }

    #[inline(always)]
    fn group<L: Lanes>(self, lanes: L, _group: usize, _: &[u8; ENTRIES]) -> [L::Half; 2] {
        lanes.splat(1.0)
    }

    #[inline(always)]
    fn tail(self) -> Group {
        [[1.0; LANES]; GROUP_VECTORS]
    }
}
