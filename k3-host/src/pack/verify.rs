//! Comparing a packed trunk with its checksums and with the checkpoint, byte by byte.

use std::path::Path;

use k3_core::checkpoint::Checkpoint;
use k3_core::kernels::{Backend, Kernels};
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::{DATA_FILE, Hash, MANIFEST_FILE};
use rayon::prelude::*;

use super::content::Content;
use super::encode::{ZeroHashes, decode};
use super::{BATCH_BYTES, PackedTrunk, Progress, Watch, batch_length, open, raw_bytes};
use crate::checkpoint::OpenCheckpoint;
use crate::failure::{Failure, Outcome};
use crate::storage::FileStorage;

/// Reads all of the trunk in `folder` that belongs to the layers of `model`, on the current thread pool. Returns how many
/// bytes of it were compared.
///
/// # Errors
/// If a run is not what its checksum says, or not what the checkpoint holds: a failure that names the rows. A refusal
/// if the trunk cannot be opened, or is not there.
pub fn verify(folder: &Path, model: &OpenCheckpoint, watch: &mut Watch<'_>) -> Outcome<u64> {
    let missing = || Failure::refused(format!("{}: missing", folder.join(MANIFEST_FILE).display()));
    let packed = open(folder, model)?.ok_or_else(missing)?;
    let total = raw_bytes(packed.trunk.runs());
    let kernels = Kernels::new(Backend::best()).expect("the best there is can be run");
    let work = Verification { packed: &packed, checkpoint: &model.checkpoint, kernels, zeros: ZeroHashes::default() };
    let hashes = packed.manifest.runs.iter().filter(|run| run.is_needed_for(model.config.layers.len()));
    let hashes: Vec<Hash> = hashes.map(|run| run.xxh3).collect();
    let (mut runs, mut hashes, mut done) = (packed.trunk.runs(), &hashes[..], 0);
    while !runs.is_empty() {
        if watch(Progress { done, total }).is_break() {
            return Err(Failure::interrupted(format!(
                "stopped; {done} of {total} bytes are right, the rest was not read"
            )));
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
    kernels: Kernels,
    zeros: ZeroHashes,
}

impl Verification<'_> {
    /// Compares a run of the packed trunk.
    fn check(&self, run: &Run, hash: Hash) -> Outcome {
        let stored = Content::of_run(std::slice::from_ref(&self.packed.file), run)?;
        let wrong = |reason| {
            let rows = format!("rows {} to {} of {}", run.rows.start, run.rows.end, run.tensor);
            Failure::failed(format!("{}: {rows}: {reason}", self.packed.file.path().display()))
        };
        if self.zeros.hash(&stored) != hash {
            return Err(wrong(format!("the bytes do not have the checksum of {MANIFEST_FILE}")));
        }
        let stored = decode(&self.kernels, run, stored).map_err(|error| wrong(error.to_string()))?;
        let location = self.checkpoint.index.tensor(run.tensor).expect("the trunk was checked against the index");
        let original = Run::whole(run.tensor, location).part(run.rows.clone());
        if Content::of_run(&self.checkpoint.files, &original)? != stored {
            return Err(wrong(format!("{DATA_FILE} does not hold what the checkpoint holds")));
        }
        Ok(())
    }
}
