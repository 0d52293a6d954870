//! A checkpoint that is open and ready to compute.

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::Context;
use k3_core::Error;
use k3_core::config::Config;
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::Model;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::model::source::WeightSource;
use k3_core::report::Means;
use k3_core::stream::trunk_file::MANIFEST_FILE;

use crate::args::EngineArgs;
use crate::checkpoint::{Folders, OpenCheckpoint, OpenWeights};
use crate::failure::{Failure, Outcome};
use crate::memory;
use crate::plan::{Budget, Demand, Planner, WeightSizes, Weights};
use crate::streaming::experts::ExpertReader;
use crate::traffic::{Totals, Traffic};
use crate::workers::{Threads, default_threads};

/// A model with everything it computes with.
pub struct Engine {
    model: Model,
    source: Box<dyn WeightSource>,
    experts: Option<Arc<ExpertReader>>,
    kernels: Kernels,
    threads: Threads,
    chunk: usize,
    capacity: Option<usize>,
    traffic: Option<Arc<Traffic>>,
    planned_bytes: Option<u64>,
}

impl Engine {
    /// Opens the checkpoint in `folder`, after planning the memory for what `demand` asks.
    ///
    /// # Errors
    /// A refusal if the config, a file or an argument cannot be trusted, or if there is no plan that fits; no weights have been
    /// read then.
    pub fn open(folder: &Path, args: &EngineArgs, demand: &Demand) -> Outcome<Self> {
        let checkpoint = open_headers(folder, args)?;
        let plan = planner(&checkpoint.config, &checkpoint.sizes(), args).plan(demand, &Budget::of(&args.memory))?;
        let traffic = Arc::new(Traffic::default());
        let config = checkpoint.config.clone();
        let OpenWeights { source, experts } = checkpoint.weights(&plan, &traffic, args.bar)?;
        let engine =
            Self { experts, chunk: plan.chunk, capacity: Some(plan.capacity), ..Self::new(config, source, args)? };
        Ok(match plan.weights {
            Weights::Mapped => engine,
            Weights::Resident => engine.with_planned_bytes(plan.parts.total()),
            Weights::Streamed(_) => engine.with_planned_bytes(plan.parts.total()).with_traffic(traffic),
        })
    }

    /// An engine on weights from anywhere.
    ///
    /// # Errors
    /// A refusal if an argument cannot be met.
    pub fn new(config: Config, source: Box<dyn WeightSource>, args: &EngineArgs) -> Outcome<Self> {
        let kernels = kernels(args.backend.as_deref())?;
        let threads = Threads::new(thread_count(args))?;
        let model = Model::load(config, source.as_ref())?;
        Ok(Self {
            model,
            source,
            experts: None,
            kernels,
            threads,
            chunk: args.chunk as usize,
            capacity: None,
            traffic: None,
            planned_bytes: None,
        })
    }

    /// The same, with a source that counts what it reads in `traffic`.
    #[must_use]
    pub fn with_traffic(self, traffic: Arc<Traffic>) -> Self {
        Self { traffic: Some(traffic), ..self }
    }

    /// The same, of a memory plan that allows the process `bytes` at its peak.
    #[must_use]
    pub fn with_planned_bytes(self, bytes: u64) -> Self {
        Self { planned_bytes: Some(bytes), ..self }
    }

    /// What moved between drives and compute so far; `None` if all weights are in memory.
    #[must_use]
    pub fn traffic(&self) -> Option<Totals> {
        self.traffic.as_ref().map(|traffic| traffic.snapshot())
    }

    /// What reads routed experts; `None` if they are in memory.
    #[must_use]
    pub fn expert_reader(&self) -> Option<&Arc<ExpertReader>> {
        self.experts.as_ref()
    }

    /// How many bytes the process may take at its peak; `None` if there is no plan.
    #[must_use]
    pub fn planned_bytes(&self) -> Option<u64> {
        self.planned_bytes
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

    /// For how many positions the plan has room; `None` if there is no plan.
    #[must_use]
    pub fn planned_capacity(&self) -> Option<usize> {
        self.capacity
    }

    /// A sequence of at most `capacity` positions, of which passes want at most the given logits.
    ///
    /// # Errors
    /// A refusal if the model was not made for so many positions, or they were not planned for; nothing has been allocated
    /// then.
    pub fn sequence(&self, capacity: usize, logits: WantedLogits) -> Outcome<Sequence<'_>> {
        let config = self.model.config();
        let most = self.capacity.unwrap_or(config.max_positions);
        if capacity > most {
            return Err(Failure::refused(format!("{capacity} positions: there is room for at most {most}")));
        }
        Ok(Sequence::new(&self.model, self.compute(), self.sizes(capacity, logits)))
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

/// Opens the checkpoint in `folder` as far as its headers.
///
/// # Errors
/// A refusal if the config, a file or an argument cannot be trusted.
pub fn open_headers(folder: &Path, args: &EngineArgs) -> Outcome<OpenCheckpoint> {
    let config = read_config(folder, args.config.as_deref())?;
    let layers = layer_count(&config, args.layers)?;
    let checkpoint = OpenCheckpoint::open(&Folders::new(folder, &args.memory.experts), config, layers)?;
    let checkpoint = checkpoint.with_packed_trunk(args.memory.trunk.as_deref().unwrap_or(folder))?;
    match (&args.memory.trunk, &checkpoint.packed) {
        (Some(folder), None) => {
            let folder = folder.display();
            Err(Failure::refused(format!("--trunk {folder}: there is no {MANIFEST_FILE}; `k3-host pack` writes it")))
        }
        _ => Ok(checkpoint),
    }
}

/// What plans the memory on this machine.
#[must_use]
pub fn planner<'a>(config: &'a Config, sizes: &'a WeightSizes, args: &EngineArgs) -> Planner<'a> {
    let (available, threads) = (memory::available(), thread_count(args));
    Planner { config, sizes, available, threads, chunk: args.chunk as usize }
}

/// How many threads compute: as many as the arguments ask for.
fn thread_count(args: &EngineArgs) -> usize {
    args.threads.map_or_else(default_threads, usize::from)
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
