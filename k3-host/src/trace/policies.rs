//! Policies for comparison, made of two parts: what an expert is worth, and among whom the least worthy is sought.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use k3_core::stream::cache::{ExpertGrid, Policy};

/// What experts are worth.
pub(super) trait Rank {
    /// A batch of `layer` begins.
    fn begin(&mut self, layer: usize);

    /// What the expert `number` is worth from now on, as it is used. Of equals, the lower number is worth less.
    fn touch(&mut self, number: usize) -> u64;

    /// An expert of this rank was evicted.
    fn evicted(&mut self, number: usize, rank: u64) {
        let _ = (number, rank);
    }
}

/// Among whom the least worthy is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Among {
    /// All experts.
    All,
    /// Those of the layer that holds most; of equals the current one, or else the first.
    RichestLayer,
}

/// Evicts the expert of the lowest rank.
pub(super) struct Ranked<R> {
    rank: R,
    /// Experts of a layer.
    experts: usize,
    /// How many experts belong to one group.
    group_size: usize,
    groups: Vec<Group>,
    /// The group of the current batch.
    current: usize,
    /// For each expert.
    ranks: Vec<u64>,
    resident: Vec<bool>,
    /// Residents of the current batch, which are in no group's order.
    batch: Vec<usize>,
}

#[derive(Clone, Default)]
struct Group {
    /// The rank and number of those that can go.
    order: BTreeSet<(u64, usize)>,
    /// How many are resident.
    held: usize,
}

impl<R: Rank> Ranked<R> {
    pub fn new(grid: ExpertGrid, rank: R, among: Among) -> Self {
        let group_size = match among {
            Among::All => grid.len(),
            Among::RichestLayer => grid.experts,
        };
        Self {
            rank,
            experts: grid.experts,
            group_size,
            groups: vec![Group::default(); grid.len() / group_size],
            current: 0,
            ranks: vec![0; grid.len()],
            resident: vec![false; grid.len()],
            batch: Vec::new(),
        }
    }

    fn group(&mut self, number: usize) -> &mut Group {
        &mut self.groups[number / self.group_size]
    }
}

impl<R: Rank> Policy for Ranked<R> {
    fn begin(&mut self, layer: usize) {
        for number in std::mem::take(&mut self.batch) {
            if self.resident[number] {
                let rank = self.ranks[number];
                self.group(number).order.insert((rank, number));
            }
        }
        self.current = layer * self.experts / self.group_size;
        self.rank.begin(layer);
    }

    fn touch(&mut self, number: usize) {
        if self.resident[number] {
            let rank = self.ranks[number];
            self.group(number).order.remove(&(rank, number));
            self.batch.push(number);
        }
        self.ranks[number] = self.rank.touch(number);
    }

    fn admit(&mut self, number: usize) {
        self.resident[number] = true;
        self.group(number).held += 1;
        self.batch.push(number);
    }

    fn evict(&mut self) -> Option<usize> {
        let groups = self.groups.iter().enumerate().filter(|(_, group)| !group.order.is_empty());
        let (_, richest) = groups.max_by_key(|(index, group)| (group.held, *index == self.current, Reverse(*index)))?;
        let (rank, victim) = *richest.order.first()?;
        self.rank.evicted(victim, rank);
        self.remove(victim);
        Some(victim)
    }

    fn remove(&mut self, number: usize) {
        let rank = self.ranks[number];
        self.resident[number] = false;
        let group = self.group(number);
        group.order.remove(&(rank, number));
        group.held -= 1;
    }
}
