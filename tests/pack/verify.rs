//! `pack --verify` sees what opening a trunk does not: the bytes of the runs.

use std::fs;

use serde_json::Value;

use crate::models::{manifest, oracle, pack};
use crate::support::expect_exit;

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &[]), 0);
    let (stdout, _) = expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 0);
    assert!(stdout.contains("bytes are those of the checkpoint"), "{stdout}");

    let path = out.path().join("trunk.bin");
    let whole = fs::read(&path).unwrap();
    let manifest = manifest(out.path());
    let runs = manifest["runs"].as_array().unwrap();
    for run in runs.iter().step_by(40).chain(runs.last()) {
        let mut data = whole.clone();
        let last = run["offset"].as_u64().unwrap() + run["bytes"].as_u64().unwrap() - 1;
        data[last as usize] ^= 0x80;
        fs::write(&path, data).unwrap();
        let (_, stderr) = expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 1);
        let rows = format!("rows {} to {} of {}", run["first_row"], run["rows"], run["tensor"].as_str().unwrap());
        assert!(stderr.contains(&rows) && stderr.contains("checksum"), "{stderr}");
    }
}

/// A manifest whose checksums were made to fit the damage.
#[test]
fn bytes_are_compared_with_the_checkpoint_too() {
    let out = tempfile::tempdir().unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &[]), 0);
    let mut manifest = manifest(out.path());
    let run = &mut manifest["runs"][100];
    let mut data = fs::read(out.path().join("trunk.bin")).unwrap();
    let (begin, bytes) = (run["offset"].as_u64().unwrap() as usize, run["bytes"].as_u64().unwrap() as usize);
    data[begin] ^= 1;
    run["xxh3"] = Value::from(format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&data[begin..][..bytes])));
    let tensor = run["tensor"].as_str().unwrap().to_owned();
    fs::write(out.path().join("trunk.bin"), data).unwrap();
    fs::write(out.path().join("trunk.json"), serde_json::to_vec(&manifest).unwrap()).unwrap();
    let (_, stderr) = expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 1);
    assert!(stderr.contains(&tensor) && stderr.contains("does not hold what the checkpoint holds"), "{stderr}");
}

#[test]
fn there_must_be_a_trunk() {
    let out = tempfile::tempdir().unwrap();
    let (_, stderr) = expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 2);
    assert!(stderr.contains("trunk.json: missing"), "{stderr}");
    fs::write(out.path().join("trunk.bin"), "").unwrap();
    expect_exit(&pack(&oracle("a"), out.path(), &[]), 0);
    fs::remove_file(out.path().join("trunk.bin")).unwrap();
    let (_, stderr) = expect_exit(&pack(&oracle("a"), out.path(), &["--verify"]), 2);
    assert!(stderr.contains("trunk.bin: missing, although trunk.json is there"), "{stderr}");
}
