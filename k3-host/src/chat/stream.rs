//! An answer as text while it is generated: each id as soon as its channel is certain and its characters are whole.

use std::io;

use k3_core::chat::{Channel, Event, Thinking, TokenText, TurnReader, TurnTokens};
use k3_core::tokenizer::Utf8Stream;

use super::turn::{Progress, Watcher};

/// Reads ids and tells a watcher the text.
pub struct TurnStream<'a> {
    reader: TurnReader<'a>,
    tokens: &'a dyn TokenText,
    events: Vec<Event>,
    /// Bytes of `channel` that are no whole character yet.
    bytes: Utf8Stream,
    channel: Channel,
}

impl<'a> TurnStream<'a> {
    /// A stream of what follows a prompt rendered with `thinking`.
    #[must_use]
    pub fn new(thinking: Thinking, turn: &'a TurnTokens, tokens: &'a dyn TokenText) -> Self {
        let channel = if thinking == Thinking::Off { Channel::Response } else { Channel::Think };
        let reader = TurnReader::new(thinking, turn, tokens);
        Self { reader, tokens, events: Vec::new(), bytes: Utf8Stream::new(), channel }
    }

    /// Reads the next id.
    ///
    /// # Errors
    /// Those of `watcher`.
    pub fn push(&mut self, id: u32, watcher: &mut dyn Watcher) -> io::Result<()> {
        self.reader.push(id, &mut self.events);
        self.tell(watcher)
    }

    /// Gives out what was held back.
    ///
    /// # Errors
    /// Those of `watcher`.
    pub fn finish(mut self, watcher: &mut dyn Watcher) -> io::Result<()> {
        self.reader.finish(&mut self.events);
        self.tell(watcher)?;
        self.flush(watcher)
    }

    fn tell(&mut self, watcher: &mut dyn Watcher) -> io::Result<()> {
        for event in std::mem::take(&mut self.events) {
            match event {
                Event::Text { channel, id } => {
                    self.text(channel, self.tokens.token_bytes(id).unwrap_or_default(), watcher)?
                }
                Event::Call { tool } => self.text(Channel::Tools, format!("\n{tool}").as_bytes(), watcher)?,
                Event::Argument { key, .. } => {
                    self.text(Channel::Argument, format!("\n{key}: ").as_bytes(), watcher)?
                }
                Event::JsonArguments => self.text(Channel::Argument, b"\n", watcher)?,
                Event::Enter(_) | Event::ArgumentEnd | Event::CallEnd { .. } | Event::End { .. } => {}
            }
        }
        Ok(())
    }

    fn text(&mut self, channel: Channel, bytes: &[u8], watcher: &mut dyn Watcher) -> io::Result<()> {
        if channel != self.channel {
            self.flush(watcher)?;
            self.channel = channel;
        }
        let text = self.bytes.push_text(bytes);
        see_text(channel, &text, watcher)
    }

    fn flush(&mut self, watcher: &mut dyn Watcher) -> io::Result<()> {
        let text = self.bytes.finish_text();
        see_text(self.channel, &text, watcher)
    }
}

fn see_text(channel: Channel, text: &str, watcher: &mut dyn Watcher) -> io::Result<()> {
    if text.is_empty() { Ok(()) } else { watcher.see(Progress::Text { channel, text }) }
}
