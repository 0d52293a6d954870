//! Merging under vocabularies made to break shortcuts.

use std::prelude::v1::*;

use proptest::prelude::*;

use super::reference::{self, read_vocabulary};
use super::{EMPTY_CONFIG, TOKENIZER, model_file, tokens_with};
use crate::tokenizer::{Mode, Tokenizer};

/// Four characters of two and three bytes that share bytes, and an ASCII letter.
const LETTERS: [char; 5] = ['а', 'р', 'ก', 'ข', 'x'];

/// The ids of `text`, one piece, under the vocabulary of all bytes and `longer`; by the tokenizer and by the reference.
fn both_ways(longer: &[&[u8]], text: &str) -> (Vec<u32>, Vec<u32>) {
    let file = model_file(tokens_with(longer));
    let tokenizer = Tokenizer::new(file.as_bytes(), EMPTY_CONFIG).unwrap();
    (tokenizer.encode(text, Mode::Plain), reference::merge(&read_vocabulary(&file), text.as_bytes()))
}

/// A character is merged first only if no token across its edge has a lower rank. Here one has: the end of `а` (D0 B0)
/// with the beginning of the next `а`. Catches characters merged first without asking.
#[test]
fn a_token_across_an_edge_may_come_first() {
    let (found, expected) = both_ways(&[b"\xB0\xD0", "а".as_bytes()], "ааа");
    assert_eq!(expected, [0xD0, 256, 256, 0xB0]);
    assert_eq!(found, expected);
}

/// The same with a token that holds a whole character and a part of the next, and with one of two characters whose own
/// bytes merge later.
#[test]
fn a_token_with_more_than_the_character_may_come_first() {
    for longer in [
        // ก is E0 B8 81, ข is E0 B8 82.
        &[&b"\xB8\x81"[..], b"\x81\xE0", b"\xE0\xB8", "ก".as_bytes(), "ข".as_bytes()][..],
        &[b"\xB0x", "аx".as_bytes(), "а".as_bytes()],
        &["аx".as_bytes(), b"x\xD0", "а".as_bytes()],
    ] {
        for text in ["กขกกข", "аxаxxаа", "xаxกx"] {
            let (found, expected) = both_ways(longer, text);
            assert_eq!(found, expected, "{longer:?} {text}");
        }
    }
}

/// The leftmost of equal pairs merges first. Catches a search that takes the last.
#[test]
fn the_leftmost_of_equal_pairs_is_first() {
    let (found, expected) = both_ways(&[b"xx"], "xxxxx");
    assert_eq!(expected, [256, 256, b'x'.into()]);
    assert_eq!(found, expected);
    // Long enough for the heap.
    let (found, expected) = both_ways(&[b"xx"], &"x".repeat(201));
    assert_eq!(found, expected);
}

/// A piece that is a token is taken whole even where merging would never reach it.
#[test]
fn a_whole_piece_needs_no_merges() {
    let (found, expected) = both_ways(&[b"abcdefghijkl"], "abcdefghijkl");
    assert_eq!(expected, [256]);
    assert_eq!(found, expected);
}

/// Tokens that differ only in NUL bytes at the end are different tokens. Catches keys compared without their length.
#[test]
fn nul_bytes_count() {
    let (found, expected) = both_ways(&[b"!\0", b"!\0\0\0", b"\0\0"], "!\0\0\0\0!\0!");
    assert_eq!(expected, [257, 0, 256, b'!'.into()]);
    assert_eq!(found, expected);
}

fn stretch(bytes: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::collection::vec(proptest::sample::select(&LETTERS[..]), 1..6)
        .prop_map(|letters| letters.into_iter().collect::<String>().into_bytes());
    (text, any::<proptest::sample::Index>(), bytes).prop_map(|(text, at, length)| {
        let start = at.index(text.len());
        text[start..text.len().min(start + length)].to_vec()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Random vocabularies of stretches of text cut anywhere, in random order: nothing holds of them that training would
    /// ensure. Catches every shortcut that is right only for well-made vocabularies.
    #[test]
    fn any_vocabulary_merges_as_defined(
        longer in proptest::collection::vec(stretch(2..10), 0..40),
        letters in proptest::collection::vec(proptest::sample::select(&LETTERS[..]), 1..80),
    ) {
        let mut distinct: Vec<&[u8]> = Vec::new();
        for token in &longer {
            if token.len() > 1 && !distinct.contains(&token.as_slice()) {
                distinct.push(token);
            }
        }
        let text: String = letters.into_iter().collect();
        let (found, expected) = both_ways(&distinct, &text);
        prop_assert_eq!(found, expected);
    }
}

/// Encoding is by text, not by id: two texts encoded alone are not the joined text. Catches a caller's hope, and any
/// tokenizer that would make segment edges vanish.
#[test]
fn joining_texts_changes_ids() {
    let ids = |text| TOKENIZER.encode(text, Mode::Plain);
    assert_ne!([ids("The capi"), ids("tal")].concat(), ids("The capital"));
    assert_eq!([ids("The"), ids(" capital")].concat(), ids("The capital"));
}
