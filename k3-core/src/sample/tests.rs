use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use serde::Deserialize;

use super::nucleus::Kept;
use super::*;

#[derive(Deserialize)]
struct Vectors {
    init: Vec<Init>,
    logits: Vec<Vec<f32>>,
    draws: Vec<Draws<usize>>,
    test_sampler_like: Vec<Draws<Vec<f32>>>,
}

#[derive(Deserialize)]
struct Init {
    seed: u64,
    turn: u64,
    state: String,
    inc: String,
    pcg32: Vec<u32>,
    unit: Vec<String>,
}

#[derive(Deserialize)]
struct Draws<L> {
    logits: L,
    temperature: f64,
    top_p: f64,
    top_k: usize,
    seed: u64,
    turn: u64,
    ids: Vec<u32>,
}

impl<L> Draws<L> {
    fn settings(&self) -> SamplingSettings {
        SamplingSettings {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: NonZeroUsize::new(self.top_k),
            seed: self.seed,
        }
    }
}

fn vectors() -> Vectors {
    serde_json::from_str(include_str!("../../../fixtures/chat/sampler_vectors.json"))
        .expect("a valid fixture")
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect(text)
}

/// A number below 1 as C prints it with `%a`: `0x1.8p-1`.
fn hexadecimal_double(text: &str) -> f64 {
    let (mantissa, exponent) = text.trim_start_matches("0x1").split_once('p').expect(text);
    let digits = mantissa.trim_start_matches('.');
    let fraction = if digits.is_empty() {
        0
    } else {
        hexadecimal(digits) << (52 - 4 * digits.len())
    };
    let exponent: i64 = exponent.parse().expect(text);
    f64::from_bits(u64::try_from(1023 + exponent).expect(text) << 52 | fraction)
}

fn sampler(settings: SamplingSettings, turn: u64) -> Sampler {
    let mut sampler = Sampler::new(settings).expect("valid settings");
    sampler.begin_turn(turn);
    sampler
}

fn draws(settings: SamplingSettings, turn: u64, logits: &[f32], count: usize) -> Vec<u32> {
    let mut sampler = sampler(settings, turn);
    (0..count)
        .map(|_| sampler.draw(logits).expect("a token"))
        .collect()
}

#[test]
fn streams_match_the_fixture() {
    let init = vectors().init;
    assert_eq!(init.len(), 7);
    for case in init {
        let stream = Stream::new(case.seed, case.turn);
        assert_eq!(
            (stream.state, stream.increment),
            (hexadecimal(&case.state), hexadecimal(&case.inc))
        );
        let mut bits = stream.clone();
        assert_eq!(
            case.pcg32.iter().map(|_| bits.bits()).collect::<Vec<_>>(),
            case.pcg32
        );
        let mut units = stream;
        for expected in &case.unit {
            assert_eq!(
                units.unit().to_bits(),
                hexadecimal_double(expected).to_bits(),
                "{expected}"
            );
        }
    }
}

#[test]
fn draws_match_the_fixture() {
    let vectors = vectors();
    assert_eq!(
        (vectors.draws.len(), vectors.test_sampler_like.len()),
        (36, 4)
    );
    for case in &vectors.draws {
        let drawn = draws(
            case.settings(),
            case.turn,
            &vectors.logits[case.logits],
            case.ids.len(),
        );
        assert_eq!(drawn, case.ids, "{:?} turn {}", case.settings(), case.turn);
    }
    for case in &vectors.test_sampler_like {
        let drawn = draws(case.settings(), case.turn, &case.logits, case.ids.len());
        assert_eq!(drawn, case.ids, "{:?} turn {}", case.settings(), case.turn);
    }
}

