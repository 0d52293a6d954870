//! Drawing the next token from logits.
//!
//! The arithmetic is in double precision and every function has one Rust source, so that the same settings, turn and logits
//! give the same token on every target. Each turn of a conversation has a random stream of its own, made from the seed and
//! the turn's number: a turn can be drawn again without drawing those before it.

mod nucleus;
mod stream;

use alloc::format;
use alloc::vec::Vec;
use core::num::NonZeroUsize;

use serde::Serialize;

use crate::{Error, Result};
use nucleus::Candidate;
use stream::Stream;

/// A logit this low, or lower, marks a token that must not be drawn.
pub const MASKED: f32 = -1e30;

/// How to draw at random.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SamplingSettings {
    /// Divides the logits: above 0 and finite.
    pub temperature: f64,
    /// How much probability the tokens to draw from must have together: above 0, at most 1.
    pub top_p: f64,
    /// The largest number of tokens to draw from, if there is one.
    pub top_k: Option<NonZeroUsize>,
    /// Where the random streams begin.
    pub seed: u64,
}

impl Default for SamplingSettings {
    fn default() -> SamplingSettings {
        SamplingSettings { temperature: 1.0, top_p: 0.95, top_k: None, seed: 0 }
    }
}

/// Draws tokens, turn after turn.
#[derive(Debug, Clone)]
pub struct Sampler {
    /// Checked settings; none means greedy.
    settings: Option<SamplingSettings>,
    stream: Stream,
    /// Room for one candidate per token, kept between draws.
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler that takes the most probable token, and the lower id of equal ones.
    #[must_use]
    pub fn greedy() -> Sampler {
        Sampler { settings: None, stream: Stream::new(0, 0), candidates: Vec::new() }
    }

    /// A sampler that draws at random, at the beginning of turn 1.
    ///
    /// # Errors
    /// [`Error::Sampling`] if a setting is out of its range.
    pub fn new(settings: SamplingSettings) -> Result<Sampler> {
        let SamplingSettings { temperature, top_p, seed, .. } = settings;
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::Sampling(format!("the temperature is {temperature}; it must be above 0 and finite")));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(Error::Sampling(format!("top-p is {top_p}; it must be above 0 and at most 1")));
        }
        Ok(Sampler { settings: Some(settings), stream: Stream::new(seed, 1), candidates: Vec::new() })
    }

    /// Starts the random stream of a turn. Turns count from 1: the number of assistant messages so far, plus one.
    pub fn begin_turn(&mut self, turn: u64) {
        if let Some(settings) = &self.settings {
            self.stream = Stream::new(settings.seed, turn);
        }
    }

    /// The next token for `logits`, one per id. Greedy choices leave the random stream alone.
    ///
    /// # Errors
    /// [`Error::Sampling`] if there are no logits, one is no number, or all are [`MASKED`].
    pub fn draw(&mut self, logits: &[f32]) -> Result<u32> {
        let best = best(logits)?;
        let Some(settings) = &self.settings else {
            return Ok(best);
        };
        if !nucleus::weigh(logits, best, settings.temperature, &mut self.candidates) {
            return Ok(best);
        }
        let kept = nucleus::keep(&mut self.candidates, settings.top_p, settings.top_k);
        Ok(nucleus::pick(&self.candidates[..kept.count], self.stream.unit() * kept.mass))
    }
}

/// The first id with the highest logit.
fn best(logits: &[f32]) -> Result<u32> {
    if logits.is_empty() {
        return Err(Error::Sampling("there are no logits".into()));
    }
    let (mut best, mut highest) = (0, MASKED);
    for (id, &logit) in (0u32..).zip(logits) {
        if logit.is_nan() {
            return Err(Error::Sampling(format!("the logit of token {id} is no number")));
        }
        if logit > highest {
            (best, highest) = (id, logit);
        }
    }
    if highest == MASKED {
        return Err(Error::Sampling("all tokens are masked".into()));
    }
    Ok(best)
}

#[cfg(test)]
mod tests;
