//! The subcommands, one per file.

pub mod bench;
pub mod demo;
pub mod functions;
pub mod run;
pub mod synth;
#[cfg(feature = "sandbox")]
pub mod wasm;
