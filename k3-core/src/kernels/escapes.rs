//! Elements that are kept apart from the group they belong to. They are rare, so the kernels look for the next one instead of
//! at each.
//!
//! The last entry of a dictionary stands for no high byte of its own. While a row is computed it holds that of the next
//! escaped element, so that a group with one of them is a group like all others. Only two in one group need more.

use super::dict::ENTRIES;
use super::lanes::Lanes;
use super::order::Group;
use super::rows::WeightRow;

/// Where in the rows of a tile the next escaped elements are.
pub(super) struct Escapes<const R: usize> {
    /// The slot of the next one in each row.
    slots: [usize; R],
    /// Its group; `usize::MAX` if there is none.
    groups: [usize; R],
    /// The first of these groups.
    soonest: usize,
    /// The dictionary of each row, with the high byte of the next one.
    dictionaries: [[u8; ENTRIES]; R],
}

impl<const R: usize> Escapes<R> {
    /// Those from the beginning of the rows on.
    #[inline(always)]
    pub(super) fn new<'a, W: WeightRow<'a>>(weights: &[W; R]) -> Self {
        let none = usize::MAX;
        let mut escapes = Self { slots: [0; R], groups: [none; R], soonest: none, dictionaries: [[0; ENTRIES]; R] };
        if W::ESCAPES {
            for (r, row) in weights.iter().enumerate() {
                escapes.dictionaries[r] = row.dictionary();
                escapes.aim(*row, r);
            }
            escapes.find_soonest();
        }
        escapes
    }

    /// The dictionaries to decode the next group with, up to and including the first in which there are escaped elements.
    #[inline(always)]
    pub(super) fn dictionaries(&self) -> &[[u8; ENTRIES]; R] {
        &self.dictionaries
    }

    /// Whether any row has an escaped element in `group`.
    #[inline(always)]
    pub(super) fn are_in<'a, W: WeightRow<'a>>(&self, group: usize) -> bool {
        W::ESCAPES && self.soonest == group
    }

    /// Whether any row has more than one escaped element in `group`.
    #[cold]
    #[inline(never)]
    pub(super) fn are_crowded<'a, W: WeightRow<'a>>(&self, weights: [W; R], group: usize) -> bool {
        let following = |r: usize| weights[r].escape(self.slots[r] + 1).0;
        (0..R).any(|r| self.groups[r] == group && following(r) == group)
    }

    /// Goes on from `group` to the next one in which there are any.
    #[cold]
    #[inline(never)]
    pub(super) fn pass<'a, W: WeightRow<'a>>(&mut self, weights: [W; R], group: usize) {
        for (r, row) in weights.into_iter().enumerate() {
            while self.groups[r] == group {
                self.slots[r] += 1;
                self.aim(row, r);
            }
        }
        self.find_soonest();
    }

    #[inline(always)]
    fn aim<'a, W: WeightRow<'a>>(&mut self, row: W, r: usize) {
        (self.groups[r], self.dictionaries[r][ENTRIES - 1]) = row.escape(self.slots[r]);
    }

    #[inline(always)]
    fn find_soonest(&mut self) {
        self.soonest = self.groups.into_iter().fold(usize::MAX, usize::min);
    }
}

/// The elements of a whole group, any number of escaped ones too, before its scale.
#[inline(always)]
pub(super) fn exact_group<'a, L: Lanes, W: WeightRow<'a>>(lanes: L, row: W, group: usize) -> [L::Half; 2] {
    let elements = row.group(lanes, group, &row.dictionary());
    if !W::ESCAPES {
        return elements;
    }
    let mut patched = Group::default();
    lanes.store_group(elements, &mut patched);
    row.patch(group, &mut patched);
    lanes.load_group(&patched)
}
