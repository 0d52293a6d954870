//! Opening checkpoints: folders of files.

use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::Directory;
use k3_core::model::source::WeightSource;
use k3_core::stream::resident::Resident;
use k3_core::{Error, Result};
use serde::de::DeserializeSeed;

use crate::failure::Outcome;
use crate::shards::{Loading, LoadingBar};
use crate::storage::FileStorage;

/// A folder of the file system.
#[derive(Debug)]
pub struct Folder {
    /// The path of the folder.
    pub path: PathBuf,
}

impl Directory for Folder {
    type File = FileStorage;

    fn open(&self, name: &str) -> Result<Option<FileStorage>> {
        let path = self.path.join(name);
        match FileStorage::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(read_error(&path, &error)),
        }
    }

    fn read_json<T, S>(&self, name: &str, seed: S) -> Result<Option<T>>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let refuse = |error: serde_json::Error| Error::Checkpoint { file: name.into(), reason: error.to_string() };
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file.file()));
        let value = seed.deserialize(&mut input).map_err(refuse)?;
        input.end().map_err(refuse)?;
        Ok(Some(value))
    }
}

fn read_error(path: &Path, error: &std::io::Error) -> Error {
    Error::Read { file: path.display().to_string(), offset: 0, length: 0, reason: error.to_string() }
}

/// Opens the first `layers` layers of the checkpoint in `folder`, with its shards in memory.
///
/// # Errors
/// A refusal that names the file and the tensor at fault.
pub fn open(folder: &Path, config: &Config, layers: usize, bar: LoadingBar) -> Outcome<Box<dyn WeightSource>> {
    let checkpoint = Checkpoint::open(&Folder { path: folder.to_path_buf() }, config, layers)?;
    let loading = Loading::of(&checkpoint.files, bar);
    Ok(Box::new(Resident::new(checkpoint, |file| loading.bring_in(&file))?))
}
