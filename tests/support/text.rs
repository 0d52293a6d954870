//! What tests with text need: the released tokenizer, and a model with its vocabulary.

#[path = "../../k3-core/src/tokenizer/tests/released_files.rs"]
mod released_files;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

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

/// The released tokenizer.
pub static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| Tokenizer::new(&MODEL, CONFIG).unwrap());
