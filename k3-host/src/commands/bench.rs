//! `bench`: how fast, as ratios to what the machine can do.

use std::path::PathBuf;

use k3_core::host::Workers;

use crate::args::EngineArgs;
use crate::bench::disk::{self, PassRead};
use crate::bench::turns::median;
use crate::bench::{decode, dict, kernels};
use crate::engine::{self, Engine};
use crate::failure::{Failure, Outcome};
use crate::plan::Demand;
use crate::workers::{Threads, default_threads};

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BenchArgs {
    /// Something else to measure
    #[command(subcommand)]
    pub other: Option<Other>,
    /// Also time decode steps on this checkpoint
    #[arg(value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// How often each thing is measured; the median counts
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// What can be measured besides.
#[derive(Debug, clap::Subcommand)]
pub enum Other {
    /// How fast the drives deliver what a token needs: the reads of a pass, with nothing in memory and nothing computed
    Disk(DiskArgs),
}

/// Arguments of `bench disk`.
#[derive(Debug, clap::Args)]
pub struct DiskArgs {
    /// The checkpoint directory
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// How often a token's weights are read; the median counts
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Runs the command.
///
/// # Errors
/// If the checkpoint cannot be loaded or computed with.
pub fn run(args: &BenchArgs) -> Outcome {
    if let Some(Other::Disk(args)) = &args.other {
        return disk(args);
    }
    let rounds = args.rounds as usize;
    let kernels = engine::kernels(args.engine.backend.as_deref())?;
    println!("{} kernels, one thread, medians of {rounds} rounds in turns", kernels.backend().name());
    print_kernels(&kernels::measure(&kernels, rounds));
    let threads = Threads::new(args.engine.threads.map_or_else(default_threads, usize::from))?;
    let rates = threads.enter(|| dict::measure(&kernels, &threads, rounds)).map_err(Failure::failed)?;
    print_dict(&rates, threads.threads());
    let Some(folder) = &args.checkpoint else { return Ok(()) };
    let demand = Demand { at_once: 1, other_bytes: kernels::READ_BYTES, ..Demand::positions(rounds + 1) };
    let engine = Engine::open(folder, &args.engine, &demand)?;
    engine.enter(|| print_decode(&engine, rounds))
}

/// Prints one line of a table.
fn line(name: &str, rate: &str, ratio: &str) {
    println!("{name:<34}{rate:>16}  {ratio}");
}

fn gigabytes(rate: f64) -> String {
    format!("{:.1} GB/s", rate / 1e9)
}

fn print_dict(rates: &dict::DictRates, threads: usize) {
    println!("bf16 with a dictionary, {:.3} of its size; rates count the bytes of bf16", rates.size);
    let ratio = format!("time {:.2} of bf16's", rates.bf16_product / rates.dict_product);
    line(&format!("bf16 from memory, {threads} threads"), &gigabytes(rates.bf16_product), "");
    line(&format!("dictionary from memory, {threads} threads"), &gigabytes(rates.dict_product), &ratio);
    line("decoding in cache, one thread", &gigabytes(rates.decode), "");
    line("checking in cache, one thread", &gigabytes(rates.check), "");
}

fn disk(args: &DiskArgs) -> Outcome {
    let files = engine::open_headers(&args.checkpoint, &args.engine)?.into_files()?;
    let passes = disk::measure(files, args.rounds as usize)?;
    for pass in &passes {
        println!("{:.3} GB in {:.3} s: {:.2} GB/s", pass.bytes as f64 / 1e9, pass.seconds, pass.rate() / 1e9);
    }
    println!("median {:.2} GB/s", median(passes.iter().map(PassRead::rate).collect()) / 1e9);
    Ok(())
}

fn print_kernels(rates: &kernels::KernelRates) {
    let line = |name, rate: String, ratio: String| line(name, &rate, &ratio);
    let bytes = gigabytes;
    let flops = |rate: f64| format!("{:.1} GFLOP/s", rate * 2.0 / 1e9);
    let of = |rate: f64, whole: f64, name: &str| format!("{:.2} of {name}", rate / whole);
    line("memory read", bytes(rates.read), String::new());
    line("bf16 12288x7168 from memory", bytes(rates.bf16_memory), of(rates.bf16_memory, rates.read, "memory read"));
    line("bf16 3072x3584 in cache", flops(rates.bf16_cache), String::new());
    line(
        "MXFP4 3072x3584 in cache",
        flops(rates.mxfp4_cache),
        of(rates.mxfp4_cache, rates.bf16_cache, "bf16 in cache"),
    );
    line(
        "bf16 3072x3584, 32 tokens",
        flops(rates.bf16_tokens),
        of(rates.bf16_tokens, rates.bf16_cache, "bf16, one token"),
    );
    line(
        "MXFP4 3072x3584, 32 tokens",
        flops(rates.mxfp4_tokens),
        of(rates.mxfp4_tokens, rates.bf16_tokens, "bf16, 32 tokens"),
    );
}

/// Measures the bandwidth before and after, since it drifts.
fn print_decode(engine: &Engine, rounds: usize) -> Outcome {
    let compute = engine.compute();
    let before = kernels::read_bandwidth(compute.workers, rounds);
    let step = decode::measure(engine, rounds)?;
    let after = kernels::read_bandwidth(compute.workers, rounds);
    let read = (before + after) / 2.0;
    let ideal = step.bytes / read;
    println!("decode, {} threads", engine.threads());
    println!("{:<34}{:>11.1} GB/s", "memory read", read / 1e9);
    println!(
        "{:<34}{:>11.4} s/token  {:.2} times the {:.4} s that reading {:.3} GB takes",
        "decode step",
        step.seconds,
        step.seconds / ideal,
        ideal,
        step.bytes / 1e9
    );
    Ok(())
}
