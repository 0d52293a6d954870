//! Files that a page has fetched, as the core reads them.

use std::collections::BTreeMap;
use std::sync::Arc;

use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};

/// A folder in memory: the contents of its files by name.
#[derive(Debug, Default)]
pub struct MemoryFolder(pub BTreeMap<String, Arc<[u8]>>);

/// A file in memory.
#[derive(Debug)]
pub struct MemoryFile {
    name: String,
    /// Its contents.
    pub bytes: Arc<[u8]>,
}

impl Directory for MemoryFolder {
    type File = MemoryFile;

    fn open(&self, name: &str) -> Result<Option<MemoryFile>> {
        Ok(self.0.get(name).map(|bytes| MemoryFile { name: name.to_owned(), bytes: bytes.clone() }))
    }
}

impl Storage for MemoryFile {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset).ok().and_then(|start| self.bytes.get(start..)?.get(..buffer.len()));
        let bytes = range.ok_or_else(|| Error::Read {
            file: self.name.clone(),
            offset,
            length: buffer.len() as u64,
            reason: "beyond the end of the file".to_owned(),
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
