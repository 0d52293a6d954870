//! Files that are not as released: refused, with the line.

use std::format;
use std::prelude::v1::*;

use super::released_files::{CONFIG, MODEL};
use super::{EMPTY_CONFIG, TOKENIZER, model_file, tokens_with};
use crate::Error;
use crate::tokenizer::Tokenizer;

/// A good vocabulary of 256 bytes and three tokens; the last is line 259.
fn good_model() -> String {
    model_file(tokens_with(&[b"ab", b"abc", b"abcdefghi"]))
}

/// The line and the reason for which a vocabulary is refused.
fn refusal(model: &[u8]) -> (Option<usize>, String) {
    match Tokenizer::new(model, EMPTY_CONFIG).unwrap_err() {
        Error::Vocabulary { file, line, reason } => {
            assert_eq!(file, "tiktoken.model");
            (line, reason)
        }
        other => std::panic!("{other}"),
    }
}

/// Asserts that `model` is refused at `line` with a reason that contains `words`.
#[track_caller]
fn refused(model: impl AsRef<[u8]>, line: impl Into<Option<usize>>, words: &str) {
    let (found, reason) = refusal(model.as_ref());
    assert_eq!(found, line.into(), "{reason}");
    assert!(reason.contains(words), "{reason}");
}

/// The good vocabulary loads, so that the refusals below are for their one fault.
#[test]
fn the_good_model_loads() {
    let tokenizer = Tokenizer::new(good_model().as_bytes(), EMPTY_CONFIG).unwrap();
    assert_eq!(tokenizer.vocabulary(), 259 + 256);
    assert_eq!(tokenizer.special_id("<|reserved_token_259|>"), Some(259));
}

/// Each fault on its line.
#[test]
fn malformed_lines_are_refused_with_their_number() {
    let good = good_model();
    let with = |from: &str, to: &str| {
        assert_eq!(good.matches(from).count(), 1, "{from}");
        good.replacen(from, to, 1)
    };
    refused(with("YWI= 256\n", "YWI= 257\n"), 257, "rank 257 where 256 belongs");
    refused(with("YWI= 256\n", "YWI= 255\n"), 257, "rank 255 where 256 belongs");
    refused(with("YWI= 256\n", ""), 257, "rank 257 where 256 belongs");
    refused(with("YWI= 256\n", "YWI= 256\nYWI= 256\n"), 258, "rank 256 where 257 belongs");
    refused(with("YWI= 256\n", "YWI= 256\r\n"), 257, "CR LF");
    refused(good.replace('\n', "\r\n"), 1, "CR LF");
    refused(with("YWI= 256\n", "YWI 256\n"), 257, "base64");
    refused(with("YWI= 256\n", "YW*= 256\n"), 257, "base64");
    refused(with("YWI= 256\n", "YWJ= 256\n"), 257, "base64");
    refused(with("YWI= 256\n", "\n"), 257, "base64 rank");
    refused(with("YWI= 256\n", "YWI=\n"), 257, "base64 rank");
    refused(with("YWI= 256\n", " 256\n"), 257, "empty");
    refused(with("YWI= 256\n", "YWI=  256\n"), 257, "plain digits");
    for rank in ["", "-1", "+256", "0256", "2x", "256 ", "99999999999999999999999"] {
        refused(with("YWI= 256\n", &format!("YWI= {rank}\n")), 257, "plain digits");
    }
    refused(with("YWI= 256\n", "YWI= 18446744073709551615\n"), 257, "where 256 belongs");
    refused(with("YWJj 257\n", "YWI= 257\n"), 258, "that of line 257 again");
    refused([good.as_bytes(), b"YWJjZGVmZ2hp 259\n"].concat(), 260, "that of line 259 again");
    refused([good.as_bytes(), b"\xFF\xFE 259\n"].concat(), 260, "base64");
}

/// Faults of the whole file.
#[test]
fn incomplete_files_are_refused() {
    refused("", None, "empty");
    refused("\n", 1, "base64 rank");
    refused(good_model().trim_end(), 259, "cut short");
    refused(&good_model()[..good_model().len() - 3], 259, "cut short");
    let without_a: Vec<Vec<u8>> = tokens_with(&[]).filter(|token| token != b"a").collect();
    refused(model_file(without_a), None, "single byte 97 (0x61)");
}

