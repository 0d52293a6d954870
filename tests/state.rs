//! Saved states: going on from one is as if the run had never stopped, and nothing but the right file is accepted.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Reference, expect_exit, fixture, joined, k3_host};

/// A folder with a state of model `a` after its first `positions` ids.
struct Setup {
    folder: tempfile::TempDir,
    ids: Vec<u32>,
}

impl Setup {
    fn new(positions: usize) -> Self {
        let setup = Self { folder: tempfile::tempdir().unwrap(), ids: Reference::of("a").ids("full_ids") };
        setup.run(&setup.ids[..positions], &["--gen", "0", "--save-state", setup.path("state").to_str().unwrap()], 0);
        setup
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn run(&self, ids: &[u32], flags: &[&str], code: i32) -> String {
        let model = fixture("oracle").join("a").display().to_string();
        let ids = joined(ids);
        let args = ["run", &model, "--ids", &ids].into_iter().chain(flags.iter().copied());
        let (stdout, stderr) = expect_exit(&k3_host(args), code);
        if code == 0 { stdout } else { stderr }
    }

    /// The hashes of the logits of six steps after `ids`.
    fn hashes(&self, ids: &[u32], flags: &[&str]) -> Vec<String> {
        let out = self.path("results.json");
        self.run(ids, &[&["--gen", "6", "--out", out.to_str().unwrap()], flags].concat(), 0);
        let results: serde_json::Value = serde_json::from_slice(&std::fs::read(out).unwrap()).unwrap();
        let steps = results["steps"].as_array().unwrap();
        steps.iter().map(|step| step["logits_hash"].as_str().unwrap().to_owned()).collect()
    }

    /// What is said when the state file holds `bytes`.
    fn refusal(&self, bytes: &[u8]) -> String {
        let damaged = self.path("damaged state");
        std::fs::write(&damaged, bytes).unwrap();
        let error = self.run(&self.ids, &["--gen", "1", "--load-state", damaged.to_str().unwrap()], 2);
        assert!(error.contains("damaged state"), "the file is named: {error}");
        error
    }
}

#[test]
fn going_on_is_as_if_never_stopped() {
    let all = Reference::of("a").ids("full_ids").len();
    for positions in [1, 47, all] {
        let setup = Setup::new(positions);
        let state = setup.path("state");
        let expected = setup.hashes(&setup.ids, &[]);
        for chunk in ["1", "5", "100"] {
            let flags = ["--load-state", state.to_str().unwrap(), "--chunk", chunk];
            assert_eq!(setup.hashes(&setup.ids, &flags), expected, "{positions} positions, chunk {chunk}");
        }
    }
}

#[test]
fn a_prompt_that_departs_from_the_state_is_refused() {
    let setup = Setup::new(10);
    let state = setup.path("state");
    let flags = ["--gen", "1", "--load-state", state.to_str().unwrap()];
    let mut other = setup.ids.clone();
    other[9] = (other[9] + 1) % 131;
    let error = setup.run(&other, &flags, 2);
    assert!(error.contains("10 positions") && error.contains("after 9"), "{error}");
    let error = setup.run(&setup.ids[..9], &flags, 2);
    assert!(error.contains("10 positions"), "{error}");
}

#[test]
fn damaged_files_are_refused_by_what_is_wrong() {
    let setup = Setup::new(10);
    let good = std::fs::read(setup.path("state")).unwrap();
    for length in [0, 7, 43, 51, good.len() / 2, good.len() - 1] {
        let error = setup.refusal(&good[..length]);
        assert!(error.contains("short"), "{length} bytes: {error}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(setup.refusal(&longer).contains("bytes instead of"));
    let with_bit = |byte: usize| {
        let mut bytes = good.clone();
        bytes[byte] ^= 4;
        bytes
    };
    assert!(setup.refusal(&with_bit(0)).contains("not a state file"));
    assert!(setup.refusal(&with_bit(8)).contains("version 6"));
    assert!(setup.refusal(&with_bit(12)).contains("another configuration"));
    assert!(setup.refusal(&with_bit(20)).contains("another model's weights"));
    assert!(setup.refusal(&with_bit(28)).contains("instead of"));
    assert!(setup.refusal(&with_bit(34)).contains("positions, with room for"));
    for byte in [36, 43] {
        assert!(setup.refusal(&with_bit(byte)).contains("logits for another number of ids"), "byte {byte}");
    }
    for byte in [44, 80, 500, good.len() / 2, good.len() - 9, good.len() - 1] {
        assert!(setup.refusal(&with_bit(byte)).contains("damaged"), "byte {byte}");
    }
}

#[test]
fn another_model_does_not_take_the_state() {
    let setup = Setup::new(10);
    let state = setup.path("state");
    let flags = ["--gen", "1", "--load-state", state.to_str().unwrap()];
    let error = setup.run(&setup.ids, &[&flags[..], &["--layers", "12"]].concat(), 2);
    assert!(error.contains("another configuration"), "{error}");

    let b = fixture("oracle").join("b").display().to_string();
    let output = k3_host(["run", &b, "--ids", "1", "--load-state", state.to_str().unwrap()]);
    assert!(expect_exit(&output, 2).1.contains("another configuration"));

    let other = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(fixture("oracle").join("a")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            std::fs::copy(&path, other.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    flip_last_bit(&other.path().join("model-00014-of-000014.safetensors"));
    let other = other.path().display().to_string();
    let output = k3_host(["run", &other, "--ids", "1", "--load-state", state.to_str().unwrap()]);
    let error = expect_exit(&output, 2).1;
    assert!(error.contains("another model's weights"), "{error}");
}

/// Flips a bit of the last tensor in a shard, which is a small vector in the shard it is used on.
fn flip_last_bit(shard: &Path) {
    let mut bytes = std::fs::read(shard).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    std::fs::write(shard, bytes).unwrap();
}

#[test]
fn a_failed_save_leaves_the_old_file() {
    let setup = Setup::new(10);
    let before = std::fs::read(setup.path("state")).unwrap();
    let full = setup.path("state").join("state");
    let error = setup.run(&setup.ids, &["--gen", "0", "--save-state", full.to_str().unwrap()], 3);
    assert!(error.contains(full.to_str().unwrap()), "{error}");
    assert_eq!(std::fs::read(setup.path("state")).unwrap(), before);
}

/// Whenever the program is killed, the file is the old one or the new one.
#[test]
fn killed_while_saving_leaves_the_old_or_the_new_file() {
    let setup = Setup::new(10);
    let state = setup.path("state");
    let old = std::fs::read(&state).unwrap();
    setup.run(&setup.ids[..20], &["--gen", "0", "--save-state", setup.path("new").to_str().unwrap()], 0);
    let new = std::fs::read(setup.path("new")).unwrap();
    let (mut olds, mut news) = (0, 0);
    let mut delay = Duration::from_millis(2);
    for round in 0..200 {
        std::fs::write(&state, &old).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
            .args(["run", fixture("oracle").join("a").to_str().unwrap(), "--ids", &joined(&setup.ids[..20])])
            .args(["--quiet", "--gen", "0", "--threads", "1", "--save-state", state.to_str().unwrap()])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(delay);
        let _ = child.kill();
        child.wait().unwrap();
        let found = std::fs::read(&state).unwrap();
        assert!(found == old || found == new, "round {round}: {} bytes that are neither", found.len());
        // Hunt for the moment of the save: later while the old file is found, earlier once the new one is.
        let jitter = Duration::from_micros(round * 37 % 500);
        if found == old {
            olds += 1;
            delay = delay * 21 / 20 + jitter;
        } else {
            news += 1;
            delay = delay * 19 / 20 - jitter.min(delay / 4);
        }
    }
    assert!(olds > 20 && news > 20, "the kills missed the save: {olds} before, {news} after");
}
