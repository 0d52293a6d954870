//! A pack that was interrupted goes on, and gives the file that it would have given.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use k3_core::stream::trunk_file::Packing;
use k3_host::failure::{Exit, Outcome};
use k3_host::pack::{self, Existing, Order, Progress, Summary};
use tempfile::TempDir;

use crate::models::{self, copy, names, open, oracle};
use crate::support::expect_exit;

const PARTIAL: [&str; 2] = ["trunk.bin.partial", "trunk.json.partial"];

/// Packs a model, a run or two in each batch.
fn pack(model: &Path, out: &Path, watch: &mut pack::Watch<'_>) -> Outcome<Summary> {
    let model = open(model, None);
    let order = Order { model: &model, packing: Packing::Raw, existing: Existing::Replace, batch_bytes: 20_000 };
    pack::write(&order, out, watch)
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Both files of a trunk.
fn files(folder: &Path) -> [Vec<u8>; 2] {
    ["trunk.bin", "trunk.json"].map(|name| fs::read(folder.join(name)).unwrap())
}

/// A trunk of model a, and copies of the folder as it was between batches.
fn snapshots() -> (TempDir, Vec<TempDir>) {
    let out = tempfile::tempdir().unwrap();
    let snapshots = RefCell::new(Vec::new());
    let summary = pack(&oracle("a"), out.path(), &mut |_| {
        let snapshot = tempfile::tempdir().unwrap();
        copy(out.path(), snapshot.path());
        snapshots.borrow_mut().push(snapshot);
        ControlFlow::Continue(())
    });
    assert_eq!(summary.map_err(|failure| failure.error).unwrap().resumed, 0);
    let snapshots = snapshots.into_inner();
    assert!(snapshots.len() > 20, "{}", snapshots.len());
    (out, snapshots)
}

#[test]
fn the_resumed_file_is_the_same_wherever_it_was_killed() {
    let (whole, snapshots) = snapshots();
    let mut last = 0;
    for (number, snapshot) in snapshots.iter().enumerate().skip(3).step_by(7) {
        assert_eq!(names(snapshot.path()), PARTIAL, "nothing that looks whole");
        // Half of the next batch, and half a line about it.
        let [data, journal] = PARTIAL.map(|name| OpenOptions::new().append(true).open(snapshot.path().join(name)));
        data.unwrap().write_all(&[0xab; 10_000]).unwrap();
        journal.unwrap().write_all(br#"{"tensor":"language_model.model.la"#).unwrap();
        let summary = pack(&oracle("a"), snapshot.path(), &mut go_on).map_err(|failure| failure.error).unwrap();
        assert!(summary.resumed > last, "snapshot {number} goes on from run {}", summary.resumed);
        last = summary.resumed;
        assert!(files(snapshot.path()) == files(whole.path()), "snapshot {number}");
        assert_eq!(names(snapshot.path()), ["trunk.bin", "trunk.json"]);
    }
}

#[test]
fn a_run_that_did_not_reach_the_disk_is_packed_again() {
    let (whole, snapshots) = snapshots();
    let snapshot = snapshots[20].path();
    let journal = fs::read_to_string(snapshot.join("trunk.json.partial")).unwrap();
    let runs: Vec<serde_json::Value> =
        journal.lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    let damaged = runs.len() - 3;
    let mut data = fs::read(snapshot.join("trunk.bin.partial")).unwrap();
    data[runs[damaged]["offset"].as_u64().unwrap() as usize] ^= 1;
    fs::write(snapshot.join("trunk.bin.partial"), data).unwrap();
    let summary = pack(&oracle("a"), snapshot, &mut go_on).map_err(|failure| failure.error).unwrap();
    assert_eq!(summary.resumed, damaged);
    assert!(files(snapshot) == files(whole.path()));
}

#[test]
fn data_that_are_shorter_than_the_journal_says_are_packed_again() {
    let (whole, snapshots) = snapshots();
    let snapshot = snapshots[20].path();
    File::options().write(true).open(snapshot.join("trunk.bin.partial")).unwrap().set_len(5 * 4096).unwrap();
    let summary = pack(&oracle("a"), snapshot, &mut go_on).map_err(|failure| failure.error).unwrap();
    assert!((1..=5).contains(&summary.resumed), "{summary:?}");
    assert!(files(snapshot) == files(whole.path()));
}

#[test]
fn what_another_checkpoint_left_is_not_gone_on_from() {
    let (_, snapshots) = snapshots();
    let snapshot = snapshots[20].path();
    // The same shapes, and another number among the first of a matrix.
    let other = tempfile::tempdir().unwrap();
    copy(&oracle("a"), other.path());
    let shard = other.path().join("model-00003-of-000014.safetensors");
    let mut bytes = fs::read(&shard).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let view = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let name = "language_model.model.layers.2.self_attn.o_proj.weight";
    let at = view.tensor(name).unwrap().data().as_ptr() as usize - bytes.as_ptr() as usize;
    assert!(at > header);
    bytes[at] ^= 1;
    fs::write(&shard, bytes).unwrap();
    let summary = pack(other.path(), snapshot, &mut go_on).map_err(|failure| failure.error).unwrap();
    assert_eq!(summary.resumed, 0);
    pack::verify(snapshot, &open(other.path(), None), &mut go_on).map_err(|failure| failure.error).unwrap();
    // And what it made is not a trunk of the first.
    let error = pack::open(snapshot, &open(&oracle("a"), None)).unwrap_err().to_string();
    assert!(
        error.contains("trunk.json: checkpoint.layers[2]: the trunk was packed from another checkpoint"),
        "{error}"
    );
}

#[test]
fn an_interrupt_stops_between_runs_and_says_how_to_go_on() {
    let (whole, _) = snapshots();
    let out = tempfile::tempdir().unwrap();
    let mut calls = 0;
    let failure = pack(&oracle("a"), out.path(), &mut |_| {
        calls += 1;
        if calls == 12 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let failure = failure.unwrap_err();
    assert_eq!(failure.exit, Exit::Interrupted);
    let message = failure.error.to_string();
    assert!(message.contains("stopped at ") && message.contains("the same command goes on from there"), "{message}");
    assert_eq!(names(out.path()), PARTIAL);
    let summary = pack(&oracle("a"), out.path(), &mut go_on).map_err(|failure| failure.error).unwrap();
    assert!(summary.resumed > 0);
    assert!(files(out.path()) == files(whole.path()));
}

#[test]
fn two_packs_do_not_work_in_one_folder() {
    let (_, snapshots) = snapshots();
    let snapshot = snapshots[10].path();
    let before = PARTIAL.map(|name| fs::read(snapshot.join(name)).unwrap());
    let journal = File::options().write(true).open(snapshot.join("trunk.json.partial")).unwrap();
    journal.lock().unwrap();
    let (_, stderr) = expect_exit(&models::pack(&oracle("a"), snapshot, &[]), 2);
    assert!(stderr.contains("another pack is at work here"), "{stderr}");
    assert!(PARTIAL.map(|name| fs::read(snapshot.join(name)).unwrap()) == before);
    drop(journal);
    expect_exit(&models::pack(&oracle("a"), snapshot, &[]), 0);
}
