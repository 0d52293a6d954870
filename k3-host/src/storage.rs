//! Files behind the core's `Storage` trait.

use std::fs::File;
use std::path::{Path, PathBuf};

use k3_core::Error;
use k3_core::host::Storage;

/// The most that one system call is asked to read: larger reads come back short or fail on some systems.
const MAX_READ: usize = 1 << 30;

/// A file that is read at given positions.
#[derive(Debug)]
pub struct FileStorage {
    file: File,
    path: PathBuf,
    length: u64,
}

impl FileStorage {
    /// Opens `path` for reading.
    ///
    /// # Errors
    /// If it is not a file that can be read.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(std::io::Error::other("not a file"));
        }
        Ok(Self { file, path: path.to_path_buf(), length: metadata.len() })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Storage for FileStorage {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> k3_core::Result<()> {
        let length = buffer.len() as u64;
        let mut position = offset;
        for piece in buffer.chunks_mut(MAX_READ) {
            read_exact_at(&self.file, position, piece).map_err(|error| Error::Read {
                file: self.path.display().to_string(),
                offset,
                length,
                reason: error.to_string(),
            })?;
            position += piece.len() as u64;
        }
        Ok(())
    }
}

/// Fills `buffer` from `offset` on; a read past the end is an error.
#[cfg(unix)]
pub(crate) fn read_exact_at(file: &File, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

/// Fills `buffer` from `offset` on; a read past the end is an error.
#[cfg(windows)]
pub(crate) fn read_exact_at(file: &File, mut offset: u64, mut buffer: &mut [u8]) -> std::io::Result<()> {
    use std::io::ErrorKind;
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes all of `bytes` from `offset` on.
#[cfg(unix)]
pub(crate) fn write_all_at(file: &File, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes all of `bytes` from `offset` on.
#[cfg(windows)]
pub(crate) fn write_all_at(file: &File, mut offset: u64, mut bytes: &[u8]) -> std::io::Result<()> {
    use std::io::ErrorKind;
    use std::os::windows::fs::FileExt;
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_past_the_end_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ein Name mit Leerzeichen und Ü");
        std::fs::write(&path, [1, 2, 3, 4]).unwrap();
        let storage = FileStorage::open(&path).unwrap();
        let mut buffer = [0; 3];
        storage.read_exact_at(1, &mut buffer).unwrap();
        assert_eq!((storage.len(), buffer), (4, [2, 3, 4]));
        let error = storage.read_exact_at(2, &mut buffer).unwrap_err().to_string();
        assert!(error.contains("ein Name mit Leerzeichen und Ü: reading 3 bytes at 2"), "{error}");
    }

    #[test]
    fn a_folder_is_not_a_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(FileStorage::open(folder.path()).is_err());
    }
}
