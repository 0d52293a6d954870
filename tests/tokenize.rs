//! `k3-host tokenize`, driven as a script would drive it.

mod support;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use k3_core::tokenizer::{Mode, Tokenizer};
use support::text::released_files;
use support::{expect_exit, joined, k3_host};
use tempfile::TempDir;

/// A folder with the released tokenizer, its name with a space and a letter beyond ASCII.
static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::Builder::new().prefix("tokenizer é ").tempdir().unwrap();
    fs::write(folder.path().join("tiktoken.model"), &*released_files::MODEL).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), released_files::CONFIG).unwrap();
    folder
});

/// Runs the command with the released tokenizer and the given standard input.
fn tokenize(flags: &[&str], input: impl AsRef<[u8]>) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
        .arg("tokenize")
        .arg("--tok")
        .arg(FOLDER.path())
        .args(flags)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.as_ref().to_vec());
    // A program that refuses its arguments closes its input unread.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

/// What the command prints when it succeeds.
fn printed(flags: &[&str], input: impl AsRef<[u8]>) -> String {
    expect_exit(&tokenize(flags, input), 0).0
}

/// What it says when it refuses, having printed `stdout`.
#[track_caller]
fn refused(flags: &[&str], input: impl AsRef<[u8]>, code: i32, words: &[&str]) {
    let (_, stderr) = expect_exit(&tokenize(flags, input), code);
    for word in words {
        assert!(stderr.contains(word), "{stderr:?} should name {word:?}");
    }
}

/// The three places a text may come from. Catches a newline that is trimmed or added.
#[test]
fn encodes_an_argument_a_file_and_standard_input() {
    let text = "The capital of France is";
    let ids = "1008,10484,318,15383,387\n";
    assert_eq!(printed(&[text], ""), ids);
    assert_eq!(printed(&[], text), ids);
    let file = FOLDER.path().join("text ü.txt");
    fs::write(&file, text).unwrap();
    assert_eq!(printed(&["--file", file.to_str().unwrap()], ""), ids);
    assert_eq!(printed(&["--count", text], ""), "5\n");
    assert_eq!(printed(&[], "a \n\0\u{7F}"), "64,1420,188,221\n");
}

/// Special tokens are recognised unless `--plain`.
#[test]
fn plain_text_has_no_special_tokens() {
    assert_eq!(printed(&["<|open|>"], ""), "163587\n");
    assert_eq!(printed(&["--special", "<|open|>"], ""), "163587\n");
    assert_eq!(printed(&["--plain", "<|open|>"], ""), "27,91,4454,91,29\n");
}

/// JSON with offsets in bytes and the bytes of each token, whole characters or not.
#[test]
fn json_has_offsets_and_bytes() {
    let expected = concat!(
        r#"[{"id":64,"start":0,"end":1,"bytes":"61"},{"id":1420,"start":1,"end":3,"bytes":"200a"},"#,
        r#"{"id":188,"start":3,"end":4,"bytes":"00"},{"id":221,"start":4,"end":5,"bytes":"7f"}]"#,
        "\n"
    );
    assert_eq!(printed(&["--json"], "a \n\0\u{7F}"), expected);
    let wave: serde_json::Value = serde_json::from_str(&printed(&["--json", "👋🏽"], "")).unwrap();
    let bytes: String = wave.as_array().unwrap().iter().map(|token| token["bytes"].as_str().unwrap()).collect();
    assert_eq!(bytes, "f09f918bf09f8fbd");
}

/// The empty text in every form.
#[test]
fn empty_texts_have_no_ids() {
    assert_eq!(printed(&[], ""), "\n");
    assert_eq!(printed(&[""], ""), "\n");
    assert_eq!(printed(&["--json"], ""), "[]\n");
    assert_eq!(printed(&["--count"], ""), "0\n");
    assert_eq!(printed(&["--jsonl"], ""), "");
    assert_eq!(printed(&["--decode"], ""), "");
}

/// One line of results for each line of input.
#[test]
fn jsonl_encodes_each_line() {
    let lines = "\" Paris\"\n\"\"\n\"a \\n\\u0000\\u007f\"";
    assert_eq!(printed(&["--jsonl"], lines), "17374\n\n64,1420,188,221\n");
    assert_eq!(printed(&["--jsonl", "--count"], lines), "1\n0\n4\n");
    let json = "[{\"id\":17374,\"start\":0,\"end\":6,\"bytes\":\"205061726973\"}]\n[]\n";
    assert!(printed(&["--jsonl", "--json"], lines).starts_with(json));
    refused(&["--jsonl"], "\"a\"\nb\n", 2, &["standard input, line 2", "not a JSON string"]);
    refused(&["--jsonl"], "\"a\"\n\n\"b\"\n", 2, &["line 2"]);
    refused(&["--jsonl"], "\"a\" 1\n", 2, &["line 1"]);
}

