//! Reading a conversation from the JSON of a chat request.
//!
//! The fields are those of the released encoder's `apply_chat_template`. Unknown fields are ignored, since real requests
//! carry many; a known field of the wrong type is an error. Where the encoder asks whether a key is there, and not
//! whether it holds anything, `Option<Json>` with [`present`] keeps the difference.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::result::Result;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::conversation::{Arguments, Conversation, Message, Part, RenderOptions, Role, ToolCall, is_blank};
use super::json::Json;
use crate::Error;

impl Conversation {
    /// Reads `{"messages": […], "tools": […], "options": {…}}`; only the messages are required.
    ///
    /// # Errors
    /// [`Error::Chat`] with the line and column if the text is no JSON, a field has the wrong type, or a value is one that
    /// the released encoder refuses.
    pub fn from_json(text: &[u8]) -> crate::Result<Conversation> {
        let fields: ConversationFields = read(text)?;
        Ok(Conversation { messages: fields.messages, tools: fields.tools.unwrap_or_default(), options: fields.options })
    }
}

pub(super) fn read<'a, T: Deserialize<'a>>(text: &'a [u8]) -> crate::Result<T> {
    serde_json::from_slice(text).map_err(|error| Error::Chat(error.to_string()))
}

#[derive(Deserialize)]
struct ConversationFields {
    messages: Vec<Message>,
    tools: Option<Vec<Json>>,
    #[serde(default)]
    options: RenderOptions,
}

/// A field that is there, even if it is `null`.
pub(super) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

#[derive(Deserialize)]
struct MessageFields {
    role: String,
    name: Option<Json>,
    content: Option<Json>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default, deserialize_with = "present")]
    tool_call_id: Option<Json>,
    id: Option<Json>,
    #[serde(default, deserialize_with = "present")]
    tool: Option<Json>,
    tools: Option<Vec<Json>>,
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Message, D::Error> {
        MessageFields::deserialize(deserializer)?.resolve().map_err(D::Error::custom)
    }
}

impl MessageFields {
    /// Settles which of two keys for the same thing counts.
    fn resolve(self) -> Result<Message, String> {
        let name = self.name.map(|name| plain_text(name, "name")).transpose()?.flatten();
        let tool = match self.tool {
            Some(tool) => plain_text(tool, "tool")?,
            None => name.clone(),
        };
        let reasoning = self.reasoning_content.filter(|text| !text.is_empty()).or(self.reasoning);
        Ok(Message {
            role: role(&self.role),
            name: name.filter(|name| !name.is_empty()),
            content: self.content.map_or(Ok(Vec::new()), content)?,
            reasoning: reasoning.unwrap_or_default(),
            tool_calls: self.tool_calls.unwrap_or_default(),
            call_id: plain_text(self.tool_call_id.or(self.id).unwrap_or(Json::Null), "tool_call_id")?,
            tool,
            tools: self.tools.unwrap_or_default(),
        })
    }
}

fn role(name: &str) -> Role {
    match name {
        "system" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::Other,
    }
}

/// A name or id, which may be written as an integer.
fn plain_text(value: Json, field: &str) -> Result<Option<String>, String> {
    match value {
        Json::Null => Ok(None),
        Json::String(text) | Json::Integer(text) => Ok(Some(text)),
        other => Err(format!("`{field}` must be a string, not of type {}", other.type_name())),
    }
}

fn content(value: Json) -> Result<Vec<Part>, String> {
    match value {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok([Part::Text(text)].into()),
        Json::Array(parts) => parts.iter().map(part).collect(),
        other => Err(format!("`content` must be a string or a list of parts, not of type {}", other.type_name())),
    }
}

fn part(value: &Json) -> Result<Part, String> {
    match (value.get("type"), value.get("text")) {
        (Some(Json::String(kind)), _) if kind == "image" || kind == "image_url" => Ok(Part::Image),
        (Some(Json::String(_)), Some(Json::String(text))) => Ok(Part::Text(text.clone())),
        _ => Err("a part of `content` must have a `type`, and a `text` unless it is an image".into()),
    }
}

#[derive(Deserialize)]
struct ToolCallFields {
    id: Option<Json>,
    function: Option<FunctionFields>,
    name: Option<String>,
    arguments: Option<Json>,
}

#[derive(Deserialize)]
struct FunctionFields {
    name: String,
    arguments: Option<Json>,
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ToolCall, D::Error> {
        let fields = ToolCallFields::deserialize(deserializer)?;
        let function = match (fields.function, fields.name) {
            (Some(function), _) => function,
            (None, Some(name)) => FunctionFields { name, arguments: fields.arguments },
            (None, None) => return Err(D::Error::missing_field("function")),
        };
        Ok(ToolCall {
            id: plain_text(fields.id.unwrap_or(Json::Null), "id").map_err(D::Error::custom)?,
            name: function.name,
            arguments: arguments(function.arguments.unwrap_or(Json::Null)).map_err(D::Error::custom)?,
        })
    }
}

/// An object, or the text of one.
fn arguments(value: Json) -> Result<Arguments, &'static str> {
    const NOT_AN_OBJECT: &str = "the arguments of a tool call must be a JSON object";
    match value {
        Json::Null => Ok(Arguments::Named(Vec::new())),
        Json::Object(entries) => Ok(Arguments::Named(entries)),
        Json::String(text) if is_blank(&text) => Ok(Arguments::Named(Vec::new())),
        Json::String(text) => match Json::parse(&text) {
            Ok(Json::Object(entries)) => Ok(Arguments::Named(entries)),
            Ok(_) => Err(NOT_AN_OBJECT),
            Err(_) => Ok(Arguments::Unreadable(text)),
        },
        _ => Err(NOT_AN_OBJECT),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
