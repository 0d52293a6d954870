use super::*;

fn entry(role: Speaker, content: &str) -> Entry {
    Entry { role, content: content.into(), reasoning: None }
}

fn refused(file: &[u8], line: usize, reason: &str) {
    match History::read(file) {
        Err(Error::History { line: Some(at), reason: found }) => {
            assert_eq!(at, line, "{}", String::from_utf8_lossy(file));
            assert!(found.contains(reason), "{}: {found}", String::from_utf8_lossy(file));
        }
        other => panic!("{}: {other:?}", String::from_utf8_lossy(file)),
    }
}

const USER: &str = r#"{"role":"user","content":"x"}"#;
const ASSISTANT: &str = r#"{"role":"assistant","content":"y"}"#;
const SYSTEM: &str = r#"{"role":"system","content":"s"}"#;

#[test]
fn what_is_written_is_exact_and_is_read_again() {
    let control: String = (1u8..=0x1F).map(char::from).collect();
    let mut history = History::default();
    history.push(entry(Speaker::System, "a\"b\\c/")).expect("first");
    history.push(entry(Speaker::User, &control)).expect("second");
    let answer = Entry { reasoning: Some("\u{7f}\u{2028}".into()), ..entry(Speaker::Assistant, "é你😀") };
    history.push(answer).expect("third");
    let written = concat!(
        r#"{"role":"system","content":"a\"b\\c/"}"#,
        "\n",
        r#"{"role":"user","content":"\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\t\n\u000b\u000c\r\u000e\u000f"#,
        r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"}"#,
        "\n",
        "{\"role\":\"assistant\",\"content\":\"é你😀\",\"reasoning_content\":\"\u{7f}\u{2028}\"}\n",
    );
    assert_eq!(history.write(), written);
    assert_eq!(History::read(written.as_bytes()), Ok(history.clone()));
    assert_eq!(History::read(written.trim_end().as_bytes()), Ok(history));
    assert_eq!(History::read(b""), Ok(History::default()));
    assert_eq!(History::default().write(), "");
}

#[test]
fn all_json_escapes_are_read() {
    let line = r#" { "content" : "\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00" , "role" : "user" } "#;
    let history = History::read(line.as_bytes()).expect("valid");
    assert_eq!(history.entries()[0].content, "\"\\/\u{8}\u{c}\n\r\té😀");
}

