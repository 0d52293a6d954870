//! Merges the bytes of a piece into tokens: join the adjacent pair whose concatenation has the lowest rank, the leftmost
//! of equals, until no pair is a token.
//!
//! Two ways to the same result. Nearly all pieces are short: there an array of ranks, searched anew for each merge, is
//! fastest. For long pieces that search would be quadratic, so a heap of pairs over a linked list takes over.

use alloc::boxed::Box;
use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::ops::Range;

use super::atoms::Atoms;
use super::classes::step_point;
use super::ranks::{NO_RANK, Ranks};
use super::vocabulary::MAX_TOKENS;

/// What merging looks up.
#[derive(Debug)]
pub(super) struct Merges {
    pub(super) ranks: Ranks,
    atoms: Atoms,
}

impl Merges {
    pub(super) fn new(ranks: Ranks) -> Merges {
        Merges { atoms: Atoms::new(&ranks), ranks }
    }

    /// Where the part that merging starts with at byte `at` of `text` ends, and its rank: an atom or one byte.
    #[inline]
    fn first_part(&self, text: &str, at: usize) -> (usize, u32) {
        let byte = text.as_bytes()[at];
        if byte >= 0xC0 {
            let (point, end) = step_point(text, at);
            if let Some(rank) = self.atoms.rank(point) {
                return (end, rank);
            }
        }
        (at + 1, self.ranks.byte(byte))
    }
}

/// The buffers of merging, kept between pieces so that none is allocated for each.
#[derive(Debug, Default)]
pub(super) struct Merger {
    short: Box<Short>,
    long: Long,
}

impl Merger {
    /// Appends the tokens of a piece of `text`, which is shorter than 4 GiB. The piece is not empty.
    #[inline]
    pub(super) fn encode(&mut self, merges: &Merges, text: &str, piece: Range<usize>, ids: &mut Vec<u32>) {
        let whole = merges.ranks.rank(text.as_bytes(), piece.clone());
        if whole != NO_RANK {
            ids.push(whole);
        } else if self.short.fill(merges, text, piece.clone()) {
            self.short.merge(&merges.ranks, text.as_bytes(), ids);
        } else {
            self.long.merge_all(merges, &text[piece], ids);
        }
    }
}

/// Pieces of up to this many parts are merged in an array.
const SHORT: usize = 64;

/// Bits of a pair that hold the number of its left part.
const PART_BITS: u32 = SHORT.ilog2();

/// What is no token, in place of a pair.
const NO_PAIR: u32 = u32::MAX;

const _: () = assert!(MAX_TOKENS << PART_BITS < NO_PAIR as usize, "a pair has room for every rank");

/// A short piece. Its parts are numbered as they were at the start; a part that is merged takes the number of its left
/// half, and the number of the right half is out of use. Number `parts` stands for the end.
#[derive(Debug)]
struct Short {
    parts: usize,
    /// Where the part starts in the text.
    starts: [u32; SHORT + 1],
    /// The rank of the part.
    ranks: [u32; SHORT],
    /// The rank of this part and the next together, and below it the number of this part, so that the lowest pair is also
    /// the leftmost of its rank; or [`NO_PAIR`].
    pairs: [u32; SHORT],
    /// The number of the part behind.
    next: [u8; SHORT + 1],
    /// The number of the part before.
    previous: [u8; SHORT + 1],
}

impl Default for Short {
    fn default() -> Self {
        Short {
            parts: 0,
            starts: [0; SHORT + 1],
            ranks: [0; SHORT],
            pairs: [NO_PAIR; SHORT],
            next: [0; SHORT + 1],
            previous: [0; SHORT + 1],
        }
    }
}

impl Short {
    /// Divides a piece into the parts to start with, if there is room for them.
    fn fill(&mut self, merges: &Merges, text: &str, piece: Range<usize>) -> bool {
        let (mut at, mut parts) = (piece.start, 0);
        while at < piece.end {
            if parts == SHORT {
                return false;
            }
            self.starts[parts] = at as u32;
            (at, self.ranks[parts]) = merges.first_part(text, at);
            self.next[parts] = parts as u8 + 1;
            self.previous[parts + 1] = parts as u8;
            parts += 1;
        }
        self.starts[parts] = at as u32;
        self.parts = parts;
        for part in 0..parts {
            self.rank_pair(&merges.ranks, text.as_bytes(), part);
        }
        true
    }

