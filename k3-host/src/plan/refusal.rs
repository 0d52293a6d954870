//! Why there is no plan, and what would fit.

use std::fmt;

use super::budget::{Budget, Preset};
use super::demand::Demand;
use super::planner::{Planner, safe};
use crate::memory::readable;

/// A plan that cannot be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refusal<'a> {
    pub planner: &'a Planner<'a>,
    pub demand: &'a Demand,
    pub budget: &'a Budget,
    /// The positions that there should be room for.
    pub capacity: usize,
    /// What the plan was to take.
    pub limit: u64,
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { planner, demand, budget, capacity, limit } = *self;
        let least = planner.least(demand, budget, capacity);
        let safe = planner.available.map(safe);
        if let Some(total) = &budget.total {
            write!(formatter, "{}: ", total.flag)?;
        }
        if least > limit {
            write!(formatter, "{capacity} positions need at least {}", readable(least))?;
        } else {
            write!(formatter, "the plan takes up to {}", readable(limit))?;
        }
        if let (Some(available), Some(safe)) = (planner.available, safe) {
            let (available, safe) = (readable(available), readable(safe));
            write!(formatter, "; {available} are available, of which {safe} are safe to use")?;
        }
        self.write_what_fits(formatter, least, safe.unwrap_or(u64::MAX))
    }
}

impl Refusal<'_> {
    /// Another budget, if one fits; otherwise, fewer positions.
    fn write_what_fits(&self, formatter: &mut fmt::Formatter<'_>, least: u64, safe: u64) -> fmt::Result {
        let Self { planner, demand, budget, limit, .. } = *self;
        if least <= safe {
            let ram = if least > limit { rounded_up(least) } else { rounded_down(safe) };
            let ram = if (least..=safe).contains(&ram) { ram } else { least };
            write!(formatter, "; --ram {} fits", megabytes(ram))?;
            let presets = Preset::fixed().rev().find(|(_, bytes)| (least..=safe).contains(bytes));
            return presets.map_or(Ok(()), |(preset, _)| write!(formatter, ", and so does --preset {preset}"));
        }
        match planner.fitting(demand, budget, safe.min(limit)) {
            0 => write!(formatter, "; nothing fits"),
            positions => write!(formatter, "; {positions} positions fit (--context, or the prompt and --gen)"),
        }
    }
}

const STEP: u64 = 100_000_000;

fn rounded_up(bytes: u64) -> u64 {
    bytes.next_multiple_of(STEP)
}

fn rounded_down(bytes: u64) -> u64 {
    bytes / STEP * STEP
}

/// A size as `--ram` takes it, not less than `bytes`.
fn megabytes(bytes: u64) -> String {
    if bytes.is_multiple_of(STEP) {
        format!("{}GB", bytes as f64 / 1e9)
    } else {
        format!("{}MB", bytes.div_ceil(1_000_000))
    }
}
