//! What replays counted, as a table and as JSON.

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

use k3_core::stream::cache::Counters;
use serde::Serialize;

use super::{EngineRun, PolicyName, Trace, replay};

/// The results of `k3-host trace`; `docs/formats.md` describes the JSON.
#[derive(Debug, Serialize)]
pub struct Report {
    format: &'static str,
    /// Batches of the trace.
    batches: usize,
    /// Experts asked for in all.
    requests: usize,
    /// Different experts asked for.
    distinct: usize,
    /// Experts of the largest batch.
    largest_batch: usize,
    /// Bytes of an expert.
    expert_bytes: u64,
    /// In ascending order of capacities, and for each in the order of the policies.
    pub rows: Vec<Row>,
    /// What the engine counted, if the trace says.
    pub engine: Option<Agreement>,
}

/// What one cache counted.
#[derive(Debug, Serialize)]
pub struct Row {
    /// Its capacity, in experts.
    pub capacity: usize,
    /// The same in bytes.
    pub bytes: u64,
    /// The name of its policy.
    pub policy: &'static str,
    /// Experts that were resident.
    pub hits: u64,
    /// Experts that were not.
    pub misses: u64,
    /// The part of all requests that hit.
    pub hit_rate: f64,
}

/// The engine's counters beside those of a replay of the same cache.
#[derive(Debug, Serialize)]
pub struct Agreement {
    capacity: usize,
    policy: &'static str,
    hits: u64,
    misses: u64,
    replayed_hits: u64,
    replayed_misses: u64,
    /// Whether they are equal.
    pub agrees: bool,
}

impl Report {
    /// What a trace is like, and no rows yet.
    #[must_use]
    pub fn new(trace: &Trace, expert_bytes: u64) -> Self {
        Self {
            format: "k3-trace-replay/1",
            batches: trace.batches().len(),
            requests: trace.requests(),
            distinct: trace.distinct(),
            largest_batch: trace.batches().map(|(_, experts)| experts.len()).max().unwrap_or(0),
            expert_bytes,
            rows: Vec::new(),
            engine: None,
        }
    }

    /// Adds a row for each capacity and policy.
    pub fn replay(&mut self, trace: &Trace, capacities: &BTreeSet<NonZeroUsize>, policies: &[PolicyName]) {
        for &capacity in capacities {
            for &policy in policies {
                let Counters { requests, hits, misses } = replay(trace, capacity, policy);
                self.rows.push(Row {
                    capacity: capacity.get(),
                    bytes: self.expert_bytes.saturating_mul(capacity.get() as u64),
                    policy: policy.name(),
                    hits,
                    misses,
                    hit_rate: hits as f64 / requests.max(1) as f64,
                });
            }
        }
    }
}

impl Agreement {
    /// Replays the engine's own cache.
    #[must_use]
    pub fn of(trace: &Trace, run: &EngineRun) -> Self {
        let replayed = replay(trace, run.slots, run.policy);
        Self {
            capacity: run.slots.get(),
            policy: run.policy.name(),
            hits: run.counters.hits,
            misses: run.counters.misses,
            replayed_hits: replayed.hits,
            replayed_misses: replayed.misses,
            agrees: replayed == run.counters,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { batches, requests, distinct, largest_batch, expert_bytes, .. } = self;
        writeln!(
            f,
            "{requests} requests for {distinct} experts of {expert_bytes} bytes, in {batches} batches of at most \
             {largest_batch}"
        )?;
        writeln!(f, "{:>10}{:>10}  {:<12}{:>9}{:>12}{:>12}", "experts", "GB", "policy", "hit rate", "hits", "misses")?;
        for Row { capacity, bytes, policy, hits, misses, hit_rate } in &self.rows {
            let (gigabytes, percent) = (*bytes as f64 / 1e9, hit_rate * 100.0);
            writeln!(f, "{capacity:>10}{gigabytes:>10.2}  {policy:<12}{percent:>7.2} %{hits:>12}{misses:>12}")?;
        }
        let Some(engine) = &self.engine else { return Ok(()) };
        let Agreement { capacity, policy, hits, misses, replayed_hits, replayed_misses, agrees } = engine;
        let verdict = if *agrees { "equal" } else { "NOT EQUAL" };
        writeln!(
            f,
            "the engine, {policy} with {capacity} experts: {hits} hits, {misses} misses; the replay: {replayed_hits} hits, \
             {replayed_misses} misses: {verdict}"
        )
    }
}
