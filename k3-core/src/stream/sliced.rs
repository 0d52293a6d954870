//! A checkpoint that is read as it is used, a few rows at a time: memory holds one slice, however large the model.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::ops::Range;

use spin::Mutex;

use super::absent;
use crate::checkpoint::names::{ExpertId, ExpertMatrix, Name, Part, TensorId};
use crate::checkpoint::{Checkpoint, CheckpointIndex, Location, Span};
use crate::host::Storage;
use crate::kernels::Matrix;
use crate::model::source::{Expert, ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use crate::{Error, Result};

/// The shards of a checkpoint, and where the tensors are in them.
///
/// A slice of a matrix takes at most the bytes it was made with, unless that is less than a row. A routed expert is read
/// whole, and so is a matrix that is asked for in one piece.
#[derive(Debug)]
pub struct Sliced<F> {
    index: CheckpointIndex,
    shards: Vec<F>,
    slice_bytes: usize,
    /// Kept to be used again. A caller that finds it in use brings a buffer of its own.
    buffer: Mutex<Vec<u8>>,
}

impl<F: Storage> Sliced<F> {
    /// Weights out of the shards of `checkpoint`, in slices of at most about `slice_bytes`.
    #[must_use]
    pub fn new(checkpoint: Checkpoint<F>, slice_bytes: usize) -> Self {
        let Checkpoint { index, files } = checkpoint;
        Self { index, shards: files, slice_bytes, buffer: Mutex::new(Vec::new()) }
    }

    fn with_buffer<T>(&self, work: impl FnOnce(&mut Vec<u8>) -> Result<T>) -> Result<T> {
        match self.buffer.try_lock() {
            Some(mut buffer) => work(&mut buffer),
            None => work(&mut Vec::new()),
        }
    }

    /// Hands out the given rows in slices.
    fn rows(&self, rows: Rows, visit: &mut RowVisitor<'_>) -> Result<()> {
        let Rows { location, range } = rows;
        let row_bytes =
            row_bytes(location, location.data) + location.scales.map_or(0, |span| row_bytes(location, span));
        let step = usize::try_from(self.slice_bytes as u64 / row_bytes).unwrap_or(usize::MAX).max(1);
        self.with_buffer(|buffer| {
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start.saturating_add(step));
                buffer.clear();
                let slice = self.read(Rows { location, range: start..end }, buffer)?;
                visit(start, slice.matrix(buffer))?;
                start = end;
            }
            Ok(())
        })
    }

    /// Appends the bytes of the given rows to `buffer`.
    fn read(&self, rows: Rows, buffer: &mut Vec<u8>) -> Result<Slice> {
        let Rows { location, range } = rows;
        let mut append = |span: Span| -> Result<Range<usize>> {
            let row_bytes = row_bytes(location, span);
            let offset = span.offset + range.start as u64 * row_bytes;
            let target = grow(buffer, range.len() as u64 * row_bytes)?;
            self.shards[span.shard].read_exact_at(offset, &mut buffer[target.clone()])?;
            Ok(target)
        };
        let data = append(location.data)?;
        let scales = location.scales.map_or(Ok(0..0), append)?;
        Ok(Slice { location, rows: range.len(), data, scales })
    }

    fn tensor(&self, id: TensorId) -> Result<Location> {
        self.index.tensor(id).ok_or_else(|| absent(Name::Text(id, Part::Plain)))
    }

    fn expert(&self, id: ExpertId, buffer: &mut Vec<u8>) -> Result<Slice> {
        let location = self.index.expert(id).ok_or_else(|| absent(Name::Expert(id, Part::Plain)))?;
        self.read(Rows { location, range: 0..location.rows }, buffer)
    }
}

/// Some rows of a tensor.
struct Rows {
    location: Location,
    range: Range<usize>,
}

/// Rows that lie in a buffer.
struct Slice {
    location: Location,
    rows: usize,
    data: Range<usize>,
    scales: Range<usize>,
}

impl Slice {
    fn matrix<'b>(&self, buffer: &'b [u8]) -> Matrix<'b> {
        let location = Location { rows: self.rows, ..self.location };
        location.matrix(&buffer[self.data.clone()], &buffer[self.scales.clone()])
    }
}

/// The bytes of one row in `span`. No tensor is empty.
fn row_bytes(location: Location, span: Span) -> u64 {
    span.bytes / location.rows as u64
}

/// Makes `buffer` longer by `bytes`; returns where they are.
fn grow(buffer: &mut Vec<u8>, bytes: u64) -> Result<Range<usize>> {
    let start = buffer.len();
    let refuse = || Error::Memory { bytes };
    let length = usize::try_from(bytes).map_err(|_| refuse())?;
    buffer.try_reserve_exact(length).map_err(|_| refuse())?;
    buffer.resize(start + length, 0);
    Ok(start..start + length)
}

impl<F: Storage> WeightSource for Sliced<F> {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        let location = self.tensor(id)?;
        if location.rows as u64 * (location.columns as u64) < out.len() as u64 {
            let reason = format!("has {} x {} elements, {} are needed", location.rows, location.columns, out.len());
            return Err(Error::Tensor { name: Name::Text(id, Part::Plain).to_string(), reason });
        }
        let range = 0..out.len().div_ceil(location.columns);
        self.rows(Rows { location, range }, &mut |first, rows| {
            let out = out[first * rows.columns()..].chunks_mut(rows.columns());
            for (row, out) in (0..rows.rows()).zip(out) {
                rows.row_to_f32(row, out);
            }
            Ok(())
        })
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        let location = self.tensor(id)?;
        self.rows(Rows { location, range: row..row + 1 }, &mut |_, rows| {
            rows.row_to_f32(0, out);
            Ok(())
        })
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        let location = self.tensor(id)?;
        self.rows(Rows { location, range: 0..location.rows }, visit)
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        let location = self.tensor(id)?;
        self.with_buffer(|buffer| {
            buffer.clear();
            let slice = self.read(Rows { location, range: 0..location.rows }, buffer)?;
            visit(&slice.matrix(buffer))
        })
    }

    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        self.with_buffer(|buffer| {
            for (place, &expert) in ids.iter().enumerate() {
                buffer.clear();
                let mut read = |matrix| self.expert(ExpertId { layer, expert, matrix }, buffer);
                let gate = read(ExpertMatrix::Gate)?;
                let up = read(ExpertMatrix::Up)?;
                let down = read(ExpertMatrix::Down)?;
                let expert = Expert { gate: gate.matrix(buffer), up: up.matrix(buffer), down: down.matrix(buffer) };
                visit(place, &expert)?;
            }
            Ok(())
        })
    }
}
