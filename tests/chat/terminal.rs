//! `k3-host chat` at a terminal, as a person would use it: through a pseudo-terminal, on the toy model.

use std::path::Path;
use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::support::text::toy;

/// Far more than any step takes, also on a busy machine.
const PATIENCE_MS: u64 = 120_000;

/// The erased line of what was being done, and the first character of an answer in its place.
const ANSWER_BEGINS: &str = "\x1b\\[K[^\x1b\r\n]";

/// Somebody at a terminal.
struct Person(PtySession);

impl Person {
    fn sits_down(flags: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_k3-host"));
        command.args(["chat", toy(), "--threads", "1", "--context", "20000"]).args(flags).env("TERM", "xterm");
        let mut person = Self(spawn_command(command, Some(PATIENCE_MS)).unwrap());
        person.sees("/help lists the commands");
        person.sees("> ");
        person
    }

    fn types(&mut self, keys: &str) {
        self.0.send(keys).unwrap();
        self.0.flush().unwrap();
    }

    fn asks(&mut self, line: &str) {
        self.types(line);
        self.types("\r");
    }

    /// Waits until it is there; returns what came before.
    fn sees(&mut self, text: &str) -> String {
        self.0.exp_string(text).unwrap_or_else(|error| panic!("no `{text}`: {error}"))
    }

    fn sees_an_answer_begin(&mut self) {
        self.0.exp_regex(ANSWER_BEGINS).unwrap();
    }

    fn presses_control(&mut self, key: char) {
        self.0.send_control(key).unwrap();
    }

    /// The program has ended by itself, and well.
    fn leaves(mut self) {
        self.0.exp_eof().unwrap();
        let status = self.0.process().wait().unwrap();
        assert!(matches!(status, WaitStatus::Exited(_, 0)), "{status:?}");
    }
}

fn questions(path: &Path) -> Vec<String> {
    let history = std::fs::read_to_string(path).unwrap();
    let lines = history.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let of_user = lines.filter(|line| line["role"] == "user");
    of_user.map(|line| line["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ctrl_c_stops_an_answer_and_the_session_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let flags = ["--no-think", "--gen", "100000", "--history", path.to_str().unwrap()];
    let mut person = Person::sits_down(&flags);

    person.asks("one");
    person.sees("positions to read");
    person.sees_an_answer_begin();
    person.presses_control('c');
    person.sees("stopped; the answer is");
    person.sees("> ");

    // Recalled with the arrow, and stopped again.
    person.types("\x1b[A");
    person.sees("one");
    person.asks(" more");
    person.sees_an_answer_begin();
    person.presses_control('c');
    person.sees("stopped; the answer is");
    person.sees("> ");

    person.asks("/stats");
    person.sees("positions are in use");
    person.sees("> ");
    person.asks("/exit");
    person.leaves();
    // Noise may hold a control token, and is then not kept; so "one" need not be there.
    assert_eq!(questions(&path).last().map(String::as_str), Some("one more"));
}

#[test]
fn an_answer_streams_to_its_end_and_many_lines_are_one_question() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let mut person = Person::sits_down(&["--no-think", "--gen", "5", "--history", path.to_str().unwrap()]);
    person.asks("one\\");
    person.sees(". ");
    person.asks("two");
    person.sees_an_answer_begin();
    person.sees("cut at the most ids it may have");
    person.sees("> ");
    assert_eq!(questions(&path), ["one\ntwo"]);

    person.asks("/nonsense");
    person.sees("/nonsense is no command");
    person.sees("> ");
    // A failure is told, and nothing ends.
    person.asks("/save no/such/folder/x");
    person.sees("error: cannot write no/such/folder/x");
    person.sees("> ");
    person.presses_control('d');
    person.leaves();
}

#[test]
fn ctrl_c_at_the_prompt_gives_up_the_line_and_hints() {
    let mut person = Person::sits_down(&["--no-think", "--gen", "5"]);
    person.types("never min");
    person.sees("never min");
    person.presses_control('c');
    person.sees("Ctrl-D or /exit ends the session");
    person.sees("> ");
    person.asks("\"\"\"half a block");
    person.sees(". ");
    person.presses_control('c');
    person.sees("Ctrl-D or /exit ends the session");
    person.sees("> ");
    person.asks("/stats");
    person.sees("0 of 20000 positions are in use");
    person.sees("> ");
    person.presses_control('d');
    person.leaves();
}

/// All at once, as when keys repeat or text is pasted into a terminal that does not mark it: nothing is lost between lines.
#[test]
fn lines_typed_ahead_are_not_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.jsonl");
    let mut person = Person::sits_down(&["--no-think", "--gen", "3", "--history", path.to_str().unwrap()]);
    person.types("\"\"\"\rone\r\rtwo\"\"\"\rthree\r/stats\r");
    person.sees("positions are in use");
    person.presses_control('d');
    person.leaves();
    assert_eq!(questions(&path), ["one\n\ntwo", "three"]);
}

#[test]
fn thoughts_are_dimmed_or_counted() {
    let mut person = Person::sits_down(&["--gen", "5", "--show-thinking"]);
    person.asks("one");
    // Erased, dimmed, and not what is being done.
    person.0.exp_regex("\x1b\\[K\x1b\\[2m[^rta]").unwrap();
    person.sees("\x1b[0m");
    person.sees("the answer is not kept");
    person.sees("> ");
    person.presses_control('d');
    person.leaves();

    let mut person = Person::sits_down(&["--gen", "5"]);
    person.asks("one");
    person.sees("thinking: 4 ids");
    person.sees("the answer is not kept");
    person.sees("> ");
    person.presses_control('d');
    person.leaves();
}
