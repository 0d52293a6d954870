//! Flags that say how ids are drawn.

use std::num::NonZeroUsize;

use k3_core::sample::{Sampler, SamplingSettings};

use crate::failure::Outcome;

/// How to draw ids. Without any of these flags the most probable id is taken, always.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Sampling (greedy unless one of these is given)")]
pub struct SamplingArgs {
    /// Divides the logits; above 0 [default: 1]
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub temperature: Option<f64>,
    /// Draw from the most probable ids that together have this probability; above 0, at most 1 [default: 0.95]
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub top_p: Option<f64>,
    /// Draw from at most this many of the most probable ids [default: no limit]
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub top_k: Option<NonZeroUsize>,
    /// Another seed draws other ids; the same one draws the same again [default: 0]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub seed: Option<u64>,
}

impl SamplingArgs {
    /// The settings that the flags ask for; none if the choice is greedy.
    #[must_use]
    pub fn settings(&self) -> Option<SamplingSettings> {
        let Self { temperature, top_p, top_k, seed } = *self;
        let any = temperature.is_some() || top_p.is_some() || top_k.is_some() || seed.is_some();
        let default = SamplingSettings::default();
        any.then(|| SamplingSettings {
            temperature: temperature.unwrap_or(default.temperature),
            top_p: top_p.unwrap_or(default.top_p),
            top_k,
            seed: seed.unwrap_or(default.seed),
        })
    }

    /// The sampler that the flags ask for.
    ///
    /// # Errors
    /// A refusal if a setting is out of its range.
    pub fn sampler(&self) -> Outcome<Sampler> {
        Ok(self.settings().map_or(Ok(Sampler::greedy()), Sampler::new)?)
    }
}
