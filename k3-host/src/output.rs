//! What a run prints: ids at the end, or text as it comes.

use std::io::Write;

use anyhow::Context;
use k3_core::tokenizer::{Tokenizer, Utf8Stream};

use crate::failure::{Failure, Outcome};

/// Standard output, or what stands in for it.
pub type Output = dyn Write + Send;

/// Text that is generated, printed as soon as its characters are whole. The ids that end it are no part of it.
pub struct TextOutput<'a> {
    tokenizer: &'a Tokenizer,
    end_ids: &'a [u32],
    output: Option<&'a mut Output>,
    stream: Utf8Stream,
    text: String,
}

impl<'a> TextOutput<'a> {
    /// No text yet. It is not printed if there is no output.
    #[must_use]
    pub fn new(tokenizer: &'a Tokenizer, end_ids: &'a [u32], output: Option<&'a mut Output>) -> Self {
        Self { tokenizer, end_ids, output, stream: Utf8Stream::new(), text: String::new() }
    }

    /// Adds the text of an id.
    ///
    /// # Errors
    /// If the tokenizer has no such id, or the text cannot be printed.
    pub fn push(&mut self, id: u32) -> Outcome {
        if self.end_ids.contains(&id) {
            return Ok(());
        }
        let piece = self.stream.push_text(self.tokenizer.token(id)?);
        self.add(&piece)
    }

    /// Prints what is left, and a line feed.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn finish(&mut self) -> Outcome {
        let piece = self.stream.finish_text();
        self.add(&piece)?;
        self.output.as_deref_mut().map_or(Ok(()), |output| print(output, "\n"))
    }

    /// The text that was added.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn add(&mut self, piece: &str) -> Outcome {
        self.text.push_str(piece);
        self.output.as_deref_mut().map_or(Ok(()), |output| print(output, piece))
    }
}

/// Prints at once.
///
/// # Errors
/// If `output` cannot be written to.
pub fn print(output: &mut Output, text: &str) -> Outcome {
    let written = output.write_all(text.as_bytes()).and_then(|()| output.flush());
    written.context("cannot write to standard output").map_err(Failure::not_written)
}
