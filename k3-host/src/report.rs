//! What a run leaves behind for scripts: results as JSON, logits as raw numbers. `docs/formats.md` describes both.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use k3_core::report::RunReport;
use serde::Serialize;

use crate::failure::Outcome;
use crate::output::{Output, print};
use crate::replace::Replacement;
use crate::summary::Summary;

/// The results of a run on this host.
#[derive(Debug, Serialize)]
pub struct Results<'a> {
    /// What any host reports.
    #[serde(flatten)]
    pub run: RunReport<'a>,
    /// How it went.
    pub summary: &'a Summary,
}

impl Results<'_> {
    /// Writes them to `file` as JSON.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write(&self, mut file: Replacement) -> anyhow::Result<()> {
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.commit()
    }

    /// Prints them as JSON.
    ///
    /// # Errors
    /// If they cannot be printed.
    pub fn print(&self, output: &mut Output) -> Outcome {
        let json = serde_json::to_string_pretty(self).map_err(anyhow::Error::from)?;
        print(output, &format!("{json}\n"))
    }
}

/// A file of logits, a row for each position.
#[derive(Debug)]
pub struct LogitDump {
    file: Replacement,
    rows: usize,
}

impl LogitDump {
    /// Starts the file that will stand at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        Ok(Self { file: Replacement::create(path)?, rows: 0 })
    }

    /// Appends the rows `logits` of `positions`, leaving out positions that were written before.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_new(&mut self, positions: Range<usize>, logits: &[f32]) -> anyhow::Result<()> {
        let width = logits.len() / positions.len();
        let known = self.rows.saturating_sub(positions.start) * width;
        for logit in logits.get(known..).unwrap_or_default() {
            self.file.write_all(&logit.to_le_bytes())?;
        }
        self.rows = self.rows.max(positions.end);
        Ok(())
    }

    /// Puts the finished file in its place.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn commit(self) -> anyhow::Result<()> {
        self.file.commit()
    }
}
