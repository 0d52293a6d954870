//! The bytes of shards, loaded or mapped.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use k3_core::host::Storage;
use k3_core::{Error, Result};
use memmap2::{Mmap, MmapMut};
use rayon::prelude::*;

use crate::memory;
use crate::storage::FileStorage;

/// What one thread reads at a time.
const PIECE: usize = 1 << 24;

/// How shards come into memory.
///
/// Loaded at once where all of them fit: into large pages, since a decode step runs through so many small ones that it
/// takes half as long again. Otherwise mapped, to come page by page as they are touched.
pub struct Loading {
    progress: Option<ProgressBar>,
}

/// Whether the loading of what takes long shows on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadingBar {
    /// It does.
    #[default]
    Shown,
    /// It does not.
    Hidden,
}

/// The bytes of a shard.
#[derive(Debug)]
pub enum Shard {
    /// In memory of its own.
    Loaded(MmapMut),
    /// In the system's cache of the file, as far as that reaches.
    Mapped(Mmap),
}

impl AsRef<[u8]> for Shard {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Loaded(memory) => memory,
            Self::Mapped(map) => map,
        }
    }
}

impl Loading {
    /// At once, if `files` take at most three quarters of the memory that is available; a machine that pages is many
    /// times slower.
    #[must_use]
    pub fn of(files: &[FileStorage], bar: LoadingBar) -> Self {
        let bytes: u64 = files.iter().map(Storage::len).sum();
        let fits = memory::available().is_some_and(|available| bytes <= available / 4 * 3);
        Self { progress: fits.then(|| progress_bar(bytes, bar)) }
    }

    /// Brings a shard into memory.
    ///
    /// # Errors
    /// [`Error::Read`] if it cannot be read, or the system refuses the memory.
    pub fn bring_in(&self, file: &FileStorage) -> Result<Shard> {
        match &self.progress {
            Some(progress) => load(file, progress).map(Shard::Loaded),
            None => map(file).map(Shard::Mapped),
        }
    }
}

fn load(file: &FileStorage, progress: &ProgressBar) -> Result<MmapMut> {
    let length = usize::try_from(file.len()).map_err(|error| read_error(file, &error))?;
    let mut memory = MmapMut::map_anon(length).map_err(|error| read_error(file, &error))?;
    // Advice: where it is not taken, pages are small.
    #[cfg(target_os = "linux")]
    let _ = memory.advise(memmap2::Advice::HugePage);
    memory.par_chunks_mut(PIECE).enumerate().try_for_each(|(index, piece)| {
        file.read_exact_at((index * PIECE) as u64, piece)?;
        progress.inc(piece.len() as u64);
        Ok(())
    })?;
    Ok(memory)
}

fn map(file: &FileStorage) -> Result<Mmap> {
    // SAFETY: the mapping is only read. A file that another program shortens while we run ends this program with a signal;
    // it cannot give wrong numbers, since its length was compared with its header after opening.
    let map = unsafe { Mmap::map(file.file()) };
    map.map_err(|error| read_error(file, &error))
}

fn read_error(file: &FileStorage, error: &dyn std::fmt::Display) -> Error {
    Error::Read { file: file.path().display().to_string(), offset: 0, length: file.len(), reason: error.to_string() }
}

/// A bar that appears on terminals, and only if it takes long enough to be read.
fn progress_bar(bytes: u64, bar: LoadingBar) -> ProgressBar {
    let bar = match bar {
        LoadingBar::Shown => ProgressBar::new(bytes),
        LoadingBar::Hidden => ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden()),
    };
    if let Ok(style) =
        ProgressStyle::with_template("loading {bar:40} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

impl Drop for Loading {
    fn drop(&mut self) {
        if let Some(progress) = &self.progress {
            progress.finish_and_clear();
        }
    }
}
