//! Writing a trace while the engine runs.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use k3_core::stream::cache::{Counters, ExpertGrid};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::PolicyName;
use crate::replace::Replacement;

/// The name of the format and its version.
pub(super) const FORMAT: &str = "k3-trace/1";

/// The cache that a trace is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// The experts of the model.
    pub grid: ExpertGrid,
    /// The bytes of one.
    pub expert_bytes: u64,
    /// How many the cache holds at most.
    pub slots: NonZeroUsize,
    /// How it chooses who leaves.
    pub policy: PolicyName,
}

/// The first line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FirstLine {
    pub format: String,
    pub layers: usize,
    pub experts: usize,
    pub expert_bytes: u64,
    pub slots: NonZeroUsize,
    pub policy: String,
}

/// The line after the batches.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CountersLine {
    pub requests: u64,
    pub hits: u64,
    pub misses: u64,
}

/// The last line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChecksumLine {
    /// XXH3 of all lines before, as 16 hexadecimal digits.
    pub xxh3: String,
}

/// A trace in the making. Dropped before [`TraceWriter::finish`], it leaves what was there.
pub struct TraceWriter {
    file: Replacement,
    hash: Xxh3Default,
    line: String,
    /// The first write that failed.
    failure: Option<std::io::Error>,
}

impl TraceWriter {
    /// Starts the file that will stand at `path`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(path: &Path, setting: &Setting) -> anyhow::Result<Self> {
        let first = FirstLine {
            format: FORMAT.to_owned(),
            layers: setting.grid.layers,
            experts: setting.grid.experts,
            expert_bytes: setting.expert_bytes,
            slots: setting.slots,
            policy: setting.policy.name().to_owned(),
        };
        let line = serde_json::to_string(&first)?;
        let file = Replacement::create(path)?;
        let mut writer = Self { file, hash: Xxh3Default::new(), line, failure: None };
        writer.write_line();
        Ok(writer)
    }

    /// Appends a batch, which the cache is asked for next: `experts` of `layer`, ascending. A write that fails is
    /// reported by [`TraceWriter::finish`].
    pub fn batch(&mut self, layer: usize, experts: &[usize]) {
        self.line.clear();
        self.line.push('[');
        self.line.push_str(&layer.to_string());
        for expert in experts {
            self.line.push(',');
            self.line.push_str(&expert.to_string());
        }
        self.line.push(']');
        self.write_line();
    }

    /// Appends what the cache counted, and puts the finished file in its place.
    ///
    /// # Errors
    /// If any of it could not be written.
    pub fn finish(mut self, counters: Counters) -> anyhow::Result<()> {
        let Counters { requests, hits, misses } = counters;
        self.line = serde_json::to_string(&CountersLine { requests, hits, misses })?;
        self.write_line();
        self.line = serde_json::to_string(&ChecksumLine { xxh3: format!("{:016x}", self.hash.digest()) })?;
        self.write_line();
        if let Some(failure) = self.failure {
            return Err(anyhow::Error::from(failure).context("cannot write the trace"));
        }
        self.file.commit()
    }

    fn write_line(&mut self) {
        self.line.push('\n');
        self.hash.update(self.line.as_bytes());
        if self.failure.is_none() {
            self.failure = self.file.write_all(self.line.as_bytes()).err();
        }
    }
}
