//! Where lines come from.

use std::io::BufRead;

use k3_core::chat::history::MAX_LINE_BYTES;

use crate::failure::{Failure, Outcome};

/// What came from the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A line, without its end.
    Line(String),
    /// The line that was being typed was given up.
    Interrupted,
    /// There are no more lines.
    End,
}

/// Whether a line begins a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It does.
    First,
    /// It goes on with one.
    Continued,
}

/// Gives lines.
pub trait Input {
    /// The next line.
    ///
    /// # Errors
    /// If it cannot be read.
    fn next(&mut self, place: Place) -> Outcome<Entry>;

    /// Keeps a message to hand, so that it need not be typed again.
    fn remember(&mut self, message: &str);

    /// Whether there is somebody to read of a failure and to go on after it.
    fn is_attended(&self) -> bool;
}

/// Lines from a pipe or a file.
#[derive(Debug)]
pub struct PipedInput<R> {
    reader: R,
    line: usize,
}

impl<R: BufRead> PipedInput<R> {
    /// The lines of `reader`.
    pub fn new(reader: R) -> Self {
        Self { reader, line: 0 }
    }

    fn refused(&self, reason: impl std::fmt::Display) -> Failure {
        Failure::refused(format!("standard input, line {}: {reason}", self.line))
    }
}

impl<R: BufRead> Input for PipedInput<R> {
    fn next(&mut self, _: Place) -> Outcome<Entry> {
        let mut bytes = Vec::new();
        self.line += 1;
        let mut limited = std::io::Read::take(&mut self.reader, MAX_LINE_BYTES as u64 + 1);
        let read = limited.read_until(b'\n', &mut bytes).map_err(|error| self.refused(error))?;
        if read == 0 {
            return Ok(Entry::End);
        }
        if bytes.pop_if(|byte| *byte == b'\n').is_some() {
            bytes.pop_if(|byte| *byte == b'\r');
        } else if read > MAX_LINE_BYTES {
            return Err(self.refused(format!("longer than {MAX_LINE_BYTES} bytes")));
        }
        let line = String::from_utf8(bytes)
            .map_err(|error| self.refused(format!("not UTF-8 after byte {}", error.utf8_error().valid_up_to())))?;
        Ok(Entry::Line(line))
    }

    fn remember(&mut self, _: &str) {}

    fn is_attended(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (Vec<String>, Outcome<Entry>) {
        let mut input = PipedInput::new(bytes);
        let mut lines = Vec::new();
        loop {
            match input.next(Place::First) {
                Ok(Entry::Line(line)) => lines.push(line),
                end => return (lines, end),
            }
        }
    }

    #[test]
    fn lines_lose_their_ends_alone() {
        let (lines, end) = read(" a \r\n\nb\rc\n\u{e9}".as_bytes());
        assert_eq!(lines, [" a ", "", "b\rc", "\u{e9}"]);
        assert_eq!(end.unwrap(), Entry::End);
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let (lines, end) = read(b"a\nbc\xffd\n");
        assert_eq!(lines, ["a"]);
        assert_eq!(end.unwrap_err().error.to_string(), "standard input, line 2: not UTF-8 after byte 2");
        let (_, end) = read(&vec![b'a'; MAX_LINE_BYTES + 1]);
        assert!(end.unwrap_err().error.to_string().contains("line 1: longer than"));
    }
}
