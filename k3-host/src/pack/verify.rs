//! Comparing a packed trunk with its checksums and with the checkpoint, byte by byte.

use std::path::Path;

use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::{DATA_FILE, Hash, MANIFEST_FILE};
use rayon::prelude::*;

use super::content::Content;
use super::encode::ZeroHashes;
use super::{BATCH_BYTES, PackedTrunk, Progress, Watch, batch_length, open, raw_bytes};
use crate::failure::{Exit, Failure, Outcome};
use crate::storage::FileStorage;

/// Reads all of the trunk in `folder` that belongs to the layers of `config`, on the current thread pool. Returns how many
/// bytes were compared.
///
/// # Errors
/// If a run is not what its checksum says, or not what the checkpoint holds: a failure that names the rows. A refusal
/// if the trunk cannot be opened, or is not there.
pub fn verify(
    folder: &Path,
    checkpoint: &Checkpoint<FileStorage>,
    config: &Config,
    watch: &mut Watch<'_>,
) -> Outcome<u64> {
    let missing = || Failure::refused(format!("{}: missing", folder.join(MANIFEST_FILE).display()));
    let packed = open(folder, checkpoint, config)?.ok_or_else(missing)?;
    let total = raw_bytes(packed.trunk.runs());
    let work = Verification { packed: &packed, checkpoint, zeros: ZeroHashes::default() };
    let hashes = packed.manifest.runs.iter().filter(|run| run.is_needed_for(config.layers.len()));
    let hashes: Vec<Hash> = hashes.map(|run| run.xxh3).collect();
    let (mut runs, mut hashes, mut done) = (packed.trunk.runs(), &hashes[..], 0);
    while !runs.is_empty() {
        if watch(Progress { done, total }).is_break() {
            let error = anyhow::anyhow!("stopped; {done} of {total} bytes were compared and are right");
            return Err(Failure { exit: Exit::Interrupted, error });
        }
        let batch = batch_length(runs, BATCH_BYTES);
        let pairs = runs[..batch].par_iter().zip(&hashes[..batch]);
        pairs.try_for_each(|(run, hash)| work.check(run, *hash))?;
        done += raw_bytes(&runs[..batch]);
        (runs, hashes) = (&runs[batch..], &hashes[batch..]);
    }
    Ok(total)
}

struct Verification<'a> {
    packed: &'a PackedTrunk,
    checkpoint: &'a Checkpoint<FileStorage>,
    zeros: ZeroHashes,
}

impl Verification<'_> {
    /// Compares a run of the packed trunk.
    fn check(&self, run: &Run, hash: Hash) -> Outcome {
        let stored = Content::of_run(std::slice::from_ref(&self.packed.file), run)?;
        let wrong = |reason| {
            let rows = format!("rows {} to {} of {}", run.rows.start, run.rows.end, run.tensor);
            Err(Failure::failed(format!("{}: {rows}: {reason}", self.packed.file.name())))
        };
        if self.zeros.hash(&stored) != hash {
            return wrong(format!("the bytes do not have the checksum of {MANIFEST_FILE}"));
        }
        let location = self.checkpoint.index.tensor(run.tensor).expect("the trunk was checked against the config");
        let original = Run::of(run.tensor, location, run.rows.clone());
        if original.encoding != run.encoding || Content::of_run(&self.checkpoint.files, &original)? != stored {
            return wrong(format!("{DATA_FILE} does not hold what the checkpoint holds"));
        }
        Ok(())
    }
}
