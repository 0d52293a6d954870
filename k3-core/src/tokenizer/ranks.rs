//! Finds the rank of a stretch of text: the one question that merging asks, millions of times.
//!
//! Two hash tables over numbers of 64 bits. Seven of ten tokens have at most eight bytes; in their table the number is the
//! bytes themselves. In the other it is a hash, and the bytes are compared when it is found.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::vocabulary::{Tokens, refuse};
use crate::Result;

/// The rank of what is not a token; greater than all ranks.
pub(super) const NO_RANK: u32 = u32::MAX;

/// Up to so many bytes are their own key.
const SHORT_BYTES: usize = 8;

/// The tokens, and the way from bytes to rank.
#[derive(Debug)]
pub(super) struct Ranks {
    tokens: Tokens,
    short: Table,
    long: Table,
    /// The length of the longest token, in bytes.
    longest: usize,
    /// Ranks of single bytes; all exist.
    bytes: [u32; 256],
}

impl Ranks {
    /// # Errors
    /// [`crate::Error::Vocabulary`] if two lines hold the same token or a single byte is missing.
    pub(super) fn new(tokens: Tokens) -> Result<Ranks> {
        let short = tokens.iter().filter(|token| token.len() <= SHORT_BYTES).count();
        let mut ranks = Ranks {
            short: Table::new(short),
            long: Table::new(tokens.len() - short),
            longest: tokens.iter().map(<[u8]>::len).max().unwrap_or(0),
            bytes: [NO_RANK; 256],
            tokens,
        };
        for rank in 0..ranks.tokens.len() as u32 {
            let token = ranks.tokens.get(rank).unwrap_or_default();
            let earlier = ranks.rank(token, 0..token.len());
            if earlier != NO_RANK {
                let reason = format!("the token is that of line {} again", earlier + 1);
                return Err(refuse(Some(rank as usize + 1), reason));
            }
            let (length, span) = (token.len(), 0..token.len());
            if length <= SHORT_BYTES {
                ranks.short.insert(Slot { key: short_key(token, span), length: length as u32, rank });
            } else {
                ranks.long.insert(Slot { key: hash(token), length: length as u32, rank });
            }
            if let [byte] = *token {
                ranks.bytes[usize::from(byte)] = rank;
            }
        }
        match ranks.bytes.iter().position(|&rank| rank == NO_RANK) {
            Some(byte) => Err(refuse(None, format!("the single byte {byte} (0x{byte:02x}) is not a token"))),
            None => Ok(ranks),
        }
    }

    /// The rank of a stretch of `text` that is not empty, or [`NO_RANK`].
    #[inline]
    pub(super) fn rank(&self, text: &[u8], span: Range<usize>) -> u32 {
        let length = span.len();
        let found = if length <= SHORT_BYTES {
            self.short.find(short_key(text, span), |slot| slot.length as usize == length)
        } else if length <= self.longest {
            let bytes = &text[span];
            self.long.find(hash(bytes), |slot| self.tokens.get(slot.rank) == Some(bytes))
        } else {
            None
        };
        found.map_or(NO_RANK, |slot| slot.rank)
    }

    /// The rank of one byte.
    #[inline]
    pub(super) fn byte(&self, byte: u8) -> u32 {
        self.bytes[usize::from(byte)]
    }

    /// The tokens by rank.
    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }
}

/// A stretch of `text` of one to eight bytes as a number, the first byte lowest.
#[inline]
fn short_key(text: &[u8], span: Range<usize>) -> u64 {
    let rest = &text[span.start..];
    match rest.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * span.len())),
        None => rest[..span.len()].iter().rev().fold(0, |key, &byte| key << 8 | u64::from(byte)),
    }
}

/// The hash of at least eight bytes, eight at a time; the last eight may overlap those before.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let last = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
    words.iter().fold(last, |state, word| mix(state.rotate_left(32), u64::from_le_bytes(*word)))
}

/// Folds `word` into `state` by a widening multiplication.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let wide = u128::from(state ^ word) * u128::from(FACTOR);
    wide as u64 ^ (wide >> 64) as u64
}

/// A hash table of tokens.
///
/// Slots come in groups of eight, and a token is in the first group from its own on that had room. Most stretches that are
/// asked about are no token: the tags of one group, compared all at once, say so without a look at the slots, which would
/// not stay in a near cache, and without a branch that cannot be foreseen. Two slots in five are empty at least, so nearly
/// every group has one and the search ends there.
#[derive(Debug)]
struct Table {
    /// For each group one byte of the hash of each token, the first slot lowest; 0 where there is none.
    tags: Vec<u64>,
    slots: Vec<Slot>,
}

/// A token of the table.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    length: u32,
    rank: u32,
}

/// Slots of a group.
const GROUP: usize = 8;

impl Table {
    fn new(tokens: usize) -> Self {
        let slots = (tokens + tokens * 2 / 3 + GROUP).next_power_of_two();
        Table { tags: vec![0; slots / GROUP], slots: vec![Slot::default(); slots] }
    }

    /// The group where the search for a key begins, and its tag.
    #[inline]
    fn home(&self, key: u64) -> (usize, u8) {
        let hash = mix(0, key);
        (hash as usize & (self.tags.len() - 1), ((hash >> 56) as u8).max(1))
    }

    /// The slot with this key that `is_token` says is the one.
    #[inline]
    fn find(&self, key: u64, is_token: impl Fn(&Slot) -> bool) -> Option<&Slot> {
        let (mut group, tag) = self.home(key);
        loop {
            let tags = self.tags[group];
            let mut matches = zero_bytes(tags ^ u64::from_le_bytes([tag; GROUP]));
            while matches != 0 {
                let slot = &self.slots[group * GROUP + matches.trailing_zeros() as usize / 8];
                if slot.key == key && is_token(slot) {
                    return Some(slot);
                }
                matches &= matches - 1;
            }
            if zero_bytes(tags) != 0 {
                return None;
            }
            group = (group + 1) & (self.tags.len() - 1);
        }
    }

    /// Adds a token that is not there.
    fn insert(&mut self, slot: Slot) {
        let (mut group, tag) = self.home(slot.key);
        while zero_bytes(self.tags[group]) == 0 {
            group = (group + 1) & (self.tags.len() - 1);
        }
        let place = zero_bytes(self.tags[group]).trailing_zeros() as usize / 8;
        self.tags[group] |= u64::from(tag) << (8 * place);
        self.slots[group * GROUP + place] = slot;
    }
}

/// The high bit of each byte of `word` that is zero, and perhaps of some above the lowest of these.
#[inline]
fn zero_bytes(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    word.wrapping_sub(LOW) & !word & (LOW << 7)
}
