//! JSON values as the released encoder sees them.
//!
//! The encoder is written in Python, and what it prints into the prompt is what Python's `json` reads and writes: objects
//! keep their order, integers of any size keep every digit, `3.0` stays `3.0`, and `1e5` becomes `100000.0`.
//! `serde_json::Value` keeps none of these without switches that would change every other JSON file this crate reads.

mod parse;
mod write;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use parse::Parser;
pub use write::Style;
pub(super) use write::array_text;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number without fraction or exponent: its digits, with a leading `-` if negative and never `-0`.
    Integer(String),
    /// Any other number, and Python's `NaN`, `Infinity` and `-Infinity`.
    Float(f64),
    /// A string.
    String(String),
    /// A list.
    Array(Vec<Json>),
    /// Keys and values in the order written; no key twice.
    Object(Vec<(String, Json)>),
}

/// Why a text is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyntaxError {
    /// Where it went wrong, in bytes from the start.
    pub at: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {}", self.expected, self.at)
    }
}

impl Json {
    /// Reads what Python's `json.loads` reads: JSON, plus `NaN` and the infinities. Of a key written twice the last value
    /// counts, in the first place. A lone surrogate, which no Rust string can hold, becomes U+FFFD, as it does in the
    /// released tokenizer.
    ///
    /// # Errors
    /// [`SyntaxError`] if the text is not one JSON value, or is nested more than 512 deep.
    pub fn parse(text: &str) -> Result<Json, SyntaxError> {
        Parser::new(text).document()
    }

    /// The name of the value's type, as the `type` attribute of an argument spells it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Integer(_) | Json::Float(_) => "number",
            Json::String(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    /// The value of `key`, if this is an object that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }
}

/// An object from its entries as written: the last value of each key, in the place of the first.
pub(super) fn object(entries: Vec<(String, Json)>) -> Json {
    let mut places = BTreeMap::new();
    let mut unique: Vec<(String, Json)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match places.get(&key) {
            Some(&place) => {
                let (_, earlier): &mut (String, Json) = &mut unique[place];
                *earlier = value;
            }
            None => {
                places.insert(key.clone(), unique.len());
                unique.push((key, value));
            }
        }
    }
    Json::Object(unique)
}

impl<'de> Deserialize<'de> for Json {
    /// Works under `serde_json` only, which hands over the raw text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Json::parse(raw.get()).map_err(|error| serde::de::Error::custom(error.to_string()))
    }
}

#[cfg(test)]
mod tests;
