//! Generated turns.
//!
//! [`TurnReader`] reads a turn token by token; [`Turn`] is a whole one as shown, reasoning, content and tool calls apart;
//! [`read_stored_turn`] admits one that may be stored.

mod events;
mod markup;
mod reader;
mod strict;
mod tokens;

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::chat::conversation::{Arguments, Thinking, ToolCall};
use crate::chat::json::Json;
pub use events::{Channel, Event};
pub use reader::TurnReader;
pub use strict::{StoredTurn, read_cut_turn, read_stored_turn};
pub use tokens::{TokenText, TurnTokens};

/// A generated turn. Bytes that are no characters are U+FFFD in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What the model thought.
    pub reasoning: String,
    /// What it said.
    pub content: String,
    /// The tools it calls; only calls that are whole and whose arguments are of the types they claim.
    pub tool_calls: Vec<ToolCall>,
    /// What else stands where it calls tools, as the model spelled it: calls cut short or malformed.
    pub unread_calls: String,
    /// How it ended.
    pub ending: Ending,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Everything was closed, and the turn ended.
    Finished,
    /// The turn ended with something open.
    Unclosed,
    /// The model was stopped before it ended the turn.
    Cut,
}

impl Turn {
    /// Reads the tokens generated after a prompt rendered with `thinking`. Those after the end of the turn are ignored.
    #[must_use]
    pub fn read(ids: &[u32], thinking: Thinking, turn: &TurnTokens, tokens: &dyn TokenText) -> Turn {
        let mut reader = TurnReader::new(thinking, turn, tokens);
        let mut events = Vec::new();
        for &id in ids {
            reader.push(id, &mut events);
        }
        reader.finish(&mut events);
        let mut collector = Collector::new(ids, tokens);
        for event in events {
            collector.take(event);
        }
        collector.turn()
    }
}

struct Collector<'a> {
    ids: &'a [u32],
    tokens: &'a dyn TokenText,
    reasoning: Vec<u8>,
    content: Vec<u8>,
    calls: Vec<ToolCall>,
    unread: Vec<u8>,
    call: Option<Draft>,
    ending: Ending,
}

/// A call that is not over yet.
#[derive(Default)]
struct Draft {
    tool: String,
    arguments: Vec<ArgumentDraft>,
}

struct ArgumentDraft {
    /// None for a block that holds all arguments.
    name_and_type: Option<(String, String)>,
    text: Vec<u8>,
}

impl<'a> Collector<'a> {
    fn new(ids: &'a [u32], tokens: &'a dyn TokenText) -> Collector<'a> {
        Collector {
            ids,
            tokens,
            reasoning: Vec::new(),
            content: Vec::new(),
            calls: Vec::new(),
            unread: Vec::new(),
            call: None,
            ending: Ending::Cut,
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Enter(_) | Event::ArgumentEnd => {}
            Event::Text { channel, id } => self.text(channel, id),
            Event::Call { tool } => self.call = Some(Draft { tool, ..Draft::default() }),
            Event::Argument { key, type_name } => self.argument(Some((key, type_name))),
            Event::JsonArguments => self.argument(None),
            Event::CallEnd { whole, tokens } => self.end_call(whole, tokens),
            Event::End { closed } => self.ending = if closed { Ending::Finished } else { Ending::Unclosed },
        }
    }

    fn argument(&mut self, name_and_type: Option<(String, String)>) {
        if let Some(call) = &mut self.call {
            call.arguments.push(ArgumentDraft { name_and_type, text: Vec::new() });
        }
    }

    fn text(&mut self, channel: Channel, id: u32) {
        let tokens = self.tokens;
        let bytes = tokens.token_bytes(id).unwrap_or_default();
        match (channel, &mut self.call) {
            (Channel::Think, _) => self.reasoning.extend_from_slice(bytes),
            (Channel::Response, _) => self.content.extend_from_slice(bytes),
            (Channel::Argument, Some(call)) => call.extend_argument(bytes),
            // What stands in a call beside its arguments is among the tokens of the call.
            (Channel::Tools, Some(_)) => {}
            (Channel::Tools | Channel::Argument, None) => self.unread.extend_from_slice(bytes),
        }
    }

    fn end_call(&mut self, whole: bool, tokens: Range<usize>) {
        let call = self.call.take().filter(|_| whole).and_then(Draft::into_call);
        match call {
            Some(call) => self.calls.push(call),
            None => {
                for &id in &self.ids[tokens] {
                    self.unread.extend_from_slice(self.tokens.token_bytes(id).unwrap_or_default());
                }
            }
        }
    }

    fn turn(self) -> Turn {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Turn {
            reasoning: text(self.reasoning),
            content: text(self.content),
            tool_calls: self.calls,
            unread_calls: text(self.unread),
            ending: self.ending,
        }
    }
}

impl Draft {
    fn extend_argument(&mut self, bytes: &[u8]) {
        if let Some(argument) = self.arguments.last_mut() {
            argument.text.extend_from_slice(bytes);
        }
    }

    /// The call, unless an argument is not what it claims to be, comes twice, or stands beside a block.
    fn into_call(self) -> Option<ToolCall> {
        let mut arguments = self.arguments;
        let arguments = match &mut arguments[..] {
            [ArgumentDraft { name_and_type: None, text }] => block(String::from_utf8(core::mem::take(text)).ok()?),
            _ => Arguments::Named(named(arguments)?),
        };
        Some(ToolCall { id: None, name: self.tool, arguments })
    }
}

fn block(text: String) -> Arguments {
    match Json::parse(&text) {
        Ok(Json::Object(entries)) => Arguments::Named(entries),
        _ => Arguments::Unreadable(text),
    }
}

fn named(arguments: Vec<ArgumentDraft>) -> Option<Vec<(String, Json)>> {
    let mut entries: Vec<(String, Json)> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let (key, type_name) = argument.name_and_type?;
        if entries.iter().any(|(earlier, _)| *earlier == key) {
            return None;
        }
        entries.push((key, typed(&type_name, String::from_utf8(argument.text).ok()?)?));
    }
    Some(entries)
}

/// A string is its text; any other type is JSON.
fn typed(type_name: &str, text: String) -> Option<Json> {
    if type_name == "string" {
        return Some(Json::String(text));
    }
    Json::parse(&text).ok().filter(|value| value.type_name() == type_name)
}

#[cfg(test)]
mod tests;
