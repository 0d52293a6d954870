//! The tokens to draw from: the most probable ones, until they have enough probability together.
//!
//! Sorting all 163,840 tokens for each draw is not needed: usually a few dozen hold nearly all probability. So the most
//! probable are split off and sorted in growing batches. The order is total (ids break ties), hence each batch continues the
//! full sort exactly, and so do the running sums.

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::num::NonZeroUsize;

use super::MASKED;

/// The size of the first batch; each further one is four times as large.
const FIRST_BATCH: usize = 256;

/// A token that may be drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Candidate {
    /// Above 0.
    pub(super) probability: f64,
    pub(super) id: u32,
}

/// The candidates to draw from: so many of the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Kept {
    pub(super) count: usize,
    /// The sum of their probabilities, added in order.
    pub(super) mass: f64,
}

/// Fills `candidates` with the tokens of positive probability, in the order of ids. False if the probabilities are not
/// finite, so that only the best token is left to take.
pub(super) fn weigh(logits: &[f32], best: u32, temperature: f64, candidates: &mut Vec<Candidate>) -> bool {
    let highest = f64::from(logits[best as usize]) / temperature;
    candidates.clear();
    let mut sum = 0.0;
    for (id, &logit) in (0u32..).zip(logits) {
        if logit > MASKED {
            let weight = libm::exp(f64::from(logit) / temperature - highest);
            sum += weight;
            candidates.push(Candidate { probability: weight, id });
        }
    }
    for candidate in candidates.iter_mut() {
        candidate.probability /= sum;
    }
    candidates.retain(|candidate| candidate.probability > 0.0);
    sum.is_finite() && sum > 0.0
}

/// Moves the candidates to draw from to the front, most probable first: as many as `top_p` needs, at most `top_k`, at
/// least one.
pub(super) fn keep(candidates: &mut [Candidate], top_p: f64, top_k: Option<NonZeroUsize>) -> Kept {
    let limit = top_k.map_or(candidates.len(), |top_k| top_k.get().min(candidates.len()));
    let mut kept = Kept { count: 0, mass: 0.0 };
    let mut batch = FIRST_BATCH;
    let mut sorted = 0;
    while kept.count < limit && kept.mass < top_p {
        if kept.count == sorted {
            sorted += sort_next(&mut candidates[sorted..], batch);
            batch *= 4;
        }
        kept.mass += candidates[kept.count].probability;
        kept.count += 1;
    }
    kept
}

/// Sorts the first `count` of `candidates` to the front and says how many there were.
fn sort_next(candidates: &mut [Candidate], count: usize) -> usize {
    let count = count.min(candidates.len());
    if count < candidates.len() {
        candidates.select_nth_unstable_by(count, order);
    }
    candidates[..count].sort_unstable_by(order);
    count
}

fn order(left: &Candidate, right: &Candidate) -> Ordering {
    right.probability.total_cmp(&left.probability).then(left.id.cmp(&right.id))
}

/// The first of `kept` at which the running sum of probabilities passes `target`, or the last.
pub(super) fn pick(kept: &[Candidate], target: f64) -> u32 {
    let mut sum = 0.0;
    let passed = kept.iter().find(|candidate| {
        sum += candidate.probability;
        sum > target
    });
    // `keep` keeps at least one: the best token has the weight exp(0).
    passed.or(kept.last()).map_or(0, |candidate| candidate.id)
}
