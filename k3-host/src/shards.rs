//! The bytes of shards, loaded or mapped.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use k3_core::host::Storage;
use k3_core::{Error, Result};
use memmap2::{Mmap, MmapMut};
use rayon::prelude::*;

use crate::storage::FileStorage;
use crate::streaming::buffer::allocate;

/// What one thread reads at a time.
const PIECE: usize = 1 << 24;

/// Reads a shard into large pages.
///
/// # Errors
/// [`Error::Read`] if it cannot be read, or the system refuses the memory.
pub fn load(file: &FileStorage, progress: &Progress) -> Result<MmapMut> {
    let length = usize::try_from(file.len()).map_err(|error| read_error(file, &error))?;
    let mut memory = allocate(length).map_err(|error| read_error(file, &error))?;
    memory.par_chunks_mut(PIECE).enumerate().try_for_each(|(index, piece)| {
        file.read_exact_at((index * PIECE) as u64, piece)?;
        progress.add(piece.len() as u64);
        Ok(())
    })?;
    Ok(memory)
}

/// Maps a shard, to come page by page as it is touched.
///
/// # Errors
/// [`Error::Read`] if the system refuses.
pub fn map(file: &FileStorage) -> Result<Mmap> {
    // SAFETY: the mapping is only read. A file that another program shortens while we run ends this program with a signal;
    // it cannot give wrong numbers, since its length was compared with its header after opening.
    let map = unsafe { Mmap::map(file.file()) };
    map.map_err(|error| read_error(file, &error))
}

fn read_error(file: &FileStorage, error: &dyn std::fmt::Display) -> Error {
    Error::Read { file: file.path().display().to_string(), offset: 0, length: file.len(), reason: error.to_string() }
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

/// A bar that appears on terminals, and only if it takes long enough to be read.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of `bytes` to load.
    #[must_use]
    pub fn new(bytes: u64, bar: LoadingBar) -> Self {
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
        Self(bar)
    }

    /// So many more are loaded.
    pub fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
