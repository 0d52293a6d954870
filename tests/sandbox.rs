//! `k3-host wasm`: the same answers inside the sandbox, and nothing gets out. Needs the module of `scripts/build-wasm`.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use support::{Reference, expect_exit, fixture, joined, k3_host};

/// `k3-host wasm` with these flags of its own, and then these arguments for the module.
fn wasm(flags: &[&str], args: &[&str]) -> Output {
    k3_host([&["wasm"], flags, args].concat())
}

/// Checks that the command ends with `code`, prints no result, and says each of `words`.
fn fails(output: &Output, code: i32, words: &[&str]) {
    let (stdout, stderr) = expect_exit(output, code);
    assert_eq!(stdout, "");
    for word in words {
        assert!(stderr.contains(word), "should mention {word}: {stderr}");
    }
}

fn oracle(model: &str) -> String {
    fixture("oracle").join(model).display().to_string()
}

/// A copy of oracle model a without its references.
fn copy_of_a() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(oracle("a")).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A module whose `_start` has the given instructions, and which exports a memory as WASI asks.
fn module(folder: &Path, instructions: &[u8]) -> PathBuf {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    let mut section = |id: u8, contents: &[u8]| {
        bytes.extend([id, contents.len() as u8]);
        bytes.extend(contents);
    };
    section(1, b"\x01\x60\0\0");
    section(3, b"\x01\0");
    section(5, b"\x01\0\x01");
    section(7, b"\x02\x06memory\x02\0\x06_start\0\0");
    section(10, &[&[1, instructions.len() as u8 + 2, 0], instructions, &[0x0b]].concat());
    let path = folder.join("module.wasm");
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn the_answer_is_that_of_the_native_program() {
    for model in ["a", "b"] {
        let reference = Reference::of(model);
        let folder = oracle(model);
        let ids = joined(&reference.ids("prompt_ids"));
        let run = ["run", &folder, "--ids", &ids, "--gen", "6", "--out", "-"];
        let steps = |output: &Output| -> Vec<(Value, Value)> {
            let report: Value = serde_json::from_str(&expect_exit(output, 0).0).unwrap();
            let steps = report["steps"].as_array().unwrap();
            steps.iter().map(|step| (step["id"].clone(), step["logits_hash"].clone())).collect()
        };
        let native = steps(&k3_host(run));
        assert_eq!(native.len(), 6);
        for flags in [&[][..], &["--slice", "1"], &["--slice", "5000", "--chunk", "3", "--full-recompute"]] {
            let found = steps(&wasm(&["--dir", &folder], &[&run, flags].concat()));
            assert_eq!(found, native, "model {model}, {flags:?}");
        }
    }
}

#[test]
fn a_path_outside_the_folders_does_not_exist() {
    let (a, b) = (oracle("a"), oracle("b"));
    for path in [b.as_str(), &format!("{a}/../b"), "/etc"] {
        fails(
            &wasm(&["--dir", &a], &["run", path, "--ids", "1"]),
            1,
            &["config.json", "only folders that it was given"],
        );
    }
    fails(&wasm(&[], &["run", &a, "--ids", "1"]), 1, &["config.json"]);
}

#[cfg(unix)]
#[test]
fn a_link_leads_nowhere_outside() {
    let folder = copy_of_a();
    let inside = text(folder.path());
    let run = |path: &str| wasm(&["--dir", inside], &["run", path, "--ids", "1", "--gen", "1"]);
    expect_exit(&run(inside), 0);
    std::os::unix::fs::symlink(oracle("b"), folder.path().join("link")).unwrap();
    fails(&run(&format!("{inside}/link")), 1, &["link/config.json"]);
    let shard = folder.path().join("model-00003-of-000014.safetensors");
    fs::remove_file(&shard).unwrap();
    std::os::unix::fs::symlink(Path::new(&oracle("a")).join(shard.file_name().unwrap()), &shard).unwrap();
    fails(&run(inside), 1, &["model-00003-of-000014.safetensors"]);
}

#[test]
fn missing_and_truncated_files_are_named() {
    let folder = copy_of_a();
    let inside = text(folder.path());
    let run = || wasm(&["--dir", inside], &["run", inside, "--ids", "1", "--gen", "1"]);
    let shard = folder.path().join("model-00003-of-000014.safetensors");
    let bytes = fs::read(&shard).unwrap();
    for length in [0, 100, bytes.len() - 1] {
        fs::write(&shard, &bytes[..length]).unwrap();
        fails(&run(), 2, &["model-00003-of-000014.safetensors"]);
    }
    fs::remove_file(&shard).unwrap();
    fails(&run(), 2, &["model-00003-of-000014.safetensors", "missing"]);
    fails(&wasm(&["--dir", "no/such/folder"], &["run", inside, "--ids", "1"]), 2, &["--dir", "no/such/folder"]);
}

#[test]
fn nothing_can_be_written() {
    let folder = copy_of_a();
    let inside = text(folder.path());
    let out = format!("{inside}/results.json");
    fails(&wasm(&["--dir", inside], &["run", inside, "--ids", "1", "--out", &out]), 3, &["results.json"]);
    assert!(!fs::exists(out).unwrap());
}

#[test]
fn the_end_of_memory_is_an_error_and_not_a_trap() {
    let folder = oracle("a");
    let run =
        |bytes: &str| wasm(&["--dir", &folder, "--max-memory", bytes], &["run", &folder, "--ids", "1", "--gen", "1"]);
    expect_exit(&run("100000000"), 0);
    fails(&run("1500000"), 1, &["error: no memory for", "exit code 1"]);
    fails(&run("1000"), 1, &["memory"]);
}

#[test]
fn the_end_of_time_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let endless = module(folder.path(), b"\x03\x40\x0c\0\x0b");
    let output = wasm(&["--timeout", "1", "--module", text(&endless)], &["run"]);
    fails(&output, 1, &["still running after 1 seconds", "--timeout"]);
    let folder = oracle("a");
    expect_exit(&wasm(&["--timeout", "600", "--dir", &folder], &["run", &folder, "--ids", "1", "--gen", "1"]), 0);
}

