//! Rendering a conversation in the released format.
//!
//! The order is fixed: declared tools, the thinking effort, the messages, the tool choice, the response format, and the
//! start of the answer. Each is a message of its own:
//!
//! ```text
//! <|open|>message role="user"<|sep|>Why?<|close|>message<|sep|><|end_of_msg|>
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::conversation::{
    Arguments, Conversation, Effort, Message, Part, ResponseFormat, Role, Thinking, ToolCall, ToolChoice, is_blank,
};
use super::json::{Json, Style, array_text};
use super::segments::{Segment, SegmentKind, SegmentWriter};
use super::tool_results::{Placed, place_tool_results};
use crate::{Error, Result};

/// What stands for an image in a text.
pub const IMAGE_PLACEHOLDER: &str = "<|kimi_image_placeholder|>";

const TOOLS: &str = "# Tools\nHere are the available tools, described in JSONSchema.\n\n";
const FURTHER_TOOLS: &str = "## New Tools Available\n\
    The system dynamically extends the toolset via lazy-loading.\n\
    You have access to all existing and extended tools.\n\
    Here are the specs for the extended tools.\n\n";
const EFFORT: &str = "`thinking_effort` guides on how much to think in your thinking channel (not including the response \
    channel), supported values include `low`, `medium`, `high`, and `max`.\n\
    Now the system is invoked with `thinking_effort=";
const TOOLS_REQUIRED: &str =
    "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message.";
const TOOLS_FORBIDDEN: &str =
    "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.";
const RAW_JSON: &str =
    "Your response must be raw JSON data without markdown code blocks (```json) or any additional formatting.";

/// The prompt text of an image of `width` × `height` pixels, for
/// [`RenderOptions::image_prompts`](super::RenderOptions::image_prompts). One pad token stands for all of its patches.
#[must_use]
pub fn image_prompt(width: u32, height: u32) -> String {
    format!("<|media_begin|>image {width}x{height}<|media_content|><|media_pad|><|media_end|>")
}

/// Renders a conversation.
///
/// # Errors
/// [`Error::Chat`] if a tool result has no name and follows no call, or there are more or fewer images than image prompts.
pub fn render(conversation: &Conversation) -> Result<Vec<Segment>> {
    let options = &conversation.options;
    let mut renderer = Renderer {
        out: SegmentWriter::default(),
        thinking: options.thinking,
        images: options.image_prompts.as_deref(),
        calls: &[],
        results: 0,
    };
    renderer.tools(TOOLS, &conversation.tools);
    if let Thinking::On(Some(effort)) = options.thinking {
        renderer.effort(effort);
    }
    for placed in place_tool_results(&conversation.messages) {
        renderer.message(placed)?;
    }
    renderer.tool_choice(options.tool_choice);
    renderer.response_format(&options.response_format);
    if options.add_generation_prompt {
        renderer.generation_prompt();
    }
    match renderer.images {
        Some([_, ..]) => Err(Error::Chat("there are more image prompts than images".into())),
        _ => Ok(renderer.out.segments),
    }
}

struct Renderer<'a> {
    out: SegmentWriter,
    thinking: Thinking,
    /// Image prompts not used yet, if there are any at all.
    images: Option<&'a [String]>,
    /// The calls of the last assistant message.
    calls: &'a [ToolCall],
    /// How many tool results came since.
    results: usize,
}

impl<'a> Renderer<'a> {
    fn message(&mut self, placed: Placed<'a>) -> Result<()> {
        let message = placed.message;
        match message.role {
            Role::System if !message.tools.is_empty() => self.tools(FURTHER_TOOLS, &message.tools),
            Role::System => self.spoken("system", message)?,
            Role::User => self.spoken("user", message)?,
            Role::Assistant => self.assistant(message)?,
            Role::Tool => self.tool_result(placed)?,
            Role::Other => {}
        }
        Ok(())
    }

    fn open_message(&mut self, role: &str, message: &Message) {
        match &message.name {
            Some(name) => self.out.open("message", &[("role", role), ("name", name)]),
            None => self.out.open("message", &[("role", role)]),
        }
    }

    fn spoken(&mut self, role: &str, message: &Message) -> Result<()> {
        self.open_message(role, message);
        self.content(message)?;
        self.out.end_message();
        Ok(())
    }

    fn assistant(&mut self, message: &'a Message) -> Result<()> {
        self.open_message("assistant", message);
        if let Thinking::On(_) = self.thinking {
            self.out.open("think", &[]);
            if !is_blank(&message.reasoning) {
                self.text_with_images(&message.reasoning)?;
            }
            self.out.close("think");
        }
        self.out.open("response", &[]);
        self.content(message)?;
        self.out.close("response");
        self.tool_calls(&message.tool_calls)?;
        self.out.end_message();
        self.calls = &message.tool_calls;
        self.results = 0;
        Ok(())
    }

