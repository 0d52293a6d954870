//! Finds the rank of a stretch of text: the one question that merging asks, millions of times.
//!
//! Two open-addressing tables. Seven of ten tokens have at most eight bytes; their table holds the bytes themselves, as
//! one number, and a byte of hash per slot apart. Longer tokens have a table of 32-bit slots with the rank and, in the
//! bits that the rank leaves free, a tag from the hash. In both, nearly all that is no token is told by the tag.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::vocabulary::{Tokens, refuse};
use crate::Result;

/// The rank of what is not a token; greater than all ranks.
pub(super) const NO_RANK: u32 = u32::MAX;

/// The longest token of the table of short ones.
const SHORT_BYTES: usize = 8;

/// The tokens, and the way from bytes to rank.
#[derive(Debug)]
pub(super) struct Ranks {
    tokens: Tokens,
    short: ShortTable,
    long: LongTable,
    /// Ranks of single bytes; all exist.
    bytes: [u32; 256],
}

impl Ranks {
    /// # Errors
    /// [`crate::Error::Vocabulary`] if two lines hold the same token or a single byte is missing.
    pub(super) fn new(tokens: Tokens) -> Result<Ranks> {
        let count = tokens.len();
        let short = tokens.iter().filter(|token| token.len() <= SHORT_BYTES).count();
        let mut ranks = Ranks {
            short: ShortTable::new(short),
            long: LongTable::new(count - short, count),
            bytes: [NO_RANK; 256],
            tokens,
        };
        for rank in 0..count as u32 {
            let token = ranks.tokens.get(rank).unwrap_or_default();
            let earlier = match token.len() {
                ..=SHORT_BYTES => ranks.short.insert(token, rank),
                _ => ranks.long.insert(token, rank, &ranks.tokens),
            };
            if earlier != NO_RANK {
                let reason = format!("the token is that of line {} again", earlier + 1);
                return Err(refuse(Some(rank as usize + 1), reason));
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
        if span.len() <= SHORT_BYTES {
            self.short.rank(short_key(text, span.start, span.len()), span.len())
        } else {
            self.long.rank(&text[span], &self.tokens)
        }
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

/// `length` bytes of `text` from `start` on as one number, the first byte lowest; 1 to 8 of them.
#[inline]
fn short_key(text: &[u8], start: usize, length: usize) -> u64 {
    let rest = &text[start..];
    match rest.first_chunk::<8>() {
        Some(eight) => u64::from_le_bytes(*eight) & (u64::MAX >> (64 - 8 * length)),
        None => rest[..length].iter().rev().fold(0, |key, &byte| key << 8 | u64::from(byte)),
    }
}

/// A number of slots that keeps at least two fifths of them empty, so that a probe soon meets an empty one.
fn slots_for(tokens: usize) -> usize {
    (tokens + tokens * 2 / 3 + 1).next_power_of_two()
}

/// Folds `word` into `state` by a widening multiplication.
#[inline]
fn mix(state: u64, word: u64) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let wide = u128::from(state ^ word) * u128::from(FACTOR);
    wide as u64 ^ (wide >> 64) as u64
}

/// The tokens of at most [`SHORT_BYTES`] bytes.
#[derive(Debug)]
struct ShortTable {
    /// A byte of each slot's hash, or 0 if the slot is empty. Most stretches that are asked about are no token, and these
    /// few bytes say so without a look at the slots, which would not stay in a near cache.
    tags: Vec<u8>,
    slots: Vec<ShortSlot>,
}

/// A token of the table.
#[derive(Debug, Clone, Copy, Default)]
struct ShortSlot {
    key: u64,
    rank: u32,
    length: u32,
}

impl ShortTable {
    fn new(tokens: usize) -> Self {
        let slots = slots_for(tokens);
        ShortTable { tags: vec![0; slots], slots: vec![ShortSlot::default(); slots] }
    }

    #[inline]
    fn rank(&self, key: u64, length: usize) -> u32 {
        self.probe(key, length).0
    }

    /// The rank or [`NO_RANK`]; the slot where it is or would go; the tag.
    #[inline]
    fn probe(&self, key: u64, length: usize) -> (u32, usize, u8) {
        let hash = mix(length as u64, key);
        let tag = (hash >> 56) as u8 | 1;
        let last = self.tags.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let found = self.tags[at];
            if found == tag {
                let slot = self.slots[at];
                if slot.key == key && slot.length == length as u32 {
                    return (slot.rank, at, tag);
                }
            }
            if found == 0 {
                return (NO_RANK, at, tag);
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a token, or returns the rank that it has already.
    fn insert(&mut self, token: &[u8], rank: u32) -> u32 {
        let key = short_key(token, 0, token.len());
        let (earlier, at, tag) = self.probe(key, token.len());
        if earlier == NO_RANK {
            self.tags[at] = tag;
            self.slots[at] = ShortSlot { key, rank, length: token.len() as u32 };
        }
        earlier
    }
}

/// The tokens of more than [`SHORT_BYTES`] bytes.
#[derive(Debug)]
struct LongTable {
    /// A tag above the rank plus one; 0 if the slot is empty.
    slots: Vec<u32>,
    /// Bits of a slot that hold the rank plus one.
    rank_bits: u32,
    longest: usize,
}

impl LongTable {
    /// A table for so many tokens with ranks below `ranks`.
    fn new(tokens: usize, ranks: usize) -> Self {
        LongTable { slots: vec![0; slots_for(tokens)], rank_bits: usize::BITS - ranks.leading_zeros(), longest: 0 }
    }

    #[inline]
    fn rank(&self, bytes: &[u8], tokens: &Tokens) -> u32 {
        if bytes.len() > self.longest { NO_RANK } else { self.probe(bytes, tokens).0 }
    }

    /// The rank or [`NO_RANK`]; the slot where it is or would go; the tag.
    fn probe(&self, bytes: &[u8], tokens: &Tokens) -> (u32, usize, u32) {
        let hash = hash(bytes);
        let tag = (hash >> 32) as u32 >> self.rank_bits;
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return (NO_RANK, at, tag);
            }
            let rank = (slot & ((1 << self.rank_bits) - 1)) - 1;
            if slot >> self.rank_bits == tag && tokens.get(rank) == Some(bytes) {
                return (rank, at, tag);
            }
            at = (at + 1) & last;
        }
    }

    /// Adds a token, or returns the rank that it has already.
    fn insert(&mut self, token: &[u8], rank: u32, tokens: &Tokens) -> u32 {
        let (earlier, at, tag) = self.probe(token, tokens);
        if earlier == NO_RANK {
            self.slots[at] = tag << self.rank_bits | (rank + 1);
            self.longest = self.longest.max(token.len());
        }
        earlier
    }
}

/// The hash of at least eight bytes, eight at a time; the last eight may overlap those before.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    let state = words.iter().fold(bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    mix(state, bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last)))
}
