//! A checkpoint that lies in memory whole: nothing is copied, nothing is read.

use alloc::format;
use alloc::vec::Vec;

use super::absent;
use crate::checkpoint::names::{ExpertId, ExpertMatrix, Name, Part, TensorId};
use crate::checkpoint::{Checkpoint, CheckpointIndex, Location, Span};
use crate::kernels::Matrix;
use crate::model::source::{Expert, ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use crate::{Error, Result};

/// The bytes of every shard, and where the tensors are in them.
#[derive(Debug)]
pub struct Resident<B> {
    index: CheckpointIndex,
    shards: Vec<B>,
}

impl<B: AsRef<[u8]> + Sync> Resident<B> {
    /// Takes the bytes of the shards of `checkpoint`, in its order.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if a shard is shorter in memory than its header says.
    pub fn new<F>(checkpoint: Checkpoint<F>, load: impl Fn(F) -> Result<B>) -> Result<Self> {
        let Checkpoint { index, files } = checkpoint;
        let shards = files.into_iter().map(load).collect::<Result<_>>()?;
        let resident = Self { index, shards };
        resident.check_lengths()?;
        Ok(resident)
    }

    fn check_lengths(&self) -> Result<()> {
        let experts = self.index.expert_ids().filter_map(|id| self.index.expert(id));
        for location in self.index.tensors().chain(experts) {
            for span in location.spans() {
                let length = self.shards[span.shard].as_ref().len() as u64;
                if span.offset + span.bytes > length {
                    let file = self.index.shards()[span.shard].clone();
                    return Err(Error::Checkpoint { file, reason: format!("is now only {length} bytes long") });
                }
            }
        }
        Ok(())
    }

    fn bytes(&self, span: Span) -> &[u8] {
        &self.shards[span.shard].as_ref()[span.offset as usize..][..span.bytes as usize]
    }

    fn at(&self, location: Location) -> Matrix<'_> {
        let scales = location.scales.map_or(&[][..], |scales| self.bytes(scales));
        location.matrix(self.bytes(location.data), scales)
    }

    fn tensor(&self, id: TensorId) -> Result<Matrix<'_>> {
        let location = self.index.tensor(id).ok_or_else(|| absent(Name::Text(id, Part::Plain)))?;
        Ok(self.at(location))
    }

    fn expert(&self, layer: usize, expert: usize, matrix: ExpertMatrix) -> Result<Matrix<'_>> {
        let id = ExpertId { layer, expert, matrix };
        let location = self.index.expert(id).ok_or_else(|| absent(Name::Expert(id, Part::Plain)))?;
        Ok(self.at(location))
    }
}

impl<B: AsRef<[u8]> + Sync> WeightSource for Resident<B> {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        let matrix = self.tensor(id)?;
        for (row, out) in out.chunks_mut(matrix.columns()).enumerate() {
            matrix.row_to_f32(row, out);
        }
        Ok(())
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        self.tensor(id)?.row_to_f32(row, out);
        Ok(())
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        visit(0, self.tensor(id)?)
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        visit(&self.tensor(id)?)
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        for (place, &id) in ids.iter().enumerate() {
            let matrix = |matrix| self.expert(layer, id, matrix);
            let expert = Expert {
                gate: matrix(ExpertMatrix::Gate)?,
                up: matrix(ExpertMatrix::Up)?,
                down: matrix(ExpertMatrix::Down)?,
            };
            visit(place, &expert)?;
        }
        Ok(())
    }
}