    fn tool_calls(&mut self, calls: &[ToolCall]) -> Result<()> {
        if calls.is_empty() {
            return Ok(());
        }
        self.out.open("tools", &[]);
        for (index, call) in calls.iter().enumerate() {
            self.out.open("call", &[("tool", &call.name), ("index", &(index + 1).to_string())]);
            self.arguments(&call.arguments)?;
            self.out.close("call");
        }
        self.out.close("tools");
        Ok(())
    }

    /// Unreadable arguments are left out, as the released encoder leaves them out: it would keep them in an element `json`,
    /// but normalises a conversation twice, and the second time forgets them.
    fn arguments(&mut self, arguments: &Arguments) -> Result<()> {
        let Arguments::Named(arguments) = arguments else {
            return Ok(());
        };
        for (key, value) in arguments {
            self.out.open("argument", &[("key", key), ("type", value.type_name())]);
            match value {
                Json::String(text) => self.text_with_images(text)?,
                other => self.text_with_images(&other.to_text(Style::Spaced))?,
            }
            self.out.close("argument");
        }
        Ok(())
    }

    /// The index counts results since the last assistant message; it is that of the call only if every call has one.
    fn tool_result(&mut self, placed: Placed<'a>) -> Result<()> {
        let by_position = self.calls.get(self.results).map(|call| call.name.as_str());
        self.results += 1;
        let index = self.results.to_string();
        let tool = placed.tool.or(by_position).ok_or_else(|| {
            Error::Chat(format!("tool result {index} names no tool, and there is no call that it could answer"))
        })?;
        self.out.open("message", &[("role", "tool"), ("tool", tool), ("index", &index)]);
        self.content(placed.message)?;
        self.out.end_message();
        Ok(())
    }

    fn content(&mut self, message: &Message) -> Result<()> {
        for part in &message.content {
            match part {
                Part::Text(text) => self.text_with_images(text)?,
                Part::Image => self.image()?,
            }
        }
        Ok(())
    }

    /// Text, with each placeholder in it replaced if there are image prompts.
    fn text_with_images(&mut self, text: &str) -> Result<()> {
        if self.images.is_none() {
            self.out.text(text);
            return Ok(());
        }
        for (index, piece) in text.split(IMAGE_PLACEHOLDER).enumerate() {
            if index > 0 {
                self.image()?;
            }
            self.out.text(piece);
        }
        Ok(())
    }

    /// The next image. Its prompt spells control tokens, and comes from the program, not from a user.
    fn image(&mut self) -> Result<()> {
        let prompt = match self.images {
            None => IMAGE_PLACEHOLDER,
            Some([prompt, rest @ ..]) => {
                self.images = Some(rest);
                prompt
            }
            Some([]) => {
                return Err(Error::Chat("there are more images than image prompts".into()));
            }
        };
        self.out.push(prompt, SegmentKind::Control);
        Ok(())
    }

    /// A message that the system adds by itself.
    fn notice(&mut self, kind: &str, body: &str) {
        self.out.open("message", &[("role", "system"), ("type", kind)]);
        self.out.text(body);
        self.out.end_message();
    }

    fn tools(&mut self, introduction: &str, tools: &[Json]) {
        if !tools.is_empty() {
            let declarations = array_text(tools, Style::CompactSorted);
            self.notice("tool-declare", &format!("{introduction}```json\n{declarations}\n```"));
        }
    }

    fn effort(&mut self, effort: Effort) {
        self.notice("thinking-effort", &format!("{EFFORT}{}`.", effort.name()));
    }

    fn tool_choice(&mut self, choice: ToolChoice) {
        match choice {
            ToolChoice::Auto => {}
            ToolChoice::Required => self.notice("tool-choice", TOOLS_REQUIRED),
            ToolChoice::Forbidden => self.notice("tool-choice", TOOLS_FORBIDDEN),
        }
    }

    fn response_format(&mut self, format: &ResponseFormat) {
        let (name, schema) = match format {
            ResponseFormat::Text => return,
            ResponseFormat::JsonObject => ("json_object", String::new()),
            ResponseFormat::JsonSchema(schema) => ("json_schema", schema_notice(schema)),
        };
        let body = format!("The system is invoked with `response_format={name}`.\n{RAW_JSON}{schema}");
        self.notice("response-format", &body);
    }

    fn generation_prompt(&mut self) {
        self.out.open("message", &[("role", "assistant")]);
        let channel = if self.thinking == Thinking::Off { "response" } else { "think" };
        self.out.open(channel, &[]);
    }
}

fn schema_notice(schema: &Json) -> String {
    let schema = schema.to_text(Style::CompactSorted);
    format!("\nThe JSON data must match the following schema:\n```json\n{schema}\n```")
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
