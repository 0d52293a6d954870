//! The subcommands, one per file.

pub mod bench;
pub mod chat;
pub mod demo;
pub mod functions;
pub mod pack;
pub mod run;
pub mod synth;
pub mod tokenize;
#[cfg(feature = "sandbox")]
pub mod wasm;
