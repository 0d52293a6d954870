//! Reading a turn token by token while the model generates it.
//!
//! Nothing is refused and no text is lost. Markup that makes sense where it stands changes the channel; any other control
//! token, and markup that does not, counts as text of the channel it stands in and is shown as it is spelled. Real turns
//! need this: a think block is cut short, a channel is opened before the last one is closed, a message just ends.

use alloc::vec::Vec;

use super::events::{Channel, Event};
use super::markup::Tag;
use super::tokens::{TokenText, TurnTokens, text_of};
use crate::chat::conversation::Thinking;

/// No tag is longer, in tokens: text after a stray `<|open|>` is shown after so many at the latest.
const MAX_TAG_TOKENS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Think,
    Response,
    /// After a channel, before the next.
    Between,
    Tools,
    Call,
    Argument,
    Json,
    /// After the message was closed in order.
    Closed,
}

/// Reads a turn.
pub struct TurnReader<'a> {
    turn: &'a TurnTokens,
    tokens: &'a dyn TokenText,
    place: Place,
    /// `<|open|>` or `<|close|>` and what followed, until it is a tag or cannot become one.
    pending: Vec<u32>,
    /// How many tokens were read.
    read: usize,
    call: Option<OpenCall>,
    ended: bool,
}

struct OpenCall {
    /// Its first token.
    start: usize,
    whole: bool,
}

