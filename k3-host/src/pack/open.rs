//! A trunk that was packed, ready to be read.

use std::io::Read;
use std::path::Path;

use k3_core::checkpoint::Checkpoint;
use k3_core::host::{Directory, Storage};
use k3_core::stream::trunk::Trunk;
use k3_core::stream::trunk_file::{DATA_FILE, Fingerprint, MANIFEST_FILE, MOST_MANIFEST_BYTES, Manifest};
use k3_core::{Error, Result};

use crate::checkpoint::{Folder, OpenCheckpoint};
use crate::storage::FileStorage;

/// A trunk that was packed.
#[derive(Debug)]
pub struct PackedTrunk {
    /// What the manifest says.
    pub manifest: Manifest,
    /// Where the runs of the layers that were asked for are. All spans are in shard 0.
    pub trunk: Trunk,
    /// The file that is shard 0.
    pub file: FileStorage,
}

/// Opens the trunk in `folder` for the layers of `model`; `None` if there is none.
///
/// The contents of the runs are not read; [`super::verify`] does that.
///
/// # Errors
/// [`Error::Checkpoint`] that names file and field, if the manifest is malformed, does not fit the config or its data file,
/// or was made from another checkpoint; [`Error::Read`].
pub fn open(folder: &Path, model: &OpenCheckpoint) -> Result<Option<PackedTrunk>> {
    let directory = Folder { path: folder.to_path_buf() };
    let Some(text) = directory.open(MANIFEST_FILE)? else { return Ok(None) };
    let name = text.path().display().to_string();
    let manifest = Manifest::parse(&name, &read(&text)?)?;
    let path = folder.join(DATA_FILE).display().to_string();
    let missing = || Error::Checkpoint { file: path, reason: format!("missing, although {MANIFEST_FILE} is there") };
    let file = directory.open(DATA_FILE)?.ok_or_else(missing)?;
    let Checkpoint { index, files } = &model.checkpoint;
    manifest.checkpoint.check(&name, &Fingerprint::of(index, files, &model.config)?)?;
    let trunk = manifest.trunk(&name, index, &model.config, file.len())?;
    Ok(Some(PackedTrunk { manifest, trunk, file }))
}

/// The bytes of a manifest.
fn read(file: &FileStorage) -> Result<Vec<u8>> {
    let name = || file.path().display().to_string();
    if file.len() > MOST_MANIFEST_BYTES {
        let reason = format!("{} bytes are more than is believed", file.len());
        return Err(Error::Checkpoint { file: name(), reason });
    }
    let mut text = Vec::new();
    let failed =
        |error: std::io::Error| Error::Read { file: name(), offset: 0, length: file.len(), reason: error.to_string() };
    file.file().take(MOST_MANIFEST_BYTES).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}
