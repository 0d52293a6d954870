//! The replica against the released index and config, where these are at hand. They are not part of the project.

#[path = "full_index/replica.rs"]
mod replica;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use k3_core::config::Config;
use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The folder of released files; `None`, and a line that says so, if it is not there.
fn released() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/checkpoint");
    if !folder.is_dir() {
        println!("NOT RUN: the released index is not at hand");
        return None;
    }
    Some(folder)
}

#[test]
fn the_replica_has_the_names_and_shards_of_the_release() {
    let Some(released) = released() else { return };
    let file = File::open(released.join("model.safetensors.index.json.gz")).unwrap();
    let wanted: Index = serde_json::from_reader(GzDecoder::new(file)).unwrap();
    let place = tempfile::tempdir().unwrap();
    replica::write(place.path(), &replica::config());
    let index = fs::read(place.path().join("model.safetensors.index.json")).unwrap();
    let found: Index = serde_json::from_slice(&index).unwrap();
    assert!(found.weight_map == wanted.weight_map);

    let sizes = fs::read_to_string(released.join("shard_sizes.txt")).unwrap();
    for line in sizes.lines() {
        let (name, size) = line.split_once(' ').unwrap();
        let found = fs::metadata(place.path().join(name)).unwrap().len();
        // Only the digits of offsets differ, since the trunk tensors of a layer come in another order.
        let difference = found.abs_diff(size.parse().unwrap());
        assert!(difference <= 64, "{name}: {found} bytes, not {size}");
    }
}

#[test]
fn the_replica_has_the_config_of_the_release() {
    let Some(released) = released() else { return };
    let config = fs::read(released.join("config.json")).unwrap();
    assert_eq!(Config::from_json(&config).unwrap(), replica::config());
}