#[test]
fn a_turn_can_be_drawn_again_and_turns_differ() {
    let settings = SamplingSettings {
        seed: 9,
        ..SamplingSettings::default()
    };
    let logits: Vec<f32> = (0u8..50).map(|id| f32::from(id % 7)).collect();
    let first = draws(settings, 3, &logits, 50);
    let mut sampler = sampler(settings, 2);
    let second: Vec<_> = (0..50)
        .map(|_| sampler.draw(&logits).expect("a token"))
        .collect();
    assert_ne!(first, second);
    sampler.begin_turn(3);
    assert_eq!(
        first,
        (0..50)
            .map(|_| sampler.draw(&logits).expect("a token"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn settings_out_of_range_are_refused() {
    let default = SamplingSettings::default();
    for temperature in [0.0, -0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let refused = Sampler::new(SamplingSettings {
            temperature,
            ..default
        });
        assert!(
            matches!(refused, Err(Error::Sampling(reason)) if reason.starts_with("the temperature is ")),
            "{temperature}"
        );
    }
    for top_p in [0.0, -0.5, 1.0 + f64::EPSILON, 2.0, f64::NAN, f64::INFINITY] {
        let refused = Sampler::new(SamplingSettings { top_p, ..default });
        assert!(
            matches!(refused, Err(Error::Sampling(reason)) if reason.starts_with("top-p is ")),
            "{top_p}"
        );
    }
    assert!(
        Sampler::new(SamplingSettings {
            temperature: f64::MIN_POSITIVE,
            top_p: 1.0,
            ..default
        })
        .is_ok()
    );
    assert!(
        Sampler::new(SamplingSettings {
            top_p: f64::MIN_POSITIVE,
            ..default
        })
        .is_ok()
    );
}

#[test]
fn logits_that_leave_nothing_to_draw_are_refused() {
    let refusal = |reason: &str| Err(Error::Sampling(reason.into()));
    for mut sampler in [Sampler::greedy(), sampler(SamplingSettings::default(), 1)] {
        assert_eq!(sampler.draw(&[]), refusal("there are no logits"));
        assert_eq!(
            sampler.draw(&[1.0, f32::NAN, 2.0]),
            refusal("the logit of token 1 is no number")
        );
        assert_eq!(sampler.draw(&[MASKED; 3]), refusal("all tokens are masked"));
        assert_eq!(
            sampler.draw(&[f32::NEG_INFINITY, MASKED, f32::MIN]),
            refusal("all tokens are masked")
        );
        assert_eq!(sampler.draw(&[MASKED, -9e29, MASKED]), Ok(1));
    }
}

#[test]
fn masked_tokens_are_never_drawn() {
    let logits = [MASKED, 0.0, -1e31, 0.5, f32::NEG_INFINITY, -0.5];
    // At a temperature of 1e30 a mask that only lowers the probability would let e^-1 of it through.
    for temperature in [0.1, 1.0, 1e30, f64::MAX] {
        let settings = SamplingSettings {
            temperature,
            top_p: 1.0,
            ..SamplingSettings::default()
        };
        let drawn = draws(settings, 1, &logits, 20_000);
        assert!(
            drawn.iter().all(|id| [1, 3, 5].contains(id)),
            "at temperature {temperature}"
        );
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
    let tiny = SamplingSettings {
        temperature: 1e-320,
        top_p: 1.0,
        ..SamplingSettings::default()
    };
    assert_eq!(draws(tiny, 1, &[1.0, 3.0, 3.0], 20), [1; 20]);
    let settings = SamplingSettings {
        top_p: 1.0,
        ..SamplingSettings::default()
    };
    assert_eq!(draws(settings, 1, &[0.0, f32::INFINITY], 20), [1; 20]);
}

#[test]
fn one_token_is_always_drawn_and_one_kept_token_too() {
    assert_eq!(draws(SamplingSettings::default(), 1, &[-5.0], 20), [0; 20]);
    let one = SamplingSettings {
        top_k: NonZeroUsize::new(1),
        ..SamplingSettings::default()
    };
    assert_eq!(draws(one, 1, &[0.0, 0.1, 0.1], 20), [1; 20]);
    let least = SamplingSettings {
        top_p: f64::MIN_POSITIVE,
        ..SamplingSettings::default()
    };
    assert_eq!(draws(least, 1, &[0.0, 0.1, 0.1], 20), [1; 20]);
}

/// The rule of the format page written down plainly: sort everything, then keep and pick.
fn drawn_by_full_sort(logits: &[f32], settings: &SamplingSettings, stream: &mut Stream) -> u32 {
    let scaled: Vec<f64> = logits
        .iter()
        .map(|&logit| f64::from(logit) / settings.temperature)
        .collect();
    let highest = scaled.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scaled
        .iter()
        .map(|&logit| libm::exp(logit - highest))
        .collect();
    let sum: f64 = weights.iter().sum();
    let mut sorted: Vec<(f64, usize)> = weights
        .iter()
        .enumerate()
        .map(|(id, weight)| (weight / sum, id))
        .collect();
    sorted.sort_by(|left, right| {
        right
            .0
            .partial_cmp(&left.0)
            .expect("numbers")
            .then(left.1.cmp(&right.1))
    });
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
    let flat: Vec<f32> = (0..20_000)
        .map(|_| (noise.unit() * 8.0).floor() as f32 / 64.0)
        .collect();
    let equal = vec![1.5f32; 3_000];
    for logits in [&steep, &flat, &equal] {
        for (temperature, top_p, top_k) in [
            (1.0, 0.95, 0),
            (0.7, 1.0, 0),
            (2.0, 0.999, 300),
            (1.0, 0.5, 5_000),
            (1.0, 1.0, 255),
        ] {
            let settings = SamplingSettings {
                temperature,
                top_p,
                top_k: NonZeroUsize::new(top_k),
                seed: 11,
            };
            let mut stream = Stream::new(settings.seed, 4);
            let expected: Vec<u32> = (0..40)
                .map(|_| drawn_by_full_sort(logits, &settings, &mut stream))
                .collect();
            assert_eq!(draws(settings, 4, logits, 40), expected, "{settings:?}");
        }
    }
}

#[test]
fn kept_candidates_stop_at_the_first_sum_that_suffices() {
    let candidates = |probabilities: &[f64]| -> Vec<Candidate> {
        (0u32..)
            .zip(probabilities)
            .map(|(id, &probability)| Candidate { probability, id })
            .collect()
    };
    let mut all = candidates(&[0.25, 0.5, 0.125, 0.125]);
    assert_eq!(
        nucleus::keep(&mut all, 0.75, None),
        Kept {
            count: 2,
            mass: 0.75
        }
    );
    assert_eq!(
        nucleus::keep(&mut all, 0.76, None),
        Kept {
            count: 3,
            mass: 0.875
        }
    );
    assert_eq!(
        nucleus::keep(&mut all, 1.0, NonZeroUsize::new(3)),
        Kept {
            count: 3,
            mass: 0.875
        }
    );
    let sorted: Vec<_> = all.iter().map(|candidate| candidate.id).collect();
    assert_eq!(sorted, [1, 0, 2, 3]);
    for (target, id) in [
        (0.0, 1),
        (0.49, 1),
        (0.5, 0),
        (0.74, 0),
        (0.75, 2),
        (0.99, 3),
        (1.0, 3),
    ] {
        assert_eq!(nucleus::pick(&all, target), id, "{target}");
    }
}
