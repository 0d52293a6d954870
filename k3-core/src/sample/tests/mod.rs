mod batches;
mod vectors;

use alloc::vec::Vec;

use super::*;

fn sampler(settings: SamplingSettings, turn: u64) -> Sampler {
    let mut sampler = Sampler::new(settings).expect("valid settings");
    sampler.begin_turn(turn);
    sampler
}

fn draws(settings: SamplingSettings, turn: u64, logits: &[f32], count: usize) -> Vec<u32> {
    let mut sampler = sampler(settings, turn);
    (0..count).map(|_| sampler.draw(logits).expect("a token")).collect()
}

#[test]
fn a_turn_can_be_drawn_again_and_turns_differ() {
    let settings = SamplingSettings { seed: 9, ..SamplingSettings::default() };
    let logits: Vec<f32> = (0u8..50).map(|id| f32::from(id % 7)).collect();
    let first = draws(settings, 3, &logits, 50);
    let mut sampler = sampler(settings, 2);
    let second: Vec<_> = (0..50).map(|_| sampler.draw(&logits).expect("a token")).collect();
    assert_ne!(first, second);
    sampler.begin_turn(3);
    assert_eq!(first, (0..50).map(|_| sampler.draw(&logits).expect("a token")).collect::<Vec<_>>());
}

#[test]
fn settings_out_of_range_are_refused() {
    let default = SamplingSettings::default();
    for temperature in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = Sampler::new(SamplingSettings { temperature, ..default });
        assert!(
            matches!(refused, Err(Error::Sampling(reason)) if reason.starts_with("the temperature is ")),
            "{temperature}"
        );
    }
    for top_p in [0.0, -0.5, 1.0 + f64::EPSILON, 2.0, f64::NAN, f64::INFINITY] {
        let refused = Sampler::new(SamplingSettings { top_p, ..default });
        assert!(matches!(refused, Err(Error::Sampling(reason)) if reason.starts_with("top-p is ")), "{top_p}");
    }
    assert!(Sampler::new(SamplingSettings { temperature: f64::MIN_POSITIVE, top_p: 1.0, ..default }).is_ok());
    assert!(Sampler::new(SamplingSettings { top_p: f64::MIN_POSITIVE, ..default }).is_ok());
}

#[test]
fn logits_that_leave_nothing_to_draw_are_refused() {
    let refusal = |reason: &str| Err(Error::Sampling(reason.into()));
    for mut sampler in [Sampler::greedy(), sampler(SamplingSettings::default(), 1)] {
        assert_eq!(sampler.draw(&[]), refusal("there are no logits"));
        assert_eq!(sampler.draw(&[1.0, f32::NAN, 2.0]), refusal("the logit of token 1 is no number"));
        assert_eq!(sampler.draw(&[MASKED; 3]), refusal("all tokens are masked"));
        assert_eq!(sampler.draw(&[f32::NEG_INFINITY, MASKED, f32::MIN]), refusal("all tokens are masked"));
        assert_eq!(sampler.draw(&[MASKED, -9e29, MASKED]), Ok(1));
    }
}

#[test]
fn masked_tokens_are_never_drawn() {
    let logits = [MASKED, 0.0, -1e31, 0.5, f32::NEG_INFINITY, -0.5];
    // At a temperature of 1e30 a mask that only lowers the probability would let e^-1 of it through.
    for temperature in [0.1, 1.0, 1e30, f64::MAX] {
        let settings = SamplingSettings { temperature, top_p: 1.0, ..SamplingSettings::default() };
        let drawn = draws(settings, 1, &logits, 20_000);
        assert!(drawn.iter().all(|id| [1, 3, 5].contains(id)), "at temperature {temperature}");
    }
}

#[test]
fn greedy_takes_the_first_maximum() {
    let mut sampler = Sampler::greedy();
    assert_eq!(sampler.draw(&[-3.0, 2.0, 2.0, 1.0]), Ok(1));
    assert_eq!(sampler.draw(&[f32::INFINITY, 2.0, f32::INFINITY]), Ok(0));
}

#[test]
fn probabilities_that_are_not_finite_fall_back_to_the_maximum() {
    // The quotients overflow, and their difference is no number.
    let tiny = SamplingSettings { temperature: 1e-320, top_p: 1.0, ..SamplingSettings::default() };
    assert_eq!(draws(tiny, 1, &[1.0, 3.0, 3.0], 20), [1; 20]);
    let settings = SamplingSettings { top_p: 1.0, ..SamplingSettings::default() };
    assert_eq!(draws(settings, 1, &[0.0, f32::INFINITY], 20), [1; 20]);
}

#[test]
fn one_token_is_always_drawn_and_one_kept_token_too() {
    assert_eq!(draws(SamplingSettings::default(), 1, &[-5.0], 20), [0; 20]);
    let one = SamplingSettings { top_k: NonZeroUsize::new(1), ..SamplingSettings::default() };
    assert_eq!(draws(one, 1, &[0.0, 0.1, 0.1], 20), [1; 20]);
    let least = SamplingSettings { top_p: f64::MIN_POSITIVE, ..SamplingSettings::default() };
    assert_eq!(draws(least, 1, &[0.0, 0.1, 0.1], 20), [1; 20]);
}
