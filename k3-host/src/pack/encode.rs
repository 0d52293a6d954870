//! From the bytes of a run in the checkpoint to those in `trunk.bin`, and back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use k3_core::checkpoint::names::TensorId;
use k3_core::config::Config;
use k3_core::kernels::dict::{self, DictError};
use k3_core::kernels::{Encoding, Kernels};
use k3_core::stream::trunk::Run;
use k3_core::stream::trunk_file::{Hash, Packing, StoredAs, may_use_dictionary};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

use super::content::Content;

/// Encodes runs.
pub(super) struct Encoder {
    /// The tensors whose runs may get a dictionary.
    dictionaries: BTreeSet<TensorId>,
    zeros: ZeroHashes,
}

/// A run as it will be stored.
pub(super) struct Encoded {
    /// How its rows are stored.
    pub(super) encoding: StoredAs,
    /// Its bytes.
    pub(super) content: Content,
    /// Their hash.
    pub(super) xxh3: Hash,
}

impl Encoder {
    /// One that packs for `config` in the given way.
    pub(super) fn new(packing: Packing, config: &Config) -> Self {
        let dictionaries = match packing {
            Packing::Raw => BTreeSet::new(),
            Packing::Dict => may_use_dictionary(config),
        };
        Self { dictionaries, zeros: ZeroHashes::default() }
    }

    /// Encodes a run of the checkpoint. It gets a dictionary if it is smaller for it.
    pub(super) fn encode(&self, run: &Run, raw: Content) -> Encoded {
        let (encoding, content) = match self.with_dictionary(run, &raw) {
            Some(content) => (StoredAs::Dict, content),
            None => (run.encoding.into(), raw),
        };
        let xxh3 = self.zeros.hash(&content);
        Encoded { encoding, content, xxh3 }
    }

    fn with_dictionary(&self, run: &Run, raw: &Content) -> Option<Content> {
        match raw {
            Content::Bytes(bytes) if run.encoding == Encoding::Bf16 && self.dictionaries.contains(&run.tensor) => {
                let encoded = dict::encode(bytes, run.rows.len(), run.columns)?;
                Some(Content::new(encoded.data))
            }
            // Nothing is smaller than a hole.
            _ => None,
        }
    }
}

/// The rows of a run of a packed trunk as they are in the checkpoint.
///
/// # Errors
/// If the run has a dictionary and is damaged.
pub(super) fn decode(kernels: &Kernels, run: &Run, stored: Content) -> Result<Content, DictError> {
    let Encoding::Dict { .. } = run.encoding else { return Ok(stored) };
    let bytes = stored.into_bytes();
    let mut bf16 = vec![0; 2 * run.rows.len() * run.columns];
    kernels.decode_dict(&run.matrix(&bytes, &[]), &mut bf16)?;
    Ok(Content::new(bf16))
}

/// Hashes, of which those of zeros are computed once for each length.
#[derive(Default)]
pub(super) struct ZeroHashes(Mutex<BTreeMap<u64, u64>>);

impl ZeroHashes {
    /// The XXH3 hash of `content`.
    pub(super) fn hash(&self, content: &Content) -> Hash {
        Hash(match content {
            Content::Bytes(bytes) => xxh3_64(bytes),
            Content::Zeros(count) => {
                let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                *known.entry(*count).or_insert_with(|| hash_of_zeros(*count))
            }
        })
    }
}

fn hash_of_zeros(count: u64) -> u64 {
    static PIECE: [u8; 1 << 16] = [0; 1 << 16];
    let mut hash = Xxh3Default::new();
    let mut left = count;
    while left > 0 {
        let piece = left.min(PIECE.len() as u64);
        hash.update(&PIECE[..piece as usize]);
        left -= piece;
    }
    hash.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_hash_like_the_bytes_they_stand_for() {
        let hashes = ZeroHashes::default();
        for count in [1, 4096, 65_535, 65_536, 200_001] {
            assert_eq!(hashes.hash(&Content::Zeros(count)), Hash(xxh3_64(&vec![0; count as usize])), "{count}");
        }
    }
}
