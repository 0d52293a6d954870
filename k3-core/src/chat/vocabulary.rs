//! The released tokenizer, for tests, and the ids of texts that are one token.

use alloc::format;
use alloc::vec::Vec;
use std::sync::OnceLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::turn::TurnTokens;
use crate::tokenizer::{Mode, Tokenizer};

/// The released tokenizer.
pub fn released() -> &'static Tokenizer {
    static RELEASED: OnceLock<Tokenizer> = OnceLock::new();
    RELEASED.get_or_init(|| {
        let config = include_bytes!("../../../fixtures/tokenizer/tokenizer_config.json");
        Tokenizer::new(&unpack(splintr_vocab_kimi::KIMI_VOCAB_PACKED), config).expect("the released files")
    })
}

/// What tests ask of it.
pub trait ReleasedTokens {
    /// The ids of texts that are one token each; controls by their spellings.
    fn ids(&self, texts: &[&str]) -> Vec<u32>;

    /// The ids that give a turn its form.
    fn turn_tokens(&self) -> TurnTokens;
}

impl ReleasedTokens for Tokenizer {
    fn ids(&self, texts: &[&str]) -> Vec<u32> {
        let single = |text: &&str| match self.encode(text, Mode::Special)[..] {
            [id] => id,
            _ => panic!("`{text}` is not one token"),
        };
        texts.iter().map(single).collect()
    }

    fn turn_tokens(&self) -> TurnTokens {
        TurnTokens::new(self).expect("the released tokens")
    }
}

/// The lines of `tiktoken.model` from the packed vocabulary: a magic, a count, then the rank, the length and the bytes of
/// every token, in the order of ranks.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut rest = packed.strip_prefix(b"SPLNTRV1").and_then(|rest| rest.get(4..)).expect("the magic and a count");
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let rank = varint(&mut rest);
        let length = varint(&mut rest) as usize;
        let (token, after) = rest.split_at(length);
        lines.extend_from_slice(format!("{} {rank}\n", STANDARD.encode(token)).as_bytes());
        rest = after;
    }
    lines
}

fn varint(packed: &mut &[u8]) -> u32 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (&byte, rest) = packed.split_first().expect("a whole number");
        *packed = rest;
        value |= u32::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return value;
        }
    }
    unreachable!("the loop has no end")
}
