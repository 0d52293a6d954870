//! `tokenize` of the WASI command, built for this machine, with the released tokenizer.

#[path = "../../k3-core/src/tokenizer/tests/released_files.rs"]
mod released_files;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

/// The ids or bytes that the command prints; `None` if it fails, which must be with exit code 2.
fn tokenize(flags: &[&str], input: &[u8]) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("tiktoken.model"), &*released_files::MODEL).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), released_files::CONFIG).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_k3"));
    command.args(["tokenize", "--tok"]).arg(folder.path()).args(flags);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // A command that refuses its arguments closes its input unread, and one that prints a lot must be read meanwhile.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
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

/// What the command prints, as text.
fn printed(flags: &[&str], input: &str) -> String {
    String::from_utf8(tokenize(flags, input.as_bytes()).unwrap()).unwrap()
}

/// The same lines as in the tests of `k3-host tokenize`.
#[test]
fn prints_what_the_native_program_prints() {
    let tokens = concat!(
        r#"[{"id":64,"start":0,"end":1,"bytes":"61"},{"id":1420,"start":1,"end":3,"bytes":"200a"},"#,
        r#"{"id":188,"start":3,"end":4,"bytes":"00"},{"id":221,"start":4,"end":5,"bytes":"7f"}]"#,
        "\n"
    );
    assert_eq!(printed(&["--json"], "a \n\0\u{7F}"), tokens);
    assert_eq!(printed(&["--count"], "The capital of France is"), "5\n");
    assert_eq!(printed(&["--special"], "<|open|>"), "163587\n");
    assert_eq!(printed(&["--plain", "--count"], "<|open|>"), "5\n");
    let lines = "\" Paris\"\n\"\"\n\"a \\n\\u0000\\u007f\"";
    assert_eq!(printed(&["--jsonl"], lines), "17374\n\n64,1420,188,221\n");
    assert_eq!(printed(&["--jsonl", "--count"], lines), "1\n0\n4\n");
    let paris = r#"[{"id":17374,"start":0,"end":6,"bytes":"205061726973"}]"#;
    assert_eq!(printed(&["--jsonl", "--json"], lines), format!("{paris}\n[]\n{tokens}"));
    for (flags, empty) in [(&["--json"], "[]\n"), (&["--count"], "0\n"), (&["--jsonl"], "")] {
        assert_eq!(printed(flags, ""), empty, "{flags:?}");
    }
}

/// Texts and the ids that the released code gives them, in every form.
#[test]
fn every_form_tells_the_ids_of_the_released_code() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fixtures/tokenizer/cases");
    let (mut lines, mut ids_by_line, mut counts) = (String::new(), String::new(), String::new());
    for case in ["001", "011", "028", "084"] {
        let read = |ending: &str| fs::read_to_string(cases.join(format!("{case}.{ending}"))).unwrap();
        let text = read("txt");
        let ids: Vec<u64> = serde_json::from_str(&format!("[{}]", read("ids").trim().replace('\n', ","))).unwrap();
        let tokens: Vec<Value> = serde_json::from_str(&printed(&["--json"], &text)).unwrap();
        assert_eq!(tokens.iter().map(|token| token["id"].as_u64().unwrap()).collect::<Vec<_>>(), ids, "{case}");
        let mut start = 0;
        for token in &tokens {
            let end = token["end"].as_u64().unwrap() as usize;
            let bytes = text.as_bytes()[start..end].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert_eq!(
                (token["start"].as_u64(), token["bytes"].as_str()),
                (Some(start as u64), Some(&*bytes)),
                "{case}"
            );
            start = end;
        }
        assert_eq!(start, text.len(), "{case}");
        lines += &format!("{}\n", Value::from(text));
        ids_by_line += &format!("{}\n", ids.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
        counts += &format!("{}\n", ids.len());
    }
    assert!(printed(&["--jsonl"], &lines) == ids_by_line);
    assert_eq!(printed(&["--jsonl", "--count"], &lines), counts);
}

#[test]
fn what_is_not_text_or_not_ids_is_refused() {
    for lines in ["\"a\"\nb\n", "\"a\"\n\n\"b\"\n", "\"a\" 1\n"] {
        assert_eq!(tokenize(&["--jsonl"], lines.as_bytes()), None, "{lines:?}");
    }
    for flags in [["--json", "--count"], ["--special", "--plain"], ["--decode", "--json"], ["--decode", "--jsonl"]] {
        assert_eq!(tokenize(&flags, b""), None, "{flags:?}");
    }
    assert_eq!(tokenize(&[], b"\xff"), None);
    assert_eq!(tokenize(&["--decode"], b"1,x"), None);
    assert_eq!(tokenize(&["--decode"], b"4294967295"), None);
}
