//! Tests of the tokenizer. Expected values are recorded from the released code, computed by slow references that share no
//! code with the tokenizer, or worked out by hand.

mod classes;
mod cuts;
mod differential;
mod files;
mod linear;
mod merging;
mod parity;
mod pieces;
mod reference;
mod released_files;
mod specials;
mod stream;

use std::prelude::v1::*;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Mode;
use super::Tokenizer;
use super::merge::Merger;

/// The released tokenizer.
pub(crate) static TOKENIZER: LazyLock<Tokenizer> =
    LazyLock::new(|| Tokenizer::new(&released_files::MODEL, released_files::CONFIG).unwrap());

/// The ids of a text without the cuts: what specials, pattern and merging alone make of it.
fn encode_uncut(text: &str, mode: Mode) -> Vec<u32> {
    let mut ids = Vec::new();
    TOKENIZER.encode_stretch(text, mode, &mut Merger::default(), &mut ids);
    ids
}

/// A config that names nothing.
const EMPTY_CONFIG: &[u8] = br#"{"added_tokens_decoder": {}}"#;

/// The lines of a vocabulary file with these tokens.
fn model_file<T: AsRef<[u8]>>(tokens: impl IntoIterator<Item = T>) -> String {
    let line = |(rank, token): (usize, T)| std::format!("{} {rank}\n", STANDARD.encode(token));
    tokens.into_iter().enumerate().map(line).collect()
}

/// All single bytes, then `longer`.
fn tokens_with<'a>(longer: &'a [&'a [u8]]) -> impl Iterator<Item = Vec<u8>> + 'a {
    (0..=u8::MAX).map(|byte| [byte].to_vec()).chain(longer.iter().map(|token| token.to_vec()))
}
