//! The layout is that of checkpoints which this code has not written.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use k3_core::config::Config;
use serde_json::Value;

use crate::synth::plan;
use crate::synth::shape::{Shape, released_mla_layers};

fn oracle(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/oracle").join(model)
}

fn config_of(model: &str) -> Config {
    Config::from_json(&fs::read(oracle(model).join("config.json")).unwrap()).unwrap()
}

/// The JSON text of a header, without its padding, and the length of the file's header.
fn header_text(file: &[u8]) -> (&[u8], usize) {
    let length = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    (file[8..8 + length].trim_ascii_end(), 8 + length)
}

/// File names, tensor names and their order, types, shapes and offsets, of a model with every kind of layer.
#[test]
fn headers_are_those_of_the_oracle_models() {
    for model in ["a", "b"] {
        for shard in plan::shards(&config_of(model)) {
            let file = fs::read(oracle(model).join(&shard.file)).expect("the same file name");
            let made = shard.header().unwrap();
            let ((expected, begin), (made_text, made_begin)) = (header_text(&file), header_text(&made));
            let [expected, made_text] = [expected, made_text].map(|text| String::from_utf8_lossy(text).into_owned());
            assert!(made_text == expected, "model {model}, {}: another header", shard.file);
            assert_eq!((made_begin, made.len()), (begin, begin));
            assert_eq!(shard.data_bytes(), (file.len() - begin) as u64);
        }
    }
}

#[test]
fn the_index_is_that_of_the_oracle_models() {
    for model in ["a", "b"] {
        let expected = fs::read(oracle(model).join("model.safetensors.index.json")).unwrap();
        let [expected, made] = [expected, plan::index(&config_of(model)).unwrap()]
            .map(|text| serde_json::from_slice::<Value>(&text).unwrap());
        assert_eq!(made, expected, "model {model}");
    }
}

/// The released dimensions.
fn released() -> Shape {
    Shape { layers: 93, mla_layers: released_mla_layers(93), vocabulary: 163_840, experts: 896, ..Shape::slice() }
}

/// Every field that is written has the released value and place, and the layers alternate as released.
#[test]
fn the_config_is_a_part_of_the_released_one() {
    let Some(text) = shared("checkpoint/config.json") else { return };
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let (made, config) = released().config().unwrap();
    assert_eq!(config, Config::from_json(&text).unwrap());
    assert_part(&serde_json::from_str(&made).unwrap(), &expected, "");
}

fn assert_part(made: &Value, expected: &Value, path: &str) {
    match made {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                assert_part(value, expected.get(name).unwrap_or_else(|| panic!("{path} is not released")), &path);
            }
        }
        // The text model has no vision tower, whose tensors the released list names.
        Value::Array(items) if path.ends_with(".ignore") => {
            assert!(items.iter().all(|item| expected.as_array().unwrap().contains(item)), "{path}");
        }
        other => assert_eq!(other, expected, "{path}"),
    }
}

/// All kinds of text tensor of the release: names, shapes, types and how many there are.
#[test]
fn the_tensors_are_those_of_the_release() {
    let Some(text) = shared("checkpoint/shapes.json") else { return };
    let released_kinds: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let is_text = |kind: &&Value| kind["name"].as_str().unwrap().starts_with("language_model.");
    let expected: BTreeMap<String, u64> = released_kinds
        .iter()
        .filter(is_text)
        .map(|kind| {
            (describe(kind["name"].as_str().unwrap(), &kind["dtype"], &kind["shape"]), kind["count"].as_u64().unwrap())
        })
        .collect();

    let mut made = BTreeMap::new();
    for shard in plan::shards(&released().config().unwrap().1) {
        let header = shard.header().unwrap();
        let entries: BTreeMap<String, Value> = serde_json::from_slice(header_text(&header).0).unwrap();
        for (name, entry) in entries.iter().filter(|(name, _)| *name != "__metadata__") {
            *made.entry(describe(&kind_of(name), &entry["dtype"], &entry["shape"])).or_insert(0) += 1;
        }
    }
    assert_eq!(made, expected);
}

fn describe(name: &str, dtype: &Value, shape: &Value) -> String {
    format!("{name} {dtype} {shape}")
}

/// A name with `L` and `E` for its numbers.
fn kind_of(name: &str) -> String {
    let mut letters = ["L", "E"].into_iter();
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split('.').map(|part| if is_number(part) { letters.next().unwrap() } else { part });
    parts.collect::<Vec<_>>().join(".")
}

/// A file of the folder with facts about the release, if this machine has it.
fn shared(name: &str) -> Option<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared").join(name);
    let contents = fs::read(&path).ok();
    if contents.is_none() {
        eprintln!("NOT RUN: {} is not on this machine", path.display());
    }
    contents
}
