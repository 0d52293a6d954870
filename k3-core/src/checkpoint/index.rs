//! Where every tensor of the text model lies.
//!
//! Of a [`CheckpointIndex`] that exists, the following holds:
//! 1. Every tensor that the config asks for, in the layers that were asked for, is there once and complete.
//! 2. Its shape is that of the config, its encoding that of the header.
//! 3. Its spans lie inside their shards, as long as these were when they were opened.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::header::Tensor;
use super::names::{ExpertId, ExpertMatrix, Name, Part, TensorId};
use super::refuse;
use super::required::{Need, required};
use super::shapes::Shape;
use super::table::{Found, Table};
use crate::config::{Config, FeedForward};
use crate::kernels::{Encoding, Matrix};
use crate::{Error, Result};

/// Columns that share a scale.
const SCALE_COLUMNS: usize = 32;

/// A run of bytes in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The number of the shard, in [`CheckpointIndex::shards`].
    pub shard: usize,
    /// The first byte, from the start of the file.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// Where a tensor lies, and how. A vector is a matrix of one row, a convolution one of `[channels, taps]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location {
    /// How its elements are stored.
    pub encoding: Encoding,
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// The elements, row by row. Of a vector that is stored longer than it is used, the part that is used.
    pub data: Span,
    /// The scales, row by row, of an MXFP4 matrix.
    pub scales: Option<Span>,
}

impl Location {
    /// Where its bytes lie: the elements, then the scales if there are any.
    pub fn spans(&self) -> impl Iterator<Item = Span> + use<> {
        [Some(self.data), self.scales].into_iter().flatten()
    }

    /// The tensor, out of the bytes of [`Location::data`] and of [`Location::scales`].
    #[must_use]
    pub fn matrix<'a>(&self, data: &'a [u8], scales: &'a [u8]) -> Matrix<'a> {
        Matrix::encoded(self.encoding, data, scales, self.rows, self.columns)
    }
}

/// Where every tensor of the text model lies.
#[derive(Debug)]
pub struct CheckpointIndex {
    config: Config,
    layers: usize,
    shards: Vec<String>,
    table: Table,
}

impl CheckpointIndex {
    /// How many layers, from the first on, the index covers.
    #[must_use]
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// The bytes of memory that the index takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.table.memory_bytes()
    }

    /// The file names of the shards that hold something the model needs.
    #[must_use]
    pub fn shards(&self) -> &[String] {
        &self.shards
    }

    /// Where a tensor lies; `None` if the model does without it or its layer is not covered.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<Location> {
        if self.is_outside(&Name::Text(id, Part::Plain)) || id.need(&self.config) != Need::Required {
            return None;
        }
        locate(&self.table.tensor(id), id.shape(&self.config))
    }

    /// Where the tensors that the model needs lie, apart from routed experts.
    pub fn tensors(&self) -> impl Iterator<Item = Location> {
        required(&self.config, self.layers).filter_map(|id| self.tensor(id))
    }

    /// Where a matrix of a routed expert lies; `None` if there is no such expert or its layer is not covered.
    #[must_use]
    pub fn expert(&self, id: ExpertId) -> Option<Location> {
        locate(&self.table.expert(id)?, id.matrix.shape(&self.config))
    }

    fn is_outside(&self, name: &Name) -> bool {
        name.layer().is_some_and(|layer| layer >= self.layers)
    }
}

fn locate(found: &Found, shape: Shape) -> Option<Location> {
    let encoding = found.complete().ok()?;
    let (rows, columns) = (shape.rows(), shape.columns());
    let span = |shard: u16, offset, row_bytes| {
        let bytes = rows as u64 * row_bytes as u64;
        Span { shard: shard.into(), offset, bytes }
    };
    Some(Location {
        encoding,
        rows,
        columns,
        data: span(found.data_shard, found.data_offset, encoding.row_bytes(columns)?),
        scales: (encoding == Encoding::Mxfp4)
            .then(|| span(found.scales_shard, found.scales_offset, columns / SCALE_COLUMNS)),
    })
}

/// An index that is being filled, shard by shard.
#[derive(Debug)]
pub(super) struct Binder {
    index: CheckpointIndex,
}

impl Binder {
    pub(super) fn new(config: &Config, layers: usize) -> Self {
        let table = Table::new(config, layers);
        Self { index: CheckpointIndex { config: config.clone(), layers, shards: Vec::new(), table } }
    }

