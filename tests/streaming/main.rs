//! Weights that are read as they are needed give the bits of weights that are in memory, in whatever memory there is; and a
//! read that fails is never taken for numbers.

mod bits;
mod faults;
mod places;
#[path = "../support/mod.rs"]
mod support;
mod traffic;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::names::TensorId;
use k3_core::config::Config;
use k3_core::model::order::matrices_of_pass;
use k3_core::model::scratch::WantedLogits;
use k3_host::args::EngineArgs;
use k3_host::checkpoint::{Folder, Folders, OpenCheckpoint};
use k3_host::engine::Engine;
use k3_host::storage::FileStorage;
use k3_host::streaming::{Allotment, Files, Streamed};
use k3_host::traffic::Traffic;

/// An oracle model.
struct Model {
    path: PathBuf,
    config: Config,
}

impl Model {
    fn new(name: &str) -> Self {
        let path = support::fixture("oracle").join(name);
        let config = Config::from_json(&std::fs::read(path.join("config.json")).unwrap()).unwrap();
        Self { path, config }
    }

    fn checkpoint(&self) -> Checkpoint<FileStorage> {
        let folder = Folder { path: self.path.clone() };
        Checkpoint::open(&folder, &self.config, self.config.layers.len()).unwrap()
    }

    fn files(&self) -> Files {
        let folders = Folders::new(&self.path, &[]);
        let opened = OpenCheckpoint::open(&folders, self.config.clone(), self.config.layers.len());
        opened.map_err(|failure| failure.error).unwrap().into_files().unwrap()
    }

    /// An engine on weights that are read as they are needed, and what counts them.
    fn streamed(&self, files: Files, allotment: &Allotment, args: &EngineArgs) -> (Engine, Arc<Traffic>) {
        let traffic = Arc::new(Traffic::default());
        let streamed = Streamed::open(files, allotment, Arc::clone(&traffic), &|_| {}).unwrap();
        (Engine::new(self.config.clone(), Box::new(streamed), args).unwrap(), traffic)
    }

    /// The first `count` matrices of a pass.
    fn first_matrices(&self, count: usize) -> BTreeSet<TensorId> {
        matrices_of_pass(&self.config, WantedLogits::Last).into_iter().take(count).collect()
    }
}

/// What weights may take, without guesses.
fn allotment(pinned: BTreeSet<TensorId>, read_ahead: usize, expert_slots: usize) -> Allotment {
    Allotment { pinned, read_ahead, expert_slots: NonZeroUsize::new(expert_slots).unwrap(), guesses: 0 }
}

/// The prompt that the tests feed.
const PROMPT: [u32; 7] = [5, 3, 8, 1, 9, 2, 4];

/// The bits of the logits at every position of the prompt and after three more ids.
fn logits(engine: &Engine) -> Result<Vec<u32>, k3_core::Error> {
    let mut sequence = engine.sequence(10, WantedLogits::All).unwrap();
    let mut bits = Vec::new();
    let mut sink = |_, logits: &[f32]| -> Result<(), k3_core::Error> {
        bits.extend(logits.iter().map(|logit| logit.to_bits()));
        Ok(())
    };
    let mut ids = PROMPT.to_vec();
    engine.enter(|| -> Result<(), k3_core::Error> {
        sequence.extend_observed(&ids, &mut sink)?;
        for id in [7, 7, 0] {
            ids.push(id);
            sequence.extend_observed(&ids, &mut sink)?;
        }
        Ok(())
    })?;
    Ok(bits)
}

/// One thread, chunks of three.
fn args() -> EngineArgs {
    EngineArgs { chunk: 3, ..support::engine_args() }
}
