//! The file that keeps a conversation: one JSON object per line.
//!
//! ```text
//! {"role":"system","content":"You are terse."}
//! {"role":"user","content":"1+1?"}
//! {"role":"assistant","content":"2","reasoning_content":"easy"}
//! ```
//!
//! A [`History`] keeps these invariants, whether it was read or built, so that what is written can always be read again:
//! 1. A system message stands first or not at all; after it user and assistant alternate, the user first.
//! 2. Only assistants have reasoning.
//! 3. No text contains U+0000, and no line is longer than [`MAX_LINE_BYTES`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use serde::Deserialize;

use super::conversation::{Message, Role};
use crate::{Error, Result};

/// The longest line, in bytes, without its line feed: 16 MiB.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// A stored conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct History {
    entries: Vec<Entry>,
}

/// A stored message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Who speaks.
    pub role: Speaker,
    /// What is said.
    pub content: String,
    /// What an assistant thought, if thinking was on.
    pub reasoning: Option<String>,
}

/// Who speaks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Speaker {
    /// The one who sets the rules.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    role: Speaker,
    content: String,
    /// Not an `Option`, which would also read `null`.
    #[serde(default, deserialize_with = "some_string")]
    reasoning_content: Option<String>,
}

fn some_string<'de, D: serde::Deserializer<'de>>(deserializer: D) -> core::result::Result<Option<String>, D::Error> {
    String::deserialize(deserializer).map(Some)
}

impl History {
    /// Reads a file. An empty one is an empty history; the last line may lack its line feed.
    ///
    /// # Errors
    /// [`Error::History`] with the line that is blank, too long, not UTF-8, not one JSON object of the known fields, or
    /// against the invariants.
    pub fn read(file: &[u8]) -> Result<History> {
        let mut history = History::default();
        if file.is_empty() {
            return Ok(history);
        }
        let lines = file.strip_suffix(b"\n").unwrap_or(file);
        for (index, line) in lines.split(|&byte| byte == b'\n').enumerate() {
            read_line(line)
                .and_then(|entry| history.admit(entry))
                .map_err(|reason| Error::History { line: Some(index + 1), reason })?;
        }
        Ok(history)
    }

    /// The text of the file.
    #[must_use]
    pub fn write(&self) -> String {
        let mut file = String::new();
        for entry in &self.entries {
            write_line(entry, &mut file);
            file.push('\n');
        }
        file
    }

    /// All messages, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The text of the system message, if there is one.
    #[must_use]
    pub fn system(&self) -> Option<&str> {
        self.entries.first().filter(|entry| entry.role == Speaker::System).map(|entry| entry.content.as_str())
    }

    /// The number of the turn that comes next, or that a last user message has begun: assistant messages so far, plus one.
    #[must_use]
    pub fn turn(&self) -> u64 {
        1 + self.entries.iter().map(|entry| u64::from(entry.role == Speaker::Assistant)).sum::<u64>()
    }

    /// The messages to render.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        self.entries.iter().map(message).collect()
    }

    /// Adds a message.
    ///
    /// # Errors
    /// [`Error::History`] if it would break an invariant; nothing is added then.
    pub fn push(&mut self, entry: Entry) -> Result<()> {
        self.admit(entry).map_err(|reason| Error::History { line: None, reason })
    }

    /// Takes back a last user message that has no answer.
    pub fn remove_unanswered(&mut self) -> Option<Entry> {
        self.entries.pop_if(|entry| entry.role == Speaker::User)
    }

    /// Takes back a last answer; what it answers stays.
    pub fn remove_answer(&mut self) -> Option<Entry> {
        self.entries.pop_if(|entry| entry.role == Speaker::Assistant)
    }

    /// Forgets everything but the system message.
    pub fn reset(&mut self) {
        self.entries.retain(|entry| entry.role == Speaker::System);
    }

    fn admit(&mut self, entry: Entry) -> core::result::Result<(), String> {
        let last = self.entries.last().map(|entry| entry.role);
        match (last, entry.role) {
            (None, Speaker::System | Speaker::User)
            | (Some(Speaker::System | Speaker::Assistant), Speaker::User)
            | (Some(Speaker::User), Speaker::Assistant) => {}
            (_, Speaker::System) => return Err("a system message may only stand first".into()),
            (_, Speaker::User) => return Err("a user message follows a user message".into()),
            (_, Speaker::Assistant) => {
                return Err("an assistant message follows no user message".into());
            }
        }
        if entry.reasoning.is_some() && entry.role != Speaker::Assistant {
            return Err("only an assistant message may have `reasoning_content`".into());
        }
        let texts = [Some(&entry.content), entry.reasoning.as_ref()];
        if texts.into_iter().flatten().any(|text| text.contains('\0')) {
            return Err("a text contains U+0000".into());
        }
        let mut line = String::new();
        write_line(&entry, &mut line);
        check_length(line.len())?;
        self.entries.push(entry);
        Ok(())
    }
}

fn check_length(bytes: usize) -> core::result::Result<(), String> {
    if bytes > MAX_LINE_BYTES {
        return Err(format!("the line has {bytes} bytes; {MAX_LINE_BYTES} are allowed"));
    }
    Ok(())
}

fn read_line(line: &[u8]) -> core::result::Result<Entry, String> {
    check_length(line.len())?;
    if line.trim_ascii().is_empty() {
        return Err("the line is blank".into());
    }
    let text = core::str::from_utf8(line).map_err(|error| format!("not UTF-8 after byte {}", error.valid_up_to()))?;
    let line: Line = serde_json::from_str(text).map_err(|error| {
        // The message ends with a line number, which is always 1 here.
        let message = error.to_string();
        let reason = message.rsplit_once(" at line ").map_or(message.as_str(), |(reason, _)| reason);
        format!("{reason} at column {}", error.column())
    })?;
    Ok(Entry { role: line.role, content: line.content, reasoning: line.reasoning_content })
}

fn write_line(entry: &Entry, out: &mut String) {
    out.push_str("{\"role\":\"");
    out.push_str(match entry.role {
        Speaker::System => "system",
        Speaker::User => "user",
        Speaker::Assistant => "assistant",
    });
    out.push_str("\",\"content\":\"");
    escape(&entry.content, out);
    if let Some(reasoning) = &entry.reasoning {
        out.push_str("\",\"reasoning_content\":\"");
        escape(reasoning, out);
    }
    out.push_str("\"}");
}

/// The five short escapes, `\u00xx` for other control characters, and everything else as it is.
fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
}

fn message(entry: &Entry) -> Message {
    let role = match entry.role {
        Speaker::System => Role::System,
        Speaker::User => Role::User,
        Speaker::Assistant => Role::Assistant,
    };
    let mut message = Message::new(role, entry.content.as_str());
    message.reasoning = entry.reasoning.clone().unwrap_or_default();
    message
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
