//! Saving a sequence and going on from it in another run.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use k3_core::model::Model;
use k3_core::model::state_file::Saved;

use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::storage::FileStorage;

/// Writes `saved` to `path`: whole, or not at all.
///
/// # Errors
/// If it cannot be written; what stood there before still stands.
pub fn save(path: &Path, model: &Model, saved: &Saved) -> Outcome {
    let write = || -> anyhow::Result<()> {
        let mut file = Replacement::create(path)?;
        saved
            .write(model.fingerprint(), &mut |bytes| file.write_all(bytes))
            .with_context(|| format!("cannot write {}", path.display()))?;
        file.commit()
    };
    write().map_err(Failure::not_written)
}

/// Reads what was saved to `path`, for a sequence of at most `capacity` positions.
///
/// # Errors
/// A refusal that names the file and what does not fit.
pub fn load(path: &Path, model: &Model, capacity: usize) -> Outcome<Saved> {
    let file = FileStorage::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Saved::read(&file, model.config(), model.fingerprint(), capacity)
        .map_err(|error| Failure::from(error).context(path.display()))
}
