//! A plan for people and for scripts.

use std::fmt;

use serde::Serialize;

use super::budget::Budget;
use super::parts::Parts;
use super::planner::{Plan, Planner, Weights, safe};
use super::reads::Reads;
use crate::memory::readable;

/// What a plan is for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Subject {
    /// The folder or the model.
    pub model: String,
    /// How many files hold its weights.
    pub files: usize,
    /// The bytes of these files.
    pub file_bytes: u64,
    /// The bytes that are free where they might be written to, if they are not there yet.
    pub free_disk_bytes: Option<u64>,
}

/// How fast the drives are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "source", content = "gbps", rename_all = "lowercase")]
pub enum DiskRate {
    /// Somebody said so, in GB per second.
    Given(f64),
    /// Nobody said.
    Assumed(f64),
}

impl DiskRate {
    /// The seconds that `bytes` take.
    #[must_use]
    pub fn seconds(self, bytes: u64) -> f64 {
        let (Self::Given(rate) | Self::Assumed(rate)) = self;
        bytes as f64 / (rate * 1e9)
    }
}

/// A plan with all that it follows from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanReport {
    /// What it is for.
    #[serde(flatten)]
    pub subject: Subject,
    /// The number of layers.
    pub layers: usize,
    /// Room for so many positions.
    pub context: usize,
    /// Positions that are computed together, at most.
    pub chunk: usize,
    /// Where the weights are.
    pub weights: &'static str,
    /// The bytes of each part of the memory.
    pub memory: Parts,
    /// All of them together.
    pub total: u64,
    /// What the plan was allowed to take.
    pub budget: Option<u64>,
    /// The bytes of memory that are available.
    pub available: Option<u64>,
    /// Of these, the bytes that are safe to use.
    pub safe: Option<u64>,
    /// Runs of the trunk that are read ahead.
    pub read_ahead_buffers: usize,
    /// Routed experts that the cache holds.
    pub expert_slots: usize,
    /// Routed experts that are read on a guess, for each layer.
    pub guesses: usize,
    /// The bytes of the trunk that a token needs, pinned or not.
    pub trunk: u64,
    /// The bytes that a token reads.
    pub reads: Reads,
    /// The bandwidth that the time follows from.
    pub disk: DiskRate,
    /// The seconds that reading takes for each token.
    pub read_seconds: f64,
}

impl PlanReport {
    /// Puts together what there is to say about a plan.
    #[must_use]
    pub fn new(planner: &Planner<'_>, plan: &Plan, budget: &Budget, subject: Subject, disk: DiskRate) -> Self {
        let reads = Reads::of(planner.sizes, &plan.weights);
        let safe = planner.available.map(safe);
        let (weights, allotment) = match &plan.weights {
            Weights::Resident => ("resident", None),
            Weights::Mapped => ("mapped", None),
            Weights::Streamed(allotment) => ("streamed", Some(allotment)),
        };
        Self {
            subject,
            layers: planner.config.layers.len(),
            context: plan.capacity,
            chunk: plan.chunk,
            weights,
            memory: plan.parts,
            total: plan.parts.total(),
            budget: budget.total.as_ref().map(|total| total.bytes).or(safe),
            available: planner.available,
            safe,
            read_ahead_buffers: allotment.map_or(0, |allotment| allotment.read_ahead),
            expert_slots: allotment.map_or(0, |allotment| allotment.expert_slots.get()),
            guesses: allotment.map_or(0, |allotment| allotment.guesses),
            trunk: planner.sizes.trunk(),
            reads,
            disk,
            read_seconds: disk.seconds(reads.total()),
        }
    }

    fn write_memory(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = |bytes: u64| 100.0 * bytes as f64 / self.total as f64;
        writeln!(formatter, "\n{:<24}{:>16}  share", "memory", "bytes")?;
        for (name, bytes) in self.memory.rows().into_iter().filter(|(_, bytes)| *bytes > 0) {
            writeln!(formatter, "{name:<24}{bytes:>16}  {:4.1} %{}", share(bytes), self.detail(name))?;
        }
        writeln!(formatter, "{:<24}{:>16}  {}", "in all", self.total, readable(self.total))?;
        if let Some(budget) = self.budget {
            let left = budget.saturating_sub(self.total);
            writeln!(formatter, "{:<24}{left:>16}  of a budget of {}", "left", readable(budget))?;
        }
        match (self.available, self.safe) {
            (Some(available), Some(safe)) => {
                let (available, safe) = (readable(available), readable(safe));
                writeln!(formatter, "fits: {available} are available, of which {safe} are safe to use")
            }
            _ => writeln!(formatter, "how much memory is available is not known"),
        }
    }

    /// What more there is to say of a part.
    fn detail(&self, part: &str) -> String {
        match part {
            "read-ahead" => format!("  {} buffers", self.read_ahead_buffers),
            "expert cache" if self.guesses > 0 => format!("  {} slots, {} guesses", self.expert_slots, self.guesses),
            "expert cache" => format!("  {} slots", self.expert_slots),
            _ => String::new(),
        }
    }

    fn write_reads(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Reads { trunk, experts, embedding } = self.reads;
        writeln!(formatter, "\n{:<24}{:>16}", "read for each token", "bytes")?;
        writeln!(formatter, "{:<24}{trunk:>16}  of {}", "trunk", self.trunk)?;
        writeln!(formatter, "{:<24}{experts:>16}  if none is in the cache", "routed experts")?;
        writeln!(formatter, "{:<24}{embedding:>16}", "embedding")?;
        let rate = match self.disk {
            DiskRate::Given(rate) => format!("{rate} GB/s"),
            DiskRate::Assumed(rate) => format!("{rate} GB/s, which is assumed: see --disk-gbps"),
        };
        writeln!(formatter, "{:<24}{:>16.2}  at {rate}", "seconds of reading", self.read_seconds)
    }
}

impl fmt::Display for PlanReport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Subject { model, files, file_bytes, free_disk_bytes } = &self.subject;
        writeln!(formatter, "{model}: {} layers, {file_bytes} bytes in {files} files", self.layers)?;
        if let Some(free) = free_disk_bytes {
            let verdict = if free >= file_bytes { "enough" } else { "not enough" };
            writeln!(formatter, "{} of disk are free here: {verdict}", readable(*free))?;
        }
        writeln!(formatter, "room for {} positions, computed up to {} together", self.context, self.chunk)?;
        writeln!(formatter, "weights: {}", self.weights)?;
        self.write_memory(formatter)?;
        self.write_reads(formatter)
    }
}
