//! The shared fixtures and the released vocabulary, for the tests of this module.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Deserialize;

use super::{Conversation, RenderOptions, Segment, render};
use crate::Error;

/// A conversation with what the released encoder and tokenizer make of it.
pub struct Rendered {
    pub name: String,
    pub conversation: Conversation,
    pub text: String,
    pub segments: Vec<(String, bool)>,
    pub ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Expected {
    name: String,
    text: Option<String>,
    segments: Vec<(String, bool)>,
    ids: Vec<u32>,
}

/// All conversations of the fixtures, those in files of their own included.
pub fn conversations() -> Vec<Rendered> {
    let listed: Vec<Raw> = parse(include_str!("../../../fixtures/chat/conversations.json"));
    let mut all: Vec<_> = listed.iter().map(|raw| case(raw.get(), None)).collect();
    assert_eq!(all.len(), 33);
    macro_rules! file {
        ($name:literal, $extension:literal) => {
            include_str!(concat!("../../../fixtures/chat/", $name, ".", $extension))
        };
    }
    macro_rules! single {
        ($name:literal) => {
            let single = case(file!($name, "json"), Some(file!($name, "txt")));
            assert_eq!(single.ids, parse::<Vec<u32>>(&format!("[{}]", file!($name, "ids"))));
            all.push(single);
        };
    }
    single!("01");
    single!("02");
    single!("03");
    single!("04");
    all
}

type Raw = alloc::boxed::Box<serde_json::value::RawValue>;

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> T {
    serde_json::from_str(text).expect("a valid fixture")
}

/// Files of their own keep the text apart and the options at the top level.
fn case(json: &str, text: Option<&str>) -> Rendered {
    let expected: Expected = parse(json);
    let mut conversation = Conversation::from_json(json.as_bytes()).expect(&expected.name);
    if text.is_some() {
        conversation.options = RenderOptions::from_json(json.as_bytes()).expect(&expected.name);
    }
    Rendered {
        name: expected.name,
        conversation,
        text: text.map(ToString::to_string).or(expected.text).expect("a text"),
        segments: expected.segments,
        ids: expected.ids,
    }
}

/// The text of segments.
pub fn text(segments: &[Segment]) -> String {
    segments.iter().map(|segment| segment.text.as_str()).collect()
}

/// The text of a conversation given as JSON.
pub fn rendered(json: &str) -> String {
    let conversation = Conversation::from_json(json.as_bytes()).expect(json);
    text(&render(&conversation).expect(json))
}

/// Why a conversation given as JSON cannot be rendered.
pub fn refused(json: &str) -> String {
    let conversation = Conversation::from_json(json.as_bytes()).expect(json);
    match render(&conversation) {
        Err(Error::Chat(reason)) => reason,
        other => panic!("{json}: {other:?}"),
    }
}

/// The text of messages without any notice, and without the start of an answer.
pub fn messages(json: &str) -> String {
    rendered(&bare(json))
}

/// A conversation of these messages alone.
pub fn bare(messages: &str) -> String {
    format!(r#"{{"messages": {messages}, "options": {{"thinking": false, "add_generation_prompt": false}}}}"#)
}
