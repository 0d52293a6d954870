//! A folder in which a checkpoint appears whole or not at all.
//!
//! Everything is written into a folder of its own inside the target, and moved up when all of it is on the disk. The
//! config is moved last, since nothing opens a checkpoint without it. Until the first file moves, the old contents stand.

use std::fs::{self, DirEntry, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fs4::FileExt;

use crate::failure::{Failure, Outcome};
use crate::free_space;

/// The configuration.
pub(super) const CONFIG: &str = "config.json";
/// Which file holds which tensor.
pub(super) const INDEX: &str = "model.safetensors.index.json";
/// Where files are until all are complete.
const UNFINISHED: &str = ".unfinished";

/// The length of a file that shows whether holes take space.
const PROBE_BYTES: u64 = 16 << 20;

/// What to do with a folder that has something in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Leave it alone and fail.
    Refuse,
    /// Replace the checkpoint in it, and leave other files.
    Replace,
}

/// A checkpoint in the making. Dropped before [`Staging::publish`], it leaves what was there.
pub(super) struct Staging {
    target: PathBuf,
    unfinished: PathBuf,
}

impl Staging {
    /// Prepares `target`, which is created if it does not exist, to take `bytes` more.
    pub(super) fn new(target: &Path, existing: Existing, bytes: u64) -> Outcome<Self> {
        let context = || format!("cannot write into {}", target.display());
        fs::create_dir_all(target).with_context(context).map_err(Failure::not_written)?;
        let entries = entries(target).with_context(context).map_err(Failure::not_written)?;
        // What an interrupted run left is nobody's.
        let is_taken = entries.iter().any(|entry| entry.file_name() != UNFINISHED);
        if is_taken && existing == Existing::Refuse {
            return Err(Failure::refused(format!("{} is not empty; --force replaces a checkpoint", target.display())));
        }
        let unfinished = target.join(UNFINISHED);
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished).with_context(context).map_err(Failure::not_written)?;
        }
        free_space::check(target, bytes)?;
        fs::create_dir(&unfinished).with_context(context).map_err(Failure::not_written)?;
        Ok(Self { target: target.to_path_buf(), unfinished })
    }

    /// Writes one file and waits until it is on the disk.
    pub(super) fn write(&self, name: &str, write: impl FnOnce(&mut File) -> io::Result<()>) -> Outcome {
        let finish = || {
            let mut file = File::create_new(self.unfinished.join(name))?;
            write(&mut file)?;
            file.sync_all()
        };
        let context = || format!("cannot write {}", self.target.join(name).display());
        finish().with_context(context).map_err(Failure::not_written)
    }

    /// Checks that a file can be longer than what it takes on the disk.
    pub(super) fn check_holes(&self) -> Outcome {
        let path = self.unfinished.join("holes");
        let probe = || {
            let file = File::create_new(&path)?;
            file.set_len(PROBE_BYTES)?;
            let has_holes = has_holes(&file)?;
            fs::remove_file(&path)?;
            Ok(has_holes)
        };
        let context = || format!("cannot write into {}", self.target.display());
        if probe().map_err(|error: io::Error| error).with_context(context).map_err(Failure::not_written)? {
            return Ok(());
        }
        Err(Failure::refused(format!(
            "{}: files cannot have holes on this file system, and 1.56 TB of them are needed",
            self.target.display()
        )))
    }

    /// Moves everything to its place. What was a checkpoint there is taken away first, its config before all.
    pub(super) fn publish(self) -> Outcome {
        let context = || format!("cannot move the finished files into {}", self.target.display());
        self.replace().with_context(context).map_err(Failure::not_written)
    }

    fn replace(&self) -> io::Result<()> {
        for name in [CONFIG, INDEX] {
            remove_if_there(&self.target.join(name))?;
        }
        for old in entries(&self.target)?.iter().filter(|entry| is_shard(entry)) {
            fs::remove_file(old.path())?;
        }
        for new in entries(&self.unfinished)?.iter().filter(|entry| is_shard(entry)) {
            fs::rename(new.path(), self.target.join(new.file_name()))?;
        }
        for name in [INDEX, CONFIG] {
            fs::rename(self.unfinished.join(name), self.target.join(name))?;
        }
        Ok(())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing more can be done about a folder that cannot be removed; a later run will try again.
        let _ = fs::remove_dir_all(&self.unfinished);
    }
}

fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    fs::read_dir(folder)?.collect()
}

fn is_shard(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    name.starts_with("model-") && name.ends_with(".safetensors")
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether a file takes less than half of its length on the disk.
fn has_holes(file: &File) -> io::Result<bool> {
    file.sync_all()?;
    Ok(FileExt::allocated_size(file)? < file.metadata()?.len() / 2)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_what_is_not_written_is_a_hole() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        assert!(has_holes(&file).unwrap());
        file.write_all(&[1; 1 << 20]).unwrap();
        assert!(!has_holes(&file).unwrap());
    }
}
