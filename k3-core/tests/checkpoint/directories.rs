//! Folders of checkpoints: real ones, and ones in memory that a test can damage.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};

/// A folder of `fixtures/`.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn fixture(path: &str) -> Self {
        Self(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fixtures").join(path))
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }

    /// Everything in the folder, except other folders, in memory.
    pub fn load(&self) -> Memory {
        let entries = std::fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap());
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
        Memory {
            files: files.map(|entry| (name(&entry), std::fs::read(entry.path()).unwrap())).collect(),
            opened: Cell::new(0),
        }
    }
}
