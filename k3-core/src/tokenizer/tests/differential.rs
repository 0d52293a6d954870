//! Random texts through the tokenizer and through the slow reference.

use std::prelude::v1::*;

use proptest::prelude::*;

use super::encode_uncut;
use super::reference::{self, RELEASED};
use crate::tokenizer::Mode;
use crate::tokenizer::pieces::pieces;

/// Characters of every class, and those that some alternative treats in its own way.
const HARD: &[char] = &[
    // Upper case, title case, lower case; long s, and the letters of contractions.
    'A',
    'É',
    'Я',
    'ǅ',
    'ᾈ',
    'a',
    'é',
    'я',
    'ſ',
    's',
    't',
    'r',
    'e',
    'v',
    'm',
    'l',
    'd',
    'S',
    'T',
    'R',
    'E',
    'L',
    'K',
    // Letters without case, modifiers, marks of all three kinds.
    'ª',
    'א',
    '가',
    'あ',
    'ー',
    'ʰ',
    'ⁱ',
    '\u{301}',
    '\u{93F}',
    '\u{20DD}',
    '\u{FE0F}',
    // Han: letters, a modifier letter, numbers, symbols, marks, punctuation; outside the BMP.
    '中',
    '文',
    '々',
    '〇',
    '〡',
    '⺀',
    '\u{16FF0}',
    '\u{16FE2}',
    '𠀀',
    '\u{F900}',
    // Numbers: Nd, Nl, No.
    '0',
    '7',
    '٣',
    'Ⅷ',
    '½',
    '²',
    '𝟘',
    // Whitespace, line ends, and the four separators that Python alone calls space.
    ' ',
    ' ',
    ' ',
    '\t',
    '\n',
    '\r',
    '\u{B}',
    '\u{C}',
    '\u{85}',
    '\u{A0}',
    '\u{2028}',
    '\u{3000}',
    '\u{1C}',
    '\u{1F}',
    // Punctuation, symbols, joiners, controls, private, unassigned, the last.
    '\'',
    '\'',
    '’',
    '!',
    '/',
    '-',
    '[',
    '<',
    '|',
    '>',
    '\0',
    '\u{7F}',
    '\u{200B}',
    '\u{200D}',
    '👍',
    '🏽',
    '🇯',
    '\u{E000}',
    '\u{378}',
    '\u{10FFFF}',
];

fn hard_text(length: usize) -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(HARD), 0..length).prop_map(|chars| chars.into_iter().collect())
}

/// The ids of `text` by the reference.
fn reference_ids(text: &str) -> Vec<u32> {
    let merge = |piece: &str| reference::merge(&RELEASED, piece.as_bytes());
    reference::pieces(text).into_iter().flat_map(merge).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Catches any departure from what a backtracking engine takes.
    #[test]
    fn pieces_are_those_of_a_regex_engine(text in hard_text(24)) {
        let found: Vec<&str> = pieces(&text).map(|span| &text[span]).collect();
        prop_assert_eq!(found, reference::pieces(&text));
    }

    /// Any characters at all, most of them unassigned or rare.
    #[test]
    fn pieces_of_any_characters_are_those_of_a_regex_engine(text in any::<String>()) {
        let found: Vec<&str> = pieces(&text).map(|span| &text[span]).collect();
        prop_assert_eq!(found, reference::pieces(&text));
    }

    /// Short pieces with the released vocabulary.
    #[test]
    fn ids_are_those_of_the_reference(text in hard_text(24)) {
        prop_assert_eq!(encode_uncut(&text, Mode::Plain), reference_ids(&text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    /// One piece of up to 400 letters of one script, so that both ways of merging are used, with whole characters and
    /// without: most of these scripts have characters that are no tokens.
    #[test]
    fn long_pieces_have_the_ids_of_the_reference(
        text in prop_oneof!["[a-e]{1,400}", "[а-я]{1,400}", "[一-鿿]{1,200}", "[的一是不了人我在有他]{1,200}", "[가-힣]{1,200}",
            "[ऀ-ॿ]{1,200}", "[😀-🙏]{1,100}", "[!-/]{1,400}"],
    ) {
        prop_assert_eq!(encode_uncut(&text, Mode::Plain), reference_ids(&text));
    }
}
