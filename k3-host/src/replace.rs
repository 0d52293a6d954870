//! Files that are replaced whole: a reader sees the old contents or the new, never a part.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tempfile::NamedTempFile;

/// A file in the making. Dropped before [`Replacement::commit`], it leaves what was there.
#[derive(Debug)]
pub struct Replacement {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl Replacement {
    /// Starts a file that will stand at `path`, in the same folder under a temporary name.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let file = NamedTempFile::new_in(folder).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path: path.to_path_buf(), file: BufWriter::new(file) })
    }

    /// Syncs the contents to the disk and puts the file in its place.
    ///
    /// # Errors
    /// If the disk is full or the name cannot be taken; the old file then stands.
    pub fn commit(self) -> anyhow::Result<()> {
        let path = self.path;
        let finish = || -> anyhow::Result<()> {
            let file = self.file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            file.as_file().sync_all()?;
            file.persist(&path)?;
            Ok(())
        };
        finish().with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Write for Replacement {
    /// An error names the file that was to stand.
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let named = |error: std::io::Error| {
            std::io::Error::new(error.kind(), format!("cannot write {}: {error}", self.path.display()))
        };
        self.file.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}