/// More lines than any vocabulary has are refused where they become too many, not when memory is gone.
#[test]
fn huge_files_are_refused() {
    let tokens = (0..=1u32 << 22).map(|number| number.to_be_bytes());
    refused(model_file(tokens), (1 << 22) + 1, "more than 4194304 tokens");
}

/// Cut at any byte, the good vocabulary is either refused or has fewer ids, which `check_model` refuses.
#[test]
fn truncated_files_are_refused() {
    let good = good_model();
    for length in 0..good.len() {
        if let Ok(tokenizer) = Tokenizer::new(&good.as_bytes()[..length], EMPTY_CONFIG) {
            assert!(tokenizer.check_model(259 + 256).is_err());
        }
    }
}

/// Single bytes of the good vocabulary changed in every way: no panic, whatever comes of it.
#[test]
fn damaged_files_do_not_panic() {
    let good = good_model().into_bytes();
    for at in (0..good.len()).step_by(7).chain(good.len() - 60..good.len()) {
        for byte in [0, b'\n', b' ', b'=', b'A', b'0', 0xFF] {
            let mut damaged = good.clone();
            damaged[at] = byte;
            if let Ok(tokenizer) = Tokenizer::new(&damaged, EMPTY_CONFIG) {
                assert!(damaged == good || tokenizer.vocabulary() == 259 + 256);
            }
        }
    }
}

/// The vocabulary of another model is refused.
#[test]
fn check_model_compares_the_number_of_ids() {
    assert_eq!(TOKENIZER.vocabulary(), 163_840);
    assert_eq!(TOKENIZER.check_model(163_840), Ok(()));
    for vocabulary in [0, 163_584, 163_839, 163_841] {
        let error = TOKENIZER.check_model(vocabulary).unwrap_err();
        assert!(
            error.to_string().starts_with("tiktoken.model: 163584 tokens and 256 special ids make 163840"),
            "{error}"
        );
    }
}

/// Asserts that a config is refused with a reason that contains `words`. The special ids are 259 to 514.
#[track_caller]
fn config_refused(config: &str, words: &str) {
    let error = Tokenizer::new(good_model().as_bytes(), config.as_bytes()).unwrap_err().to_string();
    assert!(error.starts_with("tokenizer_config.json: ") && error.contains(words), "{error}");
}

/// Each fault of the config.
#[test]
fn malformed_configs_are_refused() {
    config_refused("", "line 1");
    config_refused("{}", "added_tokens_decoder");
    config_refused("[]", "line 1");
    config_refused(r#"{"added_tokens_decoder": []}"#, "a map of ids to added tokens");
    config_refused(r#"{"added_tokens_decoder": {"259": {}}}"#, "content");
    config_refused(r#"{"added_tokens_decoder": {"259": {"content": 1}}}"#, "string");
    let entries = |entries: &str| format!(r#"{{"added_tokens_decoder": {{{entries}}}}}"#);
    config_refused(&entries(r#""x": {"content": "a"}"#), "added_tokens_decoder.x: the id is not a number");
    config_refused(&entries(r#""0259": {"content": "a"}"#), "plain digits");
    config_refused(&entries(r#""258": {"content": "a"}"#), "special ids are 259 to 514");
    config_refused(&entries(r#""515": {"content": "a"}"#), "special ids are 259 to 514");
    config_refused(&entries(r#""260": {"content": ""}"#), "empty");
    config_refused(&entries(r#""260": {"content": "a"}, "260": {"content": "b"}"#), "named twice");
    config_refused(&entries(r#""260": {"content": "a"}, "261": {"content": "a"}"#), "beginning of");
    config_refused(&entries(r#""260": {"content": "a"}, "261": {"content": "ab"}"#), "beginning of");
    config_refused(&entries(r#""260": {"content": "<|reserved_token_300|>"}"#), "beginning of");
}

/// The released config belongs to the released vocabulary only: under a smaller one its ids are out of range.
#[test]
fn the_released_config_needs_the_released_vocabulary() {
    let config = str::from_utf8(CONFIG).unwrap();
    config_refused(config, "special ids are 259 to 514");
    let lines = MODEL.split_inclusive(|&byte| byte == b'\n').count();
    let shorter = &MODEL[..MODEL.trim_ascii_end().iter().rposition(|&byte| byte == b'\n').unwrap() + 1];
    let error = Tokenizer::new(shorter, CONFIG).unwrap_err().to_string();
    assert_eq!(lines, 163_584);
    assert!(error.contains("special ids are 163583 to 163838"), "{error}");
}
