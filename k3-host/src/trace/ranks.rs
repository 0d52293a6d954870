//! What experts are worth, by several measures.

use super::Trace;
use super::policies::Rank;

/// By the last use.
#[derive(Default)]
pub(super) struct Recency {
    clock: u64,
}

impl Rank for Recency {
    fn begin(&mut self, _layer: usize) {}

    fn touch(&mut self, _number: usize) -> u64 {
        self.clock += 1;
        self.clock
    }
}

/// By the number of uses since it became resident, above the rank of whoever was evicted last, so that old fame is
/// overtaken.
pub(super) struct AgedFrequency {
    /// For each expert.
    uses: Vec<u64>,
    age: u64,
}

impl AgedFrequency {
    pub fn new(experts: usize) -> Self {
        Self { uses: vec![0; experts], age: 0 }
    }
}

impl Rank for AgedFrequency {
    fn begin(&mut self, _layer: usize) {}

    fn touch(&mut self, number: usize) -> u64 {
        self.uses[number] += 1;
        self.age + self.uses[number]
    }

    fn evicted(&mut self, number: usize, rank: u64) {
        self.uses[number] = 0;
        self.age = rank;
    }
}

/// By the next use, which only a replay knows: the optimal policy of Belady.
pub(super) struct NextUse<'a> {
    batches: Vec<&'a [usize]>,
    /// For each request, the number of the next batch that asks for the same expert.
    next: Vec<u64>,
    experts: usize,
    /// How many batches have begun.
    begun: usize,
    /// Where the current batch begins in `next`.
    start: usize,
}

impl<'a> NextUse<'a> {
    pub fn new(trace: &'a Trace) -> Self {
        let grid = trace.grid();
        let mut upcoming = vec![u64::MAX; grid.len()];
        let mut next = Vec::with_capacity(trace.requests());
        for (index, (layer, experts)) in trace.batches().enumerate().rev() {
            for &expert in experts.iter().rev() {
                next.push(std::mem::replace(&mut upcoming[grid.number(layer, expert)], index as u64));
            }
        }
        next.reverse();
        let batches = trace.batches().map(|(_, experts)| experts).collect();
        Self { batches, next, experts: grid.experts, begun: 0, start: 0 }
    }
}

impl Rank for NextUse<'_> {
    fn begin(&mut self, _layer: usize) {
        if self.begun > 0 {
            self.start += self.batches[self.begun - 1].len();
        }
        self.begun += 1;
    }

    fn touch(&mut self, number: usize) -> u64 {
        let batch = self.batches[self.begun - 1];
        let expert = number % self.experts;
        let place = batch.partition_point(|other| *other < expert);
        u64::MAX - self.next[self.start + place]
    }
}
