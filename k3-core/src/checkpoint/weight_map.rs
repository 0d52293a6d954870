//! `model.safetensors.index.json`: which shard holds which tensor.
//!
//! The released index is 60 MB of text, nearly all of it names that the headers of the shards repeat. So no names are
//! kept: per shard their number and the sum of their hashes, which does not depend on their order, are enough to see
//! that index and header agree. Only where they do not are the names of that shard collected, by a second reading.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use super::names::Name;

/// The most shards that are believed, and that a shard number has room for.
const MOST_FILES: usize = u16::MAX as usize;
/// The longest file name that is believed.
const MOST_NAME_BYTES: usize = 255;

/// What the index says of one shard.
#[derive(Debug)]
pub struct Shard {
    /// The file name, without any path.
    pub file: String,
    /// The names in it.
    pub names: NameSum,
    /// The first tensor of the text model in it: those outside the layers first, then by layer.
    pub first: Option<Name>,
}

/// A set of names, reduced to what is needed to tell it from another that was not made to deceive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NameSum {
    /// How many names there are.
    pub count: u64,
    sum: u64,
}

impl NameSum {
    /// Adds the name whose hash is `hash`.
    pub fn add(&mut self, hash: u64) {
        self.count += 1;
        self.sum = self.sum.wrapping_add(hash);
    }
}

/// Reads the shards of an index, in the order in which it first names them.
pub struct Shards;

impl<'de> DeserializeSeed<'de> for Shards {
    type Value = Vec<Shard>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Shard>, D::Error> {
        let mut collector = Collector::default();
        deserializer.deserialize_map(Index(|tensor: &str, file: &str| collector.add(tensor, file)))?;
        Ok(collector.shards)
    }
}

/// Reads the names that an index gives to one shard, sorted.
pub struct NamesIn<'f>(
    /// The file name of the shard.
    pub &'f str,
);

impl<'de> DeserializeSeed<'de> for NamesIn<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        let mut names = Vec::new();
        deserializer.deserialize_map(Index(|tensor: &str, file: &str| {
            if file == self.0 {
                names.push(tensor.to_string());
            }
            Ok(())
        }))?;
        names.sort_unstable();
        Ok(names)
    }
}

#[derive(Default)]
struct Collector {
    shards: Vec<Shard>,
    numbers: BTreeMap<String, usize>,
    latest: usize,
}

impl Collector {
    fn add(&mut self, tensor: &str, file: &str) -> Result<(), &'static str> {
        let name = Name::parse(tensor);
        if name == Name::Unknown {
            return Err("is not a tensor of this kind of model");
        }
        let number = self.number(file)?;
        let shard = &mut self.shards[number];
        shard.names.add(xxh3_64(tensor.as_bytes()));
        if name != Name::Vision {
            shard.first = shard.first.into_iter().chain([name]).min_by_key(|name| (name.layer(), *name));
        }
        Ok(())
    }

    fn number(&mut self, file: &str) -> Result<usize, &'static str> {
        // Neighbours in the index mostly lie in the same shard.
        if self.shards.get(self.latest).is_none_or(|shard| shard.file != file) {
            self.latest = match self.numbers.get(file) {
                Some(number) => *number,
                None => self.append(file)?,
            };
        }
        Ok(self.latest)
    }

    fn append(&mut self, file: &str) -> Result<usize, &'static str> {
        if !is_bare_file_name(file) {
            return Err("is in a file whose name is not that of a file beside the index");
        }
        let number = self.shards.len();
        if number == MOST_FILES {
            return Err("is in one shard more than is believed");
        }
        self.numbers.insert(file.to_string(), number);
        self.shards.push(Shard { file: file.to_string(), names: NameSum::default(), first: None });
        Ok(number)
    }
}

/// Whether a name from an untrusted index can only mean a file in the folder of the index, on any system.
fn is_bare_file_name(file: &str) -> bool {
    file.len() <= MOST_NAME_BYTES
        && file.ends_with(".safetensors")
        && !file.contains(|character: char| matches!(character, '/' | '\\' | ':') || character.is_control())
}

/// Calls a function for each tensor and its file.
struct Index<F>(F);

impl<'de, F: FnMut(&str, &str) -> Result<(), &'static str>> Visitor<'de> for Index<F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with a weight_map")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let mut found = false;
        while let Some(Text(key)) = map.next_key()? {
            if key != "weight_map" {
                map.next_value::<IgnoredAny>()?;
            } else if found {
                return Err(de::Error::duplicate_field("weight_map"));
            } else {
                map.next_value_seed(Map(&mut self.0))?;
                found = true;
            }
        }
        if found { Ok(()) } else { Err(de::Error::missing_field("weight_map")) }
    }
}

struct Map<'f, F>(&'f mut F);

impl<'de, F: FnMut(&str, &str) -> Result<(), &'static str>> DeserializeSeed<'de> for Map<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, &str) -> Result<(), &'static str>> Visitor<'de> for Map<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object from tensor names to file names")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(Text(tensor)) = map.next_key()? {
            let Text(file) = map.next_value()?;
            let named = (self.0)(&tensor, &file);
            named
                .map_err(|reason| de::Error::custom(format_args!("weight_map: tensor {tensor} {reason} ({file:?})")))?;
        }
        Ok(())
    }
}

/// A string, borrowed from the input where that is possible.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
