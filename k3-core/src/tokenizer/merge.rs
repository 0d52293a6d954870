//! Merges the bytes of a piece into tokens: join the adjacent pair whose concatenation has the lowest rank, the leftmost
//! of equals, until no pair is a token.
//!
//! Two ways to the same result. Nearly all pieces are short: there an array of ranks, searched anew for each merge, is
//! fastest. For long pieces that search would be quadratic, so a heap of pairs over a linked list takes over.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::ranks::{NO_RANK, Ranks};

/// Pieces up to this many bytes are merged in an array.
const SHORT: usize = 64;

/// No part: the end of the list.
const NONE: u32 = u32::MAX;

/// The buffers of merging, kept between pieces so that none is allocated for each.
#[derive(Debug, Default)]
pub(super) struct Merger {
    parts: Vec<Part>,
    heap: BinaryHeap<Reverse<Candidate>>,
}

/// A part of a long piece: a token so far. The part that starts at byte `i` is `parts[i]`.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Where the part before starts, or [`NONE`].
    previous: u32,
    /// Where the part ends and the next one starts; 0 once it is merged into the one before.
    end: u32,
    /// The rank that this and the next part would have together, or [`NO_RANK`].
    pair_rank: u32,
}

/// A pair that could be merged: the rank of the result, then the start of its left part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    start: u32,
}

impl Merger {
    /// Appends the tokens of `piece`, which is not empty and shorter than 4 GiB.
    #[inline]
    pub(super) fn encode(&mut self, ranks: &Ranks, piece: &[u8], ids: &mut Vec<u32>) {
        let whole = ranks.rank(piece);
        if whole != NO_RANK {
            ids.push(whole);
        } else if piece.len() <= SHORT {
            merge_short(ranks, piece, ids);
        } else {
            self.merge_long(ranks, piece, ids);
        }
    }

    fn merge_long(&mut self, ranks: &Ranks, piece: &[u8], ids: &mut Vec<u32>) {
        self.fill(ranks, piece);
        while let Some(Reverse(Candidate { rank, start })) = self.heap.pop() {
            // A candidate is stale when its left part is gone or has another neighbour by now.
            let part = self.parts[start as usize];
            if part.end != 0 && part.pair_rank == rank {
                self.merge(ranks, piece, start);
            }
        }
        let mut start = 0;
        while start < piece.len() {
            let end = self.parts[start].end as usize;
            ids.push(ranks.rank(&piece[start..end]));
            start = end;
        }
    }

    /// Makes a part of each byte and a candidate of each pair that is a token.
    fn fill(&mut self, ranks: &Ranks, piece: &[u8]) {
        self.parts.clear();
        self.heap.clear();
        let mut candidates = core::mem::take(&mut self.heap).into_vec();
        for start in 0..piece.len() as u32 {
            let pair_rank = match piece[start as usize..] {
                [first, second, ..] => ranks.pair(first, second),
                _ => NO_RANK,
            };
            if pair_rank != NO_RANK {
                candidates.push(Reverse(Candidate {
                    rank: pair_rank,
                    start,
                }));
            }
            self.parts.push(Part {
                previous: start.wrapping_sub(1),
                end: start + 1,
                pair_rank,
            });
        }
        self.heap = BinaryHeap::from(candidates);
    }

    /// Merges the part at `start` with the next, and ranks the two pairs that arise.
    fn merge(&mut self, ranks: &Ranks, piece: &[u8], start: u32) {
        let middle = self.parts[start as usize].end;
        let end = core::mem::take(&mut self.parts[middle as usize].end);
        self.parts[start as usize].end = end;
        if let Some(next) = self.parts.get_mut(end as usize) {
            next.previous = start;
        }
        self.rank_pair(ranks, piece, start);
        let previous = self.parts[start as usize].previous;
        if previous != NONE {
            self.rank_pair(ranks, piece, previous);
        }
    }

    /// Ranks the pair of the part at `start` and the next one.
    fn rank_pair(&mut self, ranks: &Ranks, piece: &[u8], start: u32) {
        let middle = self.parts[start as usize].end;
        let pair_rank = match self.parts.get(middle as usize) {
            Some(next) => ranks.rank(&piece[start as usize..next.end as usize]),
            None => NO_RANK,
        };
        self.parts[start as usize].pair_rank = pair_rank;
        if pair_rank != NO_RANK {
            self.heap.push(Reverse(Candidate {
                rank: pair_rank,
                start,
            }));
        }
    }
}

/// Merges a piece of at most [`SHORT`] bytes.
fn merge_short(ranks: &Ranks, piece: &[u8], ids: &mut Vec<u32>) {
    // Part i is bytes starts[i]..starts[i + 1]; pair_ranks[i] is the rank that parts i and i + 1 would have together.
    let mut starts = [0u8; SHORT + 1];
    let mut pair_ranks = [NO_RANK; SHORT];
    let mut parts = piece.len();
    for (i, pair) in piece.windows(2).enumerate() {
        starts[i + 1] = i as u8 + 1;
        pair_ranks[i] = ranks.pair(pair[0], pair[1]);
    }
    starts[parts] = parts as u8;
    while let Some((lowest, rank)) = lowest(&pair_ranks[..parts - 1]) {
        if rank == NO_RANK {
            break;
        }
        starts.copy_within(lowest + 2..=parts, lowest + 1);
        pair_ranks.copy_within(lowest + 1..parts, lowest);
        parts -= 1;
        let rank_at = |i: usize| {
            if i + 1 < parts {
                ranks.rank(&piece[starts[i].into()..starts[i + 2].into()])
            } else {
                NO_RANK
            }
        };
        pair_ranks[lowest] = rank_at(lowest);
        if lowest > 0 {
            pair_ranks[lowest - 1] = rank_at(lowest - 1);
        }
    }
    ids.extend((0..parts).map(|i| ranks.rank(&piece[starts[i].into()..starts[i + 1].into()])));
}

/// The index and value of the first of the smallest, if there are any.
#[inline]
fn lowest(pair_ranks: &[u32]) -> Option<(usize, u32)> {
    let rank = pair_ranks.iter().copied().min()?;
    let index = pair_ranks.iter().position(|&other| other == rank)?;
    Some((index, rank))
}
