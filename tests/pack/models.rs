//! Checkpoints to pack, and what came of it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use k3_core::config::Config;
use k3_host::checkpoint::{Folders, OpenCheckpoint};
use safetensors::SafeTensors;
use serde_json::Value;

use crate::support::{expect_exit, fixture, k3_host};

/// A generated checkpoint whose embedding and head take 64 MB each: several runs, and several batches of the program.
pub static WIDE: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pack wide");
    let shape = ["--vocabulary", "131072", "--hidden", "256", "--force"];
    expect_exit(&k3_host(["synth", folder.to_str().unwrap()].iter().chain(&shape)), 0);
    folder
});

/// Its trunk, packed at once.
pub static WIDE_TRUNK: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pack wide trunk");
    expect_exit(&pack(&WIDE, &folder, &["--force"]), 0);
    folder
});

/// The folder of an oracle model.
pub fn oracle(model: &str) -> PathBuf {
    fixture("oracle").join(model)
}

/// Runs `pack` on the checkpoint in `model`, writing into `out`.
pub fn pack(model: &Path, out: &Path, flags: &[&str]) -> std::process::Output {
    let args = ["pack", model.to_str().unwrap(), "--out", out.to_str().unwrap()];
    k3_host(args.iter().chain(flags))
}

/// A checkpoint, open for its first layers, or all.
pub fn open(model: &Path, layers: Option<usize>) -> OpenCheckpoint {
    let config = Config::from_json(&fs::read(model.join("config.json")).unwrap()).unwrap();
    let layers = layers.unwrap_or(config.layers.len());
    OpenCheckpoint::open(&Folders::new(model, &[]), config, layers).map_err(|failure| failure.error).unwrap()
}

/// The manifest in a folder, read without any code of k3.
pub fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("trunk.json")).unwrap()).unwrap()
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Every tensor of a checkpoint, read without any code of k3: its type and its bytes.
pub fn tensors(model: &Path) -> BTreeMap<String, (safetensors::Dtype, Vec<u8>)> {
    let shards = names(model).into_iter().filter(|name| name.ends_with(".safetensors"));
    let mut tensors = BTreeMap::new();
    for shard in shards {
        let bytes = fs::read(model.join(shard)).unwrap();
        for (name, view) in SafeTensors::deserialize(&bytes).unwrap().iter() {
            tensors.insert(name.to_owned(), (view.dtype(), view.data().to_vec()));
        }
    }
    tensors
}

/// Copies the files of a folder.
pub fn copy(from: &Path, to: &Path) {
    for name in names(from).iter().filter(|name| from.join(name).is_file()) {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}
