//! What several test programs share: fixtures of `fixtures/ops`, and weights held in arrays.

pub mod arrays;
mod released;

use std::{format, fs};

use k3_core::config::Config;
use serde_json::Value;

/// A file of `fixtures/ops`, which `scripts/op-fixtures.py` writes.
pub fn fixture(name: &str) -> Value {
    let path = format!("{}/../fixtures/ops/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The config of a model fixture.
pub fn config(fixture: &Value) -> Config {
    Config::from_json(&serde_json::to_vec(&fixture["config"]).unwrap()).unwrap()
}

/// The token ids of a model fixture.
pub fn tokens(fixture: &Value) -> Vec<u32> {
    fixture["tokens"].as_array().unwrap().iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// Numbers that f32 must hold exactly, so that no rounding of inputs blurs a comparison.
pub fn singles(values: &Value) -> Vec<f32> {
    values.as_array().unwrap().iter().map(single).collect()
}

/// A number that f32 must hold exactly.
pub fn single(value: &Value) -> f32 {
    let double = value.as_f64().unwrap();
    #[allow(clippy::cast_possible_truncation, reason = "checked to be exact")]
    let single = double as f32;
    assert_eq!(f64::from(single).to_bits(), double.to_bits(), "{double} is not exact in f32");
    single
}
