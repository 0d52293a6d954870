//! A folder in memory, which a test can damage before it is read.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};

/// File names with their bytes.
#[derive(Clone, Default)]
pub struct Memory(pub BTreeMap<String, Vec<u8>>);

/// A file in memory.
#[derive(Debug)]
pub struct Bytes {
    name: String,
    bytes: Arc<[u8]>,
}

/// Where a folder of `fixtures/` is.
pub fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(path)
}

impl Memory {
    /// The files of a folder of `fixtures/`, without those in folders inside it.
    pub fn load(path: &str) -> Self {
        let entries = fs::read_dir(fixture(path)).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        Self(files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect())
    }

    pub fn config(&self) -> Config {
        Config::from_json(&self.0["config.json"]).unwrap()
    }

    /// Opens all layers.
    pub fn open_all(&self) -> Result<Checkpoint<Bytes>> {
        let config = self.config();
        Checkpoint::open(self, &config, config.layers.len())
    }

    /// What opening all layers complains of.
    pub fn fault(&self) -> String {
        self.open_all().unwrap_err().to_string()
    }
}

impl Directory for Memory {
    type File = Bytes;

    fn open(&self, name: &str) -> Result<Option<Bytes>> {
        Ok(self.0.get(name).map(|bytes| Bytes { name: name.to_owned(), bytes: bytes.as_slice().into() }))
    }
}

impl Storage for Bytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let length = buffer.len();
        let range = usize::try_from(offset).ok().and_then(|start| self.bytes.get(start..)?.get(..length));
        let reason = || "past the end".to_owned();
        let refuse = || Error::Read { file: self.name.clone(), offset, length: length as u64, reason: reason() };
        buffer.copy_from_slice(range.ok_or_else(refuse)?);
        Ok(())
    }
}
