//! Splits text into the pieces within which bytes may merge.
//!
//! The released tokenizer states the split as a regular expression of eight alternatives; the first that matches at a
//! position wins, and each takes what a backtracking engine would:
//!
//! 1. `[\p{Han}]+`
//! 2. `[^\r\n\p{L}\p{N}]?U*L+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
//! 3. `[^\r\n\p{L}\p{N}]?U+L*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
//! 4. `\p{N}{1,3}`
//! 5. ` ?[^\s\p{L}\p{N}]+[\r\n]*`
//! 6. `\s*[\r\n]+`
//! 7. `\s+(?!\S)`
//! 8. `\s+`
//!
//! `U` is [`Set::UPPER_PART`] and `L` is [`Set::LOWER_PART`]; both hold the letters without case and the marks, so `U*`
//! may have to give back what it took. A regex engine backs up one character at a time, and where every start of a long
//! run does so again, time is quadratic. Each function here finds where the engine would end in one pass forward: it
//! remembers the last place at which giving back would have succeeded.

use core::iter;
use core::ops::Range;

use super::classes::{Class, Set, step};

/// Where the pieces of a text are, in order; together they are the whole text and none is empty.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    iter::from_fn(move || {
        let start = at;
        (start < text.len()).then(|| {
            at = piece_end(text, start);
            start..at
        })
    })
}

/// The end of the piece that begins at `start`, which is inside the text.
fn piece_end(text: &str, start: usize) -> usize {
    let (class, next) = step(text, start);
    if Set::HAN.has(class) {
        return run_end(text, next, Set::HAN);
    }
    if let Some(end) = word_end(text, start) {
        return contraction_end(text, end);
    }
    if Set::NUMBER.has(class) {
        return number_end(text, next);
    }
    // Alternative 5 takes only U+0020 before punctuation, not any space.
    let marks_start = if text.as_bytes()[start] == b' ' { next } else { start };
    let marks_end = run_end(text, marks_start, Set::PUNCTUATION);
    if marks_end > marks_start {
        return run_end(text, marks_end, Set::NEWLINE);
    }
    whitespace_end(text, start)
}

/// The end of the longest run of `set` from `at` on.
#[inline]
fn run_end(text: &str, mut at: usize, set: Set) -> usize {
    loop {
        let (class, next) = step(text, at);
        if !set.has(class) {
            return at;
        }
        at = next;
    }
}

/// Alternatives 2 and 3 up to the contraction. Each is tried first with a leading character, then without.
#[inline]
fn word_end(text: &str, start: usize) -> Option<usize> {
    let (class, next) = step(text, start);
    let leading = Set::LEADING.has(class);
    let led = if leading { letters(text, next) } else { Letters::NONE };
    if let Some(end) = led.lower_end {
        return Some(end);
    }
    let bare = letters(text, start);
    bare.lower_end.or(led.upper_end).or(bare.upper_end)
}

/// Where `U*L+` and `U+L*` end when they begin at one place.
struct Letters {
    /// The end of `U*L+`, if it matches.
    lower_end: Option<usize>,
    /// The end of `U+L*`, if it matches and `U*L+` does not.
    upper_end: Option<usize>,
}

impl Letters {
    const NONE: Letters = Letters { lower_end: None, upper_end: None };
}

/// Matches `U*L+` and `U+L*` at `start`.
///
/// `U*` takes its whole run. If `L` follows, `L+` takes its run. If not, `U*` gives back up to the last character of its
/// run that is also in `L`; everything behind that one is not in `L`, so `L+` takes just it. Worked example: in `ªABC`,
/// `U*` takes all four, the only one also in `L` is `ª`, and the match is `ª` alone.
///
/// If `U*L+` fails, nothing in the run of `U` nor the character behind it is in `L`: `U+L*` is the run.
#[inline]
fn letters(text: &str, start: usize) -> Letters {
    let mut at = start;
    let mut last_in_both = None;
    loop {
        let (class, next) = step(text, at);
        if Set::UPPER_PART.has(class) {
            if Set::LOWER_PART.has(class) {
                last_in_both = Some(next);
            }
            at = next;
            continue;
        }
        let lower_end = if Set::LOWER_PART.has(class) { Some(lower_end(text, next)) } else { last_in_both };
        return Letters { lower_end, upper_end: (at > start).then_some(at) };
    }
}

/// The end of the longest run of [`Set::LOWER_PART`] from `at` on.
#[inline]
fn lower_end(text: &str, at: usize) -> usize {
    run_end(text, at + ascii_lower_length(&text.as_bytes()[at..]), Set::LOWER_PART)
}

/// How many of the next eight bytes are `a` to `z`, up to the first that is not; 0 if there are no eight.
///
/// All eight at once and without a branch: most words end here, at a place that no branch predictor could tell.
#[inline]
fn ascii_lower_length(bytes: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let each = |byte: u8| u64::from_le_bytes([byte; 8]);
    let Some(eight) = bytes.first_chunk::<8>() else {
        return 0;
    };
    let word = u64::from_le_bytes(*eight);
    // Without their high bits, no byte carries into the next when up to 0x80 is added.
    let seven_bits = word & !HIGH;
    let from_a = seven_bits + each(0x80 - b'a');
    let behind_z = seven_bits + each(0x7F - b'z');
    let not_lower = (word | !from_a | behind_z) & HIGH;
    not_lower.trailing_zeros() as usize / 8
}

/// The end of an English contraction at `at`, or `at`. Without regard to case, `s` is also U+017F (long s).
#[inline]
fn contraction_end(text: &str, at: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    if rest.first() != Some(&b'\'') {
        return at;
    }
    let second = rest.get(2).copied().unwrap_or(0);
    match (rest.get(1).copied().unwrap_or(0).to_ascii_lowercase(), second.to_ascii_lowercase()) {
        (b's' | b't' | b'm' | b'd', _) => at + 2,
        (b'r' | b'v', b'e') | (b'l', b'l') => at + 3,
        (0xC5, 0xBF) => at + 3,
        _ => at,
    }
}

/// The end of a group of at most three numeric characters of which the first ends at `at`.
fn number_end(text: &str, mut at: usize) -> usize {
    for _ in 0..2 {
        let (class, next) = step(text, at);
        if !Set::NUMBER.has(class) {
            break;
        }
        at = next;
    }
    at
}

/// Alternatives 6 to 8 at `start`, which is whitespace.
///
/// `\s*[\r\n]+` ends behind the last CR or LF of the run. Without one, `\s+(?!\S)` is the run at the end of the text, and
/// elsewhere the run but its last character, which is left to lead the next piece; a run of one character is alone.
fn whitespace_end(text: &str, start: usize) -> usize {
    let mut at = start;
    let mut last = start;
    let mut newline_end = None;
    loop {
        let (class, next) = step(text, at);
        if !Set::WHITESPACE.has(class) {
            let before_last = if class == Class::END || last == start { at } else { last };
            return newline_end.unwrap_or(before_last);
        }
        if Set::NEWLINE.has(class) {
            newline_end = Some(next);
        }
        (last, at) = (at, next);
    }
}
