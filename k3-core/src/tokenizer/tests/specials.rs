//! Special tokens and the two modes.

use std::prelude::v1::*;

use super::TOKENIZER;
use crate::Error;
use crate::tokenizer::Mode;

/// The named special tokens, from the model's documentation.
const NAMED: [(u32, &str); 16] = [
    (163_584, "[BOS]"),
    (163_585, "[EOS]"),
    (163_586, "<|end_of_msg|>"),
    (163_587, "<|open|>"),
    (163_588, "<|close|>"),
    (163_589, "<|sep|>"),
    (163_590, "[start_header_id]"),
    (163_591, "[end_header_id]"),
    (163_593, "[EOT]"),
    (163_602, "<|media_begin|>"),
    (163_603, "<|media_content|>"),
    (163_604, "<|media_end|>"),
    (163_605, "<|media_pad|>"),
    (163_649, "<osagent_mode>"),
    (163_838, "[UNK]"),
    (163_839, "[PAD]"),
];

/// All 256 exist: 16 named, 240 reserved. Catches a tokenizer that knows only the named ones.
#[test]
fn all_256_special_ids_exist() {
    for id in 163_584..=163_839 {
        let reserved = std::format!("<|reserved_token_{id}|>");
        let named = NAMED.iter().find(|(named, _)| *named == id).map(|(_, name)| *name);
        let spelling = named.unwrap_or(&reserved);
        assert_eq!(TOKENIZER.encode(spelling, Mode::Special), [id], "{spelling}");
        assert_eq!(TOKENIZER.special_id(spelling), Some(id));
        assert_eq!(TOKENIZER.special_spelling(id), Some(spelling));
        assert_eq!(TOKENIZER.decode(&[id]).unwrap(), spelling.as_bytes());
        let plain = TOKENIZER.encode(spelling, Mode::Plain);
        assert!(plain.len() > 1 && plain.iter().all(|&id| id < 163_584), "{spelling} {plain:?}");
        if named.is_some() {
            assert_ne!(TOKENIZER.encode(&reserved, Mode::Special), [id], "the reserved spelling of a named id is text");
            assert_eq!(TOKENIZER.special_id(&reserved), None);
        }
    }
    for spelling in ["", "<", "[BOS", "[BOS]x", "<|reserved_token_163840|>", "<|reserved_token_0163592|>"] {
        assert_eq!(TOKENIZER.special_id(spelling), None, "{spelling}");
    }
}

/// Control spellings in plain text are ordinary text: recorded ids.
#[test]
fn plain_text_has_no_special_ids() {
    let text = "literal <|open|> and <|end_of_msg|> and [BOS] here";
    let ids = [82319, 22652, 4454, 91, 29, 316, 22652, 517, 5118, 14222, 91, 29, 316, 793, 33, 4110, 60, 2397];
    assert_eq!(TOKENIZER.encode(text, Mode::Plain), ids);
    assert_eq!(TOKENIZER.encode(text, Mode::Special)[1..3], [220, 163_587]);
}

/// The text on either side of a special token ends there: what is behind it does not stop `\s+(?!\S)`.
#[test]
fn a_special_token_ends_the_text_before_it() {
    let ids = TOKENIZER.encode("  <|sep|>  x", Mode::Special);
    let side = |text| TOKENIZER.encode(text, Mode::Plain);
    assert_eq!(ids, [side("  "), [163_589].to_vec(), side("  x")].concat());
    assert_eq!(side("  ").len(), 1);
}

/// Ids of published examples.
#[test]
fn known_texts_have_known_ids() {
    let known: [(&str, &[u32]); 7] = [
        ("The capital of France is", &[1008, 10484, 318, 15383, 387]),
        (" Paris", &[17374]),
        (
            "The quick brown fox jumps over the lazy dog.",
            &[1008, 5072, 16331, 69275, 60062, 1312, 276, 29292, 7751, 13],
        ),
        ("你好，世界！我是 Kimi K3。", &[33845, 378, 2243, 856, 7808, 24980, 72, 1040, 18, 292]),
        ("a  b\t\tc\n\n\nd \n  e   ", &[64, 220, 291, 197, 2529, 3898, 67, 1420, 220, 350, 274]),
        (
            "hello 👋🏽 world 🇯🇵 🧑‍💻 done",
            &[22931, 130732, 233, 92949, 121, 2695, 67496, 107, 32166, 113, 17137, 100, 239, 67963, 66122, 119, 4179],
        ),
        ("a \n\0\u{7F}", &[64, 1420, 188, 221]),
    ];
    for (text, ids) in known {
        assert_eq!(TOKENIZER.encode(text, Mode::Plain), ids, "{text:?}");
    }
}

/// An id outside the vocabulary is an error, at the border and far off.
#[test]
fn unknown_ids_are_refused() {
    for id in [163_840, u32::MAX] {
        let error = Error::TokenId { id: id.into(), vocabulary: 163_840 };
        assert_eq!(TOKENIZER.decode(&[1, id]), Err(error.clone()));
        assert_eq!(TOKENIZER.token(id), Err(error));
        assert_eq!(TOKENIZER.special_spelling(id), None);
    }
    assert_eq!(TOKENIZER.special_spelling(163_583), None);
}
