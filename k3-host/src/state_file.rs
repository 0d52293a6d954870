//! Saving a sequence and going on from it in another run.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use k3_core::model::Model;
use k3_core::model::state_file::Saved;

use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::storage::FileStorage;

/// Writes `saved` to `file`, which takes its place.
///
/// # Errors
/// If it cannot be written; what stood there before still stands.
pub fn save(mut file: Replacement, model: &Model, saved: &Saved) -> anyhow::Result<()> {
    saved.write(model.fingerprint(), &mut |bytes| file.write_all(bytes))?;
    file.commit()
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