impl<'a> TurnReader<'a> {
    /// A reader of what follows a prompt rendered with `thinking`.
    #[must_use]
    pub fn new(thinking: Thinking, turn: &'a TurnTokens, tokens: &'a dyn TokenText) -> TurnReader<'a> {
        let place = if thinking == Thinking::Off { Place::Response } else { Place::Think };
        TurnReader { turn, tokens, place, pending: Vec::new(), read: 0, call: None, ended: false }
    }

    /// Whether the turn is over; further tokens are not part of it and are ignored.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// Reads the next token and appends what it makes known to `events`.
    pub fn push(&mut self, id: u32, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        let begins_tag = id == self.turn.open || id == self.turn.close;
        if self.turn.ends_turn(id) {
            self.finish(events);
            events.push(Event::End { closed: self.place == Place::Closed });
            self.ended = true;
        } else if begins_tag {
            self.pending_as_text(events);
            self.pending.push(id);
        } else if self.pending.is_empty() {
            self.text(id, events);
        } else {
            self.continue_tag(id, events);
        }
        self.read += 1;
    }

    /// Gives out what was held back: for a turn that stops without a token that ends it.
    pub fn finish(&mut self, events: &mut Vec<Event>) {
        self.pending_as_text(events);
        self.end_call(false, self.read, events);
    }

    fn continue_tag(&mut self, id: u32, events: &mut Vec<Event>) {
        self.pending.push(id);
        if id == self.turn.separator {
            if !self.element(events) {
                self.pending_as_text(events);
            }
            self.pending.clear();
        } else if self.tokens.is_added(id) || self.pending.len() == MAX_TAG_TOKENS {
            self.pending_as_text(events);
        }
    }

    fn pending_as_text(&mut self, events: &mut Vec<Event>) {
        for id in core::mem::take(&mut self.pending) {
            self.text(id, events);
        }
    }

    fn text(&mut self, id: u32, events: &mut Vec<Event>) {
        let channel = match self.place {
            Place::Think => Channel::Think,
            Place::Response => Channel::Response,
            // Text that forgot its channel can only be meant for the reader.
            Place::Between | Place::Closed => {
                self.enter(Place::Response, Channel::Response, events);
                Channel::Response
            }
            Place::Tools => Channel::Tools,
            Place::Call => {
                self.spoil_call(!self.is_white_space(id));
                Channel::Tools
            }
            Place::Argument | Place::Json => {
                self.spoil_call(self.tokens.is_added(id));
                Channel::Argument
            }
        };
        events.push(Event::Text { channel, id });
    }

    fn is_white_space(&self, id: u32) -> bool {
        self.tokens.token_bytes(id).is_some_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace))
    }

    fn spoil_call(&mut self, spoiled: bool) {
        if let Some(call) = &mut self.call {
            call.whole &= !spoiled;
        }
    }

    fn enter(&mut self, place: Place, channel: Channel, events: &mut Vec<Event>) {
        self.place = place;
        events.push(Event::Enter(channel));
    }

    /// Follows the tag that is now complete. False if it makes no sense here.
    fn element(&mut self, events: &mut Vec<Event>) -> bool {
        let [edge, name @ .., _separator] = &self.pending[..] else {
            return false;
        };
        let Some(tag) = text_of(name, self.tokens).and_then(|text| Tag::parse(&text)) else {
            return false;
        };
        let start = self.read + 1 - self.pending.len();
        if *edge == self.turn.open { self.open(&tag, start, events) } else { self.close(&tag, start, events) }
    }

    fn open(&mut self, tag: &Tag, start: usize, events: &mut Vec<Event>) -> bool {
        let (place, channel) = match tag.name.as_str() {
            "think" => (Place::Think, Channel::Think),
            "response" => (Place::Response, Channel::Response),
            "tools" => (Place::Tools, Channel::Tools),
            "call" => return self.open_call(tag, start, events),
            "argument" | "json" => return self.open_argument(tag, events),
            _ => return false,
        };
        self.end_call(false, start, events);
        self.enter(place, channel, events);
        true
    }

    /// A call may begin wherever no text does; one that is still open is then over.
    fn open_call(&mut self, tag: &Tag, start: usize, events: &mut Vec<Event>) -> bool {
        let Some(tool) = tag.attribute("tool") else {
            return false;
        };
        match self.place {
            Place::Think | Place::Response => return false,
            Place::Between | Place::Closed => self.enter(Place::Tools, Channel::Tools, events),
            Place::Tools | Place::Call | Place::Argument | Place::Json => self.end_call(false, start, events),
        }
        self.call = Some(OpenCall { start, whole: true });
        self.place = Place::Call;
        events.push(Event::Call { tool: tool.into() });
        true
    }

    fn open_argument(&mut self, tag: &Tag, events: &mut Vec<Event>) -> bool {
        if self.place != Place::Call {
            return false;
        }
        if tag.name == "json" {
            self.place = Place::Json;
            events.push(Event::JsonArguments);
            return true;
        }
        let (Some(key), Some(type_name)) = (tag.attribute("key"), tag.attribute("type")) else {
            return false;
        };
        self.place = Place::Argument;
        events.push(Event::Argument { key: key.into(), type_name: type_name.into() });
        true
    }

    fn close(&mut self, tag: &Tag, start: usize, events: &mut Vec<Event>) -> bool {
        let end = self.read + 1;
        match (tag.name.as_str(), self.place) {
            ("argument", Place::Argument) | ("json", Place::Json) => {
                self.place = Place::Call;
                events.push(Event::ArgumentEnd);
            }
            ("call", Place::Call | Place::Argument | Place::Json) => {
                self.end_call(self.place == Place::Call, end, events);
                self.place = Place::Tools;
            }
            // Closing a channel closes whichever is open: the model has mistaken the name, not the intent.
            ("think" | "response" | "tools" | "message", place) => {
                self.end_call(false, start, events);
                let in_order = tag.name == "message" && place == Place::Between;
                self.place = if in_order { Place::Closed } else { Place::Between };
            }
            _ => return false,
        }
        true
    }

    /// Ends the open call, if there is one, before token `end`.
    fn end_call(&mut self, closed: bool, end: usize, events: &mut Vec<Event>) {
        if let Some(call) = self.call.take() {
            self.place = Place::Tools;
            events.push(Event::CallEnd { whole: closed && call.whole, tokens: call.start..end });
        }
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
