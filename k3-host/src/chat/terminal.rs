//! Lines from somebody at a terminal, with editing and recall.

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::input::{Entry, Input, Place};
use crate::failure::{Failure, Outcome};

/// A line editor.
#[derive(Debug)]
pub struct TerminalInput {
    editor: DefaultEditor,
}

impl TerminalInput {
    /// An editor that recalls `earlier`, oldest first.
    ///
    /// # Errors
    /// If there is no terminal.
    pub fn new<'a>(earlier: impl Iterator<Item = &'a str>) -> Outcome<Self> {
        let mut input = Self { editor: DefaultEditor::new().map_err(Failure::failed)? };
        earlier.for_each(|message| input.remember(message));
        Ok(input)
    }
}

impl Input for TerminalInput {
    fn next(&mut self, place: Place) -> Outcome<Entry> {
        let prompt = match place {
            Place::First => "> ",
            Place::Continued => ". ",
        };
        match self.editor.readline(prompt) {
            Ok(line) => Ok(Entry::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Entry::Interrupted),
            Err(ReadlineError::Eof) => Ok(Entry::End),
            Err(error) => Err(Failure::failed(error)),
        }
    }

    fn remember(&mut self, message: &str) {
        // Recall is a convenience; what does not fit into it is still asked.
        let _ = self.editor.add_history_entry(message);
    }

    fn is_attended(&self) -> bool {
        true
    }
}
