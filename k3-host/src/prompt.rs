//! What a run begins with: ids, or a text and the tokenizer that makes ids of it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use k3_core::tokenizer::{Mode, Tokenizer};

use crate::failure::{Failure, Outcome};
use crate::tokenizer;

/// Where the prompt comes from, and how a text becomes ids.
#[derive(Debug, Clone, clap::Args)]
pub struct PromptArgs {
    /// Where the prompt comes from
    #[command(flatten)]
    pub source: PromptSource,
    /// The folder with tiktoken.model and tokenizer_config.json, for text [default: DIR]
    #[arg(long, value_name = "DIR", conflicts_with = "ids")]
    pub tok: Option<PathBuf>,
    /// Spellings of special tokens in the text, like <|open|>, mean those tokens; otherwise they are ordinary text
    #[arg(long, conflicts_with = "ids")]
    pub special: bool,
}

/// Exactly one of these.
#[derive(Debug, Clone, clap::Args)]
#[group(required = true, multiple = false)]
pub struct PromptSource {
    /// The prompt, as ids separated by commas
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    pub ids: Option<Vec<u32>>,
    /// The prompt, as text that the model goes on from, without any chat format
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt: Option<String>,
    /// A file with the prompt as UTF-8 text, every byte of which counts
    #[arg(long, value_name = "FILE")]
    pub prompt_file: Option<PathBuf>,
}

/// A prompt.
#[derive(Debug)]
pub struct Prompt {
    /// What is fed.
    pub ids: Vec<u32>,
    /// What it was made from, if not given as ids.
    pub text: Option<PromptText>,
}

/// A prompt as text.
#[derive(Debug)]
pub struct PromptText {
    /// The text.
    pub text: String,
    /// What made ids of it.
    pub tokenizer: Tokenizer,
}

impl PromptArgs {
    /// Reads the prompt for the model in `checkpoint`.
    ///
    /// # Errors
    /// A failure if a file cannot be read; a refusal if one cannot be trusted or the prompt is empty.
    pub fn read(&self, checkpoint: &Path) -> Outcome<Prompt> {
        let Some(text) = self.source.text()? else {
            return Ok(Prompt { ids: self.source.ids.clone().unwrap_or_default(), text: None });
        };
        let tokenizer = tokenizer::load(self.tok.as_deref().unwrap_or(checkpoint))?;
        let ids = tokenizer.encode(&text, if self.special { Mode::Special } else { Mode::Plain });
        if ids.is_empty() {
            return Err(Failure::refused("the prompt is empty"));
        }
        Ok(Prompt { ids, text: Some(PromptText { text, tokenizer }) })
    }
}

impl PromptSource {
    fn text(&self) -> Outcome<Option<String>> {
        let Some(path) = &self.prompt_file else { return Ok(self.prompt.clone()) };
        let bytes = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let valid = error.utf8_error().valid_up_to();
            Failure::refused(format!("--prompt-file {}: not UTF-8 after byte {valid}", path.display()))
        })?;
        Ok(Some(text))
    }
}
