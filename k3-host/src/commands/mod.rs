//! The subcommands, one per file.

pub mod bench;
pub mod chat;
pub mod demo;
pub mod functions;
pub mod pack;
pub mod plan;
pub mod run;
pub mod synth;
pub mod tokenize;
pub mod trace;
#[cfg(feature = "sandbox")]
pub mod wasm;
