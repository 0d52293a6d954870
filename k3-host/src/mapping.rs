//! Shards mapped into memory.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use k3_core::host::Storage;
use k3_core::{Error, Result};
use memmap2::Mmap;

use crate::memory;
use crate::storage::FileStorage;

/// What is brought into memory between two steps of the progress bar.
#[cfg(target_os = "linux")]
const PIECE: usize = 1 << 28;

/// Whether mapped shards are brought into memory at once, or page by page when they are first touched.
///
/// All at once is much better where it fits: else every first use of an expert stops the decode step for thousands of
/// page faults. Where it does not fit, it would push out one half of the model to make room for the other.
pub struct Residency {
    progress: Option<ProgressBar>,
}

impl Residency {
    /// At once, if `files` take at most three quarters of the memory that is available; a machine that pages is many
    /// times slower.
    #[must_use]
    pub fn of(files: &[FileStorage]) -> Self {
        let bytes: u64 = files.iter().map(Storage::len).sum();
        let fits = memory::available().is_some_and(|available| bytes <= available / 4 * 3);
        Self { progress: fits.then(|| progress_bar(bytes)) }
    }

    /// Maps a shard.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn map(&self, file: &FileStorage) -> Result<Mmap> {
        // SAFETY: the mapping is only read. A file that another program shortens while we run ends this program with a
        // signal; it cannot give wrong numbers, since its length was compared with its header after opening.
        let map = unsafe { Mmap::map(file.file()) };
        let map = map.map_err(|error| Error::Read {
            file: file.name().into(),
            offset: 0,
            length: file.len(),
            reason: error.to_string(),
        })?;
        if let Some(progress) = &self.progress {
            bring_in(&map, progress);
        }
        Ok(map)
    }
}

/// A bar that appears on terminals, and only if it takes long enough to be read.
fn progress_bar(bytes: u64) -> ProgressBar {
    let bar = ProgressBar::new(bytes);
    if let Ok(style) =
        ProgressStyle::with_template("loading {bar:40} {bytes}/{total_bytes} {binary_bytes_per_sec} {eta}")
    {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// Touches every page. This is advice: where it is not taken, pages come when they are needed.
#[cfg(target_os = "linux")]
fn bring_in(map: &Mmap, progress: &ProgressBar) {
    for start in (0..map.len()).step_by(PIECE) {
        let length = PIECE.min(map.len() - start);
        if map.advise_range(memmap2::Advice::PopulateRead, start, length).is_err() {
            return;
        }
        progress.inc(length as u64);
    }
}

#[cfg(not(target_os = "linux"))]
fn bring_in(map: &Mmap, progress: &ProgressBar) {
    progress.inc(map.len() as u64);
}
