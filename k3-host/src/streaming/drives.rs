//! Threads that read: some for each drive, so that a slow one does not hold up the others.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use k3_core::Result;
use memmap2::MmapMut;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::buffer::{PageRead, Placement};
use super::file::DirectFile;
use crate::traffic::Traffic;

/// What one call to the system reads.
const PIECE: usize = 1 << 20;

/// How many pieces of one drive are read at once. Drives on a fast bus need about so many to be busy.
pub const PIECES_AT_ONCE: usize = 8;

/// Open files and the threads that read them.
pub struct Drives {
    files: Arc<Vec<DirectFile>>,
    pools: BTreeMap<u64, ThreadPool>,
    traffic: Arc<Traffic>,
    busy: Arc<Busy>,
}

/// Takes the buffer back, with what became of the read.
pub type Done = Box<dyn FnOnce(MmapMut, Result<()>) + Send>;

impl Drives {
    /// Threads for every drive that the files are on.
    ///
    /// # Errors
    /// If the system refuses to start them.
    pub fn new(files: Vec<DirectFile>, traffic: Arc<Traffic>) -> anyhow::Result<Self> {
        let mut pools = BTreeMap::new();
        for file in &files {
            if let Entry::Vacant(pool) = pools.entry(file.drive()) {
                let name = |index| format!("read {index}");
                pool.insert(ThreadPoolBuilder::new().num_threads(PIECES_AT_ONCE).thread_name(name).build()?);
            }
        }
        Ok(Self { files: Arc::new(files), pools, traffic, busy: Arc::default() })
    }

    /// The files.
    #[must_use]
    pub fn files(&self) -> &[DirectFile] {
        &self.files
    }

    /// Begins to read into `buffer`, after what was submitted before for the same drive, and calls `done` at the end.
    ///
    /// # Panics
    /// If there is nothing to read.
    pub fn submit(&self, placement: &Placement, mut buffer: MmapMut, done: Done) {
        let reads = placement.reads.clone();
        let (files, traffic, busy) = (Arc::clone(&self.files), Arc::clone(&self.traffic), Arc::clone(&self.busy));
        busy.begin();
        self.pool(&reads[0]).spawn_fifo(move || {
            let result = read_all(&files, &reads, &mut buffer);
            traffic.add_raw_bytes(raw_bytes(&reads));
            traffic.add_busy_nanoseconds(busy.end().as_nanos() as u64);
            done(buffer, result);
        });
    }

    /// Reads into `buffer` and waits for it.
    ///
    /// # Errors
    /// Those of reading.
    pub fn read_now(&self, placement: &Placement, buffer: &mut [u8]) -> Result<()> {
        self.traffic.add_raw_bytes(raw_bytes(&placement.reads));
        match &placement.reads[..] {
            [] => Ok(()),
            [read] if read.buffer.len() <= PIECE => {
                self.files[read.file].read(read.offset, &mut buffer[read.buffer.clone()], read.needed)
            }
            [read, ..] => self.pool(read).install(|| read_all(&self.files, &placement.reads, buffer)),
        }
    }

    fn pool(&self, read: &PageRead) -> &ThreadPool {
        &self.pools[&self.files[read.file].drive()]
    }
}

fn raw_bytes(reads: &[PageRead]) -> u64 {
    reads.iter().map(|read| read.buffer.len() as u64).sum()
}

/// Reads in pieces, side by side on the pool that the calling thread belongs to.
fn read_all(files: &[DirectFile], reads: &[PageRead], buffer: &mut [u8]) -> Result<()> {
    reads.iter().try_for_each(|read| {
        let pieces = buffer[read.buffer.clone()].par_chunks_mut(PIECE).with_max_len(1).enumerate();
        pieces.try_for_each(|(number, piece)| {
            let start = number * PIECE;
            let needed = piece.len().min(read.needed - start);
            files[read.file].read(read.offset + start as u64, piece, needed)
        })
    })
}

/// Counts the time in which at least one read is under way.
#[derive(Debug, Default)]
struct Busy {
    under_way: Mutex<(usize, Option<Instant>)>,
}

impl Busy {
    fn begin(&self) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.0 += 1;
        under_way.1.get_or_insert_with(Instant::now);
    }

    /// Ends one read and returns the time since the last call, or since reading began, whichever is shorter.
    fn end(&self) -> Duration {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.0 -= 1;
        let now = Instant::now();
        let since = under_way.1.replace(now).map_or(Duration::ZERO, |since| now - since);
        if under_way.0 == 0 {
            under_way.1 = None;
        }
        since
    }
}