    /// Binds the tensors of a shard; returns whether it holds any that the model needs.
    pub(super) fn add_shard(&mut self, file: &str, tensors: &[Tensor<'_>]) -> Result<bool> {
        let shard = u16::try_from(self.index.shards.len());
        let shard = shard.map_err(|_| refuse(file, "one shard more than is believed".to_string()))?;
        let mut used = false;
        for tensor in tensors {
            let bound = self.bind(shard, tensor);
            used |= bound.map_err(|reason| refuse(file, format!("tensor {}: {reason}", tensor.name)))?;
        }
        if used {
            self.index.shards.push(file.to_string());
        }
        Ok(used)
    }

    /// Binds one tensor; returns whether the model needs it.
    fn bind(&mut self, shard: u16, tensor: &Tensor<'_>) -> core::result::Result<bool, String> {
        let index = &mut self.index;
        let name = Name::parse(&tensor.name);
        if let Some(layer) = name.layer()
            && layer >= index.config.layers.len()
        {
            return Err(format!("the config has {} layers only", index.config.layers.len()));
        }
        let (part, shape) = match name {
            Name::Unknown => return Err("is not a tensor of this kind of model".to_string()),
            Name::Vision => return Ok(false),
            Name::Text(id, part) => match id.need(&index.config) {
                Need::Required => (part, id.shape(&index.config)),
                Need::Unused => return Ok(false),
                Need::Foreign => {
                    return Err("does not belong to the kind of layer that the config names".to_string());
                }
            },
            Name::Expert(id, part) => (part, id.matrix.shape(&index.config)),
        };
        let encoding = encoding(tensor, part, shape)?;
        if index.is_outside(&name) {
            return Ok(false);
        }
        let found = match name {
            Name::Text(id, _) => index.table.tensor_mut(id),
            Name::Expert(id, _) => index.table.expert_mut(id).ok_or("the config has no such expert")?,
            Name::Vision | Name::Unknown => return Ok(false),
        };
        found.note(encoding, part, (shard, tensor.offset))?;
        Ok(true)
    }

    /// The index, if nothing is missing.
    pub(super) fn finish(self) -> Result<CheckpointIndex> {
        self.index.check_complete()?;
        Ok(self.index)
    }
}

impl CheckpointIndex {
    /// Invariant 1. Names the first tensor that is not complete, and how many more there are.
    fn check_complete(&self) -> Result<()> {
        let tensors = required(&self.config, self.layers).map(|id| {
            let found = self.table.tensor(id);
            (Name::Text(id, Part::Plain), found)
        });
        let experts = self.expert_ids().map(|id| {
            let found = self.table.expert(id).unwrap_or_default();
            (Name::Expert(id, Part::Plain), found)
        });
        let mut faults = tensors.chain(experts).filter_map(|(name, found)| Some((name, found.complete().err()?)));
        let Some((name, fault)) = faults.next() else {
            return Ok(());
        };
        let reason = match faults.count() {
            0 => fault.to_string(),
            others => format!("{fault}; {others} more are not complete"),
        };
        Err(Error::Tensor { name: name.to_string(), reason })
    }

    /// Every matrix of every routed expert in the layers that are covered.
    pub fn expert_ids(&self) -> impl Iterator<Item = ExpertId> {
        let kinds = self.config.layers[..self.layers].iter().enumerate();
        let layers = kinds.filter(|(_, kind)| kind.feed_forward == FeedForward::Moe).map(|(layer, _)| layer);
        let experts = self.config.moe.experts;
        layers
            .flat_map(move |layer| (0..experts).map(move |expert| (layer, expert)))
            .flat_map(|(layer, expert)| ExpertMatrix::ALL.map(|matrix| ExpertId { layer, expert, matrix }))
    }
}

/// The encoding of a part of a tensor that must have `shape`, by what its header says.
fn encoding(tensor: &Tensor<'_>, part: Part, shape: Shape) -> core::result::Result<Encoding, String> {
    let sizes = tensor.dimensions();
    let wrong_shape = |wanted: &[u64]| format!("has the shape {sizes:?}, where the config asks for {wanted:?}");
    if part == Part::Plain {
        if !shape.accepts(sizes) {
            return Err(wrong_shape(&shape.dimensions()));
        }
        return match tensor.dtype {
            "F32" => Ok(Encoding::F32),
            "BF16" => Ok(Encoding::Bf16),
            other => Err(format!("has the type {other:?}, where F32 or BF16 is needed")),
        };
    }
    let Shape::Matrix(rows, columns) = shape else {
        return Err("cannot be packed, it is not a matrix".to_string());
    };
    let Some(packed) = Encoding::Mxfp4.row_bytes(columns) else {
        return Err(format!("cannot be packed, {columns} columns are not a multiple of {SCALE_COLUMNS}"));
    };
    let wanted = [rows, if part == Part::Packed { packed } else { columns / SCALE_COLUMNS }].map(|size| size as u64);
    if sizes != wanted {
        return Err(wrong_shape(&wanted));
    }
    if tensor.dtype != "U8" {
        return Err(format!("has the type {:?}, where U8 is needed", tensor.dtype));
    }
    Ok(Encoding::Mxfp4)
}
