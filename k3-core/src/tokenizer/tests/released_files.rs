//! The released files, for tests: the vocabulary out of the crate that publishes it, checked by its hash.

use std::fmt::Write as _;
use std::format;
use std::prelude::v1::*;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The SHA-256 of the released `tiktoken.model`.
const MODEL_SHA256: &str = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103";

/// The released `tokenizer_config.json`.
pub const CONFIG: &[u8] = include_bytes!("../../../../fixtures/tokenizer/tokenizer_config.json");

/// The released `tiktoken.model`, byte for byte.
pub static MODEL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let model = unpack(splintr_vocab_kimi::KIMI_VOCAB_PACKED);
    let hash = Sha256::digest(&model).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    });
    assert_eq!(hash, MODEL_SHA256, "the unpacked vocabulary is not the released one");
    model
});

/// Writes a packed vocabulary as lines of `base64 rank`. The packed form is the magic `SPLNTRV1`, a count in four bytes
/// (little endian), then for each token its rank, its length (both LEB128) and its bytes.
fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut rest = packed.strip_prefix(b"SPLNTRV1").unwrap();
    let count = u32::from_le_bytes(*rest.split_off(..4).unwrap().first_chunk().unwrap());
    let mut lines = Vec::new();
    for _ in 0..count {
        let rank = varint(&mut rest);
        let length = varint(&mut rest);
        let token = rest.split_off(..length).unwrap();
        lines.extend(format!("{} {rank}\n", STANDARD.encode(token)).into_bytes());
    }
    assert!(rest.is_empty());
    lines
}

/// Takes a LEB128 number off the front.
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
