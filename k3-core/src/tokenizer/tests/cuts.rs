//! The cuts every 400,000 characters and every 25,000 of one kind.

use std::prelude::v1::*;

use super::{TOKENIZER, encode_uncut};
use crate::tokenizer::cuts::stretches;
use crate::tokenizer::{Mode, PART_CHARS};

/// The lengths of the stretches, in characters.
fn lengths(text: &str) -> Vec<usize> {
    assert_eq!(stretches(text).collect::<String>(), text);
    stretches(text).map(|stretch| stretch.chars().count()).collect()
}

/// Runs are counted in characters, not bytes, and one of exactly 25,000 is whole.
#[test]
fn long_runs_are_cut_every_25_000_characters() {
    for letter in ["a", "é", "世", "👍", " ", "\u{3000}"] {
        assert_eq!(lengths(&letter.repeat(25_000)), [25_000], "{letter:?}");
        assert_eq!(lengths(&letter.repeat(25_001)), [25_000, 1], "{letter:?}");
        assert_eq!(lengths(&letter.repeat(75_001)), [25_000, 25_000, 25_000, 1], "{letter:?}");
    }
}

/// A run counts from its own beginning, wherever that is. Catches cuts at multiples of 25,000 of the text, and the quick
/// test by blocks skipping a run that begins or ends inside a block.
#[test]
fn a_run_counts_from_its_beginning() {
    for before in ["a ".repeat(10), "a ".repeat(7_000), "a b".repeat(20_000)] {
        let chars = before.chars().count();
        let around = |run: usize| [&before, " ", &"x".repeat(run), " ", "y z ".repeat(9_000).as_str()].concat();
        assert_eq!(lengths(&around(25_000)).len(), 1);
        let rest = 1 + 36_000;
        assert_eq!(lengths(&around(25_001)), [chars + 1 + 25_000, 1 + rest]);
        assert_eq!(lengths(&around(50_001)), [chars + 1 + 25_000, 25_000, 1 + rest]);
    }
}

/// The two kinds are those of Python's `isspace`: U+001C to U+001F are space, though the pattern takes them for
/// punctuation; U+200B and U+180E are not.
#[test]
fn kinds_are_those_of_isspace() {
    for space in ["\u{1C}", "\u{1D}", "\u{1E}", "\u{1F}", "\t", "\u{85}", "\u{A0}", "\u{2028}", "\u{3000}"] {
        let text = [" ".repeat(24_999), space.to_string(), " ".to_string()].concat();
        assert_eq!(lengths(&text), [25_000, 1], "{space:?}");
    }
    for other in ["\u{1B}", "\u{200B}", "\u{180E}", "\u{FEFF}", "x"] {
        let text = [" ".repeat(24_999), other.to_string(), " ".to_string()].concat();
        assert_eq!(lengths(&text), [25_001], "{other:?}");
    }
}

/// Parts have 400,000 characters; a run begins anew in each.
#[test]
fn texts_are_cut_every_400_000_characters() {
    for word in ["ab ", "世界 "] {
        let text = word.repeat(300_000);
        assert_eq!(lengths(&text), [400_000, 400_000, 100_000], "{word:?}");
    }
    let text = ["ab ".repeat(130_000), "c".repeat(30_000), " ".to_string()].concat();
    assert_eq!(lengths(&text), [400_000, 20_001]);
    assert_eq!(lengths(&["ab ".repeat(133_333), " ".to_string()].concat()), [400_000]);
    assert!(lengths("").is_empty());
}

/// Cuts change ids, and the ids of a text are those of its parts.
#[test]
fn cuts_are_hard_boundaries() {
    let text = "capital ".repeat(60_000);
    let (part, rest) = text.split_at(PART_CHARS);
    let ids = TOKENIZER.encode(&text, Mode::Plain);
    assert_eq!(ids, [part, rest].map(|part| TOKENIZER.encode(part, Mode::Plain)).concat());
    // Digits go by threes: 25,000 leave one over, and so does the cut that follows.
    let digits = "1".repeat(25_001);
    let [one, two] = ["1", "11"].map(|piece| TOKENIZER.encode(piece, Mode::Plain)[0]);
    assert!(TOKENIZER.encode(&digits, Mode::Plain).ends_with(&[one, one]));
    assert!(encode_uncut(&digits, Mode::Plain).ends_with(&[two]));
}
