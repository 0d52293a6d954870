//! Opening checkpoints: folders of files, and the model that is part of the program.

use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use include_dir::Dir;
use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::{Directory, Storage};
use k3_core::model::source::WeightSource;
use k3_core::stream::resident::Resident;
use k3_core::{Error, Result};
use memmap2::Mmap;
use serde::de::DeserializeSeed;

use crate::failure::{Failure, Outcome};
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

/// Opens the first `layers` layers of the checkpoint in `folder`, with its shards mapped into memory.
///
/// # Errors
/// A refusal that names the file and the tensor at fault.
pub fn open(folder: &Path, config: &Config, layers: usize) -> Outcome<Box<dyn WeightSource>> {
    let checkpoint = Checkpoint::open(&Folder { path: folder.to_path_buf() }, config, layers)?;
    Ok(Box::new(Resident::new(checkpoint, |file| map(&file))?))
}

fn map(file: &FileStorage) -> Result<Mmap> {
    // SAFETY: the mapping is only read. A file that another program shortens while we run ends this program with a
    // signal; it cannot give wrong numbers, since its length was compared with its header after opening.
    let map = unsafe { Mmap::map(file.file()) };
    map.map_err(|error| Error::Read {
        file: file.name().into(),
        offset: 0,
        length: file.len(),
        reason: error.to_string(),
    })
}

/// Opens a checkpoint that is part of the program.
///
/// # Errors
/// A refusal, should the program have been built from damaged files.
pub fn open_bundled(model: &Dir<'static>) -> Outcome<(Config, Box<dyn WeightSource>)> {
    let config = model.get_file("config.json").ok_or_else(|| Failure::refused("config.json is not in the program"))?;
    let config = Config::from_json(config.contents())?;
    let checkpoint = Checkpoint::open(&Bundle(model.clone()), &config, config.layers.len())?;
    let source = Resident::new(checkpoint, |file| Ok(file.0))?;
    Ok((config, Box::new(source)))
}

/// A folder that is part of the program.
struct Bundle(Dir<'static>);

/// A file that is part of the program.
#[derive(Debug)]
struct BundledFile(&'static [u8]);

impl Directory for Bundle {
    type File = BundledFile;

    fn open(&self, name: &str) -> Result<Option<BundledFile>> {
        Ok(self.0.get_file(name).map(|file| BundledFile(file.contents())))
    }
}

impl Storage for BundledFile {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset).ok().and_then(|start| self.0.get(start..)?.get(..buffer.len()));
        let bytes = range.ok_or_else(|| Error::Read {
            file: "bundled model".into(),
            offset,
            length: buffer.len() as u64,
            reason: "beyond the end of the file".into(),
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