/// Second lines, and what is said of them.
const DAMAGED: &[(&str, &str)] = &[
    ("", "blank"),
    (" \t\r", "blank"),
    ("[]", "invalid"),
    ("{}", "missing field `role`"),
    (r#"{"role":"assistant"}"#, "missing field `content`"),
    (r#"{"role":"assistant","content":"y""#, "EOF"),
    (r#"{"role":"assistant","content":"y",}"#, "trailing comma"),
    (r#"{"role":"assistant","content":"y"} x"#, "trailing characters"),
    (r#"{"role":"assistant","content":"y"}{}"#, "trailing characters"),
    (r#"{"role":"assistant","content":"y","name":"z"}"#, "unknown field `name`"),
    (r#"{"role":"assistant","content":"y","content":"y"}"#, "duplicate field `content`"),
    (r#"{"role":"assistant","content":"y","\u0063ontent":"y"}"#, "duplicate field `content`"),
    (r#"{"role":"assistant","content":null}"#, "expected a string"),
    (r#"{"role":"assistant","content":"y","reasoning_content":null}"#, "expected a string"),
    (r#"{"role":"assistant","content":["y"]}"#, "expected a string"),
    (r#"{"role":"tool","content":"y"}"#, "unknown variant `tool`"),
    (r#"{"role":1,"content":"y"}"#, "expected value"),
    (r#"{"role":"assistant","content":"\u0000"}"#, "U+0000"),
    (r#"{"role":"assistant","content":"","reasoning_content":"a\u0000"}"#, "U+0000"),
    (r#"{"role":"assistant","content":"\ud800"}"#, "hex escape"),
    (r#"{"role":"assistant","content":"\ud800\u0041"}"#, "surrogate"),
    (r#"{"role":"assistant","content":"\udc00"}"#, "surrogate"),
    (r#"{"role":"assistant","content":"\x41"}"#, "invalid escape"),
    ("{\"role\":\"assistant\",\"content\":\"\u{1}\"}", "control character"),
    ("{\"role\":\"assistant\",\"content\":\"\t\"}", "control character"),
    ("{\"role\":\"assistant\",\"content\":\"\0\"}", "control character"),
    ("{\"role\":\"assistant\",\"content\":\"y\"}\0", "trailing characters"),
];

#[test]
fn damaged_lines_are_refused_with_their_number() {
    for (line, reason) in DAMAGED {
        refused(alloc::format!("{USER}\n{line}\n").as_bytes(), 2, reason);
    }
    refused(b"\n", 1, "blank");
    refused(b"{\"role\":\"user\",\"content\":\"\xff\"}", 1, "not UTF-8 after byte 26");
    refused("\u{feff}{}".as_bytes(), 1, "expected value");
    refused(alloc::format!("{USER}\n\n").as_bytes(), 2, "blank");
}

#[test]
fn an_error_names_line_and_column_once() {
    let error = History::read(b"{\"role\":\"user\"}").expect_err("no content");
    assert_eq!(error.to_string(), "history, line 1: missing field `content` at column 15");
}

#[test]
fn roles_out_of_order_are_refused() {
    for (lines, at, reason) in [
        (&[ASSISTANT][..], 1, "follows no user message"),
        (&[SYSTEM, ASSISTANT], 2, "follows no user message"),
        (&[USER, ASSISTANT, ASSISTANT], 3, "follows no user message"),
        (&[USER, USER], 2, "a user message follows a user message"),
        (&[USER, SYSTEM], 2, "only stand first"),
        (&[SYSTEM, SYSTEM], 2, "only stand first"),
        (&[USER, ASSISTANT, SYSTEM], 3, "only stand first"),
    ] {
        refused(lines.join("\n").as_bytes(), at, reason);
    }
    let reasoning = r#"{"role":"user","content":"x","reasoning_content":""}"#;
    refused(reasoning.as_bytes(), 1, "only an assistant message");
    assert!(History::read([SYSTEM, USER, ASSISTANT, USER].join("\n").as_bytes()).is_ok());
}

#[test]
fn lines_end_at_sixteen_mebibytes() {
    let frame = r#"{"role":"user","content":""}"#.len();
    let longest = entry(Speaker::User, &"x".repeat(MAX_LINE_BYTES - frame));
    let mut history = History::default();
    history.push(longest).expect("just fits");
    let file = history.write();
    assert_eq!(History::read(file.as_bytes()), Ok(history));
    refused(file.replacen('x', "xx", 1).as_bytes(), 1, "16777217 bytes");
    // Escapes count as they are written.
    let escaped = entry(Speaker::User, &"\n".repeat(MAX_LINE_BYTES / 2));
    assert!(matches!(History::default().push(escaped), Err(Error::History { line: None, .. })));
}

#[test]
fn what_could_not_be_read_again_is_not_added() {
    let mut history = History::default();
    let nul = history.push(entry(Speaker::User, "a\0b"));
    assert_eq!(nul, Err(Error::History { line: None, reason: "a text contains U+0000".into() }));
    let thoughtful = Entry { reasoning: Some(String::new()), ..entry(Speaker::User, "a") };
    assert!(history.push(thoughtful).is_err());
    assert!(history.push(entry(Speaker::Assistant, "a")).is_err());
    assert_eq!(history, History::default());
}

#[test]
fn turns_are_counted_taken_back_and_forgotten() {
    let mut history = History::read([SYSTEM, USER].join("\n").as_bytes()).expect("valid");
    assert_eq!((history.turn(), history.system()), (1, Some("s")));
    history.push(entry(Speaker::Assistant, "y")).expect("in order");
    assert_eq!(history.turn(), 2);
    history.remove_unanswered();
    assert_eq!(history.entries().len(), 3);
    history.push(entry(Speaker::User, "z")).expect("in order");
    history.remove_unanswered();
    assert_eq!(history.write(), alloc::format!("{SYSTEM}\n{USER}\n{ASSISTANT}\n"));
    history.reset();
    assert_eq!((history.write(), history.turn()), (alloc::format!("{SYSTEM}\n"), 1));
    let without = History::read(USER.as_bytes()).expect("valid");
    assert_eq!(without.system(), None);
}

#[test]
fn messages_to_render_carry_text_and_reasoning() {
    let line = r#"{"role":"assistant","content":"y","reasoning_content":"r"}"#;
    let history = History::read([SYSTEM, USER, line].join("\n").as_bytes()).expect("valid");
    let expected = [
        Message::new(Role::System, "s"),
        Message::new(Role::User, "x"),
        Message { reasoning: "r".into(), ..Message::new(Role::Assistant, "y") },
    ];
    assert_eq!(history.messages(), expected);
}
