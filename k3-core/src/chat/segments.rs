//! Segments: the pieces of a rendered conversation, each encoded on its own.
//!
//! A conversation is not one string, for two reasons. A byte-pair merge must not cross the edge between markup and text,
//! and what a user types must never become a control token however it is spelled. So rendering yields segments, and joining
//! two neighbours before encoding would change ids: ` role` and `="` are two segments and two tokens.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Result;

pub(super) const OPEN: &str = "<|open|>";
pub(super) const CLOSE: &str = "<|close|>";
pub(super) const SEPARATOR: &str = "<|sep|>";
pub(super) const END_OF_MESSAGE: &str = "<|end_of_msg|>";

/// A piece of a rendered conversation; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The text.
    pub text: String,
    /// How to encode it.
    pub kind: SegmentKind,
}

/// How a segment is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// Spellings of control tokens become those tokens.
    Control,
    /// Spellings of control tokens are ordinary text.
    Text,
}

/// A tokenizer, as far as rendering needs one.
pub trait SegmentEncoder {
    /// Appends the ids of `text` to `ids`.
    ///
    /// # Errors
    /// Whatever the tokenizer refuses.
    fn encode_segment(&self, text: &str, kind: SegmentKind, ids: &mut Vec<u32>) -> Result<()>;
}

/// The ids of a rendered conversation: those of each segment, joined.
///
/// # Errors
/// Those of `encoder`.
pub fn encode(segments: &[Segment], encoder: &dyn SegmentEncoder) -> Result<Vec<u32>> {
    let mut ids = Vec::new();
    for segment in segments {
        encoder.encode_segment(&segment.text, segment.kind, &mut ids)?;
    }
    Ok(ids)
}

/// The markup around a segment of text: elements that open with a tag and attributes, and close with the tag.
#[derive(Debug, Default)]
pub(super) struct SegmentWriter {
    pub(super) segments: Vec<Segment>,
}

impl SegmentWriter {
    pub(super) fn push(&mut self, text: &str, kind: SegmentKind) {
        if !text.is_empty() {
            self.segments.push(Segment { text: text.into(), kind });
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        self.push(text, SegmentKind::Text);
    }

    fn control(&mut self, text: &str) {
        self.push(text, SegmentKind::Control);
    }

    /// An opening tag. Each attribute is four segments: its key, `="`, its value, `"`.
    pub(super) fn open(&mut self, tag: &str, attributes: &[(&str, &str)]) {
        self.control(OPEN);
        self.text(tag);
        for (key, value) in attributes {
            self.text(&alloc::format!(" {key}"));
            self.text("=\"");
            self.text(&value.replace('&', "&amp;").replace('"', "&quot;"));
            self.text("\"");
        }
        self.control(SEPARATOR);
    }

    pub(super) fn close(&mut self, tag: &str) {
        self.control(CLOSE);
        self.text(tag);
        self.control(SEPARATOR);
    }

    /// The end of a message: its closing tag and the token after it.
    pub(super) fn end_message(&mut self) {
        self.close("message");
        self.control(END_OF_MESSAGE);
    }
}
