//! `bench`: how fast, as ratios to what the machine can do.

use std::path::PathBuf;

use crate::args::EngineArgs;
use crate::bench::{decode, kernels};
use crate::engine::{self, Engine};
use crate::failure::Outcome;
use crate::plan::Demand;

/// Arguments of `bench`.
#[derive(Debug, clap::Args)]
pub struct BenchArgs {
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

/// Runs the command.
///
/// # Errors
/// If the checkpoint cannot be loaded or computed with.
pub fn run(args: &BenchArgs) -> Outcome {
    let rounds = args.rounds as usize;
    let kernels = engine::kernels(args.engine.backend.as_deref())?;
    println!("{} kernels, one thread, medians of {rounds} rounds in turns", kernels.backend().name());
    print_kernels(&kernels::measure(&kernels, rounds));
    let Some(folder) = &args.checkpoint else { return Ok(()) };
    let demand = Demand { at_once: 1, ..Demand::positions(rounds + 1) };
    let engine = Engine::open(folder, &args.engine, &demand)?;
    engine.enter(|| print_decode(&engine, rounds))
}

fn print_kernels(rates: &kernels::KernelRates) {
    let line = |name: &str, rate: String, ratio: String| println!("{name:<34}{rate:>16}  {ratio}");
    let bytes = |rate: f64| format!("{:.1} GB/s", rate / 1e9);
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
