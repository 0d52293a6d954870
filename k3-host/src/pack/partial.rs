//! A trunk in the making, which outlives the program that makes it.
//!
//! Runs go to `trunk.bin.partial`. When a batch of them is written, a line for each is added to the journal,
//! `trunk.json.partial`, whose first line says what is being packed. A pack that finds both goes on after the last run that
//! is whole. What the journal does not name is cut off. What it names last is read again, as much as may not have reached
//! the disk when the machine lost its power: waiting for the disk after each batch would make packing several times slower.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::{
    DATA_FILE, Fingerprint, MANIFEST_FILE, MOST_MANIFEST_BYTES, Manifest, Packing, Stored, StoredRun,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::batch::Batch;
use super::content::Content;
use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;
use crate::storage::{read_exact_at, write_all_at};

/// What is added to the names of both files.
const SUFFIX: &str = ".partial";
/// The name and version of the journal.
const FORMAT: &str = "k3-trunk-partial/1";
/// After so many bytes of runs, both files are brought to the disk.
const SYNC_BYTES: u64 = 1 << 30;
/// How many bytes of the last runs are read again: those since the last sync, and a batch that was more than was due.
const REREAD_BYTES: u64 = SYNC_BYTES + (256 << 20);

/// The first line of the journal.
#[derive(PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    encoding: Packing,
    checkpoint: Fingerprint,
}

/// A trunk in the making.
pub(super) struct Partial {
    folder: PathBuf,
    data: File,
    journal: File,
    runs: Vec<StoredRun>,
    /// Bytes since the last sync.
    unsynced: u64,
}

impl Partial {
    /// Goes on with what an earlier pack of the same trunk left in `folder`, which is created if it does not exist;
    /// starts afresh if there is nothing, or something else. `wanted` are the runs of the whole trunk.
    ///
    /// # Errors
    /// A refusal if another pack is at work in the folder.
    pub(super) fn open(folder: &Path, of: (Packing, &Fingerprint), wanted: &[Run]) -> Outcome<Self> {
        let context = || format!("cannot write into {}", folder.display());
        let open = |name| open_or_create(folder, name).with_context(context).map_err(Failure::not_written);
        let mut journal = open(MANIFEST_FILE)?;
        lock(&journal, folder)?;
        let data = open(DATA_FILE)?;
        let header = Header { format: FORMAT.into(), encoding: of.0, checkpoint: of.1.clone() };
        let mut resume = || {
            let mut runs = read_journal(&mut journal, &header)?;
            runs.truncate(whole_runs(&runs, wanted, &data)?);
            write_journal(&mut journal, &header, &runs)?;
            data.set_len(end(&runs))?;
            Ok::<_, io::Error>(runs)
        };
        let runs = resume().with_context(context).map_err(Failure::not_written)?;
        Ok(Self { folder: folder.to_path_buf(), data, journal, runs, unsynced: 0 })
    }

    /// The runs that are whole, from the first on.
    pub(super) fn runs(&self) -> &[StoredRun] {
        &self.runs
    }

    /// Writes a batch. Returns the bytes of its runs in the checkpoint.
    ///
    /// # Errors
    /// If the disk is full. The batches before are kept.
    pub(super) fn append(&mut self, batch: &Batch<'_>) -> Outcome<u64> {
        let mut places = Vec::new();
        let mut offset = end(&self.runs);
        for (run, encoded) in &batch.runs {
            let (encoding, xxh3) = (encoded.encoding, encoded.xxh3);
            let stored = StoredRun::new(run, offset, Stored { encoding, bytes: encoded.content.len(), xxh3 });
            offset = stored.next_offset().ok_or_else(|| Failure::failed("no file is so long"))?;
            places.push(stored);
        }
        self.write_data(batch, &places).map_err(|error| self.unwritten(DATA_FILE, error))?;
        let noted = self.journal.write_all(lines(&places).as_bytes());
        noted.map_err(|error| self.unwritten(MANIFEST_FILE, error))?;
        self.unsynced += places.iter().map(|run| run.bytes).sum::<u64>();
        self.runs.append(&mut places);
        if self.unsynced >= SYNC_BYTES {
            self.data.sync_data().map_err(|error| self.unwritten(DATA_FILE, error))?;
            self.journal.sync_data().map_err(|error| self.unwritten(MANIFEST_FILE, error))?;
            self.unsynced = 0;
        }
        Ok(batch.runs.iter().map(|(run, _)| run.bytes()).sum())
    }

    /// Writes what is not all zeros. The rest is a hole when the file is given its length.
    fn write_data(&self, batch: &Batch<'_>, places: &[StoredRun]) -> io::Result<()> {
        self.data.set_len(end(places))?;
        batch.runs.par_iter().zip(places).try_for_each(|((_, encoded), place)| match &encoded.content {
            Content::Zeros(_) => Ok(()),
            Content::Bytes(bytes) => write_all_at(&self.data, place.offset, bytes),
        })
    }