    /// Merges the lowest pair until there is none, and appends the ranks of what is left.
    fn merge(&mut self, ranks: &Ranks, text: &[u8], ids: &mut Vec<u32>) {
        while let Some(&lowest) = self.pairs[..self.parts].iter().min()
            && lowest != NO_PAIR
        {
            let left = lowest as usize % SHORT;
            let right = usize::from(self.next[left]);
            self.ranks[left] = lowest >> PART_BITS;
            self.pairs[right] = NO_PAIR;
            self.next[left] = self.next[right];
            self.previous[usize::from(self.next[right])] = left as u8;
            self.rank_pair(ranks, text, left);
            if left > 0 {
                self.rank_pair(ranks, text, self.previous[left].into());
            }
        }
        let mut part = 0;
        while part < self.parts {
            ids.push(self.ranks[part]);
            part = self.next[part].into();
        }
    }

    /// Ranks the pair of `part` and the next one.
    #[inline]
    fn rank_pair(&mut self, ranks: &Ranks, text: &[u8], part: usize) {
        let right = usize::from(self.next[part]);
        self.pairs[part] = NO_PAIR;
        if right < self.parts {
            let end = usize::from(self.next[right]);
            let rank = ranks.rank(text, self.starts[part] as usize..self.starts[end] as usize);
            if rank != NO_RANK {
                self.pairs[part] = rank << PART_BITS | part as u32;
            }
        }
    }
}

/// No part: the beginning of the list.
const NONE: u32 = u32::MAX;

/// A long piece.
#[derive(Debug, Default)]
struct Long {
    /// By the byte where the part starts; a list through `previous` and `end`.
    parts: Vec<Part>,
    /// The pairs that are tokens, and some that were.
    heap: BinaryHeap<Reverse<Candidate>>,
}

/// A part of a long piece.
#[derive(Debug, Clone, Copy, Default)]
struct Part {
    /// Where the part before starts, or [`NONE`].
    previous: u32,
    /// Where the part ends and the next one starts; 0 if no part starts here (any more).
    end: u32,
    /// The rank of the part.
    rank: u32,
    /// The rank that this and the next part would have together, or [`NO_RANK`].
    pair_rank: u32,
}

/// A pair that could be merged: the rank of the result, then the start of its left part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    start: u32,
}

impl Long {
    fn merge_all(&mut self, merges: &Merges, piece: &str, ids: &mut Vec<u32>) {
        self.fill(merges, piece);
        while let Some(Reverse(Candidate { rank, start })) = self.heap.pop() {
            // A candidate is stale when its left part is gone or has another neighbour by now.
            let part = self.parts[start as usize];
            if part.end != 0 && part.pair_rank == rank {
                self.merge(&merges.ranks, piece.as_bytes(), start);
            }
        }
        let mut at = 0;
        while at < piece.len() {
            ids.push(self.parts[at].rank);
            at = self.parts[at].end as usize;
        }
    }

    /// Lists the parts to start with, and the pairs of them that are tokens.
    fn fill(&mut self, merges: &Merges, piece: &str) {
        self.parts.clear();
        self.parts.resize(piece.len(), Part::default());
        let (mut at, mut previous) = (0, NONE);
        while at < piece.len() {
            let (end, rank) = merges.first_part(piece, at);
            self.parts[at] = Part { previous, end: end as u32, rank, pair_rank: NO_RANK };
            (previous, at) = (at as u32, end);
        }
        let mut at = 0;
        while at < piece.len() {
            self.rank_pair(&merges.ranks, piece.as_bytes(), at as u32);
            at = self.parts[at].end as usize;
        }
    }

    /// Merges the part at `start` with the next, and ranks the two pairs that arise.
    fn merge(&mut self, ranks: &Ranks, piece: &[u8], start: u32) {
        let middle = self.parts[start as usize].end;
        let end = core::mem::take(&mut self.parts[middle as usize].end);
        let part = &mut self.parts[start as usize];
        (part.end, part.rank) = (end, part.pair_rank);
        let previous = part.previous;
        if let Some(next) = self.parts.get_mut(end as usize) {
            next.previous = start;
        }
        self.rank_pair(ranks, piece, start);
        if previous != NONE {
            self.rank_pair(ranks, piece, previous);
        }
    }

    /// Ranks the pair of the part at `start` and the next one.
    fn rank_pair(&mut self, ranks: &Ranks, piece: &[u8], start: u32) {
        let middle = self.parts[start as usize].end;
        let pair_rank = match self.parts.get(middle as usize) {
            Some(next) => ranks.rank(piece, start as usize..next.end as usize),
            None => NO_RANK,
        };
        self.parts[start as usize].pair_rank = pair_rank;
        if pair_rank != NO_RANK {
            self.heap.push(Reverse(Candidate { rank: pair_rank, start }));
        }
    }
}
