//! What a run leaves behind for scripts: results as JSON, logits as raw numbers. `docs/formats.md` describes both.

use std::io::Write;
use std::ops::Range;
use std::path::Path;

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3Default;

use crate::engine::Engine;
use crate::prompt::Prompt;
use crate::replace::Replacement;
use crate::sampling::{SamplingArgs, SamplingReport};

/// One generated id.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The id.
    pub id: u32,
    /// Wall time from the ids fed to this id.
    pub seconds: f64,
    /// [`logits_hash`] of the logits that it was chosen from.
    pub logits_hash: String,
}

/// The results of `run`.
#[derive(Debug, Serialize)]
pub struct RunReport<'a> {
    format: &'static str,
    version: &'static str,
    backend: &'static str,
    threads: usize,
    layers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    sampling: Option<SamplingReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    prompt_ids: &'a [u32],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    ids: Vec<u32>,
    steps: &'a [Step],
}

/// What was generated.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Generated {
    /// Id after id.
    pub steps: Vec<Step>,
    /// As text, if the prompt was text.
    pub text: Option<String>,
}

impl<'a> RunReport<'a> {
    /// The report of a run of `engine`.
    #[must_use]
    pub fn new(engine: &Engine, sampling: &SamplingArgs, prompt: &'a Prompt, generated: &'a Generated) -> Self {
        let steps = &generated.steps;
        Self {
            format: "k3-run/1",
            version: env!("CARGO_PKG_VERSION"),
            backend: engine.backend().name(),
            threads: engine.threads(),
            layers: engine.model().config().layers.len(),
            sampling: sampling.report(),
            prompt: prompt.text.as_ref().map(|prompt| prompt.text.as_str()),
            prompt_ids: &prompt.ids,
            text: generated.text.as_deref(),
            ids: steps.iter().map(|step| step.id).collect(),
            steps,
        }
    }

    /// Writes it as JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, mut file: Replacement) -> anyhow::Result<()> {
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.commit()
    }
}

/// The XXH3 hash of logits as little-endian f32, as 16 hexadecimal digits. Equal hashes mean equal bits.
#[must_use]
pub fn logits_hash(logits: &[f32]) -> String {
    let mut hash = Xxh3Default::new();
    for logit in logits {
        hash.update(&logit.to_le_bytes());
    }
    format!("{:016x}", hash.digest())
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
