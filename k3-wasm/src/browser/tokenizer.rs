//! The tokenizer for a page.

use k3_core::tokenizer::{Mode, Tokenizer};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

/// A vocabulary, ready to encode and decode.
#[wasm_bindgen]
#[derive(Debug)]
pub struct TextTokenizer(Tokenizer);

/// What the spelling of a special token in a text means.
#[wasm_bindgen]
#[derive(Debug, Clone, Copy)]
pub enum TextMode {
    /// The special token.
    Special,
    /// Nothing special.
    Plain,
}

#[wasm_bindgen]
impl TextTokenizer {
    /// Reads the contents of `tiktoken.model` and `tokenizer_config.json`.
    ///
    /// # Errors
    /// Names the file and, where there is one, the line that is not as released.
    #[wasm_bindgen(constructor)]
    pub fn new(model: &[u8], config: &[u8]) -> Result<Self, JsError> {
        Ok(Self(Tokenizer::new(model, config)?))
    }

    /// The number of ids.
    #[must_use]
    pub fn vocabulary(&self) -> usize {
        self.0.vocabulary()
    }

    /// The ids of `text`. JavaScript's lone surrogates have arrived as U+FFFD.
    #[must_use]
    pub fn encode(&self, text: &str, mode: TextMode) -> Vec<u32> {
        let mode = match mode {
            TextMode::Special => Mode::Special,
            TextMode::Plain => Mode::Plain,
        };
        self.0.encode(text, mode)
    }

    /// The bytes of `ids`, which need not be UTF-8.
    ///
    /// # Errors
    /// If an id is outside the vocabulary.
    pub fn decode(&self, ids: &[u32]) -> Result<Vec<u8>, JsError> {
        Ok(self.0.decode(ids)?)
    }

    /// Whether `id` is one of the special ids.
    #[must_use]
    #[wasm_bindgen(js_name = isSpecial)]
    pub fn is_special(&self, id: u32) -> bool {
        self.0.special_spelling(id).is_some()
    }
}
