//! A slow tokenizer that shares nothing with the fast one: the released pattern in a backtracking regex engine with
//! Unicode 16.0 tables, and merging by its definition.

use std::collections::HashMap;
use std::prelude::v1::*;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fancy_regex::{Regex, RegexBuilder};

use super::released_files::MODEL;

/// The released pattern.
const PATTERN: &str = concat!(
    r"[\p{Han}]+",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"|\p{N}{1,3}",
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"|\s*[\r\n]+",
    r"|\s+(?!\S)",
    r"|\s+",
);

static REGEX: LazyLock<Regex> =
    LazyLock::new(|| RegexBuilder::new(PATTERN).backtrack_limit(usize::MAX).build().unwrap());

/// Ranks by token.
pub(super) type Vocabulary = HashMap<Vec<u8>, u32>;

/// The released vocabulary.
pub(super) static RELEASED: LazyLock<Vocabulary> = LazyLock::new(|| read_vocabulary(str::from_utf8(&MODEL).unwrap()));

/// Reads the lines of a vocabulary file.
pub(super) fn read_vocabulary(file: &str) -> Vocabulary {
    let entry = |line: &str| {
        let (token, rank) = line.split_once(' ').unwrap();
        (STANDARD.decode(token).unwrap(), rank.parse().unwrap())
    };
    file.lines().map(entry).collect()
}

/// The pieces of `text`.
pub(super) fn pieces(text: &str) -> Vec<&str> {
    REGEX.find_iter(text).map(|found| found.unwrap().as_str()).collect()
}

/// The tokens of one piece, by the definition.
pub(super) fn merge(vocabulary: &Vocabulary, piece: &[u8]) -> Vec<u32> {
    if let Some(&rank) = vocabulary.get(piece) {
        return Vec::from([rank]);
    }
    let mut parts: Vec<Vec<u8>> = piece.iter().map(|&byte| Vec::from([byte])).collect();
    loop {
        let rank = |left: usize| vocabulary.get(&parts[left..left + 2].concat());
        let lowest = (0..parts.len() - 1).filter_map(|left| Some((rank(left)?, left))).min();
        let Some((_, left)) = lowest else { break };
        let right = parts.remove(left + 1);
        parts[left].extend(right);
    }
    parts.iter().map(|part| vocabulary[part]).collect()
}
