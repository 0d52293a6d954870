//! Files that are read past the system's cache, in whole pages.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::SystemTime;

use k3_core::host::Storage;
use k3_core::{Error, Result};

use crate::storage::FileStorage;

/// What reads begin at a multiple of, and what buffers are aligned to.
pub const PAGE: usize = 4096;

/// One call to the system.
pub trait ReadAt: Send + Sync {
    /// Reads some bytes from `offset` on into `buffer`; 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }
}

/// A file whose contents go straight from the drive to where they are used.
pub struct DirectFile {
    reader: Box<dyn ReadAt>,
    name: String,
    drive: u64,
    /// Of a file of the file system: the same file again, to see whether it changed, and how it was.
    opened: Option<(File, Stamp)>,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self { length: metadata.len(), modified: metadata.modified().ok() })
    }
}

impl DirectFile {
    /// Opens a file once more: past the system's cache, if the file system can.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be opened, or is another file by now.
    pub fn reopen(storage: &FileStorage) -> Result<Self> {
        Self::open(storage.path(), storage.file()).map_err(|error| Error::Read {
            file: storage.path().display().to_string(),
            offset: 0,
            length: storage.len(),
            reason: error.to_string(),
        })
    }

    fn open(path: &Path, file: &File) -> io::Result<Self> {
        let direct = open_direct(path).unwrap_or(File::open(path)?);
        let stamp = Stamp::of(file)?;
        if identity(&direct)? != identity(file)? || Stamp::of(&direct)? != stamp {
            return Err(io::Error::other("was replaced while it was being opened"));
        }
        let drive = identity(file)?.0;
        let opened = Some((file.try_clone()?, stamp));
        Ok(Self { reader: Box::new(direct), name: path.display().to_string(), drive, opened })
    }

    /// A file that is read through `reader`.
    #[must_use]
    pub fn from_reader(name: &str, reader: Box<dyn ReadAt>) -> Self {
        Self { reader, name: name.to_string(), drive: 0, opened: None }
    }

    /// The path it was opened by.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of the drive that it is on.
    #[must_use]
    pub fn drive(&self) -> u64 {
        self.drive
    }

    /// Fills the first `needed` bytes of `buffer`, and as much of the rest as the file has, from `offset` on. Both are made of
    /// whole pages.
    ///
    /// # Errors
    /// [`Error::Read`] if the file ends before that, or the system refuses. A short read is gone on from, never taken for zeros.
    pub fn read(&self, offset: u64, buffer: &mut [u8], needed: usize) -> Result<()> {
        let fail = |reason: String| Error::Read { file: self.name.clone(), offset, length: needed as u64, reason };
        let mut filled = 0;
        let mut came_short = false;
        while filled < needed {
            match self.reader.read_at(&mut buffer[filled..], offset + filled as u64) {
                Ok(0) => return Err(fail("the file ends before that".to_string())),
                Ok(count) if filled + count >= needed => return Ok(()),
                // Direct reads go on from whole pages only.
                Ok(count) => {
                    let whole = count / PAGE * PAGE;
                    if whole == 0 && came_short {
                        return Err(fail(format!("came short twice, at {}", offset + filled as u64)));
                    }
                    came_short = whole == 0;
                    filled += whole;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(fail(error.to_string())),
            }
        }
        Ok(())
    }

    /// Checks that the file is as it was when it was opened.
    ///
    /// # Errors
    /// [`Error::Read`] if it is not.
    pub fn check_unchanged(&self) -> Result<()> {
        let Some((file, stamp)) = &self.opened else { return Ok(()) };
        let fail = |reason| Error::Read { file: self.name.clone(), offset: 0, length: stamp.length, reason };
        match Stamp::of(file) {
            Ok(now) if now == *stamp => Ok(()),
            Ok(_) => Err(fail("was changed while it was in use".to_string())),
            Err(error) => Err(fail(error.to_string())),
        }
    }
}

/// Opens `path` for direct reads; `None` if the file system does not take them.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn open_direct(path: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt;

    let flag = i32::try_from(rustix::fs::OFlags::DIRECT.bits()).ok()?;
    let file = File::options().read(true).custom_flags(flag).open(path).ok()?;
    // Some accept the flag and refuse the reads.
    let mut page = super::buffer::allocate(PAGE).ok()?;
    ReadAt::read_at(&file, &mut page, 0).ok()?;
    Some(file)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn open_direct(_path: &Path) -> Option<File> {
    None
}

/// The drive and the number of a file on it.
#[cfg(unix)]
fn identity(file: &File) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    let metadata = file.metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(_file: &File) -> io::Result<(u64, u64)> {
    Ok((0, 0))
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
