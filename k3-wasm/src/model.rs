//! A checkpoint that is open and ready to compute, on one thread and with little memory.

use std::path::Path;
use std::str::FromStr;

use k3_core::Error;
use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::Serial;
use k3_core::kernels::{Backend, Kernels};
use k3_core::model::Model;
use k3_core::model::compute::Compute;
use k3_core::model::scratch::{Scratch, Sizes, WantedLogits};
use k3_core::model::sequence::Sequence;
use k3_core::model::state::State;
use k3_core::report::Means;
use k3_core::stream::sliced::Sliced;

use crate::args::EngineArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::files::{FileStorage, Folder};

/// A model with everything it computes with.
pub struct Engine {
    model: Model,
    source: Sliced<FileStorage>,
    kernels: Kernels,
    chunk: usize,
}

impl Engine {
    /// Opens the checkpoint in `folder`. Fails if the config, a file or an argument cannot be trusted.
    pub fn open(folder: &Path, args: &EngineArgs) -> Outcome<Self> {
        let kernels = kernels(args.backend.as_deref())?;
        let mut config = read_config(folder, args.config.as_deref())?;
        let all = config.layers.len();
        let layers = args.layers.map_or(all, |layers| layers as usize);
        if layers > all {
            return Err(Failure::new(Exit::Refused, format!("--layers {layers}: the model has {all} layers")));
        }
        let checkpoint = Checkpoint::open(&Folder { path: folder.to_path_buf() }, &config, layers)?;
        let source = Sliced::new(checkpoint, args.slice as usize);
        config.layers.truncate(layers);
        let model = Model::load(config, &source)?;
        Ok(Self { model, source, kernels, chunk: args.chunk as usize })
    }

    /// The number of ids there are.
    pub fn vocabulary(&self) -> usize {
        self.model.config().vocabulary
    }

    /// What the engine computes with, for a report.
    pub fn means(&self) -> Means {
        Means { backend: self.kernels.backend(), threads: 1, layers: self.model.config().layers.len() }
    }

    /// A sequence of at most `capacity` positions, of which passes want at most the given logits. Fails if the model was not
    /// made for so many, or if no memory could hold them; nothing has been allocated then.
    pub fn sequence(&self, capacity: usize, logits: WantedLogits) -> Outcome<Sequence<'_>> {
        let config = self.model.config();
        if capacity > config.max_positions {
            let most = config.max_positions;
            let message = format!("{capacity} positions: the model was made for at most {most}");
            return Err(Failure::new(Exit::Refused, message));
        }
        let sizes = Sizes { chunk: self.chunk.min(capacity), capacity, threads: 1, logits };
        let bytes = State::bytes(config, capacity) + Scratch::bytes(config, sizes);
        if isize::try_from(bytes).is_err() {
            return Err(Error::Memory { bytes }.into());
        }
        let compute = Compute { kernels: &self.kernels, workers: &Serial, source: &self.source, observer: None };
        Ok(Sequence::new(&self.model, compute, sizes))
    }
}

fn read_config(folder: &Path, path: Option<&Path>) -> Outcome<Config> {
    let path = path.map_or_else(|| folder.join("config.json"), Path::to_path_buf);
    let bytes = std::fs::read(&path).map_err(|error| {
        let message =
            format!("cannot read {}: {error} (the module sees only folders that it was given)", path.display());
        Failure::new(Exit::Failed, message)
    })?;
    Config::from_json(&bytes).map_err(|error| Failure::new(Exit::Refused, format!("{}: {error}", path.display())))
}

fn kernels(name: Option<&str>) -> Outcome<Kernels> {
    let backend = match name {
        Some(name) => {
            Backend::from_str(name).map_err(|error| Failure::new(Exit::Refused, format!("--backend: {error}")))?
        }
        None => Backend::best(),
    };
    Kernels::new(backend)
        .ok_or_else(|| Failure::new(Exit::Refused, format!("--backend: this machine cannot run {backend}")))
}
