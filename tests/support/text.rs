//! What tests with text need: the released tokenizer, and a model with its vocabulary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k3_core::tokenizer::Tokenizer;

use super::{expect_exit, fixture, k3_host};

/// A folder with a tiny generated checkpoint of the released vocabulary, and the released tokenizer's files. What the model
/// says is noise.
pub static TOY: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("toy {}", env!("CARGO_CRATE_NAME")));
    let shape = ["--vocabulary", "163840", "--hidden", "32", "--force"];
    expect_exit(&k3_host(["synth", folder.to_str().unwrap()].iter().chain(&shape)), 0);
    std::fs::write(folder.join("tiktoken.model"), vocabulary()).unwrap();
    std::fs::copy(fixture("tokenizer").join("tokenizer_config.json"), folder.join("tokenizer_config.json")).unwrap();
    folder
});

/// The same, as an argument.
pub fn toy() -> &'static str {
    TOY.to_str().unwrap()
}

/// The released tokenizer.
pub static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let config = std::fs::read(fixture("tokenizer").join("tokenizer_config.json")).unwrap();
    Tokenizer::new(&vocabulary(), &config).unwrap()
});

/// The released `tiktoken.model`, from its packed form: a magic, a count, then the rank, the length and the bytes of every
/// token, in the order of ranks.
fn vocabulary() -> Vec<u8> {
    let mut rest = &splintr_vocab_kimi::KIMI_VOCAB_PACKED[12..];
    let mut lines = Vec::new();
    while !rest.is_empty() {
        let (rank, length) = (varint(&mut rest), varint(&mut rest));
        let (token, after) = rest.split_at(length);
        writeln!(lines, "{} {rank}", STANDARD.encode(token)).unwrap();
        rest = after;
    }
    lines
}

fn varint(bytes: &mut &[u8]) -> usize {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes.split_off_first().unwrap();
        value |= usize::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}
