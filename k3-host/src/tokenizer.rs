//! Loading the tokenizer from a folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use k3_core::tokenizer::{CONFIG_FILE, MODEL_FILE, Tokenizer};

/// Files longer than this are not read. The released vocabulary has 2.8 MB.
const MOST_BYTES: u64 = 256 << 20;

/// Loads the tokenizer from the two files that are released with the model.
///
/// # Errors
/// Names the folder, the file and, where there is one, the line.
pub fn load(folder: &Path) -> anyhow::Result<Tokenizer> {
    let model = read(folder, MODEL_FILE)?;
    let config = read(folder, CONFIG_FILE)?;
    Tokenizer::new(&model, &config).with_context(|| folder.display().to_string())
}

/// Reads one of the files whole.
fn read(folder: &Path, name: &str) -> anyhow::Result<Vec<u8>> {
    let path = folder.join(name);
    let subject = || format!("{} (it is released with the model, beside config.json)", path.display());
    let file = File::open(&path).with_context(subject)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).with_context(subject)?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("{}: longer than {MOST_BYTES} bytes: not a tokenizer's", path.display());
    }
    Ok(bytes)
}
