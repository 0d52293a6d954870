//! The characters whose bytes can be merged before anything else.
//!
//! Merging bytes one pair at a time, in order of rank over the whole piece, spends most of its time putting together the
//! two or three bytes of each character. For nearly all characters that order does not matter. Call a character an
//! *atom* if its bytes merge into one token and every merge on the way has a lower rank than every token that reaches
//! across an edge of the character. Then starting with the atoms whole gives the tokens that starting with bytes gives:
//!
//! Run both side by side, and let a merge inside an atom be a step that only the run from bytes takes. Claim: the runs
//! make the same other merges in the same order. Say they have so far. The run from bytes picks the lowest pair. If that
//! is inside an atom, nothing else changes. If not, it is no pair across the edge of an unfinished atom, for the next
//! merge inside that atom would be lower. So the other run has it as well; and what else that run has, pairs with atoms
//! that are still unfinished in the first, ranks above the next merge inside those atoms, hence above the pick. Both
//! pick the same pair.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::ranks::{NO_RANK, Ranks};

/// The atoms among the characters up to U+FFFF.
#[derive(Debug)]
pub(super) struct Atoms {
    /// By code point: the rank of an atom, or [`NO_RANK`].
    ranks: Vec<u32>,
}

/// The code points in the table: those of up to three bytes.
const POINTS: usize = 0x1_0000;

impl Atoms {
    pub(super) fn new(ranks: &Ranks) -> Atoms {
        let crossings = Crossings::new(ranks);
        let mut atoms = Atoms { ranks: vec![NO_RANK; POINTS] };
        for (rank, token) in (0..).zip(ranks.tokens().iter()) {
            let Some(point) = single_character(token) else {
                continue;
            };
            if highest_inside(ranks, token, rank) < crossings.lowest(point, token) {
                atoms.ranks[point] = rank;
            }
        }
        atoms
    }

    /// The rank of the character `point`, if it is an atom.
    #[inline]
    pub(super) fn rank(&self, point: u32) -> Option<u32> {
        self.ranks.get(point as usize).copied().filter(|&rank| rank != NO_RANK)
    }
}

/// The code point of a token that is one character of two or three bytes.
fn single_character(token: &[u8]) -> Option<usize> {
    let text = core::str::from_utf8(token).ok().filter(|_| matches!(token.len(), 2 | 3))?;
    let first = text.chars().next().filter(|first| first.len_utf8() == token.len())?;
    Some(first as usize)
}

/// The highest rank of the merges that make this character of its bytes, the last of which gives `rank`; or [`NO_RANK`]
/// if they do not.
fn highest_inside(ranks: &Ranks, character: &[u8], rank: u32) -> u32 {
    match character.len() {
        3 => ranks.rank(character, 0..2).min(ranks.rank(character, 1..3)).max(rank),
        _ => rank,
    }
}

/// The lowest ranks of tokens that reach across the edge of a character.
struct Crossings<'a> {
    /// By code point: of tokens that hold the whole character and more.
    whole: Vec<u32>,
    /// By the last bytes of a character: of tokens that begin with those and go on behind.
    heads: BTreeMap<&'a [u8], u32>,
    /// By the first bytes of a character: of tokens that end with those and begin before.
    tails: BTreeMap<&'a [u8], u32>,
}

impl<'a> Crossings<'a> {
    fn new(ranks: &'a Ranks) -> Self {
        let mut crossings = Crossings { whole: vec![NO_RANK; POINTS], heads: BTreeMap::new(), tails: BTreeMap::new() };
        for (rank, token) in (0..).zip(ranks.tokens().iter()) {
            crossings.add(token, rank);
        }
        crossings
    }

    fn add(&mut self, token: &'a [u8], rank: u32) {
        if token.is_ascii() {
            return;
        }
        let is_inner = |byte: &u8| (0x80..0xC0).contains(byte);
        let head = token.iter().take_while(|byte| is_inner(byte)).count();
        let (head, rest) = token.split_at(head);
        let (middle, tail) = match core::str::from_utf8(rest) {
            Ok(middle) => (middle, &[][..]),
            // The end is the beginning of a character, as in the middle of a text.
            Err(error) if error.error_len().is_none() => {
                let (middle, tail) = rest.split_at(error.valid_up_to());
                (core::str::from_utf8(middle).unwrap_or_default(), tail)
            }
            // Not part of any text.
            Err(_) => return,
        };
        // Ranks come in ascending order: the first entry of a key is the lowest.
        if !head.is_empty() && head.len() < token.len() {
            self.heads.entry(head).or_insert(rank);
        }
        if !tail.is_empty() && tail.len() < token.len() {
            self.tails.entry(tail).or_insert(rank);
        }
        for character in middle.chars().filter(|character| character.len_utf8() < token.len()) {
            if let Some(lowest) = self.whole.get_mut(character as usize) {
                *lowest = rank.min(*lowest);
            }
        }
    }

    /// The lowest rank of a token across an edge of this character.
    fn lowest(&self, point: usize, character: &[u8]) -> u32 {
        let rank = |found: Option<&u32>| found.copied().unwrap_or(NO_RANK);
        let edges = (1..character.len()).map(|at| {
            let (tail, head) = character.split_at(at);
            rank(self.heads.get(head)).min(rank(self.tails.get(tail)))
        });
        edges.fold(self.whole[point], u32::min)
    }
}
