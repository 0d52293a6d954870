//! A packed trunk: its runs one after the other in one file, in the order in which a pass reads them, and a manifest that
//! says where each is. `docs/formats.md` describes both files.
//!
//! Nothing in a manifest is believed before it is checked: [`Manifest::parse`] checks each field alone,
//! [`Manifest::trunk`] all of them against each other, the config and the length of the file.

mod check;
mod field;
mod fingerprint;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

pub use check::may_use_dictionary;
pub use field::Hash;
pub use fingerprint::Fingerprint;

use super::trunk::Run;
use crate::checkpoint::names::TensorId;
use crate::kernels::Encoding;
use crate::{Error, Result};

/// The file name of the manifest.
pub const MANIFEST_FILE: &str = "trunk.json";
/// The file name of the runs.
pub const DATA_FILE: &str = "trunk.bin";
/// Every run begins at a multiple of so many bytes, and the file ends at one: what direct reads ask for.
pub const ALIGNMENT: u64 = 4096;
/// The longest manifest that is believed; that of the released model takes about 2 MB.
pub const MOST_MANIFEST_BYTES: u64 = 64 << 20;

/// How a trunk is packed. Both ways hold the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// As in the checkpoint.
    Raw,
    /// The high bytes of bf16 as codes of a dictionary, where that is smaller.
    Dict,
}

/// What `trunk.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Always that of this version.
    #[serde(deserialize_with = "field::format")]
    pub format: Format,
    /// How the trunk is packed.
    #[serde(deserialize_with = "field::encoding")]
    pub encoding: Packing,
    /// What it was packed from.
    #[serde(deserialize_with = "field::checkpoint")]
    pub checkpoint: Fingerprint,
    /// The length of `trunk.bin`.
    #[serde(deserialize_with = "field::bytes")]
    pub bytes: u64,
    /// The runs, in the order in which they lie.
    #[serde(deserialize_with = "field::runs")]
    pub runs: Vec<StoredRun>,
}

/// A run in `trunk.bin`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRun {
    /// The tensor, by the name of the release.
    #[serde(serialize_with = "field::write_tensor", deserialize_with = "field::tensor")]
    pub tensor: TensorId,
    /// The first of its rows.
    #[serde(deserialize_with = "field::first_row")]
    pub first_row: usize,
    /// How many rows.
    #[serde(deserialize_with = "field::rows")]
    pub rows: usize,
    /// The columns of the tensor.
    #[serde(deserialize_with = "field::columns")]
    pub columns: usize,
    /// How the rows are stored.
    #[serde(deserialize_with = "field::encoding")]
    pub encoding: StoredAs,
    /// Where it begins in the file.
    #[serde(deserialize_with = "field::offset")]
    pub offset: u64,
    /// How many bytes, scales included.
    #[serde(deserialize_with = "field::bytes")]
    pub bytes: u64,
    /// The XXH3 hash of the bytes, 64 bits, seed 0.
    #[serde(deserialize_with = "field::xxh3")]
    pub xxh3: Hash,
}

/// The name and version of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// The only version so far.
    #[serde(rename = "k3-trunk/1")]
    Version1,
}

/// How rows are stored. Of a dictionary, the length of a run tells the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StoredAs {
    /// [`Encoding::F32`].
    F32,
    /// [`Encoding::Bf16`].
    Bf16,
    /// [`Encoding::Mxfp4`]: all rows, then all scales.
    Mxfp4,
    /// [`Encoding::Dict`] of what is bf16 in the checkpoint.
    Dict,
}

impl From<Encoding> for StoredAs {
    fn from(encoding: Encoding) -> Self {
        match encoding {
            Encoding::F32 => Self::F32,
            Encoding::Bf16 => Self::Bf16,
            Encoding::Mxfp4 => Self::Mxfp4,
            Encoding::Dict { .. } => Self::Dict,
        }
    }
}

/// As a manifest spells it.
impl fmt::Display for StoredAs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// The bytes that a run takes in a file and how they are encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// How the rows are stored.
    pub encoding: StoredAs,
    /// How many bytes.
    pub bytes: u64,
    /// Their XXH3 hash.
    pub xxh3: Hash,
}

impl StoredRun {
    /// `run`, stored at `offset`.
    #[must_use]
    pub fn new(run: &Run, offset: u64, stored: Stored) -> Self {
        Self {
            tensor: run.tensor,
            first_row: run.rows.start,
            rows: run.rows.len(),
            columns: run.columns,
            encoding: stored.encoding,
            offset,
            bytes: stored.bytes,
            xxh3: stored.xxh3,
        }
    }

    /// Whether it holds the rows of `run`.
    #[must_use]
    pub fn is_of(&self, run: &Run) -> bool {
        (self.tensor, self.first_row, self.rows, self.columns)
            == (run.tensor, run.rows.start, run.rows.len(), run.columns)
    }

    /// Where the next run begins: after this one, at a multiple of [`ALIGNMENT`]. `None` if no file is so long.
    #[must_use]
    pub fn next_offset(&self) -> Option<u64> {
        self.offset.checked_add(self.bytes)?.checked_next_multiple_of(ALIGNMENT)
    }

    /// The run as JSON on one line.
    #[must_use]
    pub fn to_json(&self) -> String {
        json(self)
    }
}

impl Manifest {
    /// The manifest of runs that lie one after the other.
    #[must_use]
    pub fn new(encoding: Packing, checkpoint: Fingerprint, runs: Vec<StoredRun>) -> Self {
        let bytes = runs.last().and_then(StoredRun::next_offset).unwrap_or(0);
        Self { format: Format::Version1, encoding, checkpoint, bytes, runs }
    }

    /// Reads the text of the manifest `file`.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that names the file, the line and the field.
    pub fn parse(file: &str, text: &[u8]) -> Result<Self> {
        serde_json::from_slice(text)
            .map_err(|error| Error::Checkpoint { file: file.into(), reason: format!("{error}") })
    }

    /// The manifest as JSON, a run on each line.
    #[must_use]
    pub fn to_json(&self) -> String {
        let runs: Vec<String> = self.runs.iter().map(StoredRun::to_json).collect();
        format!(
            "{{\"format\":{},\"encoding\":{},\"checkpoint\":{},\"bytes\":{},\"runs\":[\n{}\n]}}\n",
            json(&self.format),
            json(&self.encoding),
            json(&self.checkpoint),
            self.bytes,
            runs.join(",\n")
        )
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("it has no maps and no numbers that JSON does not have")
}
