//! Weights that come from drives as they are needed, in whatever memory there is.
//!
//! The trunk is used in full by every pass: some of it is pinned, the rest is read ahead of compute in the order of use.
//! Routed experts are read as one batch per layer as soon as its router has spoken, straight from the shards, and kept in a
//! cache. Nothing of this changes a result.

mod batch;
pub mod buffer;
pub mod drives;
pub mod experts;
pub mod file;
mod guesses;
mod pinned;
mod source;
pub mod trunk;

pub use source::{Allotment, Files, GUESS_BUFFERS, Streamed};