    /// The failure to write one of the two files. The space that half a batch took is given back.
    fn unwritten(&self, name: &str, error: io::Error) -> Failure {
        // A later pack will try again.
        let _ = self.data.set_len(end(&self.runs));
        let mut message = format!("cannot write {}", partial_path(&self.folder, name).display());
        if !self.runs.is_empty() {
            message += "; what is whole is kept, and the same command goes on from there";
        }
        Failure::not_written(anyhow::Error::new(error).context(message))
    }

    /// Puts the finished trunk in its place. An old manifest is taken away before its data are, so that no manifest ever
    /// stands beside data of another trunk.
    ///
    /// # Errors
    /// If the disk is full or a name cannot be taken.
    pub(super) fn publish(self, manifest: &Manifest) -> Outcome {
        let path = self.folder.join(MANIFEST_FILE);
        let context = || format!("cannot write {}", path.display());
        let publish = || -> anyhow::Result<()> {
            let mut file = Replacement::create(&path)?;
            file.write_all(manifest.to_json().as_bytes())?;
            file.flush()?;
            self.data.sync_all()?;
            remove_if_there(&path)?;
            fs::rename(partial_path(&self.folder, DATA_FILE), self.folder.join(DATA_FILE))?;
            file.commit()?;
            fs::remove_file(partial_path(&self.folder, MANIFEST_FILE))?;
            Ok(())
        };
        publish().with_context(context).map_err(Failure::not_written)
    }
}

impl Drop for Partial {
    /// Leaves nothing where there is nothing to go on from.
    fn drop(&mut self) {
        if self.runs.is_empty() {
            for name in [DATA_FILE, MANIFEST_FILE] {
                let _ = fs::remove_file(partial_path(&self.folder, name));
            }
        }
    }
}

fn partial_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}{SUFFIX}"))
}

fn open_or_create(folder: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(folder)?;
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(partial_path(folder, name))
}

/// Keeps other packs out for as long as the journal is open.
fn lock(journal: &File, folder: &Path) -> Outcome {
    match journal.try_lock() {
        Err(TryLockError::WouldBlock) => {
            Err(Failure::refused(format!("{}: another pack is at work here", folder.display())))
        }
        // Where the file system has no locks, there is nothing to keep others out with.
        Err(TryLockError::Error(_)) | Ok(()) => Ok(()),
    }
}

/// Where the run after `runs` begins.
fn end(runs: &[StoredRun]) -> u64 {
    runs.last().and_then(StoredRun::next_offset).unwrap_or(0)
}

fn lines(runs: &[StoredRun]) -> String {
    runs.iter().map(|run| run.to_json() + "\n").collect()
}

/// The runs of a journal of this header: those of all whole lines up to one that cannot be read.
fn read_journal(journal: &mut File, header: &Header) -> io::Result<Vec<StoredRun>> {
    let mut text = Vec::new();
    journal.take(MOST_MANIFEST_BYTES).read_to_end(&mut text)?;
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let found = lines.next().and_then(|line| serde_json::from_slice::<Header>(line).ok());
    if found.is_none_or(|found| found != *header) {
        return Ok(Vec::new());
    }
    Ok(lines.map_while(|line| serde_json::from_slice(line).ok()).collect())
}

/// Makes the journal one of these runs.
fn write_journal(journal: &mut File, header: &Header, runs: &[StoredRun]) -> io::Result<()> {
    let text = serde_json::to_string(header)? + "\n" + &lines(runs);
    journal.seek(SeekFrom::Start(0))?;
    journal.set_len(0)?;
    journal.write_all(text.as_bytes())
}

/// How many of `runs` are those of `wanted`, in their places, inside the file, and, of the last ones, unharmed.
fn whole_runs(runs: &[StoredRun], wanted: &[Run], data: &File) -> io::Result<usize> {
    let length = data.metadata()?.len();
    let mut due = 0;
    let placed = runs.iter().zip(wanted).take_while(|(run, wanted)| {
        let next = run.next_offset().filter(|next| run.offset == due && *next <= length && run.is_of(wanted));
        due = next.unwrap_or(due);
        next.is_some()
    });
    let count = placed.count();
    let mut first = count;
    let mut bytes = 0;
    while first > 0 && bytes + runs[first - 1].bytes <= REREAD_BYTES {
        first -= 1;
        bytes += runs[first].bytes;
    }
    let whole = runs[first..count].iter().take_while(|run| {
        let mut bytes = vec![0; run.bytes as usize];
        read_exact_at(data, run.offset, &mut bytes).is_ok() && xxh3_64(&bytes) == run.xxh3.0
    });
    Ok(first + whole.count())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
