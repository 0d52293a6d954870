//! Softmax over a slice.

use crate::kernels::{Kernels, math::exp};

/// `x ← softmax(scale · x)`, with the maximum taken out first.
pub fn softmax(kernels: &Kernels, x: &mut [f32], scale: f32) {
    let mut max = f32::NEG_INFINITY;
    for x in x.iter_mut() {
        *x *= scale;
        max = max.max(*x);
    }
    for x in x.iter_mut() {
        *x = exp(*x - max);
    }
    let sum = kernels.sum(x);
    for x in x {
        *x /= sum;
    }
}
