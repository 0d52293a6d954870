//! The chat format: conversations into prompts, and generated tokens back into turns.
//!
//! Reading order: [`conversation`] (what there is to say), [`render`](render()) into [`Segment`]s, [`encode`] into ids; then
//! [`tags`] and [`reader`] for what the model generates, [`turn`] for a whole answer as shown, [`strict`] for one that may
//! be stored, and [`history`] for the file it is stored in.

pub mod conversation;
pub mod json;
mod json_parse;
mod json_write;
mod render;
mod request;
mod segments;
mod tool_results;

pub use conversation::{
    Arguments, Conversation, Effort, Message, Part, RenderOptions, ResponseFormat, Role, Thinking,
    ToolCall, ToolChoice,
};
pub use json_write::Style;
pub use render::{IMAGE_PLACEHOLDER, image_prompt, render};
pub use segments::{Segment, SegmentEncoder, SegmentKind, encode};

#[cfg(test)]
mod fixtures;
