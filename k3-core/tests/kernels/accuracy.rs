//! The promise about accuracy: within 2e-6 of the sum of the absolute products, against a nearly exact sum.

use proptest::prelude::*;

use crate::data::{Kind, Random, all_kernels};

/// The sum in about twice the precision of f64. Products of two f32 are exact in f64.
fn exact_dot(a: &[f32], b: &[f32]) -> f64 {
    let (mut sum, mut lost) = (0.0_f64, 0.0_f64);
    for (a, b) in a.iter().zip(b) {
        let term = f64::from(*a) * f64::from(*b);
        let next = sum + term;
        let taken = next - sum;
        lost += (sum - (next - taken)) + (term - taken);
        sum = next;
    }
    sum + lost
}

#[track_caller]
fn check(a: &[f32], b: &[f32], what: &str) {
    let magnitude: f64 = a.iter().zip(b).map(|(a, b)| (f64::from(*a) * f64::from(*b)).abs()).sum();
    let exact = exact_dot(a, b);
    for kernels in all_kernels() {
        let error = (f64::from(kernels.dot(a, b)) - exact).abs() / magnitude;
        assert!(error <= 2e-6, "{what}, {} terms: off by {error:e}", a.len());
    }
}

/// Inputs that are hard on a sum, by name.
fn adversarial(length: usize, random: &mut Random) -> Vec<(&'static str, Vec<f32>)> {
    let mut ascending = random.values(length, Kind::Varied);
    ascending.sort_by(f32::total_cmp);
    let descending = ascending.iter().rev().copied().collect();
    let signs = [1.0, -1.0];
    vec![
        ("moderate", random.values(length, Kind::Moderate)),
        ("varied", random.values(length, Kind::Varied)),
        ("ascending", ascending),
        ("descending", descending),
        ("equal", vec![0.1; length]),
        ("alternating", (0..length).map(|i| signs[i % 2] * (1.0 + i as f32 * 1e-6)).collect()),
        ("cancelling halves", (0..length).map(|i| signs[i * 2 / length] * 0.7).collect()),
        ("one large first", (0..length).map(|i| if i == 0 { 1e6 } else { 0.1 }).collect()),
        ("geometric", (0..length).map(|i| f32::powf(0.999, (i % 60_000) as f32)).collect()),
    ]
}

#[test]
fn hard_inputs_stay_within_the_bound() {
    let mut random = Random(9);
    for length in [1, 31, 33, 512, 513, 3584, 7168, 33792, 1 << 20] {
        for (name, a) in adversarial(length, &mut random) {
            check(&a, &vec![1.0; length], name);
            check(&a, &vec![0.3; length], name);
            check(&a, &random.values(length, Kind::Moderate), name);
            check(&a, &random.values(length, Kind::Varied), name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_input_stays_within_the_bound(length in 1..33_792_usize, seed: u64) {
        let mut random = Random(seed);
        let (a, b) = (random.values(length, Kind::Varied), random.values(length, Kind::Varied));
        check(&a, &b, "varied");
    }
}
