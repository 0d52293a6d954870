//! Files as the core reads them and files that are written, with nothing but what WASI has in stable Rust.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};
use serde::de::DeserializeSeed;

use crate::failure::{Exit, Failure, Outcome};

/// A folder that the host has opened for this module, or one inside it.
#[derive(Debug)]
pub struct Folder {
    /// Its path.
    pub path: PathBuf,
}

/// A file that is read at given positions. The lock keeps a seek and its read together.
#[derive(Debug)]
pub struct FileStorage {
    file: Mutex<File>,
    name: String,
    length: u64,
}

impl FileStorage {
    /// Opens `path` for reading.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a file"));
        }
        Ok(Self { file: Mutex::new(file), name: path.display().to_string(), length: metadata.len() })
    }
}

impl Storage for FileStorage {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(buffer));
        read.map_err(|error| read_error(&self.name, offset..offset.saturating_add(buffer.len() as u64), &error))
    }
}

impl Directory for Folder {
    type File = FileStorage;

    fn open(&self, name: &str) -> Result<Option<FileStorage>> {
        let path = self.path.join(name);
        match FileStorage::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(read_error(&path.display().to_string(), 0..0, &error)),
        }
    }

    fn read_json<T, S>(&self, name: &str, seed: S) -> Result<Option<T>>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let refuse = |error: serde_json::Error| Error::Checkpoint { file: name.into(), reason: error.to_string() };
        let Some(file) = self.open(name)? else { return Ok(None) };
        let file = file.file.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file));
        let value = seed.deserialize(&mut input).map_err(refuse)?;
        input.end().map_err(refuse)?;
        Ok(Some(value))
    }
}

fn read_error(file: &str, range: std::ops::Range<u64>, error: &io::Error) -> Error {
    Error::Read { file: file.into(), offset: range.start, length: range.end - range.start, reason: error.to_string() }
}

/// A file in the making. It takes its name when it is whole.
pub struct Output {
    path: PathBuf,
    unfinished: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    /// Starts the file that will stand at `path`, beside it, under the same name with `.unfinished` after it.
    pub fn create(path: &Path) -> Outcome<Self> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        let unfinished = PathBuf::from(unfinished);
        let file = File::create(&unfinished).map_err(|error| not_written(path, &error))?;
        Ok(Self { path: path.to_path_buf(), unfinished, file: BufWriter::new(file) })
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.file.write_all(bytes).map_err(|error| not_written(&self.path, &error))
    }

    /// Puts the file in its place.
    pub fn commit(self) -> Outcome {
        let finish = || {
            self.file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
            fs::rename(&self.unfinished, &self.path)
        };
        finish().map_err(|error| not_written(&self.path, &error))
    }
}

fn not_written(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::NotWritten, format!("cannot write {}: {error}", path.display()))
}
