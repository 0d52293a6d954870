//! From sizes, demand and budget to a plan, or to a refusal.

use k3_core::config::Config;
use k3_core::model::scratch::{Scratch, Sizes};
use k3_core::model::state::State;
use k3_core::model::weights::Vectors;

use super::budget::Budget;
use super::demand::{Demand, Positions};
use super::parts::Parts;
use super::refusal::Refusal;
use super::sizes::WeightSizes;
use super::split::Split;
use crate::failure::{Failure, Outcome};
use crate::streaming::Allotment;
use crate::streaming::drives::PIECES_AT_ONCE;

/// What the program takes, measured: 4 MB before it has opened anything (10 MB if it was built without optimisation), and
/// 4 MB that opening a checkpoint leaves behind. The rest is to spare.
const PROGRAM_BYTES: u64 = 16_000_000;
/// What a thread takes: its stack as far as it is used, and what the allocator keeps for it. Those that read are counted for one
/// drive; for others there is enough to spare.
const THREAD_BYTES: u64 = 200_000;

/// Room for a sequence where the system does not say how much memory it has.
const POSITIONS_IN_UNKNOWN_MEMORY: usize = 32_768;

/// The part of the spare memory that goes into room for positions when nobody said how many. The rest makes every pass
/// faster.
const SHARE_OF_POSITIONS: u64 = 4;

/// All that a plan depends on, apart from what the user asks for.
#[derive(Debug, Clone, Copy)]
pub struct Planner<'a> {
    /// The dimensions, with as many layers as are used.
    pub config: &'a Config,
    /// What the weights take.
    pub sizes: &'a WeightSizes,
    /// How much memory is available, if the system says.
    pub available: Option<u64>,
    /// Threads that compute.
    pub threads: usize,
    /// The most positions that are to be computed together.
    pub chunk: usize,
}

/// How memory is spent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Room for so many positions.
    pub capacity: usize,
    /// Positions that are computed together.
    pub chunk: usize,
    /// The bytes of each part.
    pub parts: Parts,
    /// Where the weights are.
    pub weights: Weights,
}

/// Where the weights are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weights {
    /// All in memory.
    Resident,
    /// Mapped, to come page by page: the way where the system does not say how much memory there is.
    Mapped,
    /// On drives, read as they are needed.
    Streamed(Allotment),
}

/// The part of the available memory that is safe to use: a machine that pages is many times slower.
#[must_use]
pub fn safe(available: u64) -> u64 {
    available / 4 * 3
}

impl Planner<'_> {
    /// The best plan for what a command asks for within what the user allows.
    ///
    /// # Errors
    /// A refusal, with both numbers and what would fit, if there is no such plan or it would take more than is safe.
    pub fn plan(&self, demand: &Demand, budget: &Budget) -> Outcome<Plan> {
        let safe = self.available.map(safe);
        let Some(limit) = budget.total.as_ref().map(|total| total.bytes).or(safe) else {
            return self.unlimited(demand, budget);
        };
        let capacity = self.capacity(demand, budget, limit)?;
        let refuse = || Failure::refused(Refusal { planner: self, demand, budget, capacity, limit });
        let fixed = self.fixed(demand, capacity);
        let resident = Parts { weights: self.sizes.files, ..fixed };
        let plan = if budget.wishes.allow_resident() && resident.total() <= limit {
            self.with(capacity, demand, resident, Weights::Resident)
        } else {
            let left = limit.checked_sub(fixed.total()).ok_or_else(refuse)?;
            let split = Split::best(self.sizes, left, budget.wishes).ok_or_else(refuse)?;
            self.streamed(capacity, demand, split)
        };
        if safe.is_some_and(|safe| plan.parts.total() > safe) {
            return Err(refuse());
        }
        Ok(plan)
    }

    /// A plan where nobody says how much memory there is.
    fn unlimited(&self, demand: &Demand, budget: &Budget) -> Outcome<Plan> {
        let capacity = match demand.positions {
            Positions::Exactly(count) => self.checked(count)?,
            Positions::AsFit => self.config.max_positions.min(POSITIONS_IN_UNKNOWN_MEMORY),
        };
        if budget.wishes.allow_resident() {
            return Ok(self.with(capacity, demand, self.fixed(demand, capacity), Weights::Mapped));
        }
        let split = Split::smallest(self.sizes, budget.wishes);
        Ok(self.streamed(capacity, demand, split))
    }

    fn streamed(&self, capacity: usize, demand: &Demand, split: Split) -> Plan {
        let parts = Parts {
            pinned_trunk: split.pinned,
            read_ahead: split.read_ahead,
            expert_cache: split.experts,
            ..self.fixed(demand, capacity)
        };
        self.with(capacity, demand, parts, Weights::Streamed(split.allotment))
    }

    fn with(&self, capacity: usize, demand: &Demand, parts: Parts, weights: Weights) -> Plan {
        Plan { capacity, chunk: self.chunk(demand, capacity), parts, weights }
    }

    /// The least that `positions` positions take.
    pub(super) fn least(&self, demand: &Demand, budget: &Budget, positions: usize) -> u64 {
        self.fixed(demand, positions).total() + Split::smallest(self.sizes, budget.wishes).bytes()
    }

    /// How many positions fit into `bytes`, with the least for everything else.
    pub(super) fn fitting(&self, demand: &Demand, budget: &Budget, bytes: u64) -> usize {
        let (mut fit, mut beyond) = (0, self.config.max_positions + 1);
        while beyond - fit > 1 {
            let middle = fit + (beyond - fit) / 2;
            if self.least(demand, budget, middle) <= bytes { fit = middle } else { beyond = middle }
        }
        fit
    }

    fn capacity(&self, demand: &Demand, budget: &Budget, limit: u64) -> Outcome<usize> {
        if let Positions::Exactly(count) = demand.positions {
            return self.checked(count);
        }
        let least = self.least(demand, budget, 1);
        let share = limit.saturating_sub(least) / SHARE_OF_POSITIONS;
        Ok(self.fitting(demand, budget, least + share).max(1))
    }

    /// `count`, if the model was made for so many positions.
    fn checked(&self, count: usize) -> Outcome<usize> {
        let most = self.config.max_positions;
        if count > most {
            return Err(Failure::refused(format!("{count} positions: the model was made for at most {most}")));
        }
        Ok(count)
    }

    /// What does not depend on where the weights are.
    fn fixed(&self, demand: &Demand, capacity: usize) -> Parts {
        let Demand { logits, states, other_bytes, .. } = *demand;
        let sizes = Sizes { chunk: self.chunk(demand, capacity), capacity, threads: self.threads, logits };
        // The last logits are kept with what was fed, and a sampler lists the ids with their weights.
        let choosing = (4 + 16) * self.config.vocabulary as u64;
        Parts {
            program: PROGRAM_BYTES + THREAD_BYTES * (PIECES_AT_ONCE + self.threads) as u64,
            index: self.sizes.index,
            vectors: Vectors::bytes(self.config),
            state: states * State::bytes(self.config, capacity),
            scratch: Scratch::bytes(self.config, sizes) + choosing,
            command: other_bytes,
            ..Parts::default()
        }
    }

    fn chunk(&self, demand: &Demand, capacity: usize) -> usize {
        self.chunk.min(capacity).min(demand.at_once).max(1)
    }
}
