//! A checkpoint that is open and ready to compute.

use std::path::Path;
use std::str::FromStr;

use anyhow::Context;
use k3_core::Error;
use k3_core::config::Config;
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::Model;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::model::source::WeightSource;
use k3_core::model::state::State;
use k3_core::report::Means;

use crate::args::EngineArgs;
use crate::checkpoint;
use crate::failure::{Failure, Outcome};
use crate::memory;
use crate::workers::{Threads, default_threads};

/// Room for a sequence where the system does not say how much memory it has.
const CAPACITY_IN_UNKNOWN_MEMORY: usize = 32_768;

/// A model with everything it computes with.
pub struct Engine {
    model: Model,
    source: Box<dyn WeightSource>,
    kernels: Kernels,
    threads: Threads,
    chunk: usize,
}

impl Engine {
    /// Opens the checkpoint in `folder`.
    ///
    /// # Errors
    /// A refusal if the config, a file or an argument cannot be trusted.
    pub fn open(folder: &Path, args: &EngineArgs) -> Outcome<Self> {
        let mut config = read_config(folder, args.config.as_deref())?;
        let layers = layer_count(&config, args.layers)?;
        let source = checkpoint::open(folder, &config, layers)?;
        config.layers.truncate(layers);
        Self::new(config, source, args)
    }

    /// An engine on weights from anywhere.
    ///
    /// # Errors
    /// A refusal if an argument cannot be met.
    pub fn new(config: Config, source: Box<dyn WeightSource>, args: &EngineArgs) -> Outcome<Self> {
        let kernels = kernels(args.backend.as_deref())?;
        let threads = Threads::new(args.threads.map_or_else(default_threads, usize::from))?;
        let model = Model::load(config, source.as_ref())?;
        Ok(Self { model, source, kernels, threads, chunk: args.chunk as usize })
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The means of a forward pass.
    #[must_use]
    pub fn compute(&self) -> Compute<'_> {
        Compute { kernels: &self.kernels, workers: &self.threads, source: self.source.as_ref(), observer: None }
    }

    /// A sequence of at most `capacity` positions, of which passes want at most the given logits.
    ///
    /// # Errors
    /// A refusal if the model was not made for so many positions, or if they do not fit into memory; nothing has been
    /// allocated then.
    pub fn sequence(&self, capacity: usize, logits: WantedLogits) -> Outcome<Sequence<'_>> {
        let config = self.model.config();
        if capacity > config.max_positions {
            let most = config.max_positions;
            return Err(Failure::refused(format!("{capacity} positions: the model was made for at most {most}")));
        }
        if let Some(available) = memory::available().filter(|available| self.bytes(capacity) > *available) {
            return Err(Failure::refused(format!(
                "{capacity} positions need {} of memory and {} are available; {} positions fit",
                memory::readable(self.bytes(capacity)),
                memory::readable(available),
                self.fitting(available, capacity)
            )));
        }
        Ok(Sequence::new(&self.model, self.compute(), self.sizes(capacity, logits)))
    }

    /// How many positions to make room for when nobody said: as many as the model was made for, in at most half of the
    /// memory that is available.
    #[must_use]
    pub fn default_capacity(&self) -> usize {
        let most = self.model.config().max_positions;
        let fitting = memory::available().map(|available| self.fitting(available / 2, most).max(1));
        fitting.unwrap_or(most.min(CAPACITY_IN_UNKNOWN_MEMORY))
    }

    /// How many positions fit into `bytes`; at most `most`.
    fn fitting(&self, bytes: u64, most: usize) -> usize {
        let fixed = self.bytes(0);
        let per_position = (self.bytes(most) - fixed).div_ceil(most.max(1) as u64).max(1);
        let fitting = bytes.saturating_sub(fixed) / per_position;
        usize::try_from(fitting).map_or(most, |fitting| fitting.min(most))
    }

    /// The bytes that grow with the capacity, and the state that does not.
    fn bytes(&self, capacity: usize) -> u64 {
        let config = self.model.config();
        State::bytes(config, capacity) + Scratch::score_bytes(config, self.sizes(capacity, WantedLogits::Last))
    }

    fn sizes(&self, capacity: usize, logits: WantedLogits) -> Sizes {
        Sizes { chunk: self.chunk.min(capacity), capacity, threads: self.threads(), logits }
    }

    /// What the engine computes with, for a report.
    #[must_use]
    pub fn means(&self) -> Means {
        Means { backend: self.backend(), threads: self.threads(), layers: self.model.config().layers.len() }
    }

    /// Which kernels compute.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.kernels.backend()
    }

    /// How many threads compute.
    #[must_use]
    pub fn threads(&self) -> usize {
        k3_core::host::Workers::threads(&self.threads)
    }

    /// Runs `work` on the engine's threads.
    pub fn enter<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.threads.enter(work)
    }
}

/// The configuration in `file`, or in `config.json` of `folder`.
///
/// # Errors
/// A refusal naming the file and every field at fault.
pub fn read_config(folder: &Path, file: Option<&Path>) -> Outcome<Config> {
    let path = file.map_or_else(|| folder.join("config.json"), Path::to_path_buf);
    let bytes = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Config::from_json(&bytes).map_err(|error| match error {
        Error::Config(faults) => Failure::refused(format!("{}: {}", path.display(), faults.join("; "))),
        other => other.into(),
    })
}

/// How many layers to use: those that `--layers` asks for, or all.
///
/// # Errors
/// A refusal if there are not so many.
pub fn layer_count(config: &Config, wanted: Option<u32>) -> Outcome<usize> {
    let all = config.layers.len();
    match wanted {
        Some(count) if count as usize > all => {
            Err(Failure::refused(format!("--layers {count}: the model has {all} layers")))
        }
        Some(count) => Ok(count as usize),
        None => Ok(all),
    }
}

/// The kernels of the backend called `name`, or the best.
///
/// # Errors
/// A refusal if there is no such backend, or this machine cannot run it.
pub fn kernels(name: Option<&str>) -> Outcome<Kernels> {
    let backend = match name {
        Some(name) => Backend::from_str(name).map_err(|error| Failure::refused(format!("--backend: {error}")))?,
        None => Backend::best(),
    };
    Kernels::new(backend)
        .ok_or_else(|| Failure::refused(format!("--backend: this machine cannot run {}", backend.name())))
}
