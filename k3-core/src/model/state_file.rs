//! A state as bytes: what `docs/formats.md` calls a state file.
//!
//! All numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `k3-state` |
//! | 4 | version, 2 |
//! | 8 | fingerprint of the config |
//! | 8 | fingerprint of the weights |
//! | 8 | number of positions |
//! | 8 | number of logits: as many as there are ids, or 0 if the last pass wanted none |
//! | 4 each | the ids fed, one for each position |
//! | 4 each | the logits that followed the last of them, f32 |
//! | 4 each | the f32 values of each layer: KDA the recurrent state and three histories, MLA a cache row for each position |
//! | 8 | XXH3 of everything before |

use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use xxhash_rust::xxh3::Xxh3Default;

use super::state::{LayerState, State};
use crate::config::Config;
use crate::host::Storage;
use crate::{Error, Result};

const MAGIC: [u8; 8] = *b"k3-state";
const VERSION: u32 = 2;
/// Bytes in front of the ids.
const HEADER_BYTES: usize = 44;
const CHECKSUM_BYTES: u64 = 8;
/// Bytes that are converted at once.
const PIECE_BYTES: usize = 1 << 16;

/// What a state belongs to: it means nothing to another model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    /// Of every dimension and switch.
    pub config: u64,
    /// Of the weights: of all small vectors, which differ between any two trainings.
    pub weights: u64,
}

/// Takes the bytes of a state file, in order.
pub type ByteSink<'a, E> = dyn FnMut(&[u8]) -> core::result::Result<(), E> + 'a;

/// A state with what it takes to go on from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Saved {
    /// The state.
    pub state: State,
    /// The ids that led to it, one for each position.
    pub ids: Vec<u32>,
    /// The logits that followed the last of them, `[vocabulary]`, or empty if the last pass wanted none.
    pub logits: Vec<f32>,
}

impl Saved {
    /// Writes a state file.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn write<E>(&self, fingerprint: Fingerprint, sink: &mut ByteSink<'_, E>) -> core::result::Result<(), E> {
        let mut writer = Writer { sink, hash: Xxh3Default::new(), piece: Vec::with_capacity(PIECE_BYTES) };
        writer.bytes(&header(fingerprint, [self.ids.len(), self.logits.len()]))?;
        writer.values(&self.ids, u32::to_le_bytes)?;
        writer.values(&self.logits, f32::to_le_bytes)?;
        for layer in &self.state.layers {
            for values in live_values(layer, &self.state) {
                writer.values(values, f32::to_le_bytes)?;
            }
        }
        (writer.sink)(&writer.hash.digest().to_le_bytes())
    }

    /// Reads a state file, for a sequence of at most `capacity` positions.
    ///
    /// # Errors
    /// [`Error::State`] if the file is not a state file of this version, belongs to another model, is damaged or cut short,
    /// or has more positions than there is room for; [`Error::Read`].
    pub fn read(storage: &dyn Storage, config: &Config, fingerprint: Fingerprint, capacity: usize) -> Result<Self> {
        let mut reader = Reader { storage, offset: 0, hash: Xxh3Default::new(), piece: vec![0; PIECE_BYTES] };
        let Counts { positions, logits } = check_header(&mut reader, fingerprint)?;
        let room = usize::try_from(positions).ok().filter(|positions| *positions <= capacity);
        let positions =
            room.ok_or_else(|| refuse(format!("it has {positions} positions, with room for {capacity}")))?;
        let vocabulary = config.vocabulary;
        let logits = [0, vocabulary].into_iter().find(|&possible| possible as u64 == logits);
        let logits = logits.ok_or_else(|| refuse("it is damaged: it has logits for another number of ids".into()))?;
        check_length(storage, config, [positions, logits])?;

        let mut ids = vec![0; positions];
        reader.values(&mut ids, u32::from_le_bytes)?;
        let mut logits = vec![0.0; logits];
        reader.values(&mut logits, f32::from_le_bytes)?;
        let mut state = State::new(config, capacity);
        state.begin_pass(positions)?;
        state.end_pass(positions);
        for layer in &mut state.layers {
            for values in live_values_mut(layer, positions, config.mla.cache_width()) {
                reader.values(values, f32::from_le_bytes)?;
            }
        }
        reader.check_sum()?;
        Ok(Self { state, ids, logits })
    }
}

fn refuse(reason: String) -> Error {
    Error::State(reason)
}

fn header(fingerprint: Fingerprint, [positions, logits]: [usize; 2]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..20].copy_from_slice(&fingerprint.config.to_le_bytes());
    header[20..28].copy_from_slice(&fingerprint.weights.to_le_bytes());
    header[28..36].copy_from_slice(&(positions as u64).to_le_bytes());
    header[36..].copy_from_slice(&(logits as u64).to_le_bytes());
    header
}

/// How much is in a file, as its header says.
struct Counts {
    positions: u64,
    logits: u64,
}

