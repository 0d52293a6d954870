//! Long inputs of one kind, on which quadratic matching or merging takes minutes and recursion overflows the stack.

use std::prelude::v1::*;
use std::time::Duration;

use cpu_time::ThreadTime;

use super::{TOKENIZER, encode_uncut};
use crate::tokenizer::Mode;

/// Asserts that `call` takes less than a second of this thread's time on a processor, so that other programs do not count.
fn takes_less_than_a_second(name: &str, call: impl Fn() -> Vec<u32>) {
    let start = ThreadTime::now();
    assert!(!call().is_empty());
    let time = start.elapsed();
    assert!(time < Duration::from_secs(1), "{name} took {time:?}");
}

/// With the cuts and, harder, without: then the whole text is one piece or one run.
#[test]
fn a_million_of_one_character_take_less_than_a_second() {
    for letter in ["a", "A", "^", " ", "好", "\n", "\u{301}", "1", "ª", "'", "\u{A0}", "👍", "<", "["] {
        let text = letter.repeat(1_000_000);
        takes_less_than_a_second(letter, || TOKENIZER.encode(&text, Mode::Special));
        takes_less_than_a_second(letter, || encode_uncut(&text, Mode::Special));
    }
}

/// Runs that make a backtracking engine start over at every character.
#[test]
fn repeated_backing_up_takes_less_than_a_second() {
    let whitespace = [" ".repeat(1_000_000), "x".to_string()].concat();
    let given_back = ["ª", &"A".repeat(1_000_000)].concat();
    let led = ["\u{301}A"; 500_000].concat();
    let late_newline = [" \n".repeat(500_000), "x".to_string()].concat();
    let near_special = "<|reserved_token_163592|".repeat(40_000);
    for text in [whitespace, given_back, led, late_newline, near_special] {
        takes_less_than_a_second(&text[..8], || encode_uncut(&text, Mode::Special));
    }
}

/// The case that takes other engines most of a minute.
#[test]
fn a_long_han_run_takes_less_than_a_second() {
    let text: String = ('\u{4E00}'..='\u{9FFF}').cycle().take(26_001).collect();
    takes_less_than_a_second("26,001 Han", || TOKENIZER.encode(&text, Mode::Plain));
    takes_less_than_a_second("26,001 Han, uncut", || encode_uncut(&text, Mode::Plain));
}
