//! How memory is spent, decided before anything large is loaded. `docs/streaming.md` explains the order of decisions.

mod budget;
mod demand;
mod parts;
mod planner;
mod refusal;
mod sizes;
mod split;

pub use budget::{Budget, Preset, Total, parse_size};
pub use demand::{Demand, Positions};
pub use parts::Parts;
pub use planner::{Plan, Planner, Weights, safe};
pub use sizes::{MatrixSizes, WeightSizes};
pub use split::{Split, Wishes};
