//! What a cache of any size would have counted.

use std::num::NonZeroUsize;

use clap::ValueEnum;
use k3_core::stream::cache::{Counters, ExpertCache, LayerShare, Policy};

use super::Trace;
use super::policies::{Among, Ranked};
use super::ranks::{AgedFrequency, NextUse, Recency};

/// How a cache chooses who leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// The least recently used
    Lru,
    /// The least used since it came, where newcomers start level with the last that left
    LfuAging,
    /// The least recently used of the layer that holds most
    LayerLru,
    /// The least used of the layer that holds most, where old uses fade: the engine's
    LayerShare,
    /// The one that is needed again last, which takes knowing the future: no policy can do better
    Belady,
}

impl PolicyName {
    /// As it is written in arguments, tables and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lru => "lru",
            Self::LfuAging => "lfu-aging",
            Self::LayerLru => "layer-lru",
            Self::LayerShare => LayerShare::NAME,
            Self::Belady => "belady",
        }
    }

    /// The policy of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|policy| policy.name() == name)
    }
}

/// Puts a trace through an empty cache.
///
/// Belady's choice is made under the rules that bind the engine: what is missed is always admitted, and the experts of a
/// batch stay until it is over. Where every batch fits into the slots, nothing that keeps those rules hits more often.
#[must_use]
pub fn replay(trace: &Trace, slots: NonZeroUsize, policy: PolicyName) -> Counters {
    let grid = trace.grid();
    match policy {
        PolicyName::Lru => run(trace, slots, Ranked::new(grid, Recency::default(), Among::All)),
        PolicyName::LfuAging => run(trace, slots, Ranked::new(grid, AgedFrequency::new(grid.len()), Among::All)),
        PolicyName::LayerLru => run(trace, slots, Ranked::new(grid, Recency::default(), Among::RichestLayer)),
        PolicyName::LayerShare => run(trace, slots, LayerShare::new(grid)),
        PolicyName::Belady => run(trace, slots, Ranked::new(grid, NextUse::new(trace), Among::All)),
    }
}

fn run(trace: &Trace, slots: NonZeroUsize, policy: impl Policy) -> Counters {
    let mut cache = ExpertCache::new(trace.grid(), slots, policy);
    let mut accesses = Vec::new();
    for (layer, experts) in trace.batches() {
        cache.request(layer, experts, &mut accesses);
    }
    cache.counters()
}
