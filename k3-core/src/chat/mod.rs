//! The chat format: conversations into prompts, and generated tokens back into turns.
//!
//! Reading order: [`conversation`] (what there is to say), [`render`](render()) into [`Segment`]s, [`encode`] into ids. Then
//! what the model generates: [`TurnReader`] reads it token by token, [`Turn`] is a whole answer as shown,
//! [`read_stored_turn`] admits one that may be stored, and [`history`] is the file it is stored in.

pub mod conversation;
pub mod history;
pub mod json;
mod render;
mod request;
mod request_options;
mod segments;
mod tokenizer;
mod tool_results;
pub mod turn;

pub use conversation::{
    Arguments, Conversation, Effort, Message, Part, RenderOptions, ResponseFormat, Role, Thinking, ToolCall, ToolChoice,
};
pub use json::{Json, Style};
pub use render::{IMAGE_PLACEHOLDER, image_prompt, render};
pub use segments::{Segment, SegmentEncoder, SegmentKind, encode};
pub use turn::{
    Channel, Ending, Event, StoredTurn, TokenText, Turn, TurnReader, TurnTokens, read_cut_turn, read_stored_turn,
};

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod vocabulary;
