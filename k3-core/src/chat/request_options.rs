//! Reading render options from the JSON of a chat request.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::result::Result;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::conversation::{Effort, RenderOptions, ResponseFormat, Thinking, ToolChoice};
use super::json::Json;
use super::request::{present, read};

impl RenderOptions {
    /// Reads options from a JSON object; an absent field has its released default.
    ///
    /// # Errors
    /// [`Error::Chat`](crate::Error::Chat), as for [`Conversation::from_json`](super::Conversation::from_json).
    pub fn from_json(text: &[u8]) -> crate::Result<RenderOptions> {
        read(text)
    }
}

#[derive(Deserialize)]
#[serde(default)]
struct OptionFields {
    thinking: bool,
    thinking_effort: Option<String>,
    add_generation_prompt: bool,
    tool_choice: Option<Json>,
    response_format: Option<Json>,
    #[serde(deserialize_with = "present")]
    response_schema: Option<Json>,
    image_prompts: Option<Vec<String>>,
}

impl Default for OptionFields {
    fn default() -> OptionFields {
        OptionFields {
            thinking: true,
            thinking_effort: Some(Effort::Max.name().into()),
            add_generation_prompt: true,
            tool_choice: None,
            response_format: None,
            response_schema: None,
            image_prompts: None,
        }
    }
}

impl<'de> Deserialize<'de> for RenderOptions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RenderOptions, D::Error> {
        let fields = OptionFields::deserialize(deserializer)?;
        Ok(RenderOptions {
            thinking: thinking(fields.thinking, fields.thinking_effort).map_err(D::Error::custom)?,
            add_generation_prompt: fields.add_generation_prompt,
            tool_choice: match fields.tool_choice {
                Some(Json::String(choice)) if choice == "required" => ToolChoice::Required,
                Some(Json::String(choice)) if choice == "none" => ToolChoice::Forbidden,
                _ => ToolChoice::Auto,
            },
            response_format: response_format(fields.response_format, fields.response_schema),
            image_prompts: fields.image_prompts,
        })
    }
}

/// An effort means nothing when thinking is off, so that it is not looked at then.
fn thinking(on: bool, effort: Option<String>) -> Result<Thinking, String> {
    match effort {
        _ if !on => Ok(Thinking::Off),
        None => Ok(Thinking::On(None)),
        Some(name) => Effort::from_name(&name)
            .map(|effort| Thinking::On(Some(effort)))
            .ok_or_else(|| format!("thinking_effort `{name}` is not supported: low, high and max are")),
    }
}

/// The format by its name, alone or under `type`; its schema from `schema` if that is given.
fn response_format(format: Option<Json>, schema: Option<Json>) -> ResponseFormat {
    let Some(format) = format else {
        return ResponseFormat::Text;
    };
    let kind = if let Json::Object(_) = format { format.get("type") } else { Some(&format) };
    match kind {
        Some(Json::String(kind)) if kind == "json_object" => ResponseFormat::JsonObject,
        Some(Json::String(kind)) if kind == "json_schema" => {
            ResponseFormat::JsonSchema(schema.or_else(|| enclosed_schema(&format)).unwrap_or(Json::Null))
        }
        _ => ResponseFormat::Text,
    }
}

/// The schema inside `json_schema`: under `schema`, else under `json_schema` once more, else the value itself.
fn enclosed_schema(format: &Json) -> Option<Json> {
    let value = format.get("json_schema")?;
    Some(value.get("schema").or_else(|| value.get("json_schema")).unwrap_or(value).clone())
}
