use alloc::vec::Vec;

use serde::Deserialize;

use super::*;
use crate::chat::vocabulary::{ReleasedTokens, released};

const THINKING: Thinking = Thinking::On(None);

#[derive(Deserialize)]
struct Vectors {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    thinking: bool,
    ids: Vec<u32>,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Expected {
    Turn { reasoning: Option<String>, content: String },
    Rejected(String),
}

#[test]
fn vectors_are_stored_or_refused() {
    let vectors: Vectors =
        serde_json::from_str(include_str!("../../../../fixtures/chat/parse_vectors.json")).expect("a valid fixture");
    assert_eq!(vectors.cases.len(), 15);
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    for case in vectors.cases {
        let thinking = if case.thinking { THINKING } else { Thinking::Off };
        let read = read_stored_turn(&case.ids, thinking, &turn, vocabulary);
        match case.expect {
            Expected::Turn { reasoning, content } => {
                assert_eq!(read, Ok(StoredTurn { reasoning, content }), "{}", case.name);
            }
            Expected::Rejected(verdict) => {
                assert!(verdict.starts_with("reject"));
                assert!(matches!(read, Err(Error::Turn(_))), "{}: {read:?}", case.name);
            }
        }
    }
}

#[test]
fn the_one_word_turn_is_stored_and_its_variants_refused() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let read = |ids: &[u32], thinking| read_stored_turn(ids, thinking, &turn, vocabulary);
    let close = |tag| vocabulary.ids(&["<|close|>", tag, "<|sep|>"]);
    let open = |tag| vocabulary.ids(&["<|open|>", tag, "<|sep|>"]);
    let paris = vocabulary.ids(&[" Paris"]);
    assert_eq!(paris, [17374]);
    let answer = [paris.clone(), close("response"), close("message")].concat();
    let thought = [paris, close("think"), open("response"), answer.clone()].concat();
    for end in [163_586, 163_585] {
        let whole = [&thought[..], &[end]].concat();
        let stored = StoredTurn { reasoning: Some(" Paris".into()), content: " Paris".into() };
        assert_eq!(read(&whole, THINKING), Ok(stored));
        assert_eq!(read(&whole, Thinking::Off), Err(refusal("there is a control token in the text")));
        let short = [&answer[..], &[end]].concat();
        assert_eq!(read(&short, Thinking::Off), Ok(StoredTurn { reasoning: None, content: " Paris".into() }));
        assert_eq!(read(&short, THINKING), Err(refusal("the reasoning does not go over into a response")));
        let opened = [&[163_587], &whole[1..]].concat();
        assert_eq!(read(&opened, THINKING), Err(refusal("there is a control token in the text")));
    }
    assert_eq!(read(&thought, THINKING), Err(refusal("the token that ends the turn is missing")));
    let separated = [&thought[..], &[163_589]].concat();
    assert_eq!(read(&separated, THINKING), Err(refusal("there are tokens after the message")));
    assert_eq!(read(&thought[..thought.len() - 1], THINKING), Err(refusal("the response is not closed")));
    assert_eq!(read(&[], Thinking::Off), Err(refusal("the response is not closed")));
}

#[test]
fn text_that_is_not_whole_characters_or_no_token_is_refused() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let end = vocabulary.ids(&["<|close|>", "response", "<|sep|>", "<|close|>", "message", "<|sep|>", "[EOS]"]);
    let broken = (0..163_584).find(|&id| core::str::from_utf8(vocabulary.token_bytes(id).expect("a token")).is_err());
    for id in [broken.expect("1,172 of them"), 163_840, u32::MAX] {
        let read = read_stored_turn(&[&[id], &end[..]].concat(), Thinking::Off, &turn, vocabulary);
        assert_eq!(read, Err(refusal("the text is not whole characters")), "{id}");
    }
}

#[test]
fn a_cut_turn_is_stored_as_far_as_its_response_went() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let whole = vocabulary.ids(&[
        " Paris",
        "<|close|>",
        "think",
        "<|sep|>",
        "<|open|>",
        "response",
        "<|sep|>",
        " Paris",
        " London",
        "<|close|>",
        "response",
        "<|sep|>",
        "<|close|>",
        "message",
        "<|sep|>",
    ]);
    let read = |ids: &[u32]| read_cut_turn(ids, THINKING, &turn, vocabulary);
    let stored = |content: &str| Ok(StoredTurn { reasoning: Some(" Paris".into()), content: content.into() });
    for cut in 0..whole.len() {
        let expected = match cut {
            0..7 => Err(refusal("the reasoning does not go over into a response")),
            7 => Err(refusal("there is no response yet")),
            8 => stored(" Paris"),
            _ => stored(" Paris London"),
        };
        assert_eq!(read(&whole[..cut]), expected, "after {cut} tokens");
    }
}

#[test]
fn a_cut_turn_leaves_out_half_a_character() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let mut ids = vocabulary.ids(&[" Paris"]);
    let halves = vocabulary.encode("🧑", crate::tokenizer::Mode::Plain);
    assert!(halves.len() > 1, "the character is split");
    let read = |ids: &[u32]| read_cut_turn(ids, Thinking::Off, &turn, vocabulary).map(|stored| stored.content);
    for &half in &halves[..halves.len() - 1] {
        ids.push(half);
        assert_eq!(read(&ids), Ok(" Paris".into()));
    }
    ids.extend(halves.last());
    assert_eq!(read(&ids), Ok(" Paris🧑".into()));
    // Not the beginning of a character, but a control token: that is no text to be mended.
    ids.push(turn.separator);
    ids.extend(vocabulary.ids(&[" Paris"]));
    assert_eq!(read(&ids), Err(refusal("there is a control token in the text")));
}
