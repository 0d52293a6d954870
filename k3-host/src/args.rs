//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use crate::commands::{bench, chat, demo, pack, plan, run, synth, tokenize, trace};
use crate::plan::{Preset, parse_size};
use crate::shards::LoadingBar;

/// Runs Kimi K3 on one ordinary CPU machine, exactly, at any memory budget.
#[derive(Debug, Parser)]
#[command(name = "k3-host", version, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Feed text or token ids to a model and print what follows
    Run(run::RunArgs),
    /// Talk with a model
    Chat(chat::ChatArgs),
    /// Check the bundled 13-layer model against the logits of the model's published code
    Demo(demo::DemoArgs),
    /// Print a fingerprint of each elementary function, to compare machines
    Functions,
    /// Run the WebAssembly command inside a sandbox
    #[cfg(feature = "sandbox")]
    Wasm(crate::commands::wasm::WasmArgs),
    /// Say how memory would be spent, and whether it suffices; works before there is a checkpoint
    Plan(plan::PlanArgs),
    /// Measure the kernels and the decode step against what this machine can do
    Bench(bench::BenchArgs),
    /// Write all that every token reads into one file, in the order in which it is read
    Pack(pack::PackArgs),
    /// Make a checkpoint of any shape, in the released layout, from a seed
    Synth(synth::SynthArgs),
    /// Turn text into token ids, or ids into text
    Tokenize(tokenize::TokenizeArgs),
    /// Replay what a run asked its expert cache for, with caches of other sizes and policies
    Trace(trace::TraceArgs),
}

/// How to load a model and compute with it.
#[derive(Debug, Clone, clap::Args)]
pub struct EngineArgs {
    /// Read the configuration from this file instead of DIR/config.json
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Use the first N layers only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub layers: Option<u32>,
    /// Number of threads [default: the physical cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Instruction set of the kernels; all give the same bits [default: the fastest there is]
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Most positions of a prompt that are computed together
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub chunk: u32,
    /// Where the weights are, and what memory they may take
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Whether loading shows
    #[arg(skip)]
    pub bar: LoadingBar,
}

/// How memory is spent, and where weights are read from.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Memory")]
pub struct MemoryArgs {
    /// Use at most this much memory in all; a plain number counts GB, and units are read as in 500MB or 1.5GiB. Of --ram and
    /// --preset, the last one counts
    #[arg(long, value_name = "SIZE", value_parser = parse_size, overrides_with_all = ["ram", "preset"])]
    pub ram: Option<u64>,
    /// Use at most as much memory in all as the preset says [default: auto]
    #[arg(long, value_name = "NAME", value_enum, overrides_with_all = ["ram", "preset"])]
    pub preset: Option<Preset>,
    /// Of the memory that there is, spend this much on the trunk; without it, as much as is left after the smaller parts.
    /// With this flag or the next one, weights are streamed even if all of them would fit
    #[arg(long, value_name = "SIZE", value_parser = parse_size, overrides_with = "trunk_gb")]
    pub trunk_gb: Option<u64>,
    /// Of the memory that there is, spend this much on the cache of routed experts; without it, what the trunk leaves
    #[arg(long, value_name = "SIZE", value_parser = parse_size, overrides_with = "cache_gb")]
    pub cache_gb: Option<u64>,
    /// Guess so many experts of the next layer and read them while this one computes; 0 for none [default: 6 if the trunk is
    /// in memory, so that drives have time, and otherwise none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(..=64))]
    pub look_ahead: Option<u16>,
    /// Read the trunk from this folder, where `k3-host pack` wrote it, even if all weights would fit into memory [default:
    /// DIR, if it was written there]
    #[arg(long, value_name = "DIR")]
    pub trunk: Option<PathBuf>,
    /// Look for shards in this folder first; may be given more than once, and each shard may lie in any of them or in DIR
    #[arg(long, value_name = "DIR")]
    pub experts: Vec<PathBuf>,
}
