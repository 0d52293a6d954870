use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, fs};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Attention, Config, FeedForward};
use crate::Error;

fn fixture(path: &str) -> Vec<u8> {
    fs::read(format!("{}/../fixtures/{path}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn oracle(model: &str) -> Value {
    serde_json::from_slice(&fixture(&format!("oracle/{model}/config.json"))).unwrap()
}

fn read(config: &Value) -> crate::Result<Config> {
    Config::from_json(&serde_json::to_vec(config).unwrap())
}

fn faults(bytes: &[u8]) -> Vec<String> {
    match Config::from_json(bytes) {
        Err(Error::Config(faults)) => faults,
        other => panic!("{other:?}"),
    }
}

/// The object that holds the field at `path`, and the field's own name.
fn holder<'c, 'p>(config: &'c mut Value, path: &'p str) -> (&'c mut Map<String, Value>, &'p str) {
    let (parents, name) = path.rsplit_once('.').unwrap_or(("", path));
    let holder = parents.split('.').filter(|part| !part.is_empty()).fold(config, |value, part| &mut value[part]);
    (holder.as_object_mut().unwrap(), name)
}

fn set(config: &mut Value, path: &str, value: Value) {
    let (holder, name) = holder(config, path);
    holder.insert(name.to_string(), value);
}

fn remove(config: &mut Value, path: &str) {
    let (holder, name) = holder(config, path);
    holder.remove(name).unwrap();
}

#[test]
fn the_oracle_configs_are_read() {
    let config = read(&oracle("b")).unwrap();
    assert_eq!((config.hidden, config.vocabulary, config.dense_width), (75, 211, 101));
    assert_eq!(config.rms_norm_eps.to_bits(), 3e-5_f32.to_bits());
    assert_eq!((config.residual_block, config.max_positions, config.layers.len()), (4, 1_048_576, 11));
    let layers = |attention, feed_forward| -> Vec<usize> {
        let is = |layer: &usize| {
            let kind = config.layers[*layer];
            kind.attention == attention && kind.feed_forward == feed_forward
        };
        (0..11).filter(is).collect()
    };
    assert_eq!(layers(Attention::Kda, FeedForward::Dense), [0, 1]);
    assert_eq!(layers(Attention::Kda, FeedForward::Moe), [2, 4, 5, 6, 7, 8].map(|l| if l == 7 { 6 } else { l }).as_slice());
}
