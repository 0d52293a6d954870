//! What a run prints: ids at the end, or text as it comes.

use std::io::Write;

use anyhow::Context;
use k3_core::tokenizer::{Tokenizer, Utf8Stream};

use crate::failure::{Failure, Outcome};

/// Whether what is generated is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Printing {
    /// It is.
    On,
    /// Something else is.
    Off,
}

/// Text that is generated, printed as soon as its characters are whole. The ids that end it are no part of it.
#[derive(Debug)]
pub struct TextOutput<'a> {
    tokenizer: &'a Tokenizer,
    end_ids: &'a [u32],
    printing: Printing,
    stream: Utf8Stream,
    text: String,
}

impl<'a> TextOutput<'a> {
    /// No text yet.
    #[must_use]
    pub fn new(tokenizer: &'a Tokenizer, end_ids: &'a [u32], printing: Printing) -> Self {
        Self { tokenizer, end_ids, printing, stream: Utf8Stream::new(), text: String::new() }
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

    /// Prints what is left and a line feed, and returns the whole text.
    ///
    /// # Errors
    /// If it cannot be printed.
    pub fn finish(mut self) -> Outcome<String> {
        let piece = self.stream.finish_text();
        self.add(&piece)?;
        if self.printing == Printing::On {
            print("\n")?;
        }
        Ok(self.text)
    }

    fn add(&mut self, piece: &str) -> Outcome {
        self.text.push_str(piece);
        if self.printing == Printing::On { print(piece) } else { Ok(()) }
    }
}

/// Prints at once.
///
/// # Errors
/// If standard output cannot be written to.
pub fn print(text: &str) -> Outcome {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.context("cannot write to standard output").map_err(Failure::not_written)
}
