//! `k3-host chat` through a pipe, as a script would use it. What the toy model says is noise, but always the same.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::text::toy;
use crate::support::{expect_exit, k3_host};

/// Runs `chat` on the toy model with these lines.
pub fn chat(input: &str, flags: &[&str]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
        .args(["chat", toy(), "--threads", "1"])
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A program that refuses its arguments does not read.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

const BRIEF: [&str; 5] = ["--no-think", "--gen", "6", "--context", "400"];

/// Runs `chat` with brief answers; returns both outputs and the history it leaves.
fn talk(input: &str, flags: &[&str]) -> (String, String, Vec<Value>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let output = chat(input, &[&BRIEF, flags, &["--history", path.to_str().unwrap()]].concat());
    let (stdout, stderr) = expect_exit(&output, 0);
    let lines = std::fs::read_to_string(path).unwrap_or_default();
    (stdout, stderr, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn contents(history: &[Value], role: &str) -> Vec<String> {
    let of_role = history.iter().filter(|line| line["role"] == role);
    of_role.map(|line| line["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_turns_print_the_answers_that_the_history_keeps() {
    let (stdout, stderr, history) = talk("one\ntwo\n", &["--system", "Be brief."]);
    assert_eq!(history[0], serde_json::json!({"role": "system", "content": "Be brief."}));
    assert_eq!(contents(&history, "user"), ["one", "two"]);
    let answers = contents(&history, "assistant");
    assert_eq!(stdout, answers.iter().map(|answer| format!("{answer}\n")).collect::<String>());
    assert_eq!(history.len(), 5);
    assert!(stderr.contains("positions to read") && stderr.contains("positions reused"), "{stderr}");
    assert!(stderr.contains("kept as far as it went"), "{stderr}");
}

#[test]
fn commands_change_the_history() {
    let (_, _, one) = talk("one\n", &[]);
    assert_eq!(talk("one\ntwo\n/undo\n", &[]).2, one);
    assert_eq!(talk("one\n/retry\n", &[]).2, one, "greedy: the same answer again");
    assert_eq!(talk("zero\n/reset\none\n", &[]).2, one);
    assert_eq!(talk("one\n/exit\ntwo\n", &[]).2, one);
    assert_eq!(talk("one\n/undo\n", &[]).2, Vec::<Value>::new());
    let sampled = |input| talk(input, &["--seed", "3", "--top-p", "1"]).2;
    assert_ne!(sampled("one\n/retry\n"), sampled("one\n"));
}

#[test]
fn commands_answer_on_standard_error() {
    let (stdout, stderr, _) = talk("/stats\n/nonsense\n/undo\n/retry\n/save\n/help\n", &[]);
    assert_eq!(stdout, "");
    for words in [
        "0 of 400 positions are in use",
        "/nonsense is no command",
        "there is nothing to take back",
        "there is no question to ask again",
        "/save needs the name of a file",
        "/reset      forget everything",
    ] {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    let (_, stderr, _) = talk("one\n/stats\n", &[]);
    assert!(stderr.contains("6 ids written"), "{stderr}");
}

#[test]
fn save_writes_what_the_history_file_holds() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("ein Gespräch.jsonl");
    let (_, stderr, history) = talk(&format!("one\n/save {}\n", copy.display()), &[]);
    let lines = std::fs::read_to_string(&copy).unwrap();
    let saved: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(saved, history);
    assert!(stderr.contains("saved to"), "{stderr}");
    // With nobody there, what was not saved must not go unnoticed.
    let output = chat("one\n/save no/such/folder/x\n", &BRIEF);
    assert!(expect_exit(&output, 3).1.contains("no/such/folder/x"));
}

#[test]
fn lines_go_on_and_blocks_hold_many() {
    let (_, _, history) = talk("one \\\ntwo\n\"\"\"\n/three\n\nfour\n\"\"\"\n\n", &[]);
    assert_eq!(contents(&history, "user"), ["one \ntwo", "/three\n\nfour"]);
    // The input ends within a block.
    assert_eq!(contents(&talk("\"\"\"one\ntwo", &[]).2, "user"), ["one\ntwo"]);
}

#[test]
fn a_question_without_room_is_refused_and_the_next_is_asked() {
    let long = "word ".repeat(400);
    let (_, stderr, history) = talk(&format!("one\n{long}\ntwo\n"), &[]);
    assert!(stderr.contains("not asked") && stderr.contains("there is room for 400"), "{stderr}");
    assert_eq!(contents(&history, "user"), ["one", "two"]);
}

#[test]
fn a_conversation_goes_on_in_another_run_as_in_one() {
    let (_, _, whole) = talk("one\ntwo\n", &[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    for input in ["one\n", "two"] {
        expect_exit(&chat(input, &[&BRIEF[..], &["--history", path.to_str().unwrap()]].concat()), 0);
    }
    let lines = std::fs::read_to_string(path).unwrap();
    let parts: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(parts, whole);
}

/// Cut inside its thoughts, an answer has no content: its question stays, for `/retry` or the next run.
#[test]
fn thoughts_are_hidden_unless_asked_for_and_are_no_content() {
    let thinking = ["--gen", "6", "--context", "400"];
    let (stdout, stderr) = expect_exit(&chat("one\n", &thinking), 0);
    assert_eq!(stdout, "");
    assert!(stderr.contains("not kept") && stderr.contains("/retry"), "{stderr}");
    let (stdout, _) = expect_exit(&chat("one\n", &[&thinking[..], &["--show-thinking"]].concat()), 0);
    assert!(stdout.starts_with("<think>\n") && stdout.ends_with("\n</think>\n"), "{stdout}");
}

#[test]
fn a_stop_id_ends_an_answer() {
    let args = ["run", toy(), "--prompt", "x", "--gen", "1", "--stop-id", "163840"];
    assert!(expect_exit(&k3_host(args), 2).1.contains("--stop-id"));
    assert!(expect_exit(&chat("", &["--stop-id", "163840"]), 2).1.contains("--stop-id"));
}

#[test]
fn usage_errors_end_with_2_before_anything_is_loaded() {
    for (flags, word) in [
        (&["--temperature", "0"][..], "temperature"),
        (&["--temperature", "-1"], "temperature"),
        (&["--temperature", "NaN"], "temperature"),
        (&["--temperature", "inf"], "temperature"),
        (&["--top-p", "0"], "top-p"),
        (&["--top-p", "1.5"], "top-p"),
        (&["--top-k", "0"], "top-k"),
        (&["--seed", "-1"], "seed"),
        (&["--thinking-effort", "medium"], "low, high, max"),
        (&["--thinking-effort", "low", "--no-think"], "--no-think"),
        (&["--gen", "0"], "--gen"),
        (&["--context", "0"], "--context"),
    ] {
        let args = ["chat", "no/such/model"];
        let (stdout, stderr) = expect_exit(&k3_host(args.iter().chain(flags)), 2);
        assert_eq!(stdout, "");
        assert!(stderr.contains(word), "{flags:?}: {stderr}");
    }
}

#[test]
fn more_context_than_the_model_has_is_refused() {
    assert!(expect_exit(&chat("", &["--context", "1048577"]), 2).1.contains("at most 1048576"));
}

#[test]
fn a_missing_tokenizer_is_named_with_where_it_comes_from() {
    let model = crate::support::fixture("oracle").join("a");
    let (_, stderr) = expect_exit(&k3_host(["chat", model.to_str().unwrap()]), 1);
    assert!(stderr.contains("a/tiktoken.model") && stderr.contains("--tok"), "{stderr}");
    // And one of another model is refused.
    let (_, stderr) = expect_exit(&k3_host(["chat", model.to_str().unwrap(), "--tok", toy()]), 2);
    assert!(stderr.contains("163840") && stderr.contains("131"), "{stderr}");
}

#[test]
fn lines_that_are_no_text_end_the_program() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
        .args(["chat", toy(), "--no-think", "--gen", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one\n\xff\n").unwrap();
    let (_, stderr) = expect_exit(&child.wait_with_output().unwrap(), 2);
    assert!(stderr.contains("line 2: not UTF-8"), "{stderr}");
}
