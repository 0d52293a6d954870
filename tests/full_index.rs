//! Indexing all 96 headers of a checkpoint of the released size: 497,220 tensors whose data are holes.

mod support;

use std::fs::{self, File};
use std::io::Read;
use std::process::Command;
use std::time::Instant;

use k3_core::checkpoint::Checkpoint;
use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, TensorId};
use k3_core::config::Config;

use k3_host::checkpoint::Folder;

/// The limit on what indexing may take, everything in the process included.
const MOST_RESIDENT_BYTES: u64 = 64 << 20;

#[test]
fn the_full_checkpoint_is_indexed_in_little_memory() {
    let place = support::sparse_folder();
    // In a process of its own, which keeps its memory to itself.
    let mut synth = Command::new(env!("CARGO_BIN_EXE_k3-host"));
    let output = synth.arg("synth").arg(place.path()).args(["--shape", "replica"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let config = Config::from_json(&fs::read(place.path().join("config.json")).unwrap()).unwrap();
    // The number of entries of the published index, and its `metadata.total_size`.
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains(" 497220 tensors "), "{stdout}");
    let mut index_start = [0; 64];
    File::open(place.path().join("model.safetensors.index.json")).unwrap().read_exact(&mut index_start).unwrap();
    assert!(index_start.starts_with(br#"{"metadata":{"total_size":1560860324864}"#));
    // The sum of the published file sizes.
    let lengths = fs::read_dir(place.path()).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let is_shard = entry.path().extension().is_some_and(|extension| extension == "safetensors");
        if is_shard { entry.metadata().unwrap().len() } else { 0 }
    });
    assert_eq!(lengths.sum::<u64>(), 1_560_936_091_448);

    forget_peak();
    let start = Instant::now();
    let checkpoint = Checkpoint::open(&Folder { path: place.path().into() }, &config, 93).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!("index and 96 headers: {seconds:.3} s, peak {:?} MB", peak().map(|bytes| bytes >> 20));
    assert!(peak().is_none_or(|bytes| bytes < MOST_RESIDENT_BYTES), "{:?}", peak());

    // The two shards of the vision tower are needed by nothing.
    assert_eq!(checkpoint.index.shards().len(), 94);
    // Names are sorted as texts, so that expert 99 comes after 989, and nothing comes after expert 99.
    let last = ExpertId { layer: 92, expert: 99, matrix: ExpertMatrix::Up };
    let last = checkpoint.index.expert(last).unwrap();
    assert_eq!((last.rows, last.columns, last.data.bytes), (3072, 3584, 3072 * 1792));
    assert!(last.data.offset > 1 << 33);
    let scales = last.scales.unwrap();
    assert_eq!(scales.offset, last.data.offset + last.data.bytes);
    let shard = fs::metadata(place.path().join("model-00093-of-000096.safetensors")).unwrap().len();
    assert_eq!(scales.offset + scales.bytes, shard);
    let gate = checkpoint.index.tensor(TensorId::Layer(91, LayerTensor::OutputGate)).unwrap();
    assert_eq!((gate.rows, gate.columns), (12288, 7168));
}

/// Starts the measurement of peak memory afresh, where the system can.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The peak of resident memory in bytes; `None` where the system does not tell.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}
