//! The chat format: conversations into prompts, and generated tokens back into turns.
//!
//! Reading order: [`conversation`] (what there is to say), [`render`](render()) into [`Segment`]s, [`encode`] into ids. Then
//! what the model generates: [`TurnReader`] reads it token by token, [`Turn`] is a whole answer as shown,
//! [`read_stored_turn`] admits one that may be stored, and [`history`] is the file it is stored in.

pub mod conversation;
pub mod history;
pub mod json;
mod json_parse;
mod json_write;
mod markup;
mod reader;
mod render;
mod request;
mod segments;
mod strict;
mod tokens;
mod tool_results;
mod turn;

pub use conversation::{
    Arguments, Conversation, Effort, Message, Part, RenderOptions, ResponseFormat, Role, Thinking,
    ToolCall, ToolChoice,
};
pub use json_write::Style;
pub use reader::{Channel, Event, TurnReader};
pub use render::{IMAGE_PLACEHOLDER, image_prompt, render};
pub use segments::{Segment, SegmentEncoder, SegmentKind, encode};
pub use strict::{StoredTurn, read_stored_turn};
pub use tokens::{TokenText, TurnTokens};
pub use turn::{Ending, Turn};

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod vocabulary;
