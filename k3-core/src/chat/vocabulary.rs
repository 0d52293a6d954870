//! The released tokenizer, for tests, and the ids of texts that are one token.

use alloc::vec::Vec;

use super::turn::TurnTokens;
use crate::tokenizer::{Mode, Tokenizer};

/// The released tokenizer.
pub fn released() -> &'static Tokenizer {
    &crate::tokenizer::tests::TOKENIZER
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
