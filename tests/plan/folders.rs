//! Checkpoints that are spread over folders, and weights that are streamed by flags.

use std::fs;
use std::path::{Path, PathBuf};

use super::support::{expect_exit, k3_host};

const PROMPT: [&str; 4] = ["--ids", "1,2,3,4,5", "--gen", "4"];

fn checkpoint() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    expect_exit(&k3_host(["synth", folder.path().to_str().unwrap()]), 0);
    folder
}

fn shards(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut shards: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect();
    shards.sort();
    shards
}

/// The logits of every position, as they are written.
fn logits(folder: &Path, flags: &[&str]) -> Vec<u8> {
    let dump = tempfile::NamedTempFile::new().unwrap();
    let args = ["run", folder.to_str().unwrap(), "--dump-logits", dump.path().to_str().unwrap()];
    expect_exit(&k3_host(args.iter().chain(&PROMPT).chain(flags)), 0);
    fs::read(dump.path()).unwrap()
}

#[test]
fn every_way_to_spend_memory_gives_the_same_bits() {
    let folder = checkpoint();
    let expected = logits(folder.path(), &[]);
    assert_eq!(expected.len(), 8 * 512 * 4, "eight positions were fed");
    let ways: [&[&str]; 4] = [
        &["--trunk-gb", "0", "--cache-gb", "0"],
        &["--trunk-gb", "300KB", "--cache-gb", "50KB", "--chunk", "2"],
        &["--trunk-gb", "1", "--cache-gb", "1"],
        &["--preset", "laptop"],
    ];
    for flags in ways {
        assert!(logits(folder.path(), flags) == expected, "{flags:?}");
    }
}

#[test]
fn shards_may_lie_in_other_folders_and_explicit_ones_come_first() {
    let folder = checkpoint();
    let expected = logits(folder.path(), &[]);
    let others = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (number, shard) in shards(folder.path()).iter().enumerate().filter(|(number, _)| number % 3 != 0) {
        let moved = others[number % 3 - 1].path().join(shard.file_name().unwrap());
        fs::copy(shard, moved).unwrap();
        fs::write(shard, "no shard").unwrap();
    }
    let [first, second] = others.each_ref().map(|folder| folder.path().to_str().unwrap());
    let spread = ["--experts", first, "--experts", second];
    assert!(logits(folder.path(), &spread) == expected);
    assert!(logits(folder.path(), &[&spread[..], &["--trunk-gb", "0"]].concat()) == expected, "streamed");
    let args = ["run", folder.path().to_str().unwrap(), "--experts", first];
    let (_, stderr) = expect_exit(&k3_host(args.iter().chain(&PROMPT)), 2);
    assert!(stderr.contains(".safetensors"), "{stderr}");
}
