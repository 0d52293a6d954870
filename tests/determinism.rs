//! `scripts/determinism` on the native program alone, and that it can fail. The whole table is built by running it.
#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use k3_core::kernels::Backend;
use support::{expect_exit, fixture};

/// Compares scalar and vector kernels on one and two threads, as `program` computes them.
fn determinism(program: &Path) -> Output {
    let script = fixture("../scripts/determinism");
    Command::new(script).args(["--only", "native", "--program"]).arg(program).output().expect("the script starts")
}

/// A program that passes its arguments on to k3-host and changes what it prints with the shell command `filter`, if the
/// arguments contain `word`.
fn liar(folder: &Path, word: &str, filter: &str) -> Output {
    let program = folder.join("liar");
    let k3 = env!("CARGO_BIN_EXE_k3-host");
    let text =
        format!("#!/bin/sh\ncase \"$*\" in\n*'{word}'*) '{k3}' \"$@\" | {filter} ;;\n*) exec '{k3}' \"$@\" ;;\nesac\n");
    fs::write(&program, text).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    determinism(&program)
}

/// Each of this machine's kernels with one thread and with two.
fn combinations() -> usize {
    2 * Backend::available().len()
}

#[test]
fn the_native_program_gives_the_same_bits_with_all_kernels_and_threads() {
    let (stdout, _) = expect_exit(&determinism(Path::new(env!("CARGO_BIN_EXE_k3-host"))), 0);
    let combinations = combinations();
    assert!(stdout.contains(&format!("all equal: {combinations} combinations")), "{stdout}");
    assert_eq!(stdout.lines().filter(|line| line.contains("| native |")).count(), combinations, "{stdout}");
}

#[test]
fn any_difference_fails() {
    let folder = tempfile::tempdir().unwrap();
    let honest = liar(folder.path(), "--threads 2", "cat");
    expect_exit(&honest, 0);
    let altered = r#"sed 's/\("logits_hash": "\)[0-9a-f]\{4\}\(.*\)/\1ffff\2/'"#;
    let (stdout, _) = expect_exit(&liar(folder.path(), "oracle/b", altered), 0);
    assert!(stdout.contains("all equal"), "the same lie everywhere cannot be seen: {stdout}");
    let (stdout, _) = expect_exit(&liar(folder.path(), "scalar --threads 2", altered), 1);
    assert!(stdout.contains("model a: 2 DIFFERENT hashes"), "{stdout}");
    let (stdout, _) = expect_exit(&liar(folder.path(), "functions", "sed \"s/exp .*/exp $$/\""), 1);
    assert!(stdout.contains(&format!("elementary functions: {} DIFFERENT hashes", combinations())), "{stdout}");
    let (stdout, _) = expect_exit(&liar(folder.path(), "--plain", "sed \"s/^/$$,/\""), 1);
    assert!(stdout.contains(&format!("tokenizer: {} DIFFERENT hashes", combinations())), "{stdout}");
}

#[test]
fn what_does_not_run_fails() {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, stderr) = expect_exit(&determinism(&folder.path().join("nothing")), 1);
    assert!(stdout.contains("NOT RUN") && !stdout.contains("all equal"), "{stdout}{stderr}");
    let other_kernels = r#"sed 's/"backend": ".*"/"backend": "abacus"/'"#;
    let (stdout, stderr) = expect_exit(&liar(folder.path(), "scalar --threads 2", other_kernels), 1);
    assert!(stdout.contains("2 threads: NOT RUN"), "{stdout}");
    assert!(stderr.contains("computed with abacus"), "{stderr}");
}
