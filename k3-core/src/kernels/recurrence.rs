//! The two passes of delta attention over the state of one head, `[keys, values]`, each reading and writing it once.

use super::column_sums::{RowTerms, SLOTS, group_columns, load_columns, store_columns, sum_rows};
use super::lanes::{Kernel, Lanes};
use super::order::GROUP_COLUMNS;

/// What the second pass adds to the state and reads it with.
#[derive(Debug, Clone, Copy)]
pub struct StateUpdate<'a> {
    /// `[keys]`.
    pub key: &'a [f32],
    /// `[values]`.
    pub delta: &'a [f32],
    /// `[keys]`.
    pub query: &'a [f32],
}

/// A pass over the state: what becomes of each row.
pub(super) trait StatePass: Copy {
    /// The new elements of row `row`, given the old ones, for the columns from `column` on.
    fn advance<L: Lanes>(
        self,
        lanes: L,
        row: usize,
        columns: core::ops::Range<usize>,
        state: [L::Half; 2],
    ) -> [L::Half; 2];

    /// The weight with which the new row is read.
    fn weight(self, row: usize) -> f32;
}

/// `S[k, v] ← S[k, v]·decay[k]`, read with `key`.
#[derive(Clone, Copy)]
pub(super) struct Decay<'a> {
    pub decay: &'a [f32],
    pub key: &'a [f32],
}

impl StatePass for Decay<'_> {
    #[inline(always)]
    fn advance<L: Lanes>(
        self,
        lanes: L,
        row: usize,
        _columns: core::ops::Range<usize>,
        state: [L::Half; 2],
    ) -> [L::Half; 2] {
        lanes.mul(state, lanes.splat(self.decay[row]))
    }

    #[inline(always)]
    fn weight(self, row: usize) -> f32 {
        self.key[row]
    }
}

/// `S[k, v] ← S[k, v] + key[k]·delta[v]`, read with `query`.
impl StatePass for StateUpdate<'_> {
    #[inline(always)]
    fn advance<L: Lanes>(
        self,
        lanes: L,
        row: usize,
        columns: core::ops::Range<usize>,
        state: [L::Half; 2],
    ) -> [L::Half; 2] {
        let delta = load_columns(lanes, &self.delta[columns]);
        lanes.add(state, lanes.mul(lanes.splat(self.key[row]), delta))
    }

    #[inline(always)]
    fn weight(self, row: usize) -> f32 {
        self.query[row]
    }
}

/// A pass that also reads what it wrote: `out[v] = Σ_k S[k, v]·weight[k]`, a column sum.
pub(super) struct AdvanceAndRead<'a, P> {
    pub pass: P,
    /// S, `[keys, values]`.
    pub state: &'a mut [f32],
    /// `[values]`.
    pub out: &'a mut [f32],
}

impl<P: StatePass> Kernel for AdvanceAndRead<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        let groups = self.out.len().div_ceil(GROUP_COLUMNS);
        let mut group = 0;
        while group + SLOTS <= groups {
            self.tile::<L, SLOTS>(lanes, group);
            group += SLOTS;
        }
        while group < groups {
            self.tile::<L, 1>(lanes, group);
            group += 1;
        }
    }
}

impl<P: StatePass> AdvanceAndRead<'_, P> {
    /// `N` groups of columns.
    #[inline(always)]
    fn tile<L: Lanes, const N: usize>(&mut self, lanes: L, group: usize) {
        let values = self.out.len();
        let keys = self.state.len() / values;
        let mut terms = StateTerms { pass: self.pass, state: &mut *self.state, values, group };
        let sums: [_; N] = sum_rows(lanes, keys, &mut terms);
        for (slot, sums) in sums.into_iter().enumerate() {
            store_columns(lanes, sums, &mut self.out[group_columns(group + slot, values)]);
        }
    }
}

struct StateTerms<'a, P> {
    pass: P,
    state: &'a mut [f32],
    values: usize,
    group: usize,
}

impl<P: StatePass> RowTerms for StateTerms<'_, P> {
    #[inline(always)]
    fn terms<L: Lanes>(&mut self, lanes: L, row: usize, slot: usize) -> [L::Half; 2] {
        let columns = group_columns(self.group + slot, self.values);
        let state = &mut self.state[row * self.values..][columns.clone()];
        let new = self.pass.advance(lanes, row, columns, load_columns(lanes, state));
        store_columns(lanes, new, state);
        lanes.mul(new, lanes.splat(self.pass.weight(row)))
    }
}
