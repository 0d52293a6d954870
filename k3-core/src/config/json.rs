//! A JSON tree that refuses what `serde_json::Value` lets pass: a key given twice, and an integer rounded through a double.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// The keys of an object with their values.
pub(super) type Object = BTreeMap<String, Json>;

/// A JSON value. Whole numbers written without point or exponent are exact.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Integer(i128),
    Float(f64),
    Text(String),
    Array(Vec<Json>),
    Object(Object),
}

impl Json {
    /// Reads one value that fills `bytes`.
    ///
    /// # Errors
    /// The path of the value at fault and what is wrong with it: not JSON, a key twice, a number out of range.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut path = String::new();
        let mut input = serde_json::Deserializer::from_slice(bytes);
        let value = Tree { path: &mut path }.deserialize(&mut input).and_then(|value| input.end().map(|()| value));
        value.map_err(|error| if path.is_empty() { error.to_string() } else { format!("{path}: {error}") })
    }

    /// What kind of value this is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a switch",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a fraction",
            Self::Text(_) => "a string",
            Self::Array(_) => "a list",
            Self::Object(_) => "an object",
        }
    }
}

/// For messages; long values are named by their kind alone.
impl fmt::Display for Json {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(formatter, "{value}"),
            Self::Integer(value) => write!(formatter, "{value}"),
            Self::Float(value) => write!(formatter, "{value:e}"),
            Self::Text(value) if value.len() <= 64 => write!(formatter, "{value:?}"),
            other => formatter.write_str(other.kind()),
        }
    }
}

/// Builds a tree. After a failure, `path` names the value that was being read.
struct Tree<'p> {
    path: &'p mut String,
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Json;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(Tree { path: &mut *self.path })? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        let parent = self.path.len();
        while let Some(key) = entries.next_key::<String>()? {
            if parent > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            let value = entries.next_value_seed(Tree { path: &mut *self.path })?;
            if object.insert(key, value).is_some() {
                return Err(de::Error::custom("given twice"));
            }
            self.path.truncate(parent);
        }
        Ok(Json::Object(object))
    }
}
