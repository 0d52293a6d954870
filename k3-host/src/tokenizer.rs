//! Loading the tokenizer from a folder, and the ids at which its text ends.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use k3_core::config::Config;
use k3_core::tokenizer::{CONFIG_FILE, MODEL_FILE, Tokenizer};

use crate::failure::{Failure, Outcome};

/// Files longer than this are not read. The released vocabulary has 2.8 MB.
const MOST_BYTES: u64 = 256 << 20;

/// The spellings that end an answer. The released model writes the first, though its config names the second.
const END_SPELLINGS: [&str; 2] = ["[EOS]", "<|end_of_msg|>"];

/// Loads the tokenizer from the two files that are released with the model.
///
/// # Errors
/// Names the folder, the file and, where there is one, the line: a refusal if the files are malformed.
pub fn load(folder: &Path) -> Outcome<Tokenizer> {
    let model = read(folder, MODEL_FILE)?;
    let config = read(folder, CONFIG_FILE)?;
    Tokenizer::new(&model, &config).map_err(|error| Failure::from(error).context(folder.display()))
}

/// Reads one of the files whole.
fn read(folder: &Path, name: &str) -> Outcome<Vec<u8>> {
    let path = folder.join(name);
    let subject = || {
        format!("{} (it is released with the model, beside config.json; --tok DIR names its folder)", path.display())
    };
    let file = File::open(&path).with_context(subject)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(subject)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(Failure::refused(format!("{}: longer than {MOST_BYTES} bytes: not a tokenizer's", path.display())));
    }
    Ok(bytes)
}

/// The ids that end an answer: those that the tokenizer spells so and those that the model's config names.
#[must_use]
pub fn end_ids(tokenizer: &Tokenizer, config: &Config) -> Vec<u32> {
    let spelled = END_SPELLINGS.iter().filter_map(|spelling| tokenizer.special_id(spelling));
    spelled.chain(config.end_ids.iter().copied()).collect()
}
