//! The cuts that the released tokenizer makes before it applies the piece pattern.
//!
//! A text is cut into parts of 400,000 characters; within each part, a run of one kind (space or not) is cut every
//! 25,000. No piece and no special token crosses a cut, so the cuts change ids.

use core::iter;

use super::classes::{Set, step};

/// Characters of a part: texts are cut every so many, counted from the start.
///
/// The ids of a text are those of its parts one after another, so a long text can be encoded part by part.
pub const PART_CHARS: usize = 400_000;

/// Characters of one kind that may follow each other.
const RUN_CHARS: usize = 25_000;

/// The stretches of a text between the cuts, in order; together they are the whole text and none is empty.
pub(super) fn stretches(text: &str) -> impl Iterator<Item = &str> {
    split(text, part_end).flat_map(|part| {
        let end = if may_have_long_run(part.as_bytes()) { run_end } else { str::len };
        split(part, end)
    })
}

/// Splits `text` where `end` says that the first stretch of the rest ends.
fn split(text: &str, end: impl Fn(&str) -> usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let (stretch, behind) = rest.split_at(end(rest));
        rest = behind;
        (!stretch.is_empty()).then_some(stretch)
    })
}

/// The end of the part with which `text` begins.
fn part_end(text: &str) -> usize {
    let mut chars = text.chars();
    // A character has at least one byte: a short text needs no counting.
    if text.len() > PART_CHARS && chars.nth(PART_CHARS - 1).is_some() {
        return text.len() - chars.as_str().len();
    }
    text.len()
}

/// Whether the part could have a run to cut; saves counting characters in nearly all texts with spaces.
///
/// A run that is to be cut covers more than 25,000 bytes and so a whole block of 12,500 in line with the start. Not if
/// each of those holds a blank and a printing ASCII character.
fn may_have_long_run(part: &[u8]) -> bool {
    let mut blocks = part.chunks_exact(RUN_CHARS / 2);
    blocks.any(|block| !block.contains(&b' ') || !block.iter().any(u8::is_ascii_graphic))
}

/// The end of the stretch with which `part` begins: at its end, or where a run has become too long.
fn run_end(part: &str) -> usize {
    let (mut at, mut run, mut in_space) = (0, 0, false);
    while at < part.len() {
        let (is_space, next) = space_step(part, at);
        run = if is_space == in_space { run + 1 } else { 1 };
        in_space = is_space;
        if run > RUN_CHARS {
            return at;
        }
        at = next;
    }
    at
}

/// Whether the character at `at` is a space by Python's `str.isspace`, and where the next one begins. That is `\s` and
/// U+001C to U+001F.
#[inline]
fn space_step(text: &str, at: usize) -> (bool, usize) {
    let (class, next) = step(text, at);
    (Set::WHITESPACE.has(class) || matches!(text.as_bytes()[at], 0x1C..=0x1F), next)
}
