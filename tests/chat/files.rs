//! The history file: validated, never half written, never overwritten by a run that was refused.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::piped::chat;
use crate::support::text::toy;
use crate::support::{expect_exit, k3_host};

const SYSTEM: &str = "{\"role\":\"system\",\"content\":\"Be brief.\"}\n";
const USER: &str = "{\"role\":\"user\",\"content\":\"a\"}\n";
const ASSISTANT: &str = "{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"c\"}\n";

/// A folder whose name is not ASCII, with a history file in it.
fn history(contents: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::Builder::new().prefix("talk über ").tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    std::fs::write(&path, contents).unwrap();
    (folder, path)
}

/// What is said when the file holds `contents`. The file stays as it is, and nothing is left beside it.
fn refusal(contents: &[u8], flags: &[&str]) -> String {
    let (folder, path) = history(contents);
    // No model is needed to refuse a history.
    let args = ["chat", "no/such/model", "--history", path.to_str().unwrap()];
    let (stdout, stderr) = expect_exit(&k3_host(args.iter().chain(flags)), 2);
    assert_eq!(stdout, "");
    assert!(stderr.contains("history"), "the file is named: {stderr}");
    assert_eq!(std::fs::read(&path).unwrap(), contents);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    stderr
}

#[test]
fn malformed_files_are_refused_with_their_line() {
    let with = |last: &str| [SYSTEM, USER, last].concat().into_bytes();
    for (last, reason) in [
        ("\n", "line 3: the line is blank"),
        (USER, "line 3: a user message follows a user message"),
        (SYSTEM, "line 3: a system message may only stand first"),
        ("{\"role\":\"assistant\"}", "line 3: missing field `content`"),
        ("{\"role\":\"assistant\",\"content\":\"b\",\"x\":1}", "line 3: unknown field `x`"),
        ("{\"role\":\"assistant\",\"content\":\"b\",\"content\":\"b\"}", "line 3: duplicate field"),
        ("{\"role\":\"tool\",\"content\":\"b\"}", "line 3: unknown variant `tool`"),
        ("{\"role\":\"assistant\",\"content\":\"\\u0000\"}", "line 3: a text contains U+0000"),
        ("{\"role\":\"assistant\",\"content\":\"\\ud800\"}", "line 3: "),
        ("{\"role\":\"assistant\",\"content\":\"b\"} x", "line 3: trailing"),
        ("{\"role\":\"assistant\",\"content\":\"b", "line 3: EOF"),
    ] {
        let error = refusal(&with(last), &[]);
        assert!(error.contains(reason), "{last}: {error}");
    }
    assert!(refusal(b"\xff\n", &[]).contains("line 1: not UTF-8"));
}

#[test]
fn the_system_message_must_be_that_of_the_file() {
    let file = [SYSTEM, USER, ASSISTANT].concat();
    assert!(refusal(file.as_bytes(), &["--system", "Be long."]).contains("another system message"));
    assert!(refusal(USER.as_bytes(), &["--system", "Be brief."]).contains("no system message"));
    let (_folder, path) = history(file.as_bytes());
    let flags = ["--no-think", "--gen", "3", "--system", "Be brief.", "--history", path.to_str().unwrap()];
    expect_exit(&chat("/exit\n", &flags), 0);
}

#[test]
fn a_folder_that_cannot_be_written_to_is_refused_before_loading() {
    let args = ["chat", "no/such/model", "--history", "no/such/folder/history.jsonl"];
    let (_, stderr) = expect_exit(&k3_host(args), 3);
    assert!(stderr.contains("no/such/folder/history.jsonl"), "{stderr}");
}

/// An unfinished conversation goes on: the question without an answer can be asked again, or another takes its place.
#[test]
fn a_file_that_ends_in_a_question_goes_on() {
    for (input, questions) in [("/retry\n", ["a"]), ("x\n", ["x"])] {
        let (_folder, path) = history(USER.as_bytes());
        expect_exit(&chat(input, &["--no-think", "--gen", "3", "--history", path.to_str().unwrap()]), 0);
        let lines = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["content"], questions[0]);
        assert_eq!(lines[1]["role"], "assistant");
    }
}

/// Whenever the program is killed, the file is a history, and that of some moment of the conversation.
#[test]
fn killed_at_any_moment_the_file_is_whole() {
    let input = "one\ntwo\n/undo\nthree\n";
    let flags = ["--no-think", "--gen", "4", "--context", "300"];
    let (_folder, whole) = history(b"");
    let moments = moments_of(input, &flags, &whole);
    assert!(moments.len() >= 6);

    let mut seen = vec![0; moments.len()];
    let (folder, path) = history(b"");
    for round in 0..60_u64 {
        std::fs::write(&path, b"").unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
            .args(["chat", toy(), "--threads", "1", "--history", path.to_str().unwrap()])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        // From the first sign of an answer on, at moments that move.
        let mut output = child.stdout.take().unwrap();
        let _ = std::io::Read::read(&mut output, &mut [0]);
        std::thread::sleep(Duration::from_micros(round * 997 % 40_000));
        let _ = child.kill();
        child.wait().unwrap();
        let found = std::fs::read_to_string(&path).unwrap();
        let moment = moments.iter().position(|moment| *moment == found);
        let moment = moment.unwrap_or_else(|| panic!("round {round}: no moment of the conversation: {found}"));
        seen[moment] += 1;
        clean(folder.path());
    }
    assert!(seen.iter().filter(|count| **count > 0).count() > 1, "all kills hit the same moment: {seen:?}");
}

/// A killed save may leave its temporary file behind.
fn clean(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name() != "history.jsonl" {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// What the file holds after each save of a conversation: the answers are greedy, so every run has the same.
fn moments_of(input: &str, flags: &[&str], path: &std::path::Path) -> Vec<String> {
    let mut moments = vec![String::new()];
    let lines: Vec<&str> = input.lines().collect();
    for count in 1..=lines.len() {
        std::fs::write(path, b"").unwrap();
        let input = lines[..count].join("\n");
        expect_exit(&chat(&input, &[flags, &["--history", path.to_str().unwrap()]].concat()), 0);
        let after = std::fs::read_to_string(path).unwrap();
        if !lines[count - 1].starts_with('/') {
            // Before the answer there was only its question.
            let before: Vec<&str> = after.lines().collect();
            moments.push(before[..before.len() - 1].iter().map(|line| format!("{line}\n")).collect());
        }
        moments.push(after);
    }
    moments
}
