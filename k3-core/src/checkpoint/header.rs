//! The header of one safetensors file: eight bytes of length, that much JSON, and then the data it describes.
//!
//! Nothing in it is believed before it is checked. Of a [`Header`] that exists, the following holds:
//! 1. The tensors cover everything after the header, in order, without gap or overlap, to the end of the file.
//! 2. The bytes of a tensor are the product of its dimensions and the size of its elements, where the type is known.
//! 3. No name occurs twice.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use super::refuse;
use crate::Result;
use crate::host::Storage;

/// The longest header that is believed, as in the published format.
const MOST_BYTES: u64 = 100_000_000;
/// The most dimensions that are believed.
const MOST_DIMENSIONS: usize = 8;
/// The bytes before the JSON text, which hold its length.
const LENGTH_BYTES: u64 = 8;

/// A checked header; names and types are borrowed from its JSON text.
#[derive(Debug)]
pub struct Header<'a> {
    /// The tensors in the order in which their data lie.
    pub tensors: Vec<Tensor<'a>>,
}

/// What a header says about one tensor.
#[derive(Debug)]
pub struct Tensor<'a> {
    /// The name.
    pub name: Cow<'a, str>,
    /// A hash of the name.
    pub name_hash: u64,
    /// The element type as written, known or not.
    pub dtype: &'a str,
    /// Where the data begin, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes there are; never 0.
    pub bytes: u64,
    shape: Dimensions,
}

impl Tensor<'_> {
    /// The dimensions, the outermost first.
    #[must_use]
    pub fn dimensions(&self) -> &[u64] {
        &self.shape.sizes[..self.shape.count]
    }
}

/// Reads the JSON text of the header of `file` into `text`, after checking that the file can hold it.
///
/// # Errors
/// [`crate::Error::Checkpoint`] if the file is too short for its header or the header absurdly long; [`crate::Error::Read`].
pub fn read_text(storage: &dyn Storage, file: &str, text: &mut Vec<u8>) -> Result<()> {
    let length = storage.len();
    let Some(room) = length.checked_sub(LENGTH_BYTES) else {
        return Err(refuse(file, format!("{length} bytes are too few for a safetensors file")));
    };
    let mut prefix = [0; LENGTH_BYTES as usize];
    storage.read_exact_at(0, &mut prefix)?;
    let wanted = u64::from_le_bytes(prefix);
    if wanted > room {
        return Err(refuse(file, format!("the header should take {wanted} bytes, but only {room} follow")));
    }
    if wanted > MOST_BYTES {
        return Err(refuse(file, format!("a header of {wanted} bytes is more than is believed")));
    }
    text.clear();
    text.resize(wanted as usize, 0);
    storage.read_exact_at(LENGTH_BYTES, text)
}

impl<'a> Header<'a> {
    /// Checks the JSON text of the header of `file`, which is `file_bytes` long.
    ///
    /// # Errors
    /// [`crate::Error::Checkpoint`] that names the file and, where there is one, the tensor.
    pub fn parse(file: &str, text: &'a [u8], file_bytes: u64) -> Result<Self> {
        let Entries(entries) =
            serde_json::from_slice(text).map_err(|error| refuse(file, format!("header: {error}")))?;
        let data = LENGTH_BYTES + text.len() as u64;
        let mut tensors = Vec::with_capacity(entries.len());
        for (name, info) in entries {
            tensors.push(place(name, &info, data).map_err(|reason| refuse(file, reason))?);
        }
        tensors.sort_unstable_by_key(|tensor| (tensor.offset, tensor.bytes));
        check_cover(&tensors, data, file_bytes)
            .and_then(|()| check_names(&tensors))
            .map_err(|reason| refuse(file, reason))?;
        Ok(Self { tensors })
    }
}

/// Checks what can be checked of a tensor alone. `data` is where the data of the file begin.
fn place<'a>(name: Cow<'a, str>, info: &Info<'a>, data: u64) -> core::result::Result<Tensor<'a>, String> {
    let [begin, end] = info.data_offsets;
    let bytes = end.checked_sub(begin).ok_or_else(|| format!("tensor {name}: ends at {end}, before {begin}"))?;
    let offset = data.checked_add(begin).ok_or_else(|| format!("tensor {name}: begins at {begin}, beyond any file"))?;
    let sizes = &info.shape.sizes[..info.shape.count];
    let elements = sizes.iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
    let elements = elements.ok_or_else(|| format!("tensor {name}: the product of {sizes:?} overflows"))?;
    if elements == 0 || bytes == 0 {
        return Err(format!("tensor {name}: is empty"));
    }
    if let Some(size) = element_bytes(info.dtype)
        && elements.checked_mul(size) != Some(bytes)
    {
        return Err(format!("tensor {name}: {sizes:?} of {} do not fill {bytes} bytes", info.dtype));
    }
    let name_hash = xxh3_64(name.as_bytes());
    Ok(Tensor { name, name_hash, dtype: info.dtype, offset, bytes, shape: info.shape })
}

