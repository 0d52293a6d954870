//! The history file: validated, never half written, never overwritten by a run that was refused.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

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

/// A conversation whose file takes a while to write: two megabytes of thoughts, which no prompt holds without thinking.
fn long_history() -> String {
    let thoughts = "so ".repeat(700_000);
    let answer = format!("{{\"role\":\"assistant\",\"content\":\"b\",\"reasoning_content\":\"{thoughts}\"}}\n");
    [USER, &answer].concat()
}

/// Whenever the program is killed, the file is that of some moment of the conversation, and whole.
#[test]
fn killed_at_any_moment_the_file_is_whole() {
    let old = long_history();
    let input = "one\ntwo\n/undo\nthree\n";
    let (folder, path) = history(b"");
    let moments = moments_of(input, &old, &path);
    assert_eq!(moments.len(), 1 + 2 + 2 + 1 + 2);

    let whole = time_of(input, &old, &path, None);
    let mut seen = vec![0; moments.len()];
    for round in 0..ROUNDS {
        // From before the first save to after the last.
        time_of(input, &old, &path, Some(whole * round * 11 / 10 / ROUNDS));
        let found = std::fs::read_to_string(&path).unwrap();
        let moment = moments.iter().position(|moment| *moment == found);
        seen[moment.unwrap_or_else(|| panic!("round {round}: {} bytes of no moment", found.len()))] += 1;
        clean(folder.path());
    }
    let hit = seen.iter().filter(|count| **count > 0).count();
    assert!(hit > 2, "the kills hit too few moments: {seen:?}");
}

const ROUNDS: u32 = 80;

/// How long the conversation takes. It is killed after `limit`, if there is one.
fn time_of(input: &str, old: &str, path: &Path, limit: Option<Duration>) -> Duration {
    std::fs::write(path, old).unwrap();
    let started = Instant::now();
    let mut child = start(path);
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    if let Some(limit) = limit {
        std::thread::sleep(limit);
        let _ = child.kill();
    }
    child.wait().unwrap();
    started.elapsed()
}

const BRIEF: [&str; 5] = ["--no-think", "--gen", "4", "--context", "300"];

fn start(path: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_k3-host"))
        .args(["chat", toy(), "--threads", "1", "--history", path.to_str().unwrap()])
        .args(BRIEF)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// A killed save may leave its temporary file behind.
fn clean(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_name() != "history.jsonl" {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// What the file holds after each save of a conversation that goes on from `old`: the answers are greedy, so every run has
/// the same.
fn moments_of(input: &str, old: &str, path: &Path) -> Vec<String> {
    let mut moments = vec![old.to_owned()];
    let lines: Vec<&str> = input.lines().collect();
    for count in 1..=lines.len() {
        std::fs::write(path, old).unwrap();
        let input = lines[..count].join("\n");
        expect_exit(&chat(&input, &[&BRIEF[..], &["--history", path.to_str().unwrap()]].concat()), 0);
        let after = std::fs::read_to_string(path).unwrap();
        if !lines[count - 1].starts_with('/') {
            // Before the answer there was only its question.
            let before = after.trim_end().rfind('\n').unwrap() + 1;
            moments.push(after[..before].to_owned());
        }
        moments.push(after);
    }
    moments
}
