//! What there is to render: messages, declared tools and options.
//!
//! `request.rs` reads these from the JSON of a chat request; a program can also build them directly.

use alloc::string::String;
use alloc::vec::Vec;

use super::json::Json;

/// A conversation and how to render it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Conversation {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// Declarations of the tools that exist from the start.
    pub tools: Vec<Json>,
    /// How to render.
    pub options: RenderOptions,
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The one who sets the rules.
    System,
    /// The one who asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
    /// Anybody else; renders nothing.
    Other,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The speaker's name; not used by tool results.
    pub name: Option<String>,
    /// What is said, part after part.
    pub content: Vec<Part>,
    /// What an assistant thought before it spoke.
    pub reasoning: String,
    /// The tools an assistant calls after it has spoken.
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool result: the id of the call it answers.
    pub call_id: Option<String>,
    /// Of a tool result: the tool's name, which counts only if the id leads to no call.
    pub tool: Option<String>,
    /// Of a system message: declarations of further tools, rendered in place of its content.
    pub tools: Vec<Json>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image; which one, the image prompts say.
    Image,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// The name by which a result refers to the call; opaque.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// What the tool is given.
    pub arguments: Arguments,
}

/// What a tool is given.
#[derive(Debug, Clone, PartialEq)]
pub enum Arguments {
    /// Names and values, in order.
    Named(Vec<(String, Json)>),
    /// A text that should have been a JSON object and is no JSON.
    Unreadable(String),
}

/// How to render a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct RenderOptions {
    /// Whether the model thinks before it speaks, and how hard.
    pub thinking: Thinking,
    /// Whether the text ends with the start of the assistant's next message.
    pub add_generation_prompt: bool,
    /// Whether the next message must or must not call tools.
    pub tool_choice: ToolChoice,
    /// The form that the next response must have.
    pub response_format: ResponseFormat,
    /// The text of each image in order, see [`image_prompt`](super::image_prompt); without it placeholders stay as they
    /// are.
    pub image_prompts: Option<Vec<String>>,
}

/// Whether the model thinks before it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// It answers at once; stored reasoning is not rendered.
    Off,
    /// It thinks first. Without an effort, none is announced.
    On(Option<Effort>),
}

/// How hard the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// `low`
    Low,
    /// `high`
    High,
    /// `max`
    Max,
}

/// Whether the next message must or must not call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolChoice {
    /// The model decides; nothing is announced.
    #[default]
    Auto,
    /// It must.
    Required,
    /// It must not.
    Forbidden,
}

/// The form that the next response must have.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ResponseFormat {
    /// Any text; nothing is announced.
    #[default]
    Text,
    /// Any JSON.
    JsonObject,
    /// JSON that this schema describes.
    JsonSchema(Json),
}

impl Default for RenderOptions {
    /// The released defaults: thinking at full effort, and the model speaks next.
    fn default() -> RenderOptions {
        RenderOptions {
            thinking: Thinking::On(Some(Effort::Max)),
            add_generation_prompt: true,
            tool_choice: ToolChoice::Auto,
            response_format: ResponseFormat::Text,
            image_prompts: None,
        }
    }
}

impl Effort {
    /// The effort of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Effort> {
        [Effort::Low, Effort::High, Effort::Max].into_iter().find(|effort| effort.name() == name)
    }

    /// The effort's name in the prompt.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Effort::Low => "low",
            Effort::High => "high",
            Effort::Max => "max",
        }
    }
}

impl Message {
    /// A message of plain text.
    #[must_use]
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message {
            role,
            name: None,
            content: [Part::Text(content.into())].into(),
            reasoning: String::new(),
            tool_calls: Vec::new(),
            call_id: None,
            tool: None,
            tools: Vec::new(),
        }
    }
}

/// Whether Python's `str.isspace` holds: the Unicode white space that Rust knows, and the four separators U+001C to U+001F.
pub(super) fn is_python_space(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// Whether Python's `str.strip` would leave nothing.
pub(super) fn is_blank(text: &str) -> bool {
    text.chars().all(is_python_space)
}
