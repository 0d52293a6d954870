//! What reading a generated turn needs to know of the tokenizer.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::chat::segments::{
    CLOSE, END_OF_MESSAGE, OPEN, SEPARATOR, SegmentEncoder, SegmentKind, SegmentWriter, encode,
};
use crate::{Error, Result};

/// The token with which the released model ends its turns, though its config names `<|end_of_msg|>`.
const END_OF_TEXT: &str = "[EOS]";

/// A tokenizer, as far as reading a turn needs one.
pub trait TokenText {
    /// The bytes that the token stands for, which need not be whole characters; of an added token its spelling. None if
    /// there is no such token.
    fn token_bytes(&self, id: u32) -> Option<&[u8]>;

    /// Whether the token is an added one: control or reserved.
    fn is_added(&self, id: u32) -> bool;
}

/// The ids that give a turn its form. In parentheses the ids of the released tokenizer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnTokens {
    /// `<|open|>` (163587)
    pub open: u32,
    /// `<|close|>` (163588)
    pub close: u32,
    /// `<|sep|>` (163589)
    pub separator: u32,
    /// `<|end_of_msg|>` (163586), which the format puts at the end of a message.
    pub end_of_message: u32,
    /// `[EOS]` (163585), which the model puts there.
    pub end_of_text: u32,
    /// What stands between reasoning and content.
    pub(super) reasoning_end: Vec<u32>,
    /// What stands between content and the token that ends the turn.
    pub(super) content_end: Vec<u32>,
}

impl TurnTokens {
    /// Asks a tokenizer for the ids.
    ///
    /// # Errors
    /// [`Error::Chat`] if it spells a control token with more than one token, and any error of the tokenizer.
    pub fn new(encoder: &dyn SegmentEncoder) -> Result<TurnTokens> {
        let mut reasoning_end = SegmentWriter::default();
        reasoning_end.close("think");
        reasoning_end.open("response", &[]);
        let mut content_end = SegmentWriter::default();
        content_end.close("response");
        content_end.close("message");
        Ok(TurnTokens {
            open: control_id(encoder, OPEN)?,
            close: control_id(encoder, CLOSE)?,
            separator: control_id(encoder, SEPARATOR)?,
            end_of_message: control_id(encoder, END_OF_MESSAGE)?,
            end_of_text: control_id(encoder, END_OF_TEXT)?,
            reasoning_end: encode(&reasoning_end.segments, encoder)?,
            content_end: encode(&content_end.segments, encoder)?,
        })
    }

    /// Whether generation stops at this token.
    #[must_use]
    pub fn ends_turn(&self, id: u32) -> bool {
        id == self.end_of_message || id == self.end_of_text
    }
}

fn control_id(encoder: &dyn SegmentEncoder, spelling: &str) -> Result<u32> {
    let mut ids = Vec::new();
    encoder.encode_segment(spelling, SegmentKind::Control, &mut ids)?;
    match ids[..] {
        [id] => Ok(id),
        _ => Err(Error::Chat(format!("the tokenizer has no token `{spelling}`"))),
    }
}

/// The text of tokens; none if one does not exist or they are no whole characters.
pub(super) fn text_of(ids: &[u32], tokens: &dyn TokenText) -> Option<String> {
    String::from_utf8(bytes_of(ids, tokens)?).ok()
}

fn bytes_of(ids: &[u32], tokens: &dyn TokenText) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for &id in ids {
        bytes.extend_from_slice(tokens.token_bytes(id)?);
    }
    Some(bytes)
}
