//! Tensors of the trunk that stay in memory.

use std::ops::Range;

use k3_core::Result;
use k3_core::kernels::Matrix;
use k3_core::model::source::RowVisitor;
use k3_core::stream::trunk::Run;
use memmap2::MmapMut;

use super::buffer::{Placement, allocate};
use super::drives::Drives;
use super::trunk::check;

/// A tensor that stays in memory, in pieces that are handed out as one.
pub(super) struct Pinned {
    memory: MmapMut,
    pieces: Vec<Piece>,
}

/// A run, or several that lie next to each other.
struct Piece {
    run: Run,
    data: Range<usize>,
    scales: Range<usize>,
}

impl Pinned {
    /// Reads all runs of a tensor and tells `progress` their bytes.
    ///
    /// # Errors
    /// Those of reading, and [`k3_core::Error::Memory`].
    pub(super) fn load(runs: &[Run], drives: &Drives, progress: &dyn Fn(u64)) -> Result<Self> {
        let placement = Placement::of(runs.iter().flat_map(Run::spans));
        let mut memory = allocate(placement.bytes())?;
        drives.read_now(&placement, &mut memory)?;
        progress(runs.iter().map(Run::bytes).sum());
        let mut places = placement.places.into_iter();
        let mut pieces: Vec<Piece> = Vec::new();
        for run in runs {
            let data = places.next().unwrap_or_default();
            check(run, &memory[data.clone()], drives)?;
            let scales = if run.scales.is_some() { places.next().unwrap_or_default() } else { 0..0 };
            match pieces.last_mut() {
                Some(last) if last.data.end == data.start && last.run.is_continued_by(run) => {
                    last.run.rows.end = run.rows.end;
                    last.data.end = data.end;
                }
                _ => pieces.push(Piece { run: run.clone(), data, scales }),
            }
        }
        Ok(Self { memory, pieces })
    }

    /// Hands out the rows, in as few pieces as there are.
    ///
    /// # Errors
    /// The first that `visit` returns.
    pub(super) fn visit(&self, visit: &mut RowVisitor<'_>) -> Result<()> {
        self.pieces.iter().try_for_each(|piece| visit(piece.run.rows.start, piece.matrix(&self.memory)))
    }
}

impl Piece {
    fn matrix<'a>(&self, memory: &'a [u8]) -> Matrix<'a> {
        self.run.matrix(&memory[self.data.clone()], &memory[self.scales.clone()])
    }
}
