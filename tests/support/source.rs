//! A source of weights that counts what it hands out as if it had read it, and fails when told to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use k3_core::checkpoint::names::TensorId;
use k3_core::model::scratch::WantedLogits;
use k3_core::model::source::{ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use k3_core::{Error, Result};
use k3_host::traffic::Traffic;

/// Counted for each matrix.
pub const MATRIX_BYTES: u64 = 1000;
/// Counted for each row.
pub const ROW_BYTES: u64 = 64;
/// Counted for each routed expert that was not resident.
pub const EXPERT_BYTES: u64 = 10;
/// Counted for each pass; half of it as time in which a read was under way.
pub const PASS_NANOSECONDS: u64 = 1_000_000;

/// What is handed out last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// Everything is handed out.
    Never,
    /// After so many matrices.
    AfterMatrices(usize),
    /// After so many routed experts.
    AfterExperts(usize),
}

/// Hands out what another source has. Of four experts in a row the first two are resident, the third was read ahead, and
/// the fourth is missed.
pub struct Counting {
    inner: Box<dyn WeightSource>,
    fails: Fails,
    traffic: Arc<Traffic>,
    matrices: AtomicUsize,
    experts: AtomicUsize,
}

impl Counting {
    pub fn new(inner: Box<dyn WeightSource>, traffic: Arc<Traffic>, fails: Fails) -> Self {
        Self { inner, fails, traffic, matrices: AtomicUsize::new(0), experts: AtomicUsize::new(0) }
    }

    fn count_matrix(&self) -> Result<()> {
        let before = self.matrices.fetch_add(1, Ordering::Relaxed);
        if self.fails == Fails::AfterMatrices(before) {
            let (file, reason) = ("trunk.bin".into(), "the drive is gone".into());
            return Err(Error::Read { file, offset: 4096, length: MATRIX_BYTES, reason });
        }
        self.traffic.add_trunk_bytes(MATRIX_BYTES);
        self.traffic.add_trunk_wait_nanoseconds(1000);
        Ok(())
    }

    fn count_expert(&self, layer: usize, expert: usize) -> Result<()> {
        let before = self.experts.fetch_add(1, Ordering::Relaxed);
        if self.fails == Fails::AfterExperts(before) {
            return Err(Error::Expert { layer, expert, reason: "shard 7 is damaged".into() });
        }
        self.traffic.add_expert_requests(1);
        match before % 4 {
            0 | 1 => self.traffic.add_resident_hits(1),
            2 => self.traffic.add_prefetch_hits(1),
            _ => self.traffic.add_misses(1),
        }
        if before % 4 >= 2 {
            self.traffic.add_expert_bytes(EXPERT_BYTES);
            self.traffic.add_expert_wait_nanoseconds(2000);
        }
        Ok(())
    }
}

impl WeightSource for Counting {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        self.inner.vector(id, out)
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        self.traffic.add_row_bytes(ROW_BYTES);
        self.inner.row(id, row, out)
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        self.count_matrix()?;
        self.inner.matrix(id, visit)
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        self.count_matrix()?;
        self.inner.whole_matrix(id, visit)
    }

    fn begin_pass(&self, logits: WantedLogits) -> Result<()> {
        self.inner.begin_pass(logits)
    }

    fn end_pass(&self) -> Result<()> {
        self.traffic.add_pass_nanoseconds(PASS_NANOSECONDS);
        self.traffic.add_busy_nanoseconds(PASS_NANOSECONDS / 2);
        self.inner.end_pass()
    }

    fn announce_experts(&self, layer: usize, ids: &[usize]) {
        self.inner.announce_experts(layer, ids);
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        for (place, &id) in ids.iter().enumerate() {
            self.count_expert(layer, id)?;
            self.inner.experts(layer, &[id], &mut |_, expert| visit(place, expert))?;
        }
        Ok(())
    }
}
