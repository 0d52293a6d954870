//! The piece pattern on inputs worked out by hand, alternative by alternative.

use std::prelude::v1::*;

use crate::tokenizer::pieces::pieces;

/// Asserts that `text` splits at the bars of `marked`, which is the text with bars.
fn splits(marked: &str) {
    let expected: Vec<&str> = marked.split('|').collect();
    let text = expected.concat();
    let found: Vec<&str> = pieces(&text).map(|span| &text[span]).collect();
    assert_eq!(found, expected, "{text:?}");
}

/// Catches Han taken for letters, a space drawn to Han, and the Han code points that are no letters left out.
#[test]
fn han_runs_stand_alone() {
    splits("abc|中文|def");
    splits(" |中文");
    splits("中々〇〡⺀𠀀|!");
    splits("\u{16FF0}\u{16FE2}|a");
}

/// Han in the middle of other runs: symbols and numbers of Han continue them, letters do not.
#[test]
fn han_may_continue_other_runs() {
    splits("!⺀⺀");
    splits("1〇2|〇");
    splits("!|中");
}

/// Catches `U*` that does not give back, or gives back too little or too much.
#[test]
fn letters_give_back() {
    splits("ª|ABC");
    splits("Aª|BC");
    splits("ABCªª|D");
    splits("HELLOworld|Again");
    splits("a|Bc");
    splits("ABC");
    splits("ǅa|ǅ");
}

/// The leading character: anything but CR, LF, letters and numbers, once. A mark may lead or belong to the word.
#[test]
fn one_character_may_lead() {
    splits("!a");
    splits("!!|a");
    splits("\u{1F}a");
    splits("\n|a");
    splits("1|a");
    splits("!\u{301}|A");
    splits("\u{301}|AB");
    splits("\u{301}\u{301}|AB");
    splits("-\u{301}a");
}

/// Contractions: in any case, with the long s, only behind a word, and only those seven.
#[test]
fn contractions_belong_to_the_word() {
    splits("it's|so");
    splits("IT'S|!");
    splits("a'ſ|b");
    splits("we'Re|'ve");
    splits("x'll|y");
    splits("x|'lx");
    splits("x|'xs");
    splits("1|'s");
    splits("中|'s");
    splits("a's|a");
    splits("don't|'t");
}

/// At most three numeric characters, of any kind.
#[test]
fn numbers_go_by_threes() {
    splits("123|456|7");
    splits("1½Ⅷ|²");
    splits(" |1");
    splits("a|1");
}

/// Only U+0020 may lead punctuation; line ends follow it.
#[test]
fn punctuation_takes_a_space_before_and_newlines_behind() {
    splits(" !!\r\n\n|x");
    splits("\u{A0}|!");
    splits("\t|!");
    splits("  | !");
    splits(" | !");
    splits("!\n| \n");
    splits("/\u{1C}\u{1D}\n");
}

/// Alternatives 6 to 8.
#[test]
fn whitespace_splits_behind_its_last_newline_and_before_its_last_character() {
    splits("a| \n \r|  | b");
    splits("a|  | b");
    splits("a|   ");
    splits("a|\n|  ");
    splits("a|\t|1");
    splits("a|\u{3000}|\u{3000}b");
    splits(" |\u{85}|1");
    splits("a|\n\n\n|b");
}
