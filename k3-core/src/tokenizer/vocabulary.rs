//! Reads `tiktoken.model`: one line per token, `base64 rank`, ranks counting up from 0.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::MODEL_FILE;
use crate::{Error, Result};

/// More tokens than this are refused. The released vocabulary has 163,584.
pub(super) const MAX_TOKENS: usize = 1 << 22;

/// The bytes of every token, by rank.
///
/// Invariant 1: `ends` has one entry per token, ascending, the last being `bytes.len()`; no token is empty.
#[derive(Debug)]
pub(super) struct Tokens {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Tokens {
    /// Reads the whole file.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] with the number of the first line that is not as released.
    pub(super) fn parse(file: &[u8]) -> Result<Tokens> {
        let Some(body) = file.strip_suffix(b"\n") else {
            let lines = file.split(|&byte| byte == b'\n').count();
            let reason =
                if file.is_empty() { "the file is empty" } else { "the last line has no end: the file is cut short" };
            return Err(refuse((!file.is_empty()).then_some(lines), reason));
        };
        let mut tokens = Tokens { bytes: Vec::with_capacity(body.len() / 2), ends: Vec::new() };
        for (index, line) in body.split(|&byte| byte == b'\n').enumerate() {
            tokens.push_line(index, line).map_err(|reason| refuse(Some(index + 1), reason))?;
        }
        tokens.bytes.shrink_to_fit();
        tokens.ends.shrink_to_fit();
        Ok(tokens)
    }

    /// Adds the token of line `index`, counted from 0, or says what is wrong with it.
    fn push_line(&mut self, index: usize, line: &[u8]) -> core::result::Result<(), String> {
        if index >= MAX_TOKENS {
            return Err(format!("more than {MAX_TOKENS} tokens"));
        }
        if line.last() == Some(&b'\r') {
            return Err("ends with CR LF; the released file has LF alone".to_string());
        }
        let space = line.iter().position(|&byte| byte == b' ').ok_or("not of the form `base64 rank`")?;
        let (encoded, rank) = (&line[..space], parse_rank(&line[space + 1..])?);
        if rank != index as u64 {
            return Err(format!("rank {rank} where {index} belongs: a rank is missing, repeated or out of order"));
        }
        let start = self.bytes.len();
        STANDARD.decode_vec(encoded, &mut self.bytes).map_err(|error| format!("the token is not base64: {error}"))?;
        if self.bytes.len() == start {
            return Err("the token is empty".to_string());
        }
        self.ends.push(u32::try_from(self.bytes.len()).map_err(|_| "the tokens together exceed 4 GiB")?);
        Ok(())
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The tokens in the order of their ranks.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).filter_map(|rank| self.get(rank))
    }

    /// The bytes of the token with this rank, if there is one.
    pub(super) fn get(&self, rank: u32) -> Option<&[u8]> {
        let rank = rank as usize;
        let end = *self.ends.get(rank)? as usize;
        let start = if rank == 0 { 0 } else { self.ends[rank - 1] as usize };
        Some(&self.bytes[start..end])
    }
}

/// Parses the digits of a rank, and nothing else: no sign, no space, no leading zero.
fn parse_rank(digits: &[u8]) -> core::result::Result<u64, String> {
    let plain = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    let rank = core::str::from_utf8(digits).ok().filter(|_| plain).and_then(|digits| digits.parse().ok());
    rank.ok_or_else(|| "the rank is not a number in plain digits".to_string())
}

/// The error for `tiktoken.model`.
pub(super) fn refuse(line: Option<usize>, reason: impl Into<String>) -> Error {
    Error::Vocabulary { file: MODEL_FILE.to_string(), line, reason: reason.into() }
}
