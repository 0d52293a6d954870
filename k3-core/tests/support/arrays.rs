//! Weights in arrays: a [`WeightSource`] that needs no files.

use std::collections::BTreeMap;

use half::bf16;
use k3_core::checkpoint::names::TensorId;
use k3_core::kernels::{Encoding, Matrix};
use k3_core::model::source::{Expert, ExpertVisitor, MatrixVisitor, RowVisitor, WeightSource};
use k3_core::{Error, Result};
use serde_json::Value;

use super::released::{Name, parse};
use super::singles;

/// All weights of a small model.
#[derive(Default)]
pub struct ArraySource {
    pub tensors: BTreeMap<TensorId, Array>,
    /// By layer and expert.
    pub experts: BTreeMap<(usize, usize), ExpertArrays>,
    /// Slices of a matrix hold this many rows; `None`: all.
    pub rows_in_slice: Option<usize>,
}

/// A vector or a matrix as it is stored. A vector has one row.
pub struct Array {
    pub encoding: Encoding,
    pub rows: usize,
    pub columns: usize,
    pub data: Vec<u8>,
}

/// The matrices of one expert.
#[derive(Default, Clone)]
pub struct ExpertArrays {
    pub gate: Packed,
    pub down: Packed,
    pub up: Packed,
}

/// A matrix in MXFP4.
#[derive(Default, Clone)]
pub struct Packed {
    pub rows: usize,
    pub columns: usize,
    pub codes: Vec<u8>,
    pub scales: Vec<u8>,
}

impl ArraySource {
    /// The weights of a model fixture.
    pub fn read(fixture: &Value) -> Self {
        let mut source = Self::default();
        for (name, tensor) in fixture["weights"].as_object().unwrap() {
            match parse(name) {
                Name::Tensor(id) => {
                    source.tensors.insert(id, Array::read(tensor));
                }
                Name::Expert { layer, expert, part } => {
                    source.experts.entry((layer, expert)).or_default().read(part, tensor);
                }
            }
        }
        source
    }

    fn tensor(&self, id: TensorId) -> Result<&Array> {
        self.tensors.get(&id).ok_or_else(|| refusal(id, "is not in the fixture"))
    }
}

fn refusal(id: TensorId, reason: &str) -> Error {
    Error::Tensor { name: format!("{id:?}"), reason: reason.into() }
}

impl Array {
    fn read(tensor: &Value) -> Self {
        let (rows, columns) = shape(tensor);
        let values = singles(&tensor["data"]);
        assert_eq!(values.len(), rows * columns, "numbers of {rows}x{columns}");
        match tensor["dtype"].as_str() {
            Some("F32") => Self::single(rows, columns, &values),
            Some("BF16") => {
                let data = values.iter().flat_map(|value| exact_bf16(*value).to_le_bytes()).collect();
                Self { encoding: Encoding::Bf16, rows, columns, data }
            }
            other => panic!("dtype {other:?}"),
        }
    }

    /// An array of f32.
    pub fn single(rows: usize, columns: usize, values: &[f32]) -> Self {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Self { encoding: Encoding::F32, rows, columns, data }
    }

    fn matrix(&self) -> Matrix<'_> {
        match self.encoding {
            Encoding::F32 => Matrix::f32(&self.data, self.rows, self.columns),
            Encoding::Bf16 => Matrix::bf16(&self.data, self.rows, self.columns),
            Encoding::Mxfp4 | Encoding::Dict { .. } => unreachable!("these are not packed"),
        }
    }
}

fn exact_bf16(value: f32) -> bf16 {
    let rounded = bf16::from_f32(value);
    assert_eq!(rounded.to_f32().to_bits(), value.to_bits(), "{value} is not exact in bf16");
    rounded
}

/// Rows, all dimensions but the last, and columns, the last; a vector is one row.
fn shape(tensor: &Value) -> (usize, usize) {
    let dimensions: Vec<usize> = tensor["shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| usize::try_from(size.as_u64().unwrap()).unwrap())
        .collect();
    let (columns, rows) = dimensions.split_last().unwrap();
    (rows.iter().product(), *columns)
}

impl ExpertArrays {
    fn read(&mut self, part: &str, tensor: &Value) {
        let (matrix, kind) = part.split_once('.').unwrap();
        let packed = match matrix {
            "w1" => &mut self.gate,
            "w2" => &mut self.down,
            "w3" => &mut self.up,
            other => panic!("an expert has no {other}"),
        };
        let bytes = unhex(tensor["data"].as_str().unwrap());
        let (rows, columns) = shape(tensor);
        match kind {
            "weight_packed" => (packed.rows, packed.columns, packed.codes) = (rows, 2 * columns, bytes),
            "weight_scale" => packed.scales = bytes,
            other => panic!("an expert's matrix has no {other}"),
        }
    }

    fn borrow(&self) -> Expert<'_> {
        Expert { gate: self.gate.matrix(), up: self.up.matrix(), down: self.down.matrix() }
    }
}

impl Packed {
    fn matrix(&self) -> Matrix<'_> {
        Matrix::mxfp4(&self.codes, &self.scales, self.rows, self.columns)
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

impl WeightSource for ArraySource {
    fn vector(&self, id: TensorId, out: &mut [f32]) -> Result<()> {
        let array = self.tensor(id)?;
        if array.rows * array.columns < out.len() {
            return Err(refusal(id, "is too short"));
        }
        for (out, row) in out.chunks_mut(array.columns).zip(0..) {
            let mut whole = vec![0.0; array.columns];
            array.matrix().row_to_f32(row, &mut whole);
            out.copy_from_slice(&whole[..out.len()]);
        }
        Ok(())
    }

    fn row(&self, id: TensorId, row: usize, out: &mut [f32]) -> Result<()> {
        self.tensor(id)?.matrix().row_to_f32(row, out);
        Ok(())
    }

    fn matrix(&self, id: TensorId, visit: &mut RowVisitor<'_>) -> Result<()> {
        let matrix = self.tensor(id)?.matrix();
        let step = self.rows_in_slice.unwrap_or(matrix.rows());
        for first in (0..matrix.rows()).step_by(step) {
            visit(first, matrix.slice_rows(first..matrix.rows().min(first + step)))?;
        }
        Ok(())
    }

    fn whole_matrix(&self, id: TensorId, visit: &mut MatrixVisitor<'_>) -> Result<()> {
        visit(&self.tensor(id)?.matrix())
    }

    /// In reverse order, which is as good as any.
    fn experts(&self, layer: usize, ids: &[usize], visit: &mut ExpertVisitor<'_>) -> Result<()> {
        for (index, &id) in ids.iter().enumerate().rev() {
            visit(index, &self.experts[&(layer, id)].borrow())?;
        }
        Ok(())
    }
}
