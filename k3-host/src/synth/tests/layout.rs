//! The layout is that of checkpoints which this code has not written.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use k3_core::config::Config;
use serde::Deserialize;
use serde_json::Value;

use crate::synth::plan::{self, Edition};
use crate::synth::shape::Shape;

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
        for shard in plan::shards(&config_of(model), Edition::Text) {
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
        let [expected, made] = [expected, plan::index(&config_of(model), Edition::Text).unwrap()]
            .map(|text| serde_json::from_slice::<Value>(&text).unwrap());
        assert_eq!(made, expected, "model {model}");
    }
}

/// Every field that is written has the released value and place, and the layers alternate as released.
#[test]
fn the_config_is_a_part_of_the_released_one() {
    let Some(text) = shared("checkpoint/config.json") else { return };
    let expected: Value = serde_json::from_slice(&text).unwrap();
    let (made, config) = Shape::released().config().unwrap();
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

/// All kinds of tensor of the release: names, shapes, types and how many there are.
#[test]
fn the_tensors_are_those_of_the_release() {
    let Some(text) = shared("checkpoint/shapes.json") else { return };
    let released_kinds: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let expected: BTreeMap<String, u64> = released_kinds
        .iter()
        .map(|kind| {
            (describe(kind["name"].as_str().unwrap(), &kind["dtype"], &kind["shape"]), kind["count"].as_u64().unwrap())
        })
        .collect();

    let mut made = BTreeMap::new();
    for shard in plan::shards(&Shape::released().config().unwrap().1, Edition::Released) {
        let header = shard.header().unwrap();
        let entries: BTreeMap<String, Value> = serde_json::from_slice(header_text(&header).0).unwrap();
        for (name, entry) in &entries {
            *made.entry(describe(&kind_of(name), &entry["dtype"], &entry["shape"])).or_insert(0) += 1;
        }
    }
    assert_eq!(made, expected);
}

/// Which file each tensor is in, and how long the files are, to the byte.
#[test]
fn the_files_are_those_of_the_release() {
    let (Some(sizes), Some(index)) =
        (shared("checkpoint/shard_sizes.txt"), shared("checkpoint/model.safetensors.index.json.gz"))
    else {
        return;
    };
    let config = Shape::released().config().unwrap().1;
    let mut expected: Index = serde_json::from_reader(GzDecoder::new(&*index)).unwrap();
    let (mut made, mut tensor_bytes) = (String::new(), 0);
    for shard in plan::shards(&config, Edition::Released) {
        let bytes = shard.header().unwrap().len() as u64 + shard.data_bytes();
        writeln!(made, "{} {bytes}", shard.file).unwrap();
        tensor_bytes += shard.data_bytes();
        for tensor in &shard.tensors {
            assert_eq!(expected.weight_map.remove(&tensor.name).as_ref(), Some(&shard.file), "{}", tensor.name);
        }
    }
    assert_eq!(made, String::from_utf8(sizes).unwrap());
    assert_eq!(tensor_bytes, expected.metadata["total_size"]);
    assert!(expected.weight_map.is_empty(), "not made: {:?}", expected.weight_map.keys().next());
}

#[derive(Deserialize)]
struct Index {
    metadata: BTreeMap<String, u64>,
    weight_map: BTreeMap<String, String>,
}

fn describe(name: &str, dtype: &Value, shape: &Value) -> String {
    format!("{name} {dtype} {shape}")
}

/// A name with letters for the numbers of layers, experts and blocks.
fn kind_of(name: &str) -> String {
    let mut before = "";
    let parts = name.split('.').map(|part| match std::mem::replace(&mut before, part) {
        "layers" => "L",
        "experts" => "E",
        "blocks" => "B",
        _ => part,
    });
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
