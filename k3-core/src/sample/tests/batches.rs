//! Sorting in batches against sorting everything.

use alloc::vec;
use alloc::vec::Vec;

use super::draws;
use crate::sample::nucleus::Kept;
use crate::sample::*;

/// The rule of the format page written down plainly: sort everything, then keep and pick.
fn drawn_by_full_sort(logits: &[f32], settings: &SamplingSettings, stream: &mut Stream) -> u32 {
    let scaled: Vec<f64> = logits.iter().map(|&logit| f64::from(logit) / settings.temperature).collect();
    let highest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scaled.iter().map(|&logit| libm::exp(logit - highest)).collect();
    let sum: f64 = weights.iter().sum();
    let mut sorted: Vec<(f64, usize)> = weights.iter().enumerate().map(|(id, weight)| (weight / sum, id)).collect();
    sorted.sort_by(|left, right| right.0.partial_cmp(&left.0).expect("numbers").then(left.1.cmp(&right.1)));
    let limit = settings.top_k.map_or(sorted.len(), NonZeroUsize::get);
    let (mut kept, mut mass) = (0, 0.0);
    while kept < limit.min(sorted.len()) && (kept == 0 || mass < settings.top_p) {
        mass += sorted[kept].0;
        kept += 1;
    }
    let target = stream.unit() * mass;
    let mut running = 0.0;
    for &(probability, id) in &sorted[..kept] {
        running += probability;
        if running > target {
            return u32::try_from(id).expect("small");
        }
    }
    u32::try_from(sorted[kept - 1].1).expect("small")
}

#[test]
fn batches_draw_what_a_full_sort_draws() {
    let mut noise = Stream::new(5, 5);
    let steep: Vec<f32> = (0..20_000).map(|_| (noise.unit() * 30.0) as f32).collect();
    // A heavy tail: nearly flat, in coarse steps so that ties abound, and far more than one batch is kept.
    let flat: Vec<f32> = (0..20_000).map(|_| (noise.unit() * 8.0).floor() as f32 / 64.0).collect();
    let equal = vec![1.5f32; 3_000];
    for logits in [&steep, &flat, &equal] {
        for (temperature, top_p, top_k) in
            [(1.0, 0.95, 0), (0.7, 1.0, 0), (2.0, 0.999, 300), (1.0, 0.5, 5_000), (1.0, 1.0, 255)]
        {
            let settings = SamplingSettings { temperature, top_p, top_k: NonZeroUsize::new(top_k), seed: 11 };
            let mut stream = Stream::new(settings.seed, 4);
            let expected: Vec<u32> = (0..40).map(|_| drawn_by_full_sort(logits, &settings, &mut stream)).collect();
            assert_eq!(draws(settings, 4, logits, 40), expected, "{settings:?}");
        }
    }
}

#[test]
fn kept_candidates_stop_at_the_first_sum_that_suffices() {
    let candidates = |probabilities: &[f64]| -> Vec<Candidate> {
        (0u32..).zip(probabilities).map(|(id, &probability)| Candidate { probability, id }).collect()
    };
    let mut all = candidates(&[0.25, 0.5, 0.125, 0.125]);
    assert_eq!(nucleus::keep(&mut all, 0.75, None), Kept { count: 2, mass: 0.75 });
    assert_eq!(nucleus::keep(&mut all, 0.76, None), Kept { count: 3, mass: 0.875 });
    assert_eq!(nucleus::keep(&mut all, 1.0, NonZeroUsize::new(3)), Kept { count: 3, mass: 0.875 });
    let sorted: Vec<_> = all.iter().map(|candidate| candidate.id).collect();
    assert_eq!(sorted, [1, 0, 2, 3]);
    for (target, id) in [(0.0, 1), (0.49, 1), (0.5, 0), (0.74, 0), (0.75, 2), (0.99, 3), (1.0, 3)] {
        assert_eq!(nucleus::pick(&all, target), id, "{target}");
    }
}
