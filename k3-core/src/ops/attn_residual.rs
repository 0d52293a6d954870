//! Attention residuals: a sublayer's input is a softmax mix of earlier block sums.

use super::{norm::rms_factor, softmax::softmax};
use crate::kernels::{Kernels, Matrix};

/// What scores the sources of one mix.
pub struct ResidualMix<'a> {
    /// `[hidden]`: the key norm's weight times the projection row.
    pub key_weight: &'a [f32],
    /// Epsilon of the key norm.
    pub eps: f32,
}

impl ResidualMix<'_> {
    /// `out = Σ_s a_s · source_s`, with `a = softmax_s(Σ_i key_weight_i · source_s,i / rms(source_s))`.
    ///
    /// `sources` is `[n, hidden]`; the keys are normed, the values mixed are not. `scores` has room for `n`.
    pub fn mix(&self, kernels: &Kernels, sources: &[f32], scores: &mut [f32], out: &mut [f32]) {
        let hidden = self.key_weight.len();
        let count = sources.len() / hidden;
        let scores = &mut scores[..count];
        for (score, source) in scores.iter_mut().zip(sources.chunks_exact(hidden)) {
            *score = kernels.dot(source, self.key_weight) * rms_factor(kernels, source, self.eps);
        }
        softmax(kernels, scores, 1.0);
        kernels.column_sums(&Matrix::from_f32(sources, count, hidden), scores, out);
    }
}
