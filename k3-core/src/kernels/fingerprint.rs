//! Fingerprints of the elementary functions, by which machines can be compared.

use xxhash_rust::xxh3::Xxh3Default;

use super::math;

/// How many inputs go into a fingerprint.
pub const INPUTS: u32 = 1_000_000;

type Function = fn(f32) -> f32;

/// For each elementary function its name and the XXH3 hash of the bits of its results, little-endian, on [`INPUTS`]
/// numbers that are spread over all bit patterns of f32. Results that are not a number count as one and the same, because
/// their sign and payload mean nothing and are the machine's own.
#[must_use]
pub fn elementary_functions() -> [(&'static str, u64); 6] {
    let functions: [(_, Function); 6] = [
        ("exp", math::exp),
        ("tanh", math::tanh),
        ("sigmoid", math::sigmoid),
        ("silu", math::silu),
        ("softplus", math::softplus),
        ("sqrt", math::sqrt),
    ];
    functions.map(|(name, function)| (name, fingerprint(function)))
}

fn fingerprint(function: Function) -> u64 {
    // Odd, so that the products modulo 2^32 are all different; 2^32 over the golden ratio, so that they are spread evenly.
    const SPREAD: u32 = 0x9e37_79b1;
    let mut hash = Xxh3Default::new();
    for index in 0..INPUTS {
        let result = function(f32::from_bits(index.wrapping_mul(SPREAD)));
        let result = if result.is_nan() { f32::NAN } else { result };
        hash.update(&result.to_bits().to_le_bytes());
    }
    hash.digest()
}
