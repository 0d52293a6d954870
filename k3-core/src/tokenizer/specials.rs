//! The special tokens: 256 ids behind the base vocabulary, each with a spelling.
//!
//! `tokenizer_config.json` names some of them; every other id `n` is spelled `<|reserved_token_n|>`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};

use super::CONFIG_FILE;
use crate::{Error, Result};

/// How many special ids follow the base vocabulary.
pub(super) const SPECIALS: usize = 256;

/// The spellings of all special ids.
///
/// Invariant 1: no spelling is empty or the beginning of another, so at most one matches at a place in a text.
#[derive(Debug)]
pub(super) struct Specials {
    /// The first special id.
    base: u32,
    /// By id, from `base` on.
    spellings: Vec<String>,
    /// Indices into `spellings`, in the order of the spellings.
    sorted: Vec<u8>,
    /// Whether a spelling begins with this byte.
    first_bytes: [bool; 256],
}

impl Specials {
    /// Reads the config; the first special id is `base`.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if the config is not understood, names an id that is not special, or spells two ids so that
    /// a text could mean either.
    pub(super) fn new(config: &[u8], base: u32) -> Result<Specials> {
        let config: Config = serde_json::from_slice(config).map_err(|error| refuse(error.to_string()))?;
        let mut spellings: Vec<String> =
            (0..SPECIALS as u32).map(|i| format!("<|reserved_token_{}|>", base + i)).collect();
        let mut named = [false; SPECIALS];
        for (id, spelling) in config.added_tokens_decoder.0 {
            let index = special_index(&id, base).map_err(|reason| in_field(&id, &reason))?;
            if core::mem::replace(&mut named[index], true) {
                return Err(in_field(&id, "the id is named twice"));
            }
            if spelling.is_empty() {
                return Err(in_field(&id, "the content is empty"));
            }
            spellings[index] = spelling;
        }
        Specials::sort(base, spellings)
    }

    /// Establishes invariant 1.
    fn sort(base: u32, spellings: Vec<String>) -> Result<Specials> {
        let mut sorted: Vec<u8> = (0..=u8::MAX).collect();
        sorted.sort_by_key(|&index| &spellings[usize::from(index)]);
        for pair in sorted.windows(2) {
            let [shorter, longer] = [pair[0], pair[1]].map(|index| &spellings[usize::from(index)]);
            if longer.starts_with(shorter.as_str()) {
                let ids = [pair[0], pair[1]].map(|index| base + u32::from(index));
                let reason = format!("{shorter:?} ({}) is the beginning of {longer:?} ({})", ids[0], ids[1]);
                return Err(in_field(&ids[1].to_string(), &reason));
            }
        }
        let mut first_bytes = [false; 256];
        for spelling in &spellings {
            first_bytes[usize::from(spelling.as_bytes()[0])] = true;
        }
        Ok(Specials { base, spellings, sorted, first_bytes })
    }

    /// The spelling of a special id.
    pub(super) fn spelling(&self, id: u32) -> Option<&str> {
        let index = id.checked_sub(self.base)? as usize;
        self.spellings.get(index).map(String::as_str)
    }

    /// The special id spelled so.
    pub(super) fn id(&self, spelling: &str) -> Option<u32> {
        let (id, length) = self.at(spelling.as_bytes())?;
        (length == spelling.len()).then_some(id)
    }

    /// The first special spelling in `text` from byte `from` on, with its id.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<(Range<usize>, u32)> {
        let bytes = text.as_bytes();
        let mut at = from;
        loop {
            at += bytes[at..].iter().position(|&byte| self.first_bytes[usize::from(byte)])?;
            if let Some((id, length)) = self.at(&bytes[at..]) {
                return Some((at..at + length, id));
            }
            at += 1;
        }
    }

    /// The special token with which `text` begins: its id and its length in bytes.
    ///
    /// A spelling that `text` begins with sorts at or before `text`, and by invariant 1 no other sorts between.
    fn at(&self, text: &[u8]) -> Option<(u32, usize)> {
        let spelling = |index: u8| self.spellings[usize::from(index)].as_bytes();
        let not_after = self.sorted.partition_point(|&index| spelling(index) <= text);
        let index = self.sorted[not_after.checked_sub(1)?];
        text.starts_with(spelling(index)).then(|| (self.base + u32::from(index), spelling(index).len()))
    }
}

/// The index of a special id written in decimal.
fn special_index(id: &str, base: u32) -> core::result::Result<usize, String> {
    let number: u32 = id.parse().map_err(|_| "the id is not a number".to_string())?;
    if number.to_string() != id {
        return Err("the id is not written in plain digits".to_string());
    }
    let index = number.checked_sub(base).map(|index| index as usize).filter(|&index| index < SPECIALS);
    index.ok_or_else(|| format!("special ids are {base} to {}", base as usize + SPECIALS - 1))
}

/// What is read of `tokenizer_config.json`.
#[derive(Deserialize)]
struct Config {
    added_tokens_decoder: AddedTokens,
}

/// Ids and spellings in the order of the file; repeated ids are kept, so that they can be refused.
struct AddedTokens(Vec<(String, String)>);

#[derive(Deserialize)]
struct AddedToken {
    content: String,
}

impl<'de> Deserialize<'de> for AddedTokens {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = AddedTokens;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map of ids to added tokens")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> core::result::Result<AddedTokens, A::Error> {
                let mut entries = Vec::new();
                while let Some((id, token)) = map.next_entry::<String, AddedToken>()? {
                    entries.push((id, token.content));
                }
                Ok(AddedTokens(entries))
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

fn in_field(id: &str, reason: &str) -> Error {
    refuse(format!("added_tokens_decoder.{id}: {reason}"))
}

fn refuse(reason: String) -> Error {
    Error::Vocabulary { file: CONFIG_FILE.to_string(), line: None, reason }
}
