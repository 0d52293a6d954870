//! The cuts that the released tokenizer makes before it applies the piece pattern.
//!
//! A text is cut every 400,000 characters; within each such part, a run of one kind (space or not) is cut every 25,000.
//! No piece and no special token crosses a cut, so the cuts change ids.

use super::classes::{Set, step};

/// A text is cut every so many characters, counted from its start.
pub const PART_CHARS: usize = 400_000;

/// A run of characters of one kind is cut every so many characters.
const RUN_CHARS: usize = 25_000;

/// The stretches of a text between the cuts, in order; together they are the whole text and none is empty.
pub(super) struct Cuts<'a> {
    rest: &'a str,
    /// Characters of the current part that are still in `rest`, if it has as many.
    part_left: usize,
}

impl<'a> Cuts<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Cuts {
            rest: text,
            part_left: PART_CHARS,
        }
    }

    /// The length in bytes of the next stretch; takes its characters off the current part.
    fn next_length(&mut self) -> usize {
        // A character has at least one byte: a short rest needs no counting.
        if self.rest.len() <= RUN_CHARS.min(self.part_left) {
            return self.rest.len();
        }
        let (mut at, mut run, mut in_space) = (0, 0, false);
        while at < self.rest.len() {
            let (is_space, next) = space_step(self.rest, at);
            run = if is_space == in_space { run + 1 } else { 1 };
            in_space = is_space;
            if run > RUN_CHARS {
                return at;
            }
            self.part_left -= 1;
            at = next;
            if self.part_left == 0 {
                self.part_left = PART_CHARS;
                return at;
            }
        }
        at
    }
}

impl<'a> Iterator for Cuts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        let (stretch, rest) = self.rest.split_at(self.next_length());
        self.rest = rest;
        Some(stretch)
    }
}

/// Whether the character at `at` is a space by Python's `str.isspace`, and where the next one begins. That is `\s` and
/// U+001C to U+001F.
#[inline]
fn space_step(text: &str, at: usize) -> (bool, usize) {
    let (class, next) = step(text, at);
    (
        Set::WHITESPACE.has(class) || matches!(text.as_bytes()[at], 0x1C..=0x1F),
        next,
    )
}
