//! `tokenize` of the WASI command, built for this machine, with the released tokenizer.

#[path = "../../k3-core/src/tokenizer/tests/released_files.rs"]
mod released_files;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

/// The ids or bytes that the command prints; `None` if it fails, which must be with exit code 2.
fn tokenize(flags: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiktoken.model"), &*released_files::MODEL).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), released_files::CONFIG).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_k3"));
    command.args(["tokenize", "--tok"]).arg(folder.path()).args(flags);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    match output.status.code() {
        Some(0) => Some(output.stdout),
        code => {
            assert_eq!(code, Some(2));
            None
        }
    }
}

/// Strings with the ids that the released code gives them: hex digits, ids, ids without special tokens.
#[test]
fn gives_the_ids_of_the_released_code_and_takes_them_back() {
    let recorded = include_str!("../../fixtures/tokenizer/fuzz.tsv");
    let mut special = 0;
    for line in recorded.lines().step_by(300) {
        let [hex, ids, plain] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let digits: Vec<u8> = hex.bytes().map(|digit| (digit as char).to_digit(16).unwrap() as u8).collect();
        let text: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
        let printed = |ids: &str| Some(format!("{ids}\n").into_bytes());
        assert_eq!(tokenize(&[], &text), printed(ids), "{hex}");
        assert_eq!(tokenize(&["--plain"], &text), printed(if plain == "=" { ids } else { plain }), "{hex}");
        assert_eq!(tokenize(&["--decode"], ids.as_bytes()), Some(text), "{ids}");
        special += usize::from(plain != "=");
    }
    assert!(special > 0, "no string tells special tokens from plain text");
}

#[test]
fn what_is_not_text_or_not_ids_is_refused() {
    assert_eq!(tokenize(&[], b"\xff"), None);
    assert_eq!(tokenize(&["--decode"], b"1,x"), None);
    assert_eq!(tokenize(&["--decode"], b"4294967295"), None);
}