/// Decoding writes the bytes as they are, also those that are no text.
#[test]
fn decodes_ids_to_bytes() {
    let bytes = |flags: &[&str], input: &str| {
        let output = tokenize(flags, input);
        expect_exit(&output, 0);
        output.stdout
    };
    assert_eq!(bytes(&["--decode", "1008,10484,318,15383,387"], ""), b"The capital of France is");
    assert_eq!(bytes(&["--decode"], "1008, 10484\n318,\t15383 ,,387\n"), b"The capital of France is");
    assert_eq!(bytes(&["--decode"], "188,221,163587,163592"), b"\0\x7F<|open|><|reserved_token_163592|>");
    let wave = " 👋🏽".as_bytes();
    assert_eq!(bytes(&["--decode", "130732,233,92949,121"], ""), wave);
    let first = bytes(&["--decode", "130732"], "");
    assert!(wave.starts_with(&first) && str::from_utf8(&first).is_err());
}

/// Input that is not as it should be.
#[test]
fn bad_input_is_refused() {
    refused(&["--decode", "1,x2"], "", 2, &["the argument", "x2"]);
    refused(&["--decode", "-1"], "", 2, &[]);
    refused(&["--decode"], "1 +2", 2, &["standard input", "+2"]);
    refused(&["--decode"], "163840", 2, &["163840", "outside the vocabulary"]);
    refused(&["--decode"], "4294967296", 2, &["4294967296"]);
    refused(&["--decode"], "9".repeat(1 << 20), 2, &["not a token id"]);
    refused(&[], b"abc\xFFd", 2, &["standard input", "byte 3"]);
    refused(&[], b"abc\xE4\xBD", 2, &["byte 3"]);
    refused(&["--file", "/nowhere/text"], "", 2, &["/nowhere/text"]);
    refused(&["--file", "/nowhere/text", "text"], "", 2, &["--file"]);
    refused(&["--special", "--plain"], "", 2, &["--plain"]);
    refused(&["--decode", "--json"], "", 2, &["--json"]);
    refused(&["--unknown"], "", 2, &["--unknown"]);
}

/// A tokenizer that cannot be loaded, naming the file and the line: exit 1 if it is missing, 2 if it is malformed.
#[test]
fn bad_tokenizers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let load = |code: i32, words: &[&str]| {
        let output = k3_host(["tokenize", "--tok", folder.path().to_str().unwrap(), "text"]);
        let (stdout, stderr) = expect_exit(&output, code);
        assert_eq!(stdout, "");
        for word in words {
            assert!(stderr.contains(word), "{stderr:?} should name {word:?}");
        }
    };
    load(1, &["tiktoken.model", "released with the model"]);
    fs::write(folder.path().join("tiktoken.model"), "IQ== 0\nIg== 1\nIw== 3\n").unwrap();
    load(1, &["tokenizer_config.json", "released with the model"]);
    fs::write(folder.path().join("tokenizer_config.json"), released_files::CONFIG).unwrap();
    load(2, &[folder.path().to_str().unwrap(), "tiktoken.model, line 3", "rank 3 where 2 belongs"]);
    fs::write(folder.path().join("tiktoken.model"), &*released_files::MODEL).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), "{}").unwrap();
    load(2, &["tokenizer_config.json: missing field `added_tokens_decoder`"]);
}

/// A file of any length is not read whole before it is looked at.
#[test]
fn oversized_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("tiktoken.model")).unwrap();
    file.set_len((256 << 20) + 1).unwrap();
    let output = k3_host(["tokenize", "--tok", folder.path().to_str().unwrap(), "text"]);
    assert!(expect_exit(&output, 2).1.contains("longer than 268435456 bytes"));
}

/// Texts of several parts are encoded as the library encodes them whole. Catches parts that are not those of the cuts,
/// characters split between reads, and offsets that begin anew.
#[test]
fn long_texts_are_encoded_in_parts() {
    let tokenizer = Tokenizer::new(&released_files::MODEL, released_files::CONFIG).unwrap();
    for word in ["capital ", "世界 👍 ", "👍👋"] {
        let text = word.repeat(900_001 / word.chars().count() + 1);
        let ids = tokenizer.encode(&text, Mode::Special);
        assert!(printed(&[], &text) == format!("{}\n", joined(&ids)), "{word:?}");
        assert_eq!(printed(&["--count"], &text), format!("{}\n", ids.len()));
        assert!(tokenize(&["--decode"], joined(&ids)).stdout == text.as_bytes(), "{word:?}");
        let last = format!("\"end\":{},", text.len());
        assert!(printed(&["--json"], &text).rsplit_once('{').unwrap().1.contains(&last));
        let broken = [text.as_bytes(), b"\xFF"].concat();
        refused(&[], broken, 2, &[&format!("byte {}", text.len())]);
    }
}

/// A reader that stops early is no error.
#[test]
fn a_closed_pipe_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_k3-host"))
        .args([Path::new("tokenize"), Path::new("--tok"), FOLDER.path()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.stdin.take().unwrap().write_all("text ".repeat(10_000).as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
