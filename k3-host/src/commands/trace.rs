//! `trace`: what expert caches of other sizes and other policies would have hit.

use std::collections::BTreeSet;
use std::io::Write;
use std::io::stdout;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::{Failure, Outcome};
use crate::output::print;
use crate::replace::Replacement;
use crate::trace::report::{Agreement, Report};
use crate::trace::{self, Batching, PolicyName, RawReading, Trace, plot};

/// The bytes of a routed expert as released.
const RELEASED_EXPERT_BYTES: u64 = 17_547_264;

/// Capacities that are tried if none are given, in hundredths of the experts that the trace asks for.
const LADDER_PERCENT: [usize; 12] = [2, 5, 10, 15, 20, 30, 40, 50, 60, 80, 90, 100];

/// Arguments of `trace`.
#[derive(Debug, clap::Args)]
pub struct TraceArgs {
    /// A file of `--dump-cache-trace`, or pairs of layer and expert as little-endian u32
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Capacities of the cache, in experts [default: twelve up to all that the trace asks for]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub capacity: Option<Vec<NonZeroUsize>>,
    /// Capacities of the cache, in gigabytes (10^9 bytes)
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "capacity")]
    pub cache_gb: Option<Vec<f64>>,
    /// Policies to compare
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "lru,layer-share,belady")]
    pub policies: Vec<PolicyName>,
    /// Draw hit rates over capacities
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the table as JSON; `-` prints it instead of the table
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// How to read a file without a header
    #[command(flatten)]
    pub raw: RawArgs,
}

/// What a file without a header does not say.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files without a header")]
pub struct RawArgs {
    /// What a batch is
    #[arg(long, value_enum, default_value_t = Batching::Pass)]
    pub batches: Batching,
    /// Experts of a position
    #[arg(long, value_name = "N", default_value = "16")]
    pub top_k: NonZeroUsize,
    /// Bytes of an expert [default: as released]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub expert_bytes: Option<u64>,
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say; also if the replay does not count what the engine did.
pub fn run(args: &TraceArgs) -> Outcome {
    let raw = RawReading { batching: args.raw.batches, top_k: args.raw.top_k };
    let file = trace::read(&args.file, raw)?;
    let expert_bytes = expert_bytes(args, file.expert_bytes)?;
    let mut capacities = capacities(args, &file.trace, expert_bytes)?;
    capacities.extend(file.engine.filter(|_| args.capacity.is_none() && args.cache_gb.is_none()).map(|run| run.slots));
    let (svg, out) = (start(args.svg.as_deref())?, start(args.out.as_deref().filter(|path| !is_stdout(path)))?);

    let mut report = Report::new(&file.trace, expert_bytes);
    report.replay(&file.trace, &capacities, &args.policies);
    report.engine = file.engine.map(|run| Agreement::of(&file.trace, &run));
    let json = || serde_json::to_string_pretty(&report).map(|text| text + "\n").map_err(anyhow::Error::from);
    if args.out.as_deref().is_some_and(is_stdout) {
        print(&mut stdout(), &json()?)?
    } else {
        print(&mut stdout(), &report.to_string())?
    }
    if let Some(svg) = svg {
        write(svg, &plot::svg(&report)?)?;
    }
    if let Some(out) = out {
        write(out, &json()?)?;
    }
    match &report.engine {
        Some(engine) if !engine.agrees => Err(Failure::failed("the replay does not count what the engine counted")),
        _ => Ok(()),
    }
}

/// The bytes of an expert, from the file or else from the arguments.
fn expert_bytes(args: &TraceArgs, in_file: Option<u64>) -> Outcome<u64> {
    match (in_file, args.raw.expert_bytes) {
        (Some(_), Some(_)) => Err(Failure::refused("--expert-bytes: the file says how many bytes an expert has")),
        (None, given) => Ok(given.unwrap_or(RELEASED_EXPERT_BYTES)),
        (Some(bytes), None) => Ok(bytes),
    }
}

fn capacities(args: &TraceArgs, trace: &Trace, expert_bytes: u64) -> Outcome<BTreeSet<NonZeroUsize>> {
    if let Some(capacities) = &args.capacity {
        return Ok(capacities.iter().copied().collect());
    }
    let Some(gigabytes) = &args.cache_gb else {
        let parts = LADDER_PERCENT.iter().map(|percent| trace.distinct() * percent / 100);
        return Ok(parts.filter_map(NonZeroUsize::new).collect());
    };
    let experts = |&gigabytes: &f64| {
        // Saturates; not a number gives 0.
        let experts = NonZeroUsize::new((gigabytes * 1e9 / expert_bytes as f64) as usize);
        experts.ok_or_else(|| Failure::refused(format!("--cache-gb {gigabytes}: holds no expert")))
    };
    gigabytes.iter().map(experts).collect()
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Starts a file before any work is done, so that a name that cannot be written is known at once.
fn start(path: Option<&Path>) -> Outcome<Option<Replacement>> {
    path.map(Replacement::create).transpose().map_err(Failure::not_written)
}

fn write(mut file: Replacement, text: &str) -> Outcome {
    let written = file.write_all(text.as_bytes()).context("cannot write the results");
    written.and_then(|()| file.commit()).map_err(Failure::not_written)
}
