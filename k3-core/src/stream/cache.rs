//! STUB until the cache branch is merged.
use alloc::vec::Vec;

/// Outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// hit
    Hit,
    /// miss
    Miss,
}
/// Access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// e
    pub expert: usize,
    /// s
    pub slot: usize,
    /// o
    pub outcome: Outcome,
}
/// LRU.
#[derive(Debug)]
pub struct ExpertCache {
    entries: Vec<Option<(usize, usize)>>,
    used: Vec<u64>,
    clock: u64,
}
impl ExpertCache {
    /// n
    #[must_use]
    pub fn new(slots: usize) -> Self {
        let slots = slots.max(1);
        Self { entries: alloc::vec![None; slots], used: alloc::vec![0; slots], clock: 0 }
    }
    /// s
    #[must_use]
    pub fn slots(&self) -> usize {
        self.entries.len()
    }
    /// b
    pub fn begin(&mut self, layer: usize, ids: &[usize], accesses: &mut Vec<Access>) {
        accesses.clear();
        for &expert in ids {
            if let Some(slot) = self.entries.iter().position(|entry| *entry == Some((layer, expert))) {
                self.clock += 1;
                self.used[slot] = self.clock;
                accesses.push(Access { expert, slot, outcome: Outcome::Hit });
            }
        }
        let hits = accesses.len();
        for &expert in ids {
            if accesses[..hits].iter().any(|access| access.expert == expert) {
                continue;
            }
            let slot = (0..self.used.len()).min_by_key(|slot| self.used[*slot]).unwrap_or(0);
            self.clock += 1;
            self.used[slot] = self.clock;
            self.entries[slot] = Some((layer, expert));
            accesses.push(Access { expert, slot, outcome: Outcome::Miss });
        }
    }
    /// f
    pub fn forget(&mut self, layer: usize, expert: usize) {
        for (entry, used) in self.entries.iter_mut().zip(&mut self.used) {
            if *entry == Some((layer, expert)) {
                *entry = None;
                *used = 0;
            }
        }
    }
}
