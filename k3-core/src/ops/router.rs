//! The router's choice: which experts a token uses, and with what weight.

use crate::config::MoeConfig;
use crate::kernels::{Kernels, math::sigmoid};

/// Added to the sum of the chosen scores before dividing by it.
const RENORMALIZE_EPS: f32 = 1e-20;

/// A token's chosen experts, in ascending order of their ids.
pub struct Choice<'a> {
    /// `[top_k]`
    pub ids: &'a mut [usize],
    /// `[top_k]`, the weight of each.
    pub weights: &'a mut [f32],
}

impl Choice<'_> {
    /// Chooses the `top_k` experts of highest `σ(logit) + bias` (lower id on ties) and weighs them by `σ(logit)` alone.
    ///
    /// `logits` is `[experts]` and holds the scores `σ(logit)` afterwards.
    pub fn choose(&mut self, kernels: &Kernels, config: &MoeConfig, logits: &mut [f32], bias: &[f32]) {
        for logit in logits.iter_mut() {
            *logit = sigmoid(*logit);
        }
        let scores = logits;
        self.select(scores, bias);
        self.ids.sort_unstable();
        for (weight, &id) in self.weights.iter_mut().zip(self.ids.iter()) {
            *weight = scores[id];
        }
        if config.renormalize && config.top_k > 1 {
            let sum = kernels.sum(self.weights) + RENORMALIZE_EPS;
            self.weights.iter_mut().for_each(|weight| *weight /= sum);
        }
        self.weights.iter_mut().for_each(|weight| *weight *= config.scaling);
    }

    /// Fills `ids` with the best experts, best first. The weights serve as room for the biased scores.
    fn select(&mut self, scores: &[f32], bias: &[f32]) {
        assert_eq!(scores.len(), bias.len(), "a bias for each expert");
        let mut chosen = 0;
        for (id, (&score, &bias)) in scores.iter().zip(bias).enumerate() {
            let biased = score + bias;
            let mut place = chosen;
            if chosen == self.ids.len() {
                if biased <= self.weights[chosen - 1] {
                    continue;
                }
                place -= 1;
            }
            while place > 0 && biased > self.weights[place - 1] {
                (self.ids[place], self.weights[place]) = (self.ids[place - 1], self.weights[place - 1]);
                place -= 1;
            }
            (self.ids[place], self.weights[place]) = (id, biased);
            chosen = (chosen + 1).min(self.ids.len());
        }
    }
}
