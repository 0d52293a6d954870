//! Packing the trunk of a checkpoint: all that every token reads, in one file, in the order in which it is read.
//!
//! `trunk.bin` and `trunk.json` are made under other names and appear whole. A pack that is interrupted goes on where it
//! stopped: see `partial.rs`. What is all zeros is never written, so a checkpoint of holes gives a file of holes.

mod batch;
mod content;
mod encode;
mod holes;
mod open;
mod partial;
mod space;
mod verify;

use std::ops::ControlFlow;
use std::path::Path;

use k3_core::checkpoint::Checkpoint;
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::{Fingerprint, MANIFEST_FILE, Manifest, Packing};

pub use open::{PackedTrunk, open};
pub use verify::verify;

use crate::checkpoint::OpenCheckpoint;
use crate::failure::{Failure, Outcome};
use batch::Batch;
use encode::Encoder;
use partial::Partial;

/// Bytes of the checkpoint that are read and encoded while as many are written. Memory holds at most about four times
/// as much.
pub const BATCH_BYTES: u64 = 64 << 20;

/// A trunk to be packed.
#[derive(Clone)]
pub struct Order<'a> {
    /// The checkpoint, open for the layers that are packed.
    pub model: &'a OpenCheckpoint,
    /// How to pack.
    pub packing: Packing,
    /// What to do with a trunk that is there.
    pub existing: Existing,
    /// How much is worked on together: [`BATCH_BYTES`], except in tests of what happens between batches.
    pub batch_bytes: u64,
}

/// What to do with a trunk that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and fail.
    Refuse,
    /// Replace it when the new one is whole.
    Replace,
}

/// How far the work has come, in bytes of the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes whose runs are written.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Is told how far the work has come, and says whether to go on.
pub type Watch<'a> = dyn FnMut(Progress) -> ControlFlow<()> + 'a;

/// What was packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The length of `trunk.bin`.
    pub bytes: u64,
    /// The bytes of its runs.
    pub stored: u64,
    /// The bytes of the same runs in the checkpoint.
    pub raw: u64,
    /// How many runs an earlier pack had left.
    pub resumed: usize,
}

/// Packs a trunk into `folder`, on the current thread pool.
///
/// # Errors
/// A refusal before anything is written: if a trunk is there and is not to be replaced, if another pack is at work in the
/// folder, or if the disk has too little space. [`Exit::Interrupted`] if `watch` stops it, and [`Exit::NotWritten`] if the
/// disk does: what is whole then stays for the next pack, and an old trunk stays as it was.
///
/// [`Exit::Interrupted`]: crate::failure::Exit::Interrupted
/// [`Exit::NotWritten`]: crate::failure::Exit::NotWritten
pub fn write(order: &Order<'_>, folder: &Path, watch: &mut Watch<'_>) -> Outcome<Summary> {
    let manifest = folder.join(MANIFEST_FILE);
    if order.existing == Existing::Refuse && manifest.exists() {
        return Err(Failure::refused(format!("{} is there; --force replaces the trunk", manifest.display())));
    }
    let OpenCheckpoint { config, checkpoint: Checkpoint { index, files }, trunk, .. } = order.model;
    let fingerprint = Fingerprint::of(index, files, config)?;
    let mut partial = Partial::open(folder, (order.packing, &fingerprint), trunk.runs())?;
    let resumed = partial.runs().len();
    let rest = &trunk.runs()[resumed..];
    space::check(folder, files, rest)?;
    let work = Work { order, encoder: Encoder::new(order.packing, config), raw: raw_bytes(trunk.runs()) };
    work.write_runs(rest, &mut partial, watch)?;
    let manifest = Manifest::new(order.packing, fingerprint, partial.runs().to_vec());
    // What a reader will check is checked here first.
    manifest.trunk(MANIFEST_FILE, index, config, manifest.bytes)?;
    let stored = manifest.runs.iter().map(|run| run.bytes).sum();
    let summary = Summary { bytes: manifest.bytes, stored, raw: work.raw, resumed };
    partial.publish(&manifest)?;
    Ok(summary)
}

/// What stays the same while runs are packed.
struct Work<'a> {
    order: &'a Order<'a>,
    encoder: Encoder,
    raw: u64,
}

impl Work<'_> {
    /// Reads and encodes each batch while the one before it is written.
    fn write_runs(&self, runs: &[Run], partial: &mut Partial, watch: &mut Watch<'_>) -> Outcome {
        let mut done = self.raw - raw_bytes(runs);
        let mut tell = |done| watch(Progress { done, total: self.raw });
        let mut waiting: Option<Batch> = None;
        let mut stopped = tell(done).is_break();
        let mut rest = runs;
        while !stopped && !rest.is_empty() || waiting.is_some() {
            let (now, later) = rest.split_at(if stopped { 0 } else { batch_length(rest, self.order.batch_bytes) });
            let (encoded, written) = rayon::join(
                || Batch::encode(now, &self.order.model.checkpoint.files, &self.encoder),
                || waiting.take().map_or(Ok(0), |batch| partial.append(&batch)),
            );
            done += written?;
            stopped |= tell(done).is_break();
            waiting = Some(encoded?).filter(|batch| !batch.is_empty());
            rest = later;
        }
        if rest.is_empty() { Ok(()) } else { Err(interrupted(done, self.raw)) }
    }
}

fn interrupted(done: u64, total: u64) -> Failure {
    let percent = done as f64 / total as f64 * 100.0;
    Failure::interrupted(format!("stopped at {percent:.0} %; the same command goes on from there"))
}

/// How many of the first runs make a batch; at least one, if there are any.
fn batch_length(runs: &[Run], batch_bytes: u64) -> usize {
    let mut bytes = 0;
    let fitting = runs.iter().take_while(|run| {
        bytes += run.bytes();
        bytes <= batch_bytes
    });
    fitting.count().max(1).min(runs.len())
}

fn raw_bytes(runs: &[Run]) -> u64 {
    runs.iter().map(Run::bytes).sum()
}
