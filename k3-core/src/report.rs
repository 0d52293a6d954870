//! What a run reports to scripts, as data that any host can write as JSON. `docs/formats.md` describes it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;
use xxhash_rust::xxh3::Xxh3Default;

use crate::kernels::Backend;
use crate::sample::SamplingSettings;

/// One generated id.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The id.
    pub id: u32,
    /// Wall time from the ids fed to this id.
    pub seconds: f64,
    /// [`logits_hash`] of the logits that it was chosen from.
    pub logits_hash: String,
    /// What was read for it, if weights are read as they are needed and the host counts them.
    #[serde(flatten)]
    pub reads: Option<StepReads>,
}

/// What was read between one step and the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StepReads {
    /// Bytes of weights.
    pub bytes_read: u64,
    /// Routed experts that compute asked for.
    pub expert_requests: u64,
    /// Of these, those that were in memory from an earlier pass.
    pub resident_hits: u64,
    /// Of these, those that were read before compute asked for them.
    pub prefetch_hits: u64,
}

/// Why a run generated no more ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// All that were asked for are there.
    Count,
    /// The last one is an id at which to stop.
    StopId,
    /// Somebody wanted it to end.
    Interrupted,
}

/// What a run computed with. None of it changes a hash, apart from the number of layers.
#[derive(Debug, Clone, Copy)]
pub struct Means {
    /// The kernels.
    pub backend: Backend,
    /// The number of threads.
    pub threads: usize,
    /// The number of layers.
    pub layers: usize,
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
    sampling: Option<SamplingSettings>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<&'a str>,
    prompt_ids: &'a [u32],
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    ids: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Stop>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    steps: &'a [Step],
}

impl<'a> RunReport<'a> {
    /// The report of a run.
    #[must_use]
    pub fn new(means: Means, prompt_ids: &'a [u32], steps: &'a [Step]) -> Self {
        Self {
            format: "k3-run/1",
            version: env!("CARGO_PKG_VERSION"),
            backend: means.backend.name(),
            threads: means.threads,
            layers: means.layers,
            sampling: None,
            prompt: None,
            prompt_ids,
            text: None,
            ids: steps.iter().map(|step| step.id).collect(),
            stopped: None,
            error: None,
            steps,
        }
    }

    /// The same, of a run that ended so: by itself, or with an error that is told in words.
    #[must_use]
    pub fn with_ending(self, ending: Result<Stop, String>) -> Self {
        let (stopped, error) = match ending {
            Ok(stop) => (Some(stop), None),
            Err(error) => (None, Some(error)),
        };
        Self { stopped, error, ..self }
    }

    /// The same, of a run that drew its ids so; with none, greedily.
    #[must_use]
    pub fn with_sampling(self, sampling: Option<SamplingSettings>) -> Self {
        Self { sampling, ..self }
    }

    /// The same, of a run from the text `prompt` that gave `text`.
    #[must_use]
    pub fn with_text(self, prompt: &'a str, text: &'a str) -> Self {
        Self { prompt: Some(prompt), text: Some(text), ..self }
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
