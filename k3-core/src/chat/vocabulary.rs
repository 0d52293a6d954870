//! The released vocabulary, for tests: the bytes of every token, and the ids of texts that are one token.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::cell::Cell;
use std::sync::OnceLock;

use super::segments::{SegmentEncoder, SegmentKind};
use super::turn::{TokenText, TurnTokens};
use crate::{Error, Result};

const FIRST_ADDED: u32 = 163_584;
const TOTAL: u32 = 163_840;

/// The added tokens that have names of their own.
const NAMED: [(u32, &str); 16] = [
    (163_584, "[BOS]"),
    (163_585, "[EOS]"),
    (163_586, "<|end_of_msg|>"),
    (163_587, "<|open|>"),
    (163_588, "<|close|>"),
    (163_589, "<|sep|>"),
    (163_590, "[start_header_id]"),
    (163_591, "[end_header_id]"),
    (163_593, "[EOT]"),
    (163_602, "<|media_begin|>"),
    (163_603, "<|media_content|>"),
    (163_604, "<|media_end|>"),
    (163_605, "<|media_pad|>"),
    (163_649, "<osagent_mode>"),
    (163_838, "[UNK]"),
    (163_839, "[PAD]"),
];

/// The released vocabulary. It decodes everything, and encodes only what is a single token.
pub struct Vocabulary {
    bytes: Vec<Vec<u8>>,
    ids: BTreeMap<Vec<u8>, u32>,
}

impl Vocabulary {
    pub fn released() -> &'static Vocabulary {
        static RELEASED: OnceLock<Vocabulary> = OnceLock::new();
        RELEASED.get_or_init(Vocabulary::unpack)
    }

    fn unpack() -> Vocabulary {
        let mut packed = splintr_vocab_kimi::KIMI_VOCAB_PACKED.strip_prefix(b"SPLNTRV1").expect("the magic");
        let count = u32::from_le_bytes(take(&mut packed, 4).try_into().expect("four bytes"));
        assert_eq!(count, FIRST_ADDED);
        let mut ids = BTreeMap::new();
        for _ in 0..count {
            let rank = varint(&mut packed);
            let length = varint(&mut packed);
            ids.insert(take(&mut packed, length as usize).to_vec(), rank);
        }
        let mut bytes: Vec<Vec<u8>> = (0..TOTAL).map(|id| format!("<|reserved_token_{id}|>").into_bytes()).collect();
        for (token, &id) in &ids {
            bytes[id as usize] = token.clone();
        }
        for (id, name) in NAMED {
            bytes[id as usize] = name.into();
        }
        Vocabulary { bytes, ids }
    }

    pub fn turn_tokens(&self) -> TurnTokens {
        TurnTokens::new(self).expect("the released tokens")
    }

    /// The ids of texts that are one token each; controls by their names.
    pub fn ids(&self, texts: &[&str]) -> Vec<u32> {
        texts
            .iter()
            .map(|text| self.single(text, text.starts_with("<|") || text.starts_with("[E")).expect(text))
            .collect()
    }

    fn single(&self, text: &str, control: bool) -> Option<u32> {
        let named = NAMED.iter().find(|(_, name)| control && *name == text).map(|(id, _)| *id);
        named.or_else(|| self.ids.get(text.as_bytes()).copied())
    }
}

fn take<'a>(packed: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, rest) = packed.split_at(length);
    *packed = rest;
    taken
}

fn varint(packed: &mut &[u8]) -> u32 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = take(packed, 1)[0];
        value |= u32::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    unreachable!("the loop has no end")
}

impl TokenText for Vocabulary {
    fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.bytes.get(id as usize).map(Vec::as_slice)
    }

    fn is_added(&self, id: u32) -> bool {
        (FIRST_ADDED..TOTAL).contains(&id)
    }
}

impl SegmentEncoder for Vocabulary {
    fn encode_segment(&self, text: &str, kind: SegmentKind, ids: &mut Vec<u32>) -> Result<()> {
        let id = self.single(text, kind == SegmentKind::Control);
        ids.push(id.ok_or_else(|| Error::Chat(format!("`{text}` is not one token")))?);
        Ok(())
    }
}

/// Hands out ids that are known already, segment by segment. Refuses a segment that ends inside a token, or whose kind does
/// not fit its tokens.
pub struct KnownIds<'a> {
    vocabulary: &'a Vocabulary,
    rest: Cell<&'a [u32]>,
}

impl<'a> KnownIds<'a> {
    pub fn new(vocabulary: &'a Vocabulary, ids: &'a [u32]) -> KnownIds<'a> {
        KnownIds { vocabulary, rest: Cell::new(ids) }
    }
}

impl SegmentEncoder for KnownIds<'_> {
    fn encode_segment(&self, text: &str, kind: SegmentKind, ids: &mut Vec<u32>) -> Result<()> {
        let refusal = || Error::Chat(format!("`{text}` is not what the next ids spell"));
        let mut missing = text.as_bytes();
        while !missing.is_empty() {
            let (&id, rest) = self.rest.get().split_first().ok_or_else(refusal)?;
            missing = missing.strip_prefix(&self.vocabulary.bytes[id as usize][..]).ok_or_else(refusal)?;
            if self.vocabulary.is_added(id) != (kind == SegmentKind::Control) {
                return Err(refusal());
            }
            ids.push(id);
            self.rest.set(rest);
        }
        Ok(())
    }
}
