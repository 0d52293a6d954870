//! A model for a page: small enough to be in memory whole.

use std::str::FromStr;
use std::sync::Arc;

use js_sys::Function;
use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::generate::{Feeding, Hooks, Request};
use k3_core::host::Serial;
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::Model;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::sample::Sampler;
use k3_core::stream::resident::Resident;
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsError, JsValue};

use super::files::MemoryFolder;

/// The most positions that a page may feed: enough to try the model, and little memory.
const MOST_POSITIONS: usize = 4096;

/// Positions of a prompt that are computed together.
const CHUNK: usize = 32;

#[wasm_bindgen]
extern "C" {
    /// Milliseconds since the worker started.
    #[wasm_bindgen(js_namespace = performance)]
    fn now() -> f64;
}

/// The files of a checkpoint, as they arrive.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct ModelFiles(MemoryFolder);

#[wasm_bindgen]
impl ModelFiles {
    /// No files yet.
    #[must_use]
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the file `name`.
    pub fn add(&mut self, name: String, bytes: &[u8]) {
        self.0.0.insert(name, Arc::from(bytes));
    }

    /// Opens the checkpoint.
    ///
    /// # Errors
    /// If a file is missing or cannot be trusted; names it.
    pub fn open(self) -> Result<LoadedModel, JsError> {
        let text = self.0.0.get("config.json").ok_or_else(|| JsError::new("config.json: no such file"))?;
        let config = Config::from_json(text)?;
        let checkpoint = Checkpoint::open(&self.0, &config, config.layers.len())?;
        let source = Resident::new(checkpoint, |file| Ok(file.bytes))?;
        Ok(LoadedModel { model: Model::load(config, &source)?, source })
    }
}

/// A model with its weights.
#[wasm_bindgen]
#[derive(Debug)]
pub struct LoadedModel {
    model: Model,
    source: Resident<Arc<[u8]>>,
}

#[wasm_bindgen]
impl LoadedModel {
    /// The number of layers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.model.config().layers.len()
    }

    /// The number of ids there are.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.model.config().vocabulary
    }

    /// Generates `count` ids after `prompt`, each the one of the largest logit, with the kernels called `backend`. Calls
    /// `on_step(id, logits_hash, seconds)` for each as it comes. Returns the name of the kernels that computed.
    ///
    /// # Errors
    /// If there are no such kernels, no prompt, an id that does not exist, or too many positions; or what `on_step` throws.
    pub fn generate(&self, prompt: &[u32], count: u32, backend: &str, on_step: &Function) -> Result<String, JsValue> {
        let kernels = Backend::from_str(backend).map_err(JsError::from)?;
        let kernels = Kernels::new(kernels).ok_or_else(|| JsError::new("these kernels cannot run here"))?;
        let mut sequence = self.sequence(&kernels, prompt, count)?;
        let mut transcript = prompt.to_vec();
        for _ in 0..count {
            // What was fed before stays in the sequence, so that each request feeds one id.
            let request = Request { prompt: &transcript, count: 1, stop_ids: &[], feeding: Feeding::Incremental };
            let clock = || now() / 1e3;
            let mut steps = Vec::new();
            let mut keep = |step| -> k3_core::Result<()> {
                steps.push(step);
                Ok(())
            };
            let hooks = Hooks::new(&clock, &mut keep);
            request.generate(&mut sequence, &mut Sampler::greedy(), hooks).map_err(JsError::from)?;
            for step in steps {
                on_step.call3(&JsValue::NULL, &step.id.into(), &step.logits_hash.into(), &step.seconds.into())?;
                transcript.push(step.id);
            }
        }
        Ok(kernels.backend().name().to_owned())
    }

    /// An empty sequence with room for the prompt and what follows it.
    fn sequence<'a>(&'a self, kernels: &'a Kernels, prompt: &[u32], count: u32) -> Result<Sequence<'a>, JsError> {
        if prompt.is_empty() {
            return Err(JsError::new("the prompt is empty: give at least one id"));
        }
        let most = MOST_POSITIONS.min(self.model.config().max_positions);
        let capacity = prompt.len().saturating_add(count as usize);
        if capacity > most {
            let message = format!("{} prompt ids and {count} more: together at most {most} are possible", prompt.len());
            return Err(JsError::new(&message));
        }
        let sizes = Sizes { chunk: CHUNK.min(capacity), capacity, threads: 1, logits: WantedLogits::Last };
        let compute = Compute { kernels, workers: &Serial, source: &self.source, observer: None };
        Ok(Sequence::new(&self.model, compute, sizes))
    }
}
