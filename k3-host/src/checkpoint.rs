//! Opening checkpoints: folders of files.

use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::{Directory, Storage};
use k3_core::model::source::WeightSource;
use k3_core::stream::resident::Resident;
use k3_core::stream::trunk::Trunk;
use k3_core::{Error, Result};
use serde::de::DeserializeSeed;

use crate::failure::Outcome;
use crate::pack::{self, PackedTrunk};
use crate::plan::{Plan, WeightSizes, Weights};
use crate::shards::{self, LoadingBar, Progress};
use crate::storage::FileStorage;
use crate::streaming::experts::ExpertReader;
use crate::streaming::file::DirectFile;
use crate::streaming::{Files, Streamed};
use crate::traffic::Traffic;

/// A folder of the file system.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The path of the folder.
    pub path: PathBuf,
}

impl Directory for Folder {
    type File = FileStorage;

    fn open(&self, name: &str) -> Result<Option<FileStorage>> {
        let path = self.path.join(name);
        match FileStorage::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(read_error(&path, &error)),
        }
    }

    fn read_json<T, S>(&self, name: &str, seed: S) -> Result<Option<T>>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let refuse = |error: serde_json::Error| Error::Checkpoint { file: name.into(), reason: error.to_string() };
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 16, file.file()));
        let value = seed.deserialize(&mut input).map_err(refuse)?;
        input.end().map_err(refuse)?;
        Ok(Some(value))
    }
}

/// The folders that a checkpoint is spread over.
#[derive(Debug, Clone)]
pub struct Folders {
    /// The one with the config and the index.
    pub main: Folder,
    /// Where shards are looked for before that.
    pub shards: Vec<Folder>,
}

/// What the names of shards end with.
const SHARD_SUFFIX: &str = ".safetensors";

impl Folders {
    /// `main`, and those that shards are looked for in first.
    #[must_use]
    pub fn new(main: &Path, shards: &[PathBuf]) -> Self {
        let folder = |path: &Path| Folder { path: path.to_path_buf() };
        Self { main: folder(main), shards: shards.iter().map(|path| folder(path)).collect() }
    }
}

impl Directory for Folders {
    type File = FileStorage;

    fn open(&self, name: &str) -> Result<Option<FileStorage>> {
        for folder in self.shards.iter().filter(|_| name.ends_with(SHARD_SUFFIX)) {
            if let Some(file) = folder.open(name)? {
                return Ok(Some(file));
            }
        }
        self.main.open(name)
    }

    fn read_json<T, S>(&self, name: &str, seed: S) -> Result<Option<T>>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        self.main.read_json(name, seed)
    }
}

fn read_error(path: &Path, error: &std::io::Error) -> Error {
    Error::Read { file: path.display().to_string(), offset: 0, length: 0, reason: error.to_string() }
}

/// A checkpoint of which the headers were read, and no weights.
pub struct OpenCheckpoint<F = FileStorage> {
    /// The dimensions, with as many layers as are used.
    pub config: Config,
    /// Where everything lies.
    pub checkpoint: Checkpoint<F>,
    /// The trunk: as it lies there, or as it was packed.
    pub trunk: Trunk,
    /// The file of a packed trunk. It counts as the one after the last shard.
    pub packed: Option<F>,
}

impl<F: Storage> OpenCheckpoint<F> {
    /// Opens the first `layers` layers of the checkpoint in `directory`.
    ///
    /// # Errors
    /// A refusal that names the file and the tensor at fault.
    pub fn open<D: Directory<File = F>>(directory: &D, mut config: Config, layers: usize) -> Outcome<Self> {
        let checkpoint = Checkpoint::open(directory, &config, layers)?;
        config.layers.truncate(layers);
        let trunk = Trunk::of_checkpoint(&checkpoint.index, &config);
        Ok(Self { config, checkpoint, trunk, packed: None })
    }

    /// What its weights take.
    #[must_use]
    pub fn sizes(&self) -> WeightSizes {
        let files = self.checkpoint.files.iter().map(Storage::len).sum();
        WeightSizes::of(&self.config, &self.checkpoint.index, &self.trunk, files)
    }
}

/// The weights of a checkpoint.
pub struct OpenWeights {
    /// What hands them out.
    pub source: Box<dyn WeightSource>,
    /// What reads routed experts, unless they are in memory.
    pub experts: Option<Arc<ExpertReader>>,
}

impl OpenWeights {
    fn in_memory(source: impl WeightSource + 'static) -> Self {
        Self { source: Box::new(source), experts: None }
    }
}

impl OpenCheckpoint {
    /// The same, with the trunk that was packed into `folder`, if there is one.
    ///
    /// # Errors
    /// A refusal that names file and field, if that is not the trunk of this checkpoint.
    pub fn with_packed_trunk(self, folder: &Path) -> Outcome<Self> {
        let Some(PackedTrunk { trunk, file, .. }) = pack::open(folder, &self)? else { return Ok(self) };
        let number = self.checkpoint.files.len();
        Ok(Self { trunk: trunk.in_file(number), packed: Some(file), ..self })
    }

    /// What there is to stream from.
    ///
    /// # Errors
    /// [`Error::Read`] if a file cannot be opened again.
    pub fn into_files(self) -> Result<Files> {
        let Self { config, checkpoint: Checkpoint { index, files }, trunk, packed } = self;
        let files = files.iter().chain(&packed).map(DirectFile::reopen).collect::<Result<_>>()?;
        Ok(Files { config, index, trunk, files })
    }

    /// Its weights, where the plan wants them. What a streaming source reads is counted in `traffic`.
    ///
    /// # Errors
    /// If they cannot be read, or the system refuses memory or threads.
    pub fn weights(self, plan: &Plan, traffic: &Arc<Traffic>, bar: LoadingBar) -> Outcome<OpenWeights> {
        match &plan.weights {
            Weights::Resident => {
                let progress = Progress::new(plan.parts.weights, bar);
                Ok(OpenWeights::in_memory(Resident::new(self.checkpoint, |file| shards::load(&file, &progress))?))
            }
            Weights::Mapped => Ok(OpenWeights::in_memory(Resident::new(self.checkpoint, |file| shards::map(&file))?)),
            Weights::Streamed(allotment) => {
                let progress = Progress::new(plan.parts.pinned_trunk, bar);
                let files = self.into_files()?;
                let streamed = Streamed::open(files, allotment, Arc::clone(traffic), &|bytes| progress.add(bytes))?;
                let experts = Some(Arc::clone(streamed.expert_reader()));
                Ok(OpenWeights { source: Box::new(streamed), experts })
            }
        }
    }
}
