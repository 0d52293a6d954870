//! The file that keeps a conversation between runs.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use k3_core::chat::history::{Entry, History, Speaker};

use crate::failure::{Failure, Outcome};
use crate::replace::Replacement;

/// Where a conversation is saved, if anywhere.
#[derive(Debug, Default)]
pub struct HistoryFile {
    path: Option<PathBuf>,
}

impl HistoryFile {
    /// Reads the conversation at `path`, or begins one with the system message `system`. A missing file is an empty
    /// conversation.
    ///
    /// # Errors
    /// A failure if the file cannot be read or its folder not written to; a refusal that names the line at fault, or if
    /// `system` is not the file's system message. The file is then as it was.
    pub fn open(path: Option<&Path>, system: Option<&str>) -> Outcome<(Self, History)> {
        let mut history = path.map(read).transpose()?.unwrap_or_default();
        match (system, path) {
            (Some(system), _) if history.entries().is_empty() => {
                let entry = Entry { role: Speaker::System, content: system.into(), reasoning: None };
                history.push(entry).map_err(|error| Failure::from(error).context("--system"))?;
            }
            (Some(system), Some(path)) if history.system() != Some(system) => {
                let has = if history.system().is_some() { "another" } else { "no" };
                return Err(Failure::refused(format!("--system: {} has {has} system message", path.display())));
            }
            _ => {}
        }
        // Asks now whether the folder can be written to, not after the first answer.
        path.map(Replacement::create).transpose().map_err(Failure::not_written)?;
        Ok((Self { path: path.map(Path::to_path_buf) }, history))
    }

    /// Saves the conversation: whole, or not at all.
    ///
    /// # Errors
    /// If it cannot be written; the old file then stands.
    pub fn save(&self, history: &History) -> Outcome {
        self.path.as_deref().map_or(Ok(()), |path| write(history, path))
    }
}

/// Writes a conversation to `path`: whole, or not at all.
///
/// # Errors
/// If it cannot be written; what stood there still stands.
pub fn write(history: &History, path: &Path) -> Outcome {
    let write = || -> anyhow::Result<()> {
        let mut file = Replacement::create(path)?;
        file.write_all(history.write().as_bytes())?;
        file.commit()
    };
    write().map_err(Failure::not_written)
}

fn read(path: &Path) -> Outcome<History> {
    match std::fs::read(path) {
        Ok(bytes) => History::read(&bytes).map_err(|error| Failure::from(error).context(path.display())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(History::default()),
        Err(error) => Err(Failure::failed(format!("cannot read {}: {error}", path.display()))),
    }
}
