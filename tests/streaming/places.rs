//! The trunk as it was packed, and shards spread over folders: the same logits, and damage is not computed with.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::support::{expect_exit, fixture, k3_host};

/// A generated model with rows long enough for dictionaries, and what it answers from memory.
struct Place {
    folder: tempfile::TempDir,
    expected: Vec<Value>,
}

/// What makes a run stream everything.
const NOTHING_IN_MEMORY: [&str; 4] = ["--trunk-gb", "0", "--cache-gb", "0"];

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut place = Self { folder, expected: Vec::new() };
        expect_exit(&k3_host(["synth", place.model().to_str().unwrap(), "--hidden", "256"]), 0);
        place.expected = place.answer(&[]);
        assert_eq!(place.expected.len(), 4);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn model(&self) -> PathBuf {
        self.path("Modell mit Ü")
    }

    /// The hashes of the logits of four steps.
    fn answer(&self, flags: &[&str]) -> Vec<Value> {
        let (stdout, _) = expect_exit(&self.run(flags), 0);
        let results: Value = serde_json::from_str(&stdout).unwrap();
        results["steps"].as_array().unwrap().iter().map(|step| step["logits_hash"].clone()).collect()
    }

    fn run(&self, flags: &[&str]) -> std::process::Output {
        let model = self.model();
        let args = ["run", model.to_str().unwrap(), "--ids", "5,6,7,8", "--gen", "4", "--chunk", "3", "--out", "-"];
        k3_host([&args[..], flags].concat())
    }

    /// Packs the trunk into a folder of that name.
    fn pack(&self, name: &str, encoding: &str) -> String {
        let (model, folder) = (self.model(), self.path(name).display().to_string());
        let args = ["pack", model.to_str().unwrap(), "--out", &folder, "--encoding", encoding];
        expect_exit(&k3_host(args), 0);
        folder
    }
}

#[test]
fn a_packed_trunk_gives_the_same_logits() {
    let place = Place::new();
    for encoding in ["raw", "dict"] {
        let trunk = place.pack(encoding, encoding);
        for memory in [&NOTHING_IN_MEMORY[..], &["--trunk-gb", "500KB", "--cache-gb", "1MB"], &[]] {
            for threads in ["1", "2", "3", "4"] {
                let flags = [memory, &["--trunk", &trunk, "--threads", threads]].concat();
                assert_eq!(place.answer(&flags), place.expected, "{flags:?}");
            }
        }
    }
    let sizes: Vec<u64> =
        ["raw", "dict"].iter().map(|name| fs::metadata(place.path(name).join("trunk.bin")).unwrap().len()).collect();
    assert!(sizes[1] < sizes[0] * 9 / 10, "{sizes:?}");
}

#[test]
fn a_trunk_beside_the_shards_is_found_there() {
    let place = Place::new();
    let trunk = PathBuf::from(place.pack("packed", "dict"));
    for name in ["trunk.bin", "trunk.json"] {
        fs::rename(trunk.join(name), place.model().join(name)).unwrap();
    }
    assert_eq!(place.answer(&NOTHING_IN_MEMORY), place.expected);
    let file = place.model().join("trunk.bin");
    fs::write(&file, vec![0x55; fs::metadata(&file).unwrap().len() as usize]).unwrap();
    let (_, stderr) = expect_exit(&place.run(&NOTHING_IN_MEMORY), 1);
    assert!(stderr.contains("trunk.bin"), "what is read is the packed trunk: {stderr}");
}

#[test]
fn a_damaged_dictionary_is_an_error() {
    let place = Place::new();
    let trunk = place.pack("packed", "dict");
    let manifest: Value = serde_json::from_slice(&fs::read(Path::new(&trunk).join("trunk.json")).unwrap()).unwrap();
    let runs = manifest["runs"].as_array().unwrap();
    let run = runs.iter().find(|run| run["encoding"].as_str().unwrap().starts_with("dict")).unwrap();
    // The last entry of the first row's dictionary.
    let damaged = run["offset"].as_u64().unwrap() as usize + 15;
    let path = Path::new(&trunk).join("trunk.bin");
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(bytes[damaged], 0xff);
    bytes[damaged] = 0;
    fs::write(&path, bytes).unwrap();
    for memory in [&NOTHING_IN_MEMORY[..], &["--trunk-gb", "1GB"]] {
        let (stdout, stderr) = expect_exit(&place.run(&[memory, &["--trunk", &trunk]].concat()), 1);
        assert!(stderr.contains("trunk.bin") && stderr.contains("dictionary"), "{stderr}");
        assert!(!stdout.contains("logits_hash"), "{stdout}");
    }
}

#[test]
fn a_folder_without_a_trunk_or_with_another_one_is_refused() {
    let place = Place::new();
    let empty = place.path("empty");
    fs::create_dir(&empty).unwrap();
    let (_, stderr) = expect_exit(&place.run(&["--trunk", empty.to_str().unwrap()]), 2);
    assert!(stderr.contains("empty") && stderr.contains("k3-host pack"), "{stderr}");

    let other = fixture("oracle").join("a");
    let args = ["pack", other.to_str().unwrap(), "--out", empty.to_str().unwrap()];
    expect_exit(&k3_host(args), 0);
    let (_, stderr) = expect_exit(&place.run(&["--trunk", empty.to_str().unwrap()]), 2);
    assert!(stderr.contains("trunk.json"), "{stderr}");
}

#[test]
fn shards_may_lie_in_several_folders() {
    let place = Place::new();
    let drives = [place.path("drive 1"), place.path("drive 2")];
    drives.iter().for_each(|drive| fs::create_dir(drive).unwrap());
    let shards = fs::read_dir(place.model()).unwrap().map(|entry| entry.unwrap().path());
    let mut shards: Vec<_> = shards.filter(|path| path.extension().is_some_and(|end| end == "safetensors")).collect();
    shards.sort();
    for (number, shard) in shards.iter().enumerate().filter(|(number, _)| number % 3 > 0) {
        fs::rename(shard, drives[number % 3 - 1].join(shard.file_name().unwrap())).unwrap();
    }
    let [one, two] = drives.each_ref().map(|drive| drive.to_str().unwrap());
    for memory in [&NOTHING_IN_MEMORY[..], &[]] {
        let flags = [memory, &["--experts", one, "--experts", two]].concat();
        assert_eq!(place.answer(&flags), place.expected, "{flags:?}");
    }
    let (_, stderr) = expect_exit(&place.run(&["--experts", one]), 2);
    assert!(stderr.contains(".safetensors") && stderr.contains("missing"), "{stderr}");
}
