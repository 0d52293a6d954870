//! The WASI command, built for this machine: the same program as in the sandbox, without one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn oracle(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/oracle").join(model)
}

fn reference(model: &str, field: &str) -> Vec<u64> {
    let text = std::fs::read(oracle(model).join("expected/oracle.json")).unwrap();
    let reference: Value = serde_json::from_slice(&text).unwrap();
    reference[field].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect()
}

fn joined(ids: &[u64]) -> String {
    ids.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}

fn run(model: &Path, flags: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_k3")).arg("run").arg(model).args(flags).output().unwrap()
}

/// Standard output, after checking the exit code.
fn expect(output: &Output, code: i32) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(output: &Output, code: i32, word: &str) {
    assert_eq!(expect(output, code), "");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(word), "should mention {word}: {stderr}");
}

#[test]
fn prints_the_ids_of_the_published_code_however_small_the_slices() {
    for model in ["a", "b"] {
        let prompt = joined(&reference(model, "prompt_ids"));
        let expected = reference(model, "greedy_new_ids");
        let count = expected.len().to_string();
        for slice in ["1", "1000", "1048576"] {
            let output = run(&oracle(model), &["--ids", &prompt, "--gen", &count, "--slice", slice]);
            assert_eq!(expect(&output, 0).trim(), joined(&expected), "model {model}, slices of {slice} bytes");
        }
    }
}

#[test]
fn the_report_goes_to_a_file_or_to_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let flags = ["--ids", "1,2", "--gen", "3", "--out"];
    let ids = expect(&run(&oracle("a"), &[&flags[..], &[path.to_str().unwrap()]].concat()), 0);
    let printed = expect(&run(&oracle("a"), &[&flags[..], &["-"]].concat()), 0);
    let hashes = |json: &str| -> Vec<String> {
        let report: Value = serde_json::from_str(json).unwrap();
        assert_eq!(report["format"], "k3-run/1");
        report["steps"].as_array().unwrap().iter().map(|step| step["logits_hash"].to_string()).collect()
    };
    let written = std::fs::read_to_string(path).unwrap();
    assert_eq!(hashes(&written), hashes(&printed));
    assert_eq!(hashes(&written).len(), 3);
    assert_eq!(ids.trim().split(',').count(), 3);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing unfinished is left");
}

#[test]
fn dumps_a_row_of_logits_for_every_position_fed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logits.f32");
    let prompt = reference("a", "prompt_ids");
    let argmax = reference("a", "argmax_per_position");
    for flags in [&["--chunk", "3"][..], &["--full-recompute"]] {
        let ids = joined(&prompt);
        let dump = ["--ids", &ids, "--gen", "3", "--dump-logits", path.to_str().unwrap()];
        expect(&run(&oracle("a"), &[&dump, flags].concat()), 0);
        let bytes = std::fs::read(&path).unwrap();
        let logits: Vec<f32> = bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(logits.len(), (prompt.len() + 2) * 131);
        for (row, &expected) in logits.chunks_exact(131).zip(&argmax) {
            assert_eq!(k3_core::ops::arg_max(row) as u64, expected);
        }
    }
}

#[test]
fn faults_end_with_the_exit_codes_of_the_native_program() {
    let a = oracle("a");
    refused(&run(&a, &["--ids", "131"]), 2, "0 to 130");
    refused(&run(&a, &["--ids", "1", "--stop-id", "131"]), 2, "--stop-id");
    refused(&run(&a, &["--ids", "1", "--layers", "14"]), 2, "13 layers");
    refused(&run(&a, &["--ids", "1", "--backend", "mmx"]), 2, "mmx");
    refused(&run(&a, &["--ids", "1", "--gen", "4294967295"]), 2, "positions");
    refused(&run(Path::new("no/such/folder"), &["--ids", "1"]), 1, "no/such/folder");
    refused(&run(&a, &["--ids", "1", "--out", "no/such/folder/file"]), 3, "no/such/folder/file");
}
