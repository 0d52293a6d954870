//! The parts of the `k3-host` program: what the core needs of a machine, and the commands.

pub mod args;
pub mod bench;
pub mod bundled;
pub mod chat;
pub mod checkpoint;
pub mod commands;
pub mod engine;
pub mod failure;

pub mod memory;
pub mod oracle;
pub mod output;
pub mod pack;
pub mod prompt;
pub mod replace;
pub mod report;
pub mod sampling;
#[cfg(feature = "sandbox")]
pub mod sandbox;
pub mod shards;
pub mod state_file;
pub mod storage;
pub mod synth;
pub mod tokenizer;
pub mod workers;