/// The size of an element, for the types of whole bytes that the format defines.
fn element_bytes(dtype: &str) -> Option<u64> {
    match dtype {
        "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => Some(1),
        "U16" | "I16" | "F16" | "BF16" => Some(2),
        "U32" | "I32" | "F32" => Some(4),
        "U64" | "I64" | "F64" | "C64" => Some(8),
        _ => None,
    }
}

/// Invariant 1, of tensors sorted by offset.
fn check_cover(tensors: &[Tensor<'_>], data: u64, file_bytes: u64) -> core::result::Result<(), String> {
    let mut covered = data;
    for tensor in tensors {
        let (name, begin) = (&tensor.name, tensor.offset);
        if begin < covered {
            return Err(format!("tensor {name}: begins at byte {begin}, inside a tensor that ends at {covered}"));
        }
        if begin > covered {
            return Err(format!("tensor {name}: begins at byte {begin}, after a gap from {covered} on"));
        }
        let end = begin.checked_add(tensor.bytes).filter(|end| *end <= file_bytes);
        covered = end.ok_or_else(|| {
            format!(
                "tensor {name}: {} bytes from {begin} on reach past the end of the file at {file_bytes}",
                tensor.bytes
            )
        })?;
    }
    if covered < file_bytes {
        return Err(format!("{} bytes after the last tensor belong to none", file_bytes - covered));
    }
    Ok(())
}

/// Invariant 3. Names are compared only where their hashes meet, which is far cheaper than sorting the names.
fn check_names(tensors: &[Tensor<'_>]) -> core::result::Result<(), String> {
    let mut order: Vec<(u64, &str)> = tensors.iter().map(|tensor| (tensor.name_hash, &*tensor.name)).collect();
    order.sort_unstable_by_key(|(hash, _)| *hash);
    for group in order.chunk_by(|left, right| left.0 == right.0).filter(|group| group.len() > 1) {
        let mut names: Vec<&str> = group.iter().map(|(_, name)| *name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("tensor {}: is described twice", pair[0]));
        }
    }
    Ok(())
}

/// The tensors of a header as written, without the free-form `__metadata__`.
struct Entries<'a>(Vec<(Cow<'a, str>, Info<'a>)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Info<'a> {
    dtype: &'a str,
    shape: Dimensions,
    data_offsets: [u64; 2],
}

/// A key, borrowed from the text unless it is escaped there.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        deserializer.deserialize_map(EntriesVisitor)
    }
}

struct EntriesVisitor;

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object that describes tensors")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> core::result::Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        let mut metadata = None;
        while let Some(Key(name)) = map.next_key()? {
            if name != "__metadata__" {
                let info = map.next_value();
                let info = info.map_err(|error| de::Error::custom(format_args!("tensor {name}: {error}")))?;
                entries.push((name, info));
            } else if metadata.replace(map.next_value::<IgnoredAny>()?).is_some() {
                return Err(de::Error::duplicate_field("__metadata__"));
            }
        }
        Ok(Entries(entries))
    }
}

/// The sizes of a tensor, held inline: there are half a million of them.
#[derive(Debug, Clone, Copy, Default)]
struct Dimensions {
    sizes: [u64; MOST_DIMENSIONS],
    count: usize,
}

impl<'de> Deserialize<'de> for Dimensions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        deserializer.deserialize_seq(DimensionsVisitor)
    }
}

struct DimensionsVisitor;

impl<'de> Visitor<'de> for DimensionsVisitor {
    type Value = Dimensions;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at most {MOST_DIMENSIONS} dimensions")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> core::result::Result<Dimensions, A::Error> {
        let mut dimensions = Dimensions::default();
        while let Some(size) = items.next_element()? {
            let slot = dimensions.sizes.get_mut(dimensions.count);
            *slot.ok_or_else(|| de::Error::invalid_length(MOST_DIMENSIONS + 1, &self))? = size;
            dimensions.count += 1;
        }
        Ok(dimensions)
    }
}
