//! A disk that is full when results are written. A limit on the size of files stands in for it: writing fails in the same
//! places, on any machine and for any user.
#![cfg(unix)]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{Reference, expect_exit, fixture, joined};

/// Runs on model `a` with no file growing beyond 512 or 1,024 bytes, whichever the shell counts in.
fn run_with_little_room(flags: &[&str]) -> Output {
    let ids = joined(&Reference::of("a").ids("prompt_ids"));
    Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_k3-host"), "run"])
        .arg(fixture("oracle").join("a"))
        .args(["--quiet", "--ids", &ids, "--gen", "5"])
        .args(flags)
        .output()
        .expect("there is a shell")
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn old_files_stay_whole_and_the_message_names_the_file() {
    let expected = joined(&Reference::of("a").ids("greedy_new_ids")[..5]);
    for flag in ["--save-state", "--out", "--dump-logits"] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("precious");
        std::fs::write(&file, "old").unwrap();
        let (stdout, stderr) = expect_exit(&run_with_little_room(&[flag, file.to_str().unwrap()]), 3);
        assert!(stderr.contains(&format!("cannot write {}", file.display())), "{flag}: {stderr}");
        assert_eq!(stderr.lines().count(), 1, "{flag}: {stderr}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old", "{flag}");
        assert_eq!(files(folder.path()), ["precious"], "{flag}: nothing is left behind");
        // Logits are written as they come, so that the run ends when they cannot be; the rest is written after it.
        let printed = if flag == "--dump-logits" { String::new() } else { format!("{expected}\n") };
        assert_eq!(stdout, printed, "{flag}");
    }
}

/// What can be written still is, when something else cannot, and every file that is missing is named.
#[test]
fn one_file_that_cannot_be_written_does_not_cost_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let save_state = ["--save-state", state.to_str().unwrap(), "--out"];
    let (stdout, stderr) = expect_exit(&run_with_little_room(&[&save_state[..], &["-"]].concat()), 3);
    assert_eq!(stdout.matches("\"logits_hash\"").count(), 5, "{stdout}");
    assert!(stderr.contains(&format!("cannot write {}", state.display())), "{stderr}");

    let results = folder.path().join("results");
    let (stdout, stderr) =
        expect_exit(&run_with_little_room(&[&save_state[..], &[results.to_str().unwrap()]].concat()), 3);
    assert_eq!(stdout.split(',').count(), 5, "{stdout}");
    for file in [state, results] {
        assert!(stderr.contains(&format!("cannot write {}", file.display())), "{stderr}");
    }
}
