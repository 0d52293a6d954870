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

use alloc::string::{String, ToString};

use crate::Error;

/// The refusal of a file.
fn refuse(file: &str, reason: String) -> Error {
    Error::Checkpoint { file: file.to_string(), reason }
}
