//! The command line: the flags of `k3-host` that mean something here.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::tokenize::TokenizeArgs;

/// Runs Kimi K3 inside WebAssembly, with the same answers as everywhere else.
#[derive(Debug, Parser)]
#[command(name = "k3.wasm", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Feed token ids to a model and print the ids that it answers
    Run(RunArgs),
    /// Text to ids, and back
    Tokenize(TokenizeArgs),
    /// Print a fingerprint of each elementary function, to compare machines
    Functions,
}

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The prompt, as ids separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',', required = true)]
    pub ids: Vec<u32>,
    /// How many ids to generate
    #[arg(long = "gen", value_name = "N", default_value_t = 20)]
    pub generate: u32,
    /// End after this id was generated; may be given more than once
    #[arg(long = "stop-id", value_name = "ID")]
    pub stop_ids: Vec<u32>,
    /// Feed everything from the start again for each id: slow, and the same bits
    #[arg(long)]
    pub full_recompute: bool,
    /// Write the logits of every position that was fed, as rows of little-endian f32
    #[arg(long, value_name = "FILE")]
    pub dump_logits: Option<PathBuf>,
    /// Write the results as JSON; `-` prints them instead of the ids
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// How to load a model and compute with it.
#[derive(Debug, clap::Args)]
pub struct EngineArgs {
    /// Read the configuration from this file instead of DIR/config.json
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use the first N layers only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub layers: Option<u32>,
    /// Instruction set of the kernels; all give the same bits [default: the fastest there is]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Most positions of a prompt that are computed together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub chunk: u32,
    /// Most bytes of a matrix that are in memory at once; a routed expert is always read whole
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub slice: u32,
}