#[test]
fn a_trap_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = module(folder.path(), b"");
    expect_exit(&wasm(&["--module", text(&nothing)], &["run"]), 0);
    let unreachable = module(folder.path(), b"\0");
    fails(&wasm(&["--module", text(&unreachable)], &["run"]), 1, &["was ended", "unreachable"]);
}

#[test]
fn what_is_not_a_module_for_here_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.wasm");
    fs::write(&file, "not a module").unwrap();
    fails(&wasm(&["--module", text(&file)], &["run"]), 2, &["cannot be used"]);
    fails(&wasm(&["--module", "no/such.wasm"], &["run"]), 1, &["no/such.wasm"]);
    // Two constants, i8x16.relaxed_swizzle, drop.
    let constant = [&[0xfd, 0x0c][..], &[0; 16]].concat();
    let relaxed = module(folder.path(), &[&constant[..], &constant, &[0xfd, 0x80, 0x02, 0x1a]].concat());
    fails(&wasm(&["--module", text(&relaxed)], &["run"]), 2, &["relaxed"]);
    // The same with i8x16.swizzle, which is not relaxed.
    let strict = module(folder.path(), &[&constant[..], &constant, &[0xfd, 0x0e, 0x1a]].concat());
    expect_exit(&wasm(&["--module", text(&strict)], &["run"]), 0);
}

#[test]
fn without_a_module_the_script_that_builds_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("bin").join("k3-host");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_k3-host"), &program).unwrap();
    let output = Command::new(program).args(["wasm", "run"]).output().unwrap();
    fails(&output, 2, &["scripts/build-wasm", "--module"]);
}

#[cfg(unix)]
#[test]
fn a_compiled_module_is_kept_and_a_damaged_one_replaced() {
    let cache = tempfile::tempdir().unwrap();
    let folder = oracle("a");
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k3-host"));
        command.env("XDG_CACHE_HOME", cache.path()).args(["wasm", "--dir", &folder, "run", &folder, "--ids", "1"]);
        expect_exit(&command.output().unwrap(), 0).0
    };
    let kept = || -> Vec<PathBuf> {
        let entries = fs::read_dir(cache.path().join("k3/modules")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let expected = run();
    assert_eq!(kept().len(), 1);
    let whole = fs::read(&kept()[0]).unwrap();
    assert_eq!(run(), expected);
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&kept()[0], damaged).unwrap();
    assert_eq!(run(), expected);
    assert!(fs::read(&kept()[0]).unwrap() == whole, "the damaged file was not replaced");
}
