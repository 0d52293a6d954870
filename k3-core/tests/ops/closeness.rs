//! How close is right, and how far is wrong.

use serde_json::Value;

use crate::support::fixture;

/// The largest difference from the right values that is taken for rounding, relative to their largest magnitude.
///
/// A rounding to f32 is 6e-8 of a number, and a layer of these sizes makes some dozens of them in a row, a few of which
/// are magnified by cancellation. The worst that any case here shows is 1e-6.
pub const TOLERANCE: f64 = 1e-5;

/// The least distance of a wrong version, relative likewise. The fixtures were made with the same number.
pub const FAR: f64 = 1e-3;

/// The largest difference, relative to the largest magnitude of `expected`.
pub fn distance(got: &[f32], expected: &Value) -> f64 {
    let expected: Vec<f64> = expected.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(got.len(), expected.len(), "numbers to compare");
    assert!(got.iter().all(|value| value.is_finite()), "a NaN would pass for a small difference");
    let largest = expected.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let difference = got.iter().zip(&expected).map(|(got, expected)| (f64::from(*got) - expected).abs());
    difference.fold(0.0, f64::max) / largest
}

/// Asserts that `got` is the right result, up to rounding.
pub fn assert_right(context: &str, got: &[f32], right: &Value) {
    let off = distance(got, right);
    assert!(off <= TOLERANCE, "{context}: off by {off:.2e} of the largest value");
}

/// Asserts that `got` is far from what the mistake `name` gives.
pub fn assert_not_wrong(context: &str, name: &str, got: &[f32], wrong: &Value) {
    let off = distance(got, wrong);
    assert!(off >= FAR, "{context}: this is what {name} gives ({off:.2e} from it)");
}

/// Runs `operation` on the inputs of every case of a fixture and compares its result with the right and the wrong ones.
pub fn check_cases(name: &str, operation: impl Fn(&Value) -> Vec<f32>) {
    let fixture = fixture(name);
    let cases = fixture["cases"].as_array().unwrap();
    assert!(!cases.is_empty(), "{name} has cases");
    for case in cases {
        let context = format!("{name}, {}", case["name"]);
        let got = operation(case);
        assert_right(&context, &got, &case["right"]);
        for (mistake, wrong) in case["wrong"].as_object().unwrap() {
            assert_not_wrong(&context, mistake, &got, wrong);
        }
    }
}

/// Asserts that two results have the same bits.
pub fn assert_same_bits(context: &str, got: &[f32], expected: &[f32]) {
    assert_eq!(got.len(), expected.len(), "{context}: numbers to compare");
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        assert_eq!(got.to_bits(), expected.to_bits(), "{context}: number {index} is {got}, not {expected}");
    }
}
