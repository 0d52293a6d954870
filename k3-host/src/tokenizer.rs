//! The tokenizer's files.

use std::io::ErrorKind;
use std::path::Path;

use k3_core::config::Config;
use k3_core::tokenizer::{CONFIG_FILE, MODEL_FILE, Tokenizer};

use crate::failure::{Failure, Outcome};

/// The spellings that end an answer. The released model writes the first, though its config names the second.
const END_SPELLINGS: [&str; 2] = ["[EOS]", "<|end_of_msg|>"];

/// Loads the tokenizer whose files are in `folder`.
///
/// # Errors
/// A failure that says which file is missing and where it comes from; a refusal that names the file and the line at fault.
pub fn load(folder: &Path) -> Outcome<Tokenizer> {
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read(&path).map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::NotFound => {
                    "; it is released with the model, beside config.json: put it there, or give its folder as --tok DIR"
                }
                _ => "",
            };
            Failure::failed(format!("cannot read {}: {error}{hint}", path.display()))
        })
    };
    let (model, config) = (read(MODEL_FILE)?, read(CONFIG_FILE)?);
    Tokenizer::new(&model, &config).map_err(|error| Failure::from(error).context(folder.display()))
}

/// The ids that end an answer: those that the tokenizer spells so and those that the model's config names.
#[must_use]
pub fn end_ids(tokenizer: &Tokenizer, config: &Config) -> Vec<u32> {
    let spelled = END_SPELLINGS.iter().filter_map(|spelling| tokenizer.special_id(spelling));
    spelled.chain(config.end_ids.iter().copied()).collect()
}
