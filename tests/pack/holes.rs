//! What is all zeros is never written, and holes of the checkpoint are not read.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

use crate::models::{WIDE, WIDE_TRUNK, copy, manifest, names, pack};
use crate::support::expect_exit;

/// The bytes that a file takes on the disk.
fn taken(path: &Path) -> u64 {
    fs::metadata(path).unwrap().blocks() * 512
}

/// Makes the data of all shards holes.
fn hollow(model: &Path) {
    for name in names(model).iter().filter(|name| name.ends_with(".safetensors")) {
        let path = model.join(name);
        let (mut header, length) = (Vec::new(), fs::metadata(&path).unwrap().len());
        let mut file = File::open(&path).unwrap();
        let mut prefix = [0; 8];
        file.read_exact(&mut prefix).unwrap();
        header.extend(prefix);
        file.take(u64::from_le_bytes(prefix)).read_to_end(&mut header).unwrap();
        let mut file = File::create(&path).unwrap();
        file.write_all(&header).unwrap();
        file.set_len(length).unwrap();
    }
}

#[test]
fn a_checkpoint_of_holes_gives_a_file_of_holes() {
    let [model, out] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    copy(&WIDE, model.path());
    hollow(model.path());
    expect_exit(&pack(model.path(), out.path(), &[]), 0);

    let [data, full_data] = [out.path(), &WIDE_TRUNK].map(|folder| folder.join("trunk.bin"));
    assert_eq!(fs::metadata(&data).unwrap().len(), fs::metadata(&full_data).unwrap().len());
    assert!(taken(&full_data) > 100 << 20, "{}", taken(&full_data));
    assert!(taken(&data) < 200 << 10, "{} bytes on the disk", taken(&data));
    assert!(fs::read(&data).unwrap().iter().all(|byte| *byte == 0));

    let manifest = manifest(out.path());
    for run in manifest["runs"].as_array().unwrap() {
        let zeros = vec![0; run["bytes"].as_u64().unwrap() as usize];
        assert_eq!(run["xxh3"], format!("{:016x}", xxh3_64(&zeros)), "{run}");
    }
    expect_exit(&pack(model.path(), out.path(), &["--verify"]), 0);
    let (_, stderr) = expect_exit(&pack(&WIDE, out.path(), &["--verify"]), 2);
    assert!(stderr.contains("the trunk was packed from another checkpoint"), "{stderr}");
}
