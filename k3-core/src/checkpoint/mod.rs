//! Reading the released checkpoint: names, headers, and where each tensor lies.

pub mod header;
pub mod index;
pub mod names;
mod open;
pub mod required;
pub mod shapes;
mod spelling;
mod table;
mod weight_map;

pub use index::{CheckpointIndex, Location, Span};
pub use open::Checkpoint;
