//! Reading a generated turn that is to be stored.
//!
//! A stored turn is rendered and encoded again later. Only a turn of exactly the form that rendering would give it comes
//! back as the same tokens, so that everything else is refused. [`Turn`](super::Turn) shows the rest.

use alloc::string::String;

use super::tokens::{TokenText, TurnTokens, text_of};
use crate::chat::conversation::Thinking;
use crate::{Error, Result};

/// A turn as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurn {
    /// What the model thought; none if thinking was off.
    pub reasoning: Option<String>,
    /// What it said.
    pub content: String,
}

/// Reads the tokens generated after a prompt rendered with `thinking`, the token that ended the turn included.
///
/// # Errors
/// [`Error::Turn`] if a channel or the message is not closed, the end is missing or not the last token, there are added
/// tokens or no whole characters in the text, or the model called tools.
pub fn read_stored_turn(
    ids: &[u32],
    thinking: Thinking,
    turn: &TurnTokens,
    tokens: &dyn TokenText,
) -> Result<StoredTurn> {
    let (reasoning, rest) = match thinking {
        Thinking::Off => (None, ids),
        Thinking::On(_) => {
            let (reasoning, rest) = split_at_first(ids, &turn.reasoning_end)
                .ok_or_else(|| refusal("the reasoning does not go over into a response"))?;
            (Some(reasoning), rest)
        }
    };
    let (content, end) =
        split_at_first(rest, &turn.content_end).ok_or_else(|| refusal("the response is not closed"))?;
    match end {
        [id] if turn.ends_turn(*id) => {}
        [] => return Err(refusal("the token that ends the turn is missing")),
        _ => return Err(refusal("there are tokens after the message")),
    }
    Ok(StoredTurn {
        reasoning: reasoning.map(|ids| plain_text(ids, tokens)).transpose()?,
        content: plain_text(content, tokens)?,
    })
}

/// Reads a turn that was stopped from outside while the model was giving its response, as if the model had ended there. The
/// beginning of a character at its end, and of its closing tags, is left out.
///
/// # Errors
/// [`Error::Turn`] as [`read_stored_turn`], and if there is no response yet.
pub fn read_cut_turn(ids: &[u32], thinking: Thinking, turn: &TurnTokens, tokens: &dyn TokenText) -> Result<StoredTurn> {
    let closing = &turn.content_end;
    let closed = (0..=closing.len()).rev().find(|&length| ids.ends_with(&closing[..length])).unwrap_or(0);
    let text = &ids[..ids.len() - closed];
    let read = |length: usize| {
        let whole = [&text[..length], closing, &[turn.end_of_text]].concat();
        read_stored_turn(&whole, thinking, turn, tokens)
    };
    let fragments = text.iter().rev().take_while(|&&id| text_of(&[id], tokens).is_none()).take(MAX_FRAGMENTS).count();
    let stored = (0..=fragments).find_map(|left_out| read(text.len() - left_out).ok());
    match stored {
        Some(stored) if stored.content.is_empty() => Err(refusal("there is no response yet")),
        Some(stored) => Ok(stored),
        None => read(text.len()),
    }
}

/// A character has at most four bytes, so that at most three tokens can be the beginning of one.
const MAX_FRAGMENTS: usize = 3;

/// What is before and after the first place where `separator` stands.
fn split_at_first<'a>(ids: &'a [u32], separator: &[u32]) -> Option<(&'a [u32], &'a [u32])> {
    let at = ids.windows(separator.len()).position(|window| window == separator)?;
    Some((&ids[..at], &ids[at + separator.len()..]))
}

/// The text of tokens that encoding could give again.
fn plain_text(ids: &[u32], tokens: &dyn TokenText) -> Result<String> {
    if ids.iter().any(|&id| tokens.is_added(id)) {
        return Err(refusal("there is a control token in the text"));
    }
    text_of(ids, tokens).ok_or_else(|| refusal("the text is not whole characters"))
}

fn refusal(reason: &str) -> Error {
    Error::Turn(reason.into())
}

#[cfg(test)]
#[path = "strict_tests.rs"]
mod tests;
