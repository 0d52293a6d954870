//! Finds the rank of a byte string: the one question that merging asks, millions of times.
//!
//! An open-addressing table of 32-bit slots. A slot holds a rank and, in the bits the rank leaves free, a tag from the
//! hash, so that a string that is no token (most of those asked about) is nearly always told by the slot alone. Strings
//! of one and two bytes have tables of their own.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use super::vocabulary::{MAX_TOKENS, Tokens, refuse};
use crate::Result;

/// The rank of what is not a token; greater than all ranks.
pub(super) const NO_RANK: u32 = u32::MAX;

/// The slot that holds nothing; a full slot holds the rank plus one.
const EMPTY: u32 = 0;

/// The tokens, and the way from bytes to rank.
#[derive(Debug)]
pub(super) struct Ranks {
    tokens: Tokens,
    /// The length of a power of two, at least twice the number of tokens: a probe always meets an empty slot.
    slots: Vec<u32>,
    /// Low bits of a slot that hold the rank plus one; the others hold the tag.
    rank_bits: u32,
    longest: usize,
    /// Ranks of single bytes; all exist.
    bytes: Vec<u32>,
    /// Ranks of byte pairs, or [`NO_RANK`]; the first byte counts 256.
    pairs: Vec<u32>,
}

impl Ranks {
    /// # Errors
    /// [`crate::Error::Vocabulary`] if two lines hold the same token or a single byte is missing.
    pub(super) fn new(tokens: Tokens) -> Result<Ranks> {
        let count = tokens.len();
        debug_assert!(count <= MAX_TOKENS);
        let mut ranks = Ranks {
            slots: vec![EMPTY; (2 * count).next_power_of_two()],
            rank_bits: usize::BITS - count.leading_zeros(),
            longest: 0,
            bytes: vec![NO_RANK; 256],
            pairs: vec![NO_RANK; 256 * 256],
            tokens,
        };
        for rank in 0..count as u32 {
            ranks.insert(rank)?;
        }
        match ranks.bytes.iter().position(|&rank| rank == NO_RANK) {
            Some(byte) => Err(refuse(
                None,
                format!("the single byte {byte} (0x{byte:02x}) is not a token"),
            )),
            None => Ok(ranks),
        }
    }

    fn insert(&mut self, rank: u32) -> Result<()> {
        let token = self.tokens.get(rank).unwrap_or_default();
        let (found, slot, tag) = self.probe(token);
        if found != NO_RANK {
            let reason = format!("the token is that of line {} again", found + 1);
            return Err(refuse(Some(rank as usize + 1), reason));
        }
        self.slots[slot] = tag << self.rank_bits | (rank + 1);
        self.longest = self.longest.max(token.len());
        match *token {
            [byte] => self.bytes[usize::from(byte)] = rank,
            [first, second] => self.pairs[pair_index(first, second)] = rank,
            _ => {}
        }
        Ok(())
    }

    /// The rank of `bytes`, or [`NO_RANK`].
    #[inline]
    pub(super) fn rank(&self, bytes: &[u8]) -> u32 {
        match *bytes {
            [byte] => self.bytes[usize::from(byte)],
            [first, second] => self.pair(first, second),
            _ if bytes.len() > self.longest => NO_RANK,
            _ => self.probe(bytes).0,
        }
    }

    /// The rank of two bytes, or [`NO_RANK`].
    #[inline]
    pub(super) fn pair(&self, first: u8, second: u8) -> u32 {
        self.pairs[pair_index(first, second)]
    }

    /// The rank of `bytes` or [`NO_RANK`]; the slot where it is or would go; its tag.
    #[inline]
    fn probe(&self, bytes: &[u8]) -> (u32, usize, u32) {
        let hash = hash(bytes);
        let tag = (hash >> 32) as u32 >> self.rank_bits;
        let rank_mask = (1 << self.rank_bits) - 1;
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        loop {
            let slot = self.slots[at];
            if slot == EMPTY {
                return (NO_RANK, at, tag);
            }
            let rank = (slot & rank_mask) - 1;
            if slot >> self.rank_bits == tag && self.tokens.get(rank) == Some(bytes) {
                return (rank, at, tag);
            }
            at = (at + 1) & last;
        }
    }

    /// The bytes of the token with this rank, if there is one.
    pub(super) fn token(&self, rank: u32) -> Option<&[u8]> {
        self.tokens.get(rank)
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }
}

fn pair_index(first: u8, second: u8) -> usize {
    usize::from(first) << 8 | usize::from(second)
}

/// Folds eight bytes at a time by a widening multiplication; the last eight may overlap those before.
#[inline]
fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |state: u64, word: u64| {
        let wide = u128::from(state ^ word) * u128::from(FACTOR);
        wide as u64 ^ (wide >> 64) as u64
    };
    let mut state = (bytes.len() as u64).wrapping_mul(FACTOR);
    if let Some(last) = bytes.last_chunk::<8>() {
        let (words, _) = bytes.as_chunks::<8>();
        for word in words {
            state = mix(state, u64::from_le_bytes(*word));
        }
        return mix(state, u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return mix(
            state,
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)),
        );
    }
    let word = bytes
        .iter()
        .fold(0, |word, &byte| word << 8 | u64::from(byte));
    mix(state, word)
}
