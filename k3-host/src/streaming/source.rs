//! The weight source that streams.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use k3_core::Result;
use k3_core::checkpoint::CheckpointIndex;
use k3_core::checkpoint::names::TensorId;
use k3_core::config::Config;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::source::{ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use k3_core::stream::cache::ExpertGrid;
use k3_core::stream::trunk::Trunk;

use super::drives::Drives;
use super::experts::{ExpertMemory, ExpertReader};
use super::file::DirectFile;
use super::trunk::{TrunkMemory, TrunkReader};
use crate::failure::Outcome;
use crate::traffic::Traffic;

/// Buffers for each guess: it may still be read when those of the next layer begin.
pub const GUESS_BUFFERS: usize = 2;

/// The memory that weights may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allotment {
    /// The trunk tensors that stay in memory.
    pub pinned: BTreeSet<TensorId>,
    /// How many runs of the rest are read ahead; at least 1.
    pub read_ahead: usize,
    /// How many routed experts the cache holds.
    pub expert_slots: NonZeroUsize,
    /// How many experts of the next layer are guessed and read ahead; only where every router is pinned.
    pub guesses: usize,
}

/// What there is to stream from.
pub struct Files {
    /// The dimensions, with as many layers as are used.
    pub config: Config,
    /// Where the routed experts lie.
    pub index: CheckpointIndex,
    /// Where the trunk lies.
    pub trunk: Trunk,
    /// The files: those of the trunk, if it was packed, after the shards of the index.
    pub files: Vec<DirectFile>,
}

/// Weights that are read as they are needed.
pub struct Streamed {
    drives: Arc<Drives>,
    trunk: TrunkReader,
    experts: Arc<ExpertReader>,
    traffic: Arc<Traffic>,
    guesses: usize,
    pass_began: Mutex<Option<Instant>>,
}

impl Streamed {
    /// The routed experts, to watch what is asked for.
    #[must_use]
    pub fn expert_reader(&self) -> &Arc<ExpertReader> {
        &self.experts
    }

    /// Brings what is pinned into memory and makes room for the rest. `progress` is told the bytes that were read.
    ///
    /// # Errors
    /// If it cannot be read, or the system refuses memory or threads.
    pub fn open(files: Files, allotment: &Allotment, traffic: Arc<Traffic>, progress: &dyn Fn(u64)) -> Outcome<Self> {
        let Files { config, index, trunk, files } = files;
        let drives = Arc::new(Drives::new(files, Arc::clone(&traffic))?);
        let memory = TrunkMemory { pinned: &allotment.pinned, buffers: allotment.read_ahead, progress };
        let trunk = TrunkReader::new(trunk, &config, Arc::clone(&drives), memory, Arc::clone(&traffic))?;
        let guesses = if trunk.has_routers_pinned() { allotment.guesses } else { 0 };
        let grid = ExpertGrid { layers: config.layers.len(), experts: config.moe.experts };
        let memory = ExpertMemory { slots: allotment.expert_slots, guesses: guesses * GUESS_BUFFERS };
        let experts = ExpertReader::new(index, grid, memory, Arc::clone(&drives), Arc::clone(&traffic))?;
        let experts = Arc::new(experts);
        Ok(Self { drives, trunk, experts, traffic, guesses, pass_began: Mutex::new(None) })
    }
}

impl WeightSource for Streamed {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        self.trunk.rows(id, 0, out).map(drop)
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        let bytes = self.trunk.rows(id, row, out)?;
        self.traffic.add_row_bytes(bytes);
        Ok(())
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        self.trunk.matrix(id, visit)
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        self.trunk.whole_matrix(id, visit)
    }

    fn begin_pass(&self, logits: WantedLogits) -> Result<()> {
        *self.pass_began.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        self.trunk.begin_pass(logits);
        Ok(())
    }

    fn end_pass(&self) -> Result<()> {
        let began = self.pass_began.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.traffic.add_pass_nanoseconds(began.map_or(0, |began| began.elapsed().as_nanos() as u64));
        self.drives.files().iter().try_for_each(DirectFile::check_unchanged)
    }

    fn announce_experts(&self, layer: usize, ids: &[usize]) {
        self.experts.announce(layer, ids);
    }

    fn guesses_wanted(&self) -> usize {
        self.guesses
    }

    fn suggest_experts(&self, layer: usize, ids: &[usize]) {
        self.experts.suggest(layer, ids);
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        self.experts.experts(layer, ids, visit)
    }
}
