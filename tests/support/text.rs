//! What tests with text need: the released tokenizer, and a model with its vocabulary.

#[path = "../../k3-core/src/tokenizer/tests/released_files.rs"]
pub mod released_files;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k3_core::tokenizer::Tokenizer;

use super::{expect_exit, k3_host};
use released_files::{CONFIG, MODEL};

/// A folder with a tiny generated checkpoint of the released vocabulary, and the released tokenizer's files. What the model
/// says is noise.
pub static TOY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("toy {}", env!("CARGO_CRATE_NAME")));
    let shape = ["--vocabulary", "163840", "--hidden", "32", "--force"];
    expect_exit(&k3_host(["synth", folder.to_str().unwrap()].iter().chain(&shape)), 0);
    std::fs::write(folder.join("tiktoken.model"), &*MODEL).unwrap();
    std::fs::write(folder.join("tokenizer_config.json"), CONFIG).unwrap();
    folder
});

/// The same, as an argument.
pub fn toy() -> &'static str {
    TOY.to_str().unwrap()
}

/// A folder with the smallest generated checkpoint, of 512 ids, and a tokenizer that fits it: every byte is a token, and some
/// of the other 256 ids are the control tokens of the chat format. Half of its noise is bytes, which is full of characters
/// split over tokens.
pub static BYTES: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bytes {}", env!("CARGO_CRATE_NAME")));
    expect_exit(&k3_host(["synth", folder.to_str().unwrap(), "--force"]), 0);
    let lines = (0..=u8::MAX).map(|byte| format!("{} {byte}\n", STANDARD.encode([byte])));
    std::fs::write(folder.join("tiktoken.model"), lines.collect::<String>()).unwrap();
    let spellings = ["[EOS]", "<|end_of_msg|>", "<|open|>", "<|close|>", "<|sep|>"];
    let named = (257..).zip(spellings).map(|(id, spelling)| format!("\"{id}\": {{\"content\": \"{spelling}\"}}"));
    let config = format!("{{\"added_tokens_decoder\": {{{}}}}}", named.collect::<Vec<_>>().join(", "));
    std::fs::write(folder.join("tokenizer_config.json"), config).unwrap();
    folder
});

/// How many characters of a text are of several bytes, and whole.
pub fn split_characters(text: &str) -> usize {
    text.chars().filter(|&character| !character.is_ascii() && character != char::REPLACEMENT_CHARACTER).count()
}

/// The released tokenizer.
pub static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::new(&MODEL, CONFIG).unwrap());
