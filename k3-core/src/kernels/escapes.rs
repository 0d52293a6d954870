//! Elements that are kept apart from the group they belong to. They are rare, so the kernels look for the next one instead of
//! at each.

use super::lanes::Lanes;
use super::order::Group;
use super::rows::WeightRow;

/// Where in the rows of a tile the next escaped elements are.
pub(super) struct Escapes<const R: usize> {
    /// The group of the next one in each row; `usize::MAX` if there is none.
    next: [usize; R],
    /// The first of these groups.
    soonest: usize,
}

impl<const R: usize> Escapes<R> {
    /// Those from the beginning of the rows on.
    #[inline(always)]
    pub(super) fn new<'a, W: WeightRow<'a>>(weights: &[W; R]) -> Self {
        let mut escapes = Self { next: [usize::MAX; R], soonest: usize::MAX };
        if W::ESCAPES {
            for (next, row) in escapes.next.iter_mut().zip(weights) {
                *next = row.next_escape(0);
            }
            escapes.find_soonest();
        }
        escapes
    }

    /// Whether any row has an escaped element in `group`. Groups must be asked for in order.
    #[inline(always)]
    pub(super) fn are_in<'a, W: WeightRow<'a>>(&self, group: usize) -> bool {
        W::ESCAPES && self.soonest == group
    }

    /// The elements of a group of row `r` of the tile, which may have escaped ones, before its scale.
    #[inline(always)]
    pub(super) fn elements<'a, L: Lanes, W: WeightRow<'a>>(
        &mut self,
        lanes: L,
        row: W,
        r: usize,
        group: usize,
    ) -> [L::Half; 2] {
        if self.next[r] != group {
            return row.group(lanes, group);
        }
        self.next[r] = row.next_escape(group + 1);
        patched_group(lanes, row, group)
    }

    /// Goes on to the next group that has one.
    #[inline(always)]
    pub(super) fn find_soonest(&mut self) {
        self.soonest = self.next.into_iter().fold(usize::MAX, usize::min);
    }
}

/// The elements of a whole group, escaped ones too, before its scale.
#[inline(always)]
pub(super) fn exact_group<'a, L: Lanes, W: WeightRow<'a>>(lanes: L, row: W, group: usize) -> [L::Half; 2] {
    if W::ESCAPES && row.next_escape(group) == group {
        patched_group(lanes, row, group)
    } else {
        row.group(lanes, group)
    }
}

/// The elements of a group that has escaped ones, before its scale.
#[inline(always)]
fn patched_group<'a, L: Lanes, W: WeightRow<'a>>(lanes: L, row: W, group: usize) -> [L::Half; 2] {
    let mut elements = Group::default();
    lanes.store_group(row.group(lanes, group), &mut elements);
    row.patch(group, &mut elements);
    lanes.load_group(&elements)
}