/// Checks everything in front of the counts.
fn check_header(reader: &mut Reader<'_>, fingerprint: Fingerprint) -> Result<Counts> {
    if reader.storage.len() < HEADER_BYTES as u64 + CHECKSUM_BYTES {
        return Err(refuse("it is too short for a state file".into()));
    }
    let mut header = [0; HEADER_BYTES];
    reader.values(&mut header, |[byte]: [u8; 1]| byte)?;
    let (magic, rest) = header.split_at(8);
    if magic != MAGIC {
        return Err(refuse("it is not a state file".into()));
    }
    let version = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
    if version != VERSION {
        return Err(refuse(format!("it has version {version}, this program reads version {VERSION}")));
    }
    let (numbers, _) = rest[4..].as_chunks();
    let [config, weights, positions, logits] = [numbers[0], numbers[1], numbers[2], numbers[3]].map(u64::from_le_bytes);
    if config != fingerprint.config {
        return Err(refuse("it was saved under another configuration".into()));
    }
    if weights != fingerprint.weights {
        return Err(refuse("it was saved with another model's weights".into()));
    }
    Ok(Counts { positions, logits })
}

/// The length is known before anything is allocated for it.
fn check_length(storage: &dyn Storage, config: &Config, [positions, logits]: [usize; 2]) -> Result<()> {
    let values: u64 = config.layers.iter().map(|kind| State::layer_values(config, kind.attention, positions)).sum();
    let numbers = positions as u64 + logits as u64 + values;
    let wanted = HEADER_BYTES as u64 + 4 * numbers + CHECKSUM_BYTES;
    let length = storage.len();
    if length != wanted {
        return Err(refuse(format!("it is cut short or damaged: {length} bytes instead of {wanted}")));
    }
    Ok(())
}

/// The values of a layer that mean something: of a cache, the rows of the positions fed.
fn live_values<'a>(layer: &'a LayerState, state: &State) -> impl Iterator<Item = &'a [f32]> {
    let slices = match layer {
        LayerState::Kda(kda) => {
            let [query, key, value] = &kda.history;
            [&kda.recurrent[..], query, key, value]
        }
        LayerState::Mla(mla) => {
            let width = mla.cache.len().checked_div(state.capacity()).unwrap_or(0);
            [&mla.cache[..state.positions() * width], &[], &[], &[]]
        }
    };
    slices.into_iter()
}

/// As [`live_values`], to be filled.
fn live_values_mut(layer: &mut LayerState, rows: usize, width: usize) -> impl Iterator<Item = &mut [f32]> {
    let slices = match layer {
        LayerState::Kda(kda) => {
            let [query, key, value] = &mut kda.history;
            [&mut kda.recurrent[..], query, key, value]
        }
        LayerState::Mla(mla) => [&mut mla.cache[..rows * width], &mut [], &mut [], &mut []],
    };
    slices.into_iter()
}

struct Writer<'s, 'f, E> {
    sink: &'s mut ByteSink<'f, E>,
    hash: Xxh3Default,
    piece: Vec<u8>,
}

impl<E> Writer<'_, '_, E> {
    fn bytes(&mut self, bytes: &[u8]) -> core::result::Result<(), E> {
        self.hash.update(bytes);
        (self.sink)(bytes)
    }

    fn values<T: Copy>(&mut self, values: &[T], convert: fn(T) -> [u8; 4]) -> core::result::Result<(), E> {
        for values in values.chunks(PIECE_BYTES / 4) {
            self.piece.clear();
            self.piece.extend(values.iter().flat_map(|&value| convert(value)));
            self.hash.update(&self.piece);
            (self.sink)(&self.piece)?;
        }
        Ok(())
    }
}

struct Reader<'a> {
    storage: &'a dyn Storage,
    offset: u64,
    hash: Xxh3Default,
    piece: Vec<u8>,
}

impl Reader<'_> {
    /// Fills `values` from the next bytes.
    fn values<T, const N: usize>(&mut self, values: &mut [T], convert: fn([u8; N]) -> T) -> Result<()> {
        for values in values.chunks_mut(PIECE_BYTES / N) {
            let piece = &mut self.piece[..values.len() * N];
            self.storage.read_exact_at(self.offset, piece)?;
            self.hash.update(piece);
            self.offset += piece.len() as u64;
            for (value, &bytes) in values.iter_mut().zip(piece.as_chunks().0) {
                *value = convert(bytes);
            }
        }
        Ok(())
    }

    /// Compares what was read with the checksum that follows.
    fn check_sum(&mut self) -> Result<()> {
        let mut checksum = [0; CHECKSUM_BYTES as usize];
        self.storage.read_exact_at(self.offset, &mut checksum)?;
        if u64::from_le_bytes(checksum) != self.hash.digest() {
            return Err(refuse("it is damaged: the checksum does not fit the contents".into()));
        }
        Ok(())
    }
}
