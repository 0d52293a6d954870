//! Memory plans: that they fit whatever there is, that more memory never makes them worse, and what is refused.

#[path = "../support/mod.rs"]
mod support;

mod budgets;
mod caps;
mod flags;
mod folders;
mod program;

use std::sync::LazyLock;

use k3_core::config::Config;
use k3_host::checkpoint::OpenCheckpoint;
use k3_host::failure::Outcome;
use k3_host::plan::{Budget, Demand, Plan, Planner, Total, WeightSizes};
use k3_host::synth::Headers;

const GB: u64 = 1_000_000_000;

/// The released model, as far as plans go.
struct Released {
    config: Config,
    sizes: WeightSizes,
}

static RELEASED: LazyLock<Released> = LazyLock::new(|| {
    let headers = Headers::released().unwrap();
    let config = headers.config().clone();
    let layers = config.layers.len();
    let checkpoint = OpenCheckpoint::open(&headers, config, layers).unwrap();
    Released { sizes: checkpoint.sizes(), config: checkpoint.config }
});

/// Plans for the released model where so much memory is available.
fn planner(available: Option<u64>) -> Planner<'static> {
    let Released { config, sizes } = &*RELEASED;
    Planner { config, sizes, available, threads: 16, chunk: 32 }
}

/// A plan for 4096 positions of the released model.
fn plan(available: Option<u64>, budget: &Budget) -> Outcome<Plan> {
    planner(available).plan(&Demand::positions(4096), budget)
}

/// A budget for all memory.
fn ram(bytes: u64) -> Budget {
    Budget { total: Some(Total { bytes, flag: format!("--ram {bytes}") }), ..Budget::default() }
}

/// What a refusal says, after checking that it is one.
fn refusal<T: std::fmt::Debug>(outcome: Outcome<T>) -> String {
    let failure = outcome.unwrap_err();
    assert_eq!(failure.exit, k3_host::failure::Exit::Refused);
    failure.error.to_string()
}
