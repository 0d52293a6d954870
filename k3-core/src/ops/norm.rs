//! RMS and L2 normalisation.

use crate::kernels::{Kernels, math};

/// `x ← w ⊙ x / sqrt(mean(x²) + eps)`, for a vector and a weight of one width.
pub fn rms_norm(kernels: &Kernels, x: &mut [f32], weight: &[f32], eps: f32) {
    assert_eq!(x.len(), weight.len(), "a norm has a weight for each channel");
    let factor = rms_factor(kernels, x, eps);
    for (x, &weight) in x.iter_mut().zip(weight) {
        *x = *x * factor * weight;
    }
}

/// `1 / sqrt(mean(x²) + eps)`.
#[must_use]
pub fn rms_factor(kernels: &Kernels, x: &[f32], eps: f32) -> f32 {
    1.0 / math::sqrt(kernels.dot(x, x) / x.len() as f32 + eps)
}

/// `x ← scale · x / sqrt(Σ x² + eps)`: the sum of squares, not their mean.
pub fn l2_norm(kernels: &Kernels, x: &mut [f32], eps: f32, scale: f32) {
    let factor = 1.0 / math::sqrt(kernels.dot(x, x) + eps) * scale;
    for x in x {
        *x *= factor;
    }
}
