//! `pack`: the trunk of a checkpoint in one file, in the order in which it is read.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use k3_core::stream::trunk_file::{DATA_FILE, Packing};

use crate::byte_bar::byte_bar;
use crate::checkpoint::{Folders, OpenCheckpoint};
use crate::engine;
use crate::failure::Outcome;
use crate::interrupt::Interrupt;
use crate::pack::{self, BATCH_BYTES, Existing, Order, Progress};

/// Arguments of `pack`.
#[derive(Debug, clap::Args)]
pub struct PackArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The folder to write into [default: DIR]
    #[arg(long, value_name = "FOLDER")]
    pub out: Option<PathBuf>,
    /// How to pack the trunk
    #[arg(long, value_enum, default_value_t = EncodingName::Raw, conflicts_with = "verify")]
    pub encoding: EncodingName,
    /// Look for shards in this folder first; may be given more than once
    #[arg(long, value_name = "DIR")]
    pub experts: Vec<PathBuf>,
    /// Read the configuration from this file instead of DIR/config.json
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Pack the first N layers only
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub layers: Option<u32>,
    /// Replace a trunk that is there; it stands until the new one is complete
    #[arg(long, conflicts_with = "verify")]
    pub force: bool,
    /// Pack nothing: compare the trunk that is there with its checksums and with the checkpoint
    #[arg(long)]
    pub verify: bool,
}

/// How to pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EncodingName {
    /// As in the checkpoint
    Raw,
    /// The high bytes of bf16 as codes of 4 bits: about a quarter smaller, and the same numbers
    Dict,
}

/// Runs the command.
///
/// # Errors
/// If the checkpoint, the folder or the disk does not allow it.
pub fn run(args: &PackArgs) -> Outcome {
    let config = engine::read_config(&args.checkpoint, args.config.as_deref())?;
    let layers = engine::layer_count(&config, args.layers)?;
    let model = OpenCheckpoint::open(&Folders::new(&args.checkpoint, &args.experts), config, layers)?;
    let folder = args.out.as_ref().unwrap_or(&args.checkpoint);
    let interrupt = Interrupt::of_run(|| eprintln!("stopping; once more ends the program at once"))?;
    let bar = byte_bar();
    let mut watch = |progress: Progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.done);
        if interrupt.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let started = Instant::now();
    let seconds = || started.elapsed().as_secs_f64();
    if args.verify {
        let bytes = pack::verify(folder, &model, &mut watch)?;
        bar.finish_and_clear();
        println!("{}: {bytes} bytes are those of the checkpoint, {:.1} s", folder.join(DATA_FILE).display(), seconds());
        return Ok(());
    }
    let packing = match args.encoding {
        EncodingName::Raw => Packing::Raw,
        EncodingName::Dict => Packing::Dict,
    };
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    let order = Order { model: &model, packing, existing, batch_bytes: BATCH_BYTES };
    let summary = pack::write(&order, folder, &mut watch)?;
    bar.finish_and_clear();
    if summary.resumed > 0 {
        println!("{} runs were there from before", summary.resumed);
    }
    let ratio = summary.stored as f64 / summary.raw as f64;
    println!("{}: {} bytes in {:.1} s, {ratio:.2} of raw", folder.join(DATA_FILE).display(), summary.bytes, seconds());
    Ok(())
}
