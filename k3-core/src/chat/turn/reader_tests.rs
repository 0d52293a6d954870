use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::chat::vocabulary::{ReleasedTokens, released};
use crate::tokenizer::Tokenizer;

fn events(vocabulary: &Tokenizer, thinking: Thinking, ids: &[u32]) -> Vec<Event> {
    let turn = vocabulary.turn_tokens();
    let mut reader = TurnReader::new(thinking, &turn, vocabulary);
    let mut events = Vec::new();
    for &id in ids {
        reader.push(id, &mut events);
    }
    reader.finish(&mut events);
    events
}

#[test]
fn the_released_ids_are_those_of_the_format_page() {
    let turn = released().turn_tokens();
    assert_eq!((turn.open, turn.close, turn.separator), (163_587, 163_588, 163_589));
    assert_eq!((turn.end_of_message, turn.end_of_text), (163_586, 163_585));
    assert_eq!(turn.reasoning_end, [163_588, 39_964, 163_589, 163_587, 12_092, 163_589]);
    assert_eq!(turn.content_end, [163_588, 12_092, 163_589, 163_588, 2_778, 163_589]);
}

#[test]
fn both_ends_end_a_turn_and_nothing_after_counts() {
    let vocabulary = released();
    for end in ["<|end_of_msg|>", "[EOS]"] {
        let ids = vocabulary.ids(&[" Paris", end, " Paris"]);
        let expected = [Event::Text { channel: Channel::Think, id: 17_374 }, Event::End { closed: false }];
        assert_eq!(events(vocabulary, Thinking::On(None), &ids), expected);
    }
}

#[test]
fn events_come_as_soon_as_they_are_certain() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let mut reader = TurnReader::new(Thinking::On(None), &turn, vocabulary);
    let mut step = |text: &str| {
        let mut events = Vec::new();
        reader.push(vocabulary.ids(&[text])[0], &mut events);
        events
    };
    let text = |channel, text: &str| Event::Text { channel, id: vocabulary.ids(&[text])[0] };
    assert_eq!(step(" Paris"), [text(Channel::Think, " Paris")]);
    // A tag that comes to nothing is held back, then shown.
    assert_eq!(step("<|close|>"), []);
    assert_eq!(step(" Paris"), []);
    assert_eq!(
        step("<|sep|>"),
        [text(Channel::Think, "<|close|>"), text(Channel::Think, " Paris"), text(Channel::Think, "<|sep|>")]
    );
    for id in ["<|close|>", "think", "<|sep|>", "<|open|>", "response"] {
        assert_eq!(step(id), []);
    }
    assert_eq!(step("<|sep|>"), [Event::Enter(Channel::Response)]);
    assert_eq!(step(" Paris"), [text(Channel::Response, " Paris")]);
    for id in ["<|close|>", "response", "<|sep|>", "<|close|>", "message", "<|sep|>"] {
        assert_eq!(step(id), []);
    }
    assert_eq!(step("[EOS]"), [Event::End { closed: true }]);
}

#[test]
fn a_tag_without_end_is_held_back_only_so_long() {
    let vocabulary = released();
    let turn = vocabulary.turn_tokens();
    let mut reader = TurnReader::new(Thinking::Off, &turn, vocabulary);
    let mut events = Vec::new();
    reader.push(turn.open, &mut events);
    for _ in 0..MAX_TAG_TOKENS - 2 {
        reader.push(17_374, &mut events);
    }
    assert_eq!(events, []);
    reader.push(17_374, &mut events);
    assert_eq!(events.len(), MAX_TAG_TOKENS);
    reader.push(17_374, &mut events);
    assert_eq!(events.len(), MAX_TAG_TOKENS + 1);
}

proptest! {
    /// Words that stand in no tag come out as text, in order, whatever is around them.
    #[test]
    fn no_text_is_lost(pieces in proptest::collection::vec(0usize..PIECES.len(), 0..60), thinking in any::<bool>()) {
        let vocabulary = released();
        let thinking = if thinking { Thinking::On(None) } else { Thinking::Off };
        let ids: Vec<u32> = pieces.iter().flat_map(|&piece| vocabulary.ids(PIECES[piece])).collect();
        let markers = vocabulary.ids(&[" Paris", " London"]);
        let is_marker = |id: &u32| markers.contains(id);
        let ends = vocabulary.ids(&["[EOS]", "<|end_of_msg|>"]);
        let end = ids.iter().position(|id| ends.contains(id)).unwrap_or(ids.len());
        let pushed: Vec<u32> = ids[..end].iter().copied().filter(is_marker).collect();
        let shown: Vec<u32> = events(vocabulary, thinking, &ids)
            .into_iter()
            .filter_map(|event| if let Event::Text { id, .. } = event { Some(id) } else { None })
            .filter(is_marker)
            .collect();
        prop_assert_eq!(shown, pushed);
    }
}

const PIECES: &[&[&str]] = &[
    &[" Paris"],
    &[" London"],
    &["<|open|>"],
    &["<|close|>"],
    &["<|sep|>"],
    &["think"],
    &["<|open|>", "think", "<|sep|>"],
    &["<|close|>", "think", "<|sep|>"],
    &["<|open|>", "response", "<|sep|>"],
    &["<|close|>", "response", "<|sep|>"],
    &["<|open|>", "tools", "<|sep|>"],
    &["<|close|>", "tools", "<|sep|>"],
    &["<|open|>", "call", " tool", "=\"", "think", "\"", "<|sep|>"],
    &["<|close|>", "call", "<|sep|>"],
    &["<|open|>", "argument", " key", "=\"", "think", "\"", " type", "=\"", "string", "\"", "<|sep|>"],
    &["<|close|>", "argument", "<|sep|>"],
    &["<|open|>", "json", "<|sep|>"],
    &["<|close|>", "json", "<|sep|>"],
    &["<|close|>", "message", "<|sep|>"],
    &["<|media_pad|>"],
    &["[EOS]"],
];
