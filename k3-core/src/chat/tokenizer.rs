//! The tokenizer as the chat format needs it: segments into ids, and ids into the text of a turn.

use alloc::vec::Vec;

use super::segments::{SegmentEncoder, SegmentKind};
use super::turn::TokenText;
use crate::Result;
use crate::tokenizer::{Mode, Tokenizer};

impl SegmentEncoder for Tokenizer {
    fn encode_segment(&self, text: &str, kind: SegmentKind, ids: &mut Vec<u32>) -> Result<()> {
        let mode = match kind {
            SegmentKind::Control => Mode::Special,
            SegmentKind::Text => Mode::Plain,
        };
        self.encode_into(text, mode, ids);
        Ok(())
    }
}

impl TokenText for Tokenizer {
    fn token_bytes(&self, id: u32) -> Option<&[u8]> {
        self.token(id).ok()
    }

    fn is_added(&self, id: u32) -> bool {
        self.special_spelling(id).is_some()
    }
}
