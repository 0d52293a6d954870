//! What the outside implements: positioned reads and row-parallel work. To port k3, implement these.

use alloc::format;
use alloc::string::ToString;
use alloc::vec;
use core::ops::Range;

use serde::de::DeserializeSeed;

use crate::{Error, Result};

/// A file, or a part of one, that can be read at any position.
///
/// Reads may block. They may be issued from several threads at once.
pub trait Storage: Sync {
    /// The length in bytes, exact at the time of opening.
    fn len(&self) -> u64;

    /// Whether there is nothing to read.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// [`crate::Error::Read`] if the range is not wholly inside the file or the system refuses; `buffer` then holds
    /// nothing of meaning. A short read is an error, never zeros.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// Runs independent pieces of work, on however many threads there are.
///
/// No result may depend on the number of pieces or threads: each output element is computed whole by one piece.
pub trait Workers: Sync {
    /// How many pieces can make progress at once; at least 1.
    fn threads(&self) -> usize;

    /// Calls `work` once for each index in `0..pieces`, in any order and on any thread, and returns when all are done.
    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync));
}

/// Workers that are not there: all on the calling thread.
#[derive(Debug, Clone, Copy, Default)]
pub struct Serial;

impl Workers for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..pieces).for_each(work);
    }
}

/// The part of `0..total` that piece `index` of `pieces` covers, with borders on multiples of `granule`.
///
/// The parts are disjoint, in order, and cover the whole; some may be empty.
#[must_use]
pub fn piece(total: usize, granule: usize, index: usize, pieces: usize) -> Range<usize> {
    let granules = total.div_ceil(granule);
    let border = |index: usize| (granules * index / pieces * granule).min(total);
    border(index)..border(index + 1)
}

/// The folder that holds a checkpoint.
pub trait Directory {
    /// A file that has been opened.
    type File: Storage;

    /// Opens the file `name`, which is a bare file name; `None` if there is no such file.
    ///
    /// # Errors
    /// [`crate::Error::Read`] if it is there but cannot be opened.
    fn open(&self, name: &str) -> Result<Option<Self::File>>;

    /// Feeds the JSON text of the file `name` to `seed`; `None` if there is no such file. The text may be tens of
    /// megabytes; a host with a buffered reader should replace this default, which holds all of it in memory at once.
    ///
    /// # Errors
    /// [`crate::Error::Checkpoint`] if the text is not JSON or `seed` refuses it; [`crate::Error::Read`].
    fn read_json<T, S>(&self, name: &str, seed: S) -> Result<Option<T>>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let refuse = |reason| Error::Checkpoint { file: name.to_string(), reason };
        let Some(file) = self.open(name)? else { return Ok(None) };
        let length = usize::try_from(file.len()).ok().filter(|length| *length <= MOST_JSON_BYTES);
        let length = length.ok_or_else(|| refuse(format!("{} bytes of JSON are more than is believed", file.len())))?;
        let mut text = vec![0; length];
        file.read_exact_at(0, &mut text)?;
        let mut input = serde_json::Deserializer::from_slice(&text);
        let value = seed.deserialize(&mut input).and_then(|value| input.end().map(|()| value));
        value.map(Some).map_err(|error| refuse(error.to_string()))
    }
}

/// The longest JSON file that is believed; the index of the released checkpoint has 59,764,096 bytes.
const MOST_JSON_BYTES: usize = 1 << 28;
