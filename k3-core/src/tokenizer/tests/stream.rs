//! Decoding: whole, and as it streams.

use std::fs;
use std::path::Path;
use std::prelude::v1::*;

use proptest::prelude::*;

use super::TOKENIZER;
use crate::tokenizer::{Mode, Utf8Stream};

/// Each token of a text with characters split over tokens, pushed alone. Catches half characters shown, and characters
/// held longer than needed.
#[test]
fn split_characters_wait_until_they_are_whole() {
    let text = "hi 👋🏽 你 🧑‍💻!";
    let ids = TOKENIZER.encode(text, Mode::Plain);
    let mut stream = Utf8Stream::new();
    let mut shown = String::new();
    let mut waits = 0;
    for id in ids {
        let token = TOKENIZER.token(id).unwrap();
        shown += &stream.push_text(token);
        assert!(text.starts_with(&shown), "{shown:?}");
        waits += usize::from(text.len() > shown.len() && str::from_utf8(token).is_err());
    }
    assert!(waits >= 4, "the example splits characters");
    assert_eq!((shown.as_str(), stream.finish_text().as_str()), (text, ""));
}

/// What comes out byte by byte. Catches invalid bytes held until the end, or dropped, or a valid end flushed too early.
#[test]
fn bytes_come_out_as_soon_as_they_cannot_become_a_character() {
    let cases: [(&[u8], &[&[u8]]); 7] = [
        (b"\xE4\xBD\xA0", &[b"", b"", b"\xE4\xBD\xA0"]),
        (b"\xF0\x9F\x91\x8B", &[b"", b"", b"", b"\xF0\x9F\x91\x8B"]),
        (b"\xFF\x80a", &[b"\xFF", b"\x80", b"a"]),
        (b"\xE4a", &[b"", b"\xE4a"]),
        (b"\xE0\x80", &[b"", b"\xE0\x80"]),
        (b"\xE4\xBD\xC3\xA9", &[b"", b"", b"\xE4\xBD", b"\xC3\xA9"]),
        (b"\xED\xA0", &[b"", b"\xED\xA0"]),
    ];
    for (bytes, expected) in cases {
        let mut stream = Utf8Stream::new();
        let out: Vec<Vec<u8>> = bytes.iter().map(|&byte| stream.push(&[byte])).collect();
        assert_eq!(out, expected, "{bytes:x?}");
        assert_eq!(stream.finish(), b"", "{bytes:x?}");
    }
    let mut stream = Utf8Stream::new();
    assert_eq!((stream.push_text(b"a\xF0\x9F\x91"), stream.finish_text()), ("a".to_string(), "\u{FFFD}".to_string()));
    assert_eq!(stream.finish(), b"");
}

/// Beginnings, middles and ends of characters.
const BROKEN: &[&[u8]] = &[b"\xE4", b"\xBD", b"\xF0\x9F", b"\x91", b"\x8B"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any bytes under any split: nothing is lost, at most three are held, the text is the lossy reading of the whole.
    #[test]
    fn any_split_gives_the_same(
        chunks in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..4),
                "[a你👍é]{0,3}".prop_map(String::into_bytes),
                proptest::sample::select(BROKEN).prop_map(Vec::from),
            ],
            0..12,
        ),
    ) {
        let whole = chunks.concat();
        let (mut bytes, mut text) = (Utf8Stream::new(), Utf8Stream::new());
        let (mut all_bytes, mut all_text) = (Vec::new(), String::new());
        let mut pushed = 0;
        for chunk in &chunks {
            all_bytes.extend(bytes.push(chunk));
            all_text += &text.push_text(chunk);
            pushed += chunk.len();
            prop_assert!(pushed - all_bytes.len() <= 3);
        }
        all_bytes.extend(bytes.finish());
        all_text += &text.finish_text();
        prop_assert_eq!(all_text, String::from_utf8_lossy(&whole));
        prop_assert_eq!(all_bytes, whole);
    }

    /// Decoding what was encoded gives the text, in both modes.
    #[test]
    fn any_text_comes_back(text in any::<String>()) {
        for mode in [Mode::Special, Mode::Plain] {
            prop_assert_eq!(TOKENIZER.decode(&TOKENIZER.encode(&text, mode)).unwrap(), text.as_bytes());
        }
    }

    /// Any ids, as a model may produce them, stream as they decode.
    #[test]
    fn any_ids_stream_as_they_decode(ids in proptest::collection::vec(0..163_840u32, 0..40)) {
        let mut stream = Utf8Stream::new();
        let mut bytes: Vec<u8> = Vec::new();
        for &id in &ids {
            bytes.extend(stream.push(TOKENIZER.token(id).unwrap()));
        }
        bytes.extend(stream.finish());
        prop_assert_eq!(bytes, TOKENIZER.decode(&ids).unwrap());
    }
}

/// Every source file of the core comes back.
#[test]
fn sources_come_back() {
    let mut folders = Vec::from([Path::new(env!("CARGO_MANIFEST_DIR")).join("src")]);
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
                continue;
            }
            let text = fs::read_to_string(entry.path()).unwrap();
            for mode in [Mode::Special, Mode::Plain] {
                let ids = TOKENIZER.encode(&text, mode);
                assert_eq!(TOKENIZER.decode(&ids).unwrap(), text.as_bytes(), "{:?}", entry.path());
            }
            files += 1;
        }
    }
    assert!(files > 20);
}
