//! The generated tables against the recorded ranges.

use std::fs;
use std::path::Path;
use std::prelude::v1::*;

use crate::tokenizer::classes::{Class, Set, class_of, step};

/// The inclusive ranges of a recorded class.
fn ranges(name: &str) -> Vec<(u32, u32)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tokenizer/classes");
    let lines = fs::read_to_string(folder.join(std::format!("{name}.txt"))).unwrap();
    let hex = |field: &str| u32::from_str_radix(field, 16).unwrap();
    let range = |line: &str| line.split_once(' ').map(|(first, last)| (hex(first), hex(last))).unwrap();
    lines.lines().filter(|line| !line.starts_with('#')).map(range).collect()
}

/// Every code point in every set of the pattern. Catches a stale table, another Unicode version, a wrong block number.
#[test]
fn sets_hold_exactly_the_recorded_code_points() {
    let sets = [
        ("Han", Set::HAN),
        ("prefix", Set::LEADING),
        ("S1", Set::UPPER_PART),
        ("S2", Set::LOWER_PART),
        ("N", Set::NUMBER),
        ("punct", Set::PUNCTUATION),
        ("s", Set::WHITESPACE),
    ];
    for (name, set) in sets {
        let mut recorded = ranges(name).into_iter().peekable();
        for point in ('\0'..=char::MAX).map(u32::from) {
            while recorded.next_if(|&(_, last)| last < point).is_some() {}
            let expected = recorded.peek().is_some_and(|&(first, _)| first <= point);
            assert_eq!(set.has(class_of(point)), expected, "U+{point:04X} in {name}");
        }
    }
}

/// `[\r\n]` has no recorded file: two characters and no others.
#[test]
fn newlines_are_cr_and_lf() {
    let newlines: String = ('\0'..=char::MAX).filter(|&c| Set::NEWLINE.has(class_of(c.into()))).collect();
    assert_eq!(newlines, "\n\r");
}

/// Every character, stepped over in a text, has the class of its code point and the length of its encoding. Catches a
/// decoder that mixes up lengths or bits.
#[test]
fn stepping_decodes_every_character() {
    for character in '\0'..=char::MAX {
        let text = std::format!("x{character}y");
        let expected = (class_of(character.into()), 1 + character.len_utf8());
        assert_eq!(step(&text, 1), expected, "{character:?}");
    }
    assert_eq!(step("é", 2), (Class::END, 2));
}
