//! The reference that comes with an oracle model: what its published code computes.

use std::path::Path;

use anyhow::{Context, ensure};
use include_dir::Dir;
use k3_core::checkpoint::header::Header;
use serde::Deserialize;

/// A token sequence with the logits of every position, as `expected/` of an oracle model holds them.
#[derive(Debug, Deserialize)]
pub struct Oracle {
    /// The prompt.
    pub prompt_ids: Vec<u32>,
    /// What follows it greedily.
    pub greedy_new_ids: Vec<u32>,
    /// Both, one after the other.
    pub full_ids: Vec<u32>,
    /// The arg-max that follows each position of `full_ids`.
    pub argmax_per_position: Vec<u32>,
    /// How far f32 and f64 runs of the published code are apart.
    max_logit_diff_fp32_vs_fp64: f64,
    /// `[positions, vocabulary]`, from the f64 run.
    #[serde(skip)]
    logits: Vec<f64>,
}

/// The tolerance is this many times the difference between the published code's f32 and f64 runs.
const NOISE_FACTOR: f64 = 10.0;

impl Oracle {
    /// Reads the folder `expected` of an oracle model.
    ///
    /// # Errors
    /// If a file is missing or malformed.
    pub fn read(folder: &Path) -> anyhow::Result<Self> {
        let file = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
        };
        Self::parse(&file("oracle.json")?, &file("logits.safetensors")?)
    }

    /// Reads the folder `expected` of a model that is part of the program.
    ///
    /// # Errors
    /// If a file is missing or malformed.
    pub fn bundled(model: &Dir<'static>) -> anyhow::Result<Self> {
        let file = |name: &str| {
            let file = model.get_file(Path::new("expected").join(name));
            file.map(include_dir::File::contents).with_context(|| format!("{name} is not in the program"))
        };
        Self::parse(file("oracle.json")?, file("logits.safetensors")?)
    }

    fn parse(json: &[u8], logits: &[u8]) -> anyhow::Result<Self> {
        let mut oracle: Self = serde_json::from_slice(json).context("oracle.json")?;
        oracle.logits = f64_tensor(logits, "logits_f64")?;
        let positions = oracle.full_ids.len();
        ensure!(
            positions > 0
                && oracle.argmax_per_position.len() == positions
                && oracle.logits.len().is_multiple_of(positions),
            "oracle.json and logits.safetensors speak of different positions"
        );
        Ok(oracle)
    }

    /// How far a logit may be from the f64 run.
    #[must_use]
    pub fn tolerance(&self) -> f64 {
        NOISE_FACTOR * self.max_logit_diff_fp32_vs_fp64
    }

    /// The largest difference between `logits` and those of the f64 run at `position`.
    #[must_use]
    pub fn worst_difference(&self, position: usize, logits: &[f32]) -> f64 {
        let expected = &self.logits[position * logits.len()..][..logits.len()];
        let differences = logits.iter().zip(expected).map(|(&logit, expected)| (f64::from(logit) - expected).abs());
        differences.fold(0.0, f64::max)
    }
}

fn f64_tensor(file: &[u8], name: &str) -> anyhow::Result<Vec<f64>> {
    let length = file.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)) as usize;
    let text = file.get(8..).and_then(|rest| rest.get(..length)).context("logits.safetensors is cut short")?;
    let header = Header::parse("logits.safetensors", text, file.len() as u64)?;
    let tensor = header.tensors.iter().find(|tensor| tensor.name == name);
    let tensor = tensor.with_context(|| format!("logits.safetensors has no {name}"))?;
    ensure!(tensor.dtype == "F64", "{name} is {}, not F64", tensor.dtype);
    let data = &file[tensor.offset as usize..][..tensor.bytes as usize];
    let (values, _) = data.as_chunks();
    Ok(values.iter().map(|&bytes| f64::from_le_bytes(bytes)).collect())
}
