//! What a trunk was packed from, in a few hashes.
//!
//! A manifest must not be used with another checkpoint, even if that has the same shapes. Comparing all bytes would take
//! as long as packing, so each tensor is known by where and how it lies in the shards, and by its first bytes.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3Default;

use super::StoredAs;
use super::field::{self, Hash};
use crate::checkpoint::names::TensorId;
use crate::checkpoint::required::required;
use crate::checkpoint::{CheckpointIndex, Location};
use crate::config::Config;
use crate::host::Storage;
use crate::{Error, Result};

/// How many bytes of a tensor are looked at.
const SAMPLE_BYTES: u64 = 4096;

/// A hash over the trunk tensors of each layer, and one over those outside the layers.
///
/// It covers, of each tensor: name, shape, encoding, file name of its shard, place in it, and the first 4096 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    /// Of the tensors outside the layers.
    #[serde(deserialize_with = "field::outside")]
    pub outside: Hash,
    /// Of each layer, from the first on.
    #[serde(deserialize_with = "field::layers")]
    pub layers: Vec<Hash>,
}

impl Fingerprint {
    /// The fingerprint of the first layers of a checkpoint, as many as `config` has. `files` are the shards of `index`.
    ///
    /// # Errors
    /// [`Error::Read`].
    ///
    /// # Panics
    /// If the index does not cover so many layers.
    pub fn of<F: Storage>(index: &CheckpointIndex, files: &[F], config: &Config) -> Result<Self> {
        let mut outside = Xxh3Default::new();
        let mut layers = vec![Xxh3Default::new(); config.layers.len()];
        for id in required(config, config.layers.len()) {
            let location = index.tensor(id).expect("an index has every tensor that its config asks for");
            let hash = match id {
                TensorId::Layer(layer, _) => &mut layers[layer],
                _ => &mut outside,
            };
            hash.update(describe(id, location, index).as_bytes());
            let mut sample = vec![0; location.data.bytes.min(SAMPLE_BYTES) as usize];
            files[location.data.shard].read_exact_at(location.data.offset, &mut sample)?;
            hash.update(&sample);
        }
        let layers = layers.iter().map(|hash| Hash(hash.digest())).collect();
        Ok(Self { outside: Hash(outside.digest()), layers })
    }

    /// Checks that a trunk of this fingerprint, as `file` says, is of the checkpoint of the fingerprint `other`, as far as
    /// both have layers.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] that names the file and the field.
    pub fn check(&self, file: &str, other: &Self) -> Result<()> {
        let refuse = |field: String| {
            let reason = format!("checkpoint.{field}: the trunk was packed from another checkpoint; pack it again");
            Err(Error::Checkpoint { file: file.to_string(), reason })
        };
        if self.outside != other.outside {
            return refuse("outside".to_string());
        }
        match self.layers.iter().zip(&other.layers).position(|(hash, other)| hash != other) {
            Some(layer) => refuse(format!("layers[{layer}]")),
            None => Ok(()),
        }
    }
}

/// All of a tensor but its bytes, as text.
fn describe(id: TensorId, location: Location, index: &CheckpointIndex) -> String {
    let Location { encoding, rows, columns, .. } = location;
    let mut text = format!("{id} {rows}x{columns} {}", StoredAs::from(encoding));
    for span in location.spans() {
        text += &format!(" {} {}+{}", index.shards()[span.shard], span.offset, span.bytes);
    }
    text + "\n"
}
