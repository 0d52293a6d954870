//! The fields of a manifest as they are written. A value that cannot be read is reported with the name of its field.

use alloc::borrow::Cow;
use alloc::format;
use core::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::checkpoint::names::{Name, Part, TensorId};

/// A hash of 64 bits, written as 16 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hash(pub u64);

impl fmt::Display for Hash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016x}", self.0)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, output: S) -> Result<S::Ok, S::Error> {
        output.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(input)?;
        let is_spelled_so = text.len() == 16 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let hash = u64::from_str_radix(&text, 16).ok().filter(|_| is_spelled_so);
        hash.map(Self).ok_or_else(|| D::Error::custom(format!("{text:?} is not 16 hexadecimal digits")))
    }
}

/// Reads the values of fields.
macro_rules! fields {
    ($($field:ident),*) => {
        $(pub(super) fn $field<'de, D: Deserializer<'de>, T: Deserialize<'de>>(input: D) -> Result<T, D::Error> {
            T::deserialize(input).map_err(|error| D::Error::custom(format!("{}: {error}", stringify!($field))))
        })*
    };
}

fields!(format, encoding, checkpoint, runs, outside, layers, first_row, rows, columns, offset, bytes, xxh3);

pub(super) fn tensor<'de, D: Deserializer<'de>>(input: D) -> Result<TensorId, D::Error> {
    let error = |reason| D::Error::custom(format!("tensor: {reason}"));
    let text = Cow::<str>::deserialize(input).map_err(|reason| error(format!("{reason}")))?;
    match Name::parse(&text) {
        // Only the name of the release.
        Name::Text(id, Part::Plain) if format!("{id}") == *text => Ok(id),
        _ => Err(error(format!("{text:?} is no tensor of a trunk"))),
    }
}

pub(super) fn write_tensor<S: Serializer>(id: &TensorId, output: S) -> Result<S::Ok, S::Error> {
    output.collect_str(id)
}
