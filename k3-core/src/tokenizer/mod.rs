//! Text to token ids and back, exactly as the released tokenizer does it.
//!
//! Encoding goes through four steps, each a hard boundary for the next:
//!
//! 1. `cuts`: the text is cut every 400,000 characters and in long runs.
//! 2. `specials`: in [`Mode::Special`], spellings of special tokens are taken out.
//! 3. `pieces`: what is left is split by the released pattern.
//! 4. `merge`: the bytes of each piece are merged into tokens by rank.
//!
//! Time is linear in the text, but for a logarithm in the length of a piece; no input makes it worse.

mod atoms;
mod classes;
mod cuts;
mod merge;
mod pieces;
mod printer;
mod ranks;
mod specials;
mod stream;
mod unicode;
mod vocabulary;

#[cfg(test)]
pub(crate) mod tests;

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

pub use cuts::PART_CHARS;
pub use printer::{Form, Printer};
pub use stream::Utf8Stream;

use merge::{Merger, Merges};
use pieces::pieces;
use ranks::Ranks;
use specials::{SPECIALS, Specials};
use vocabulary::Tokens;

use crate::{Error, Result};

/// The name of the file with the ranks of the base vocabulary.
pub const MODEL_FILE: &str = "tiktoken.model";

/// The name of the file with the special tokens.
pub const CONFIG_FILE: &str = "tokenizer_config.json";

/// What the spelling of a special token in a text means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The special token.
    Special,
    /// Nothing special. User text is always encoded so: `<|open|>` typed by a user opens nothing.
    Plain,
}

/// The tokenizer: the base vocabulary, and 256 special ids behind it.
#[derive(Debug)]
pub struct Tokenizer {
    merges: Merges,
    specials: Specials,
}

impl Tokenizer {
    /// Reads the contents of `tiktoken.model` and `tokenizer_config.json`.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] with the file, and the line where there is one, if either is not exactly of the released
    /// form: ranks from 0 up without gaps in the order of the lines, each token once, all single bytes, LF ends.
    pub fn new(model: &[u8], config: &[u8]) -> Result<Self> {
        let ranks = Ranks::new(Tokens::parse(model)?)?;
        let specials = Specials::new(config, ranks.tokens().len() as u32)?;
        Ok(Tokenizer { merges: Merges::new(ranks), specials })
    }

    /// The number of ids: the base vocabulary and the special ids.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.merges.ranks.tokens().len() + SPECIALS
    }

    /// Checks that a model with `vocabulary` ids was made for this tokenizer.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] if the number of ids differs.
    pub fn check_model(&self, vocabulary: usize) -> Result<()> {
        if self.vocabulary() == vocabulary {
            return Ok(());
        }
        let reason = format!(
            "{} tokens and {SPECIALS} special ids make {}, but the model has {vocabulary}",
            self.merges.ranks.tokens().len(),
            self.vocabulary()
        );
        Err(Error::Vocabulary { file: MODEL_FILE.to_string(), line: None, reason })
    }

    /// The ids of `text`. Each call stands alone: the ids of two texts are not in general those of the joined text.
    #[must_use]
    pub fn encode(&self, text: &str, mode: Mode) -> Vec<u32> {
        let mut ids = Vec::new();
        self.encode_into(text, mode, &mut ids);
        ids
    }

    /// Appends the ids of `text` to `ids`.
    pub fn encode_into(&self, text: &str, mode: Mode, ids: &mut Vec<u32>) {
        let mut merger = Merger::default();
        for stretch in cuts::stretches(text) {
            self.encode_stretch(stretch, mode, &mut merger, ids);
        }
    }

    /// Steps 2 to 4.
    fn encode_stretch(&self, text: &str, mode: Mode, merger: &mut Merger, ids: &mut Vec<u32>) {
        let mut at = 0;
        if mode == Mode::Special {
            while let Some((span, id)) = self.specials.find(text, at) {
                self.encode_plain(&text[at..span.start], merger, ids);
                ids.push(id);
                at = span.end;
            }
        }
        self.encode_plain(&text[at..], merger, ids);
    }

    /// Steps 3 and 4.
    fn encode_plain(&self, text: &str, merger: &mut Merger, ids: &mut Vec<u32>) {
        for piece in pieces(text) {
            merger.encode(&self.merges, text, piece, ids);
        }
    }

    /// The bytes of one id; of a special id, its spelling. They need not be whole characters.
    ///
    /// # Errors
    /// [`Error::TokenId`] if the id is outside the vocabulary.
    pub fn token(&self, id: u32) -> Result<&[u8]> {
        let special = || self.specials.spelling(id).map(str::as_bytes);
        let outside = Error::TokenId { id: id.into(), vocabulary: self.vocabulary() };
        self.merges.ranks.tokens().get(id).or_else(special).ok_or(outside)
    }

    /// The bytes of `ids`. They need not be UTF-8: a model may produce any ids. [`Utf8Stream`] makes text of them.
    ///
    /// # Errors
    /// [`Error::TokenId`] if an id is outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for &id in ids {
            bytes.extend_from_slice(self.token(id)?);
        }
        Ok(bytes)
    }

    /// The id of the special token with this spelling, if there is one.
    #[must_use]
    pub fn special_id(&self, spelling: &str) -> Option<u32> {
        self.specials.id(spelling)
    }

    /// The spelling of a special id; none for an ordinary id.
    #[must_use]
    pub fn special_spelling(&self, id: u32) -> Option<&str> {
        self.specials.spelling(id)
    }
}
