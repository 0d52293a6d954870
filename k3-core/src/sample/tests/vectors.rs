//! The shared sampler vectors.

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;

use super::draws;
use crate::sample::*;

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
    serde_json::from_str(include_str!("../../../../fixtures/chat/sampler_vectors.json")).expect("a valid fixture")
}

fn hexadecimal(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).expect(text)
}

/// A number below 1 as C prints it with `%a`: `0x1.8p-1`.
fn hexadecimal_double(text: &str) -> f64 {
    let (mantissa, exponent) = text.trim_start_matches("0x1").split_once('p').expect(text);
    let digits = mantissa.trim_start_matches('.');
    let fraction = if digits.is_empty() { 0 } else { hexadecimal(digits) << (52 - 4 * digits.len()) };
    let exponent: i64 = exponent.parse().expect(text);
    f64::from_bits(u64::try_from(1023 + exponent).expect(text) << 52 | fraction)
}

#[test]
fn streams_match_the_fixture() {
    let init = vectors().init;
    assert_eq!(init.len(), 7);
    for case in init {
        let stream = Stream::new(case.seed, case.turn);
        assert_eq!((stream.state, stream.increment), (hexadecimal(&case.state), hexadecimal(&case.inc)));
        let mut bits = stream.clone();
        assert_eq!(case.pcg32.iter().map(|_| bits.bits()).collect::<Vec<_>>(), case.pcg32);
        let mut units = stream;
        for expected in &case.unit {
            assert_eq!(units.unit().to_bits(), hexadecimal_double(expected).to_bits(), "{expected}");
        }
    }
}

#[test]
fn draws_match_the_fixture() {
    let vectors = vectors();
    assert_eq!((vectors.draws.len(), vectors.test_sampler_like.len()), (36, 4));
    for case in &vectors.draws {
        let drawn = draws(case.settings(), case.turn, &vectors.logits[case.logits], case.ids.len());
        assert_eq!(drawn, case.ids, "{:?} turn {}", case.settings(), case.turn);
    }
    for case in &vectors.test_sampler_like {
        let drawn = draws(case.settings(), case.turn, &case.logits, case.ids.len());
        assert_eq!(drawn, case.ids, "{:?} turn {}", case.settings(), case.turn);
    }
}
