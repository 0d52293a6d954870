//! The per-channel decay of delta attention.

use crate::kernels::math::{exp, sigmoid, softplus};

/// One head's decay parameters.
pub struct HeadDecay<'a> {
    /// One value per *head*. The stored vector is longer than the heads are many and looks per-channel; it is not.
    pub a_log: f32,
    /// `[head_dim]`, added before the factor `exp(a_log)`.
    pub dt_bias: &'a [f32],
    /// The bound of the log decay. Without it the softplus form applies.
    pub lower_bound: Option<f32>,
}

impl HeadDecay<'_> {
    /// `z ← exp(g)`, with `g = bound · σ(exp(a_log) · (z + dt_bias))`, or `g = −exp(a_log) · softplus(z + dt_bias)`.
    pub fn apply(&self, z: &mut [f32]) {
        assert_eq!(z.len(), self.dt_bias.len(), "a bias for each channel");
        let rate = exp(self.a_log);
        for (z, &bias) in z.iter_mut().zip(self.dt_bias) {
            let log_decay = match self.lower_bound {
                Some(bound) => bound * sigmoid(rate * (*z + bias)),
                None => -rate * softplus(*z + bias),
            };
            *z = exp(log_decay);
        }
    }
}
