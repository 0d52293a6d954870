use std::string::String;
use std::vec::Vec;
use std::{format, fs};

use serde_json::{Value, json};

use super::{Attention, Config, FeedForward};
use crate::Error;

fn fixture(model: &str) -> Vec<u8> {
    fs::read(format!(
        "{}/../fixtures/oracle/{model}/config.json",
        env!("CARGO_MANIFEST_DIR")
    ))
    .unwrap()
}

/// Oracle model `a` with the text fields of `changes` set, or removed where null.
fn changed(changes: &Value) -> Vec<u8> {
    let mut config: Value = serde_json::from_slice(&fixture("a")).unwrap();
    merge(&mut config, changes);
    serde_json::to_vec(&config).unwrap()
}

const REMOVED: &str = "(removed)";

fn merge(target: &mut Value, changes: &Value) {
    match changes {
        Value::Object(changes) => {
            let target = target.as_object_mut().unwrap();
            for (name, change) in changes {
                if change == REMOVED {
                    target.remove(name).unwrap();
                } else {
                    merge(target.entry(name).or_insert(json!({})), change);
                }
            }
        }
        other => *target = other.clone(),
    }
}

fn faults(bytes: &[u8]) -> Vec<String> {
    match Config::from_json(bytes) {
        Err(Error::Config(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// The faults of model `a` with `changes` made to its text config.
fn text_faults(changes: &Value) -> Vec<String> {
    faults(&changed(&json!({ "text_config": changes })))
}

#[test]
fn the_oracle_config_is_read() {
    let config = Config::from_json(&fixture("b")).unwrap();
    assert_eq!(config.hidden, 75);
    assert_eq!(config.vocabulary, 211);
    assert_eq!(config.layers.len(), 11);
    assert_eq!(config.rms_norm_eps.to_bits(), 3e-5_f32.to_bits());
    let mla: Vec<usize> = (0..11)
        .filter(|&layer| config.layers[layer].attention == Attention::Mla)
        .collect();
    assert_eq!(mla, [3, 7, 9, 10]);
    let dense: Vec<usize> = (0..11)
        .filter(|&layer| config.layers[layer].feed_forward == FeedForward::Dense)
        .collect();
    assert_eq!(dense, [0, 1]);
    assert_eq!(config.end_ids, [2]);
    assert_eq!(config.moe.shared_width, 480);
}

#[test]
fn all_faults_are_told_at_once() {
    let found = text_faults(
        &json!({ "hidden_size": REMOVED, "num_experts_per_token": 17, "rms_norm_eps": "1e-5" }),
    );
    assert_eq!(
        found,
        [
            "text_config.hidden_size: missing",
            "text_config.rms_norm_eps: is a string, not a number",
            "text_config.num_experts_per_token: 17 is above num_experts (16)",
        ]
    );
}
