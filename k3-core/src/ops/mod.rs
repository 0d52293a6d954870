//! The operations of the model as pure functions on slices.

pub mod activation;
pub mod attn_residual;
pub mod conv;
pub mod decay;
pub mod norm;
pub mod router;
pub mod softmax;

/// The index of the largest value; the lowest such index on ties.
///
/// NaN is never the largest. An empty slice has index 0.
#[must_use]
pub fn arg_max(values: &[f32]) -> usize {
    let mut best = 0;
    let mut best_value = f32::NEG_INFINITY;
    for (index, &value) in values.iter().enumerate() {
        if value > best_value {
            (best, best_value) = (index, value);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::arg_max;

    #[test]
    fn ties_prefer_the_lower_index() {
        assert_eq!(arg_max(&[1.0, 3.0, 3.0, 2.0]), 1);
        assert_eq!(arg_max(&[f32::NAN, -2.0, f32::NAN, -1.0]), 3);
        assert_eq!(arg_max(&[f32::NEG_INFINITY; 3]), 0);
    }
}
