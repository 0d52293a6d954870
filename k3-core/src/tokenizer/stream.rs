//! Text from bytes that arrive in pieces: a character split over tokens is held back until it is whole.

use alloc::string::String;
use alloc::vec::Vec;

/// Cuts a stream of bytes at the ends of characters.
///
/// What comes out, put together, is exactly what went in: nothing is lost or changed. Bytes that may still become a
/// character (at most three) are held; those that can no longer become one come out at once, as they are.
#[derive(Debug, Clone, Default)]
pub struct Utf8Stream {
    held: Vec<u8>,
}

impl Utf8Stream {
    /// A stream that holds nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in `bytes` and gives out all but the beginning of an unfinished character.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let unfinished = unfinished_length(&self.held);
        let kept = self.held.split_off(self.held.len() - unfinished);
        core::mem::replace(&mut self.held, kept)
    }

    /// Gives out what is still held: the beginning of a character that never came.
    pub fn finish(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.held)
    }

    /// As [`Utf8Stream::push`], for display: each invalid sequence becomes U+FFFD. The texts put together are the
    /// lossy reading of all the bytes together.
    pub fn push_text(&mut self, bytes: &[u8]) -> String {
        String::from_utf8_lossy(&self.push(bytes)).into_owned()
    }

    /// As [`Utf8Stream::finish`], for display: what is held becomes U+FFFD.
    pub fn finish_text(&mut self) -> String {
        String::from_utf8_lossy(&self.finish()).into_owned()
    }
}

/// How many bytes at the end are the beginning of a character that could still be completed; at most three.
fn unfinished_length(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest).find(|&length| is_unfinished(&bytes[bytes.len() - length..])).unwrap_or(0)
}

/// Whether `bytes` are the beginning of one character, and not all of it.
fn is_unfinished(bytes: &[u8]) -> bool {
    core::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}
