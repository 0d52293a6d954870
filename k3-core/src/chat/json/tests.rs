//! Expected texts are what CPython 3.11 prints for `json.dumps(json.loads(text), ensure_ascii=False)`.

use super::*;

fn spaced(text: &str) -> String {
    Json::parse(text).expect(text).to_text(Style::Spaced)
}

#[test]
fn numbers_print_as_python_prints_them() {
    let cases = PYTHON_NUMBERS;
    for (text, printed) in cases {
        assert_eq!(spaced(text), *printed, "{text}");
    }
}

#[test]
fn strings_print_as_python_prints_them() {
    for (text, printed) in PYTHON_STRINGS {
        assert_eq!(spaced(text), *printed, "{text}");
    }
}

#[test]
fn spacing_order_and_repeated_keys() {
    let text = r#" { "b" : [ 1 , {"z":[], "a":{}} ] , "a":true,"b":[null,"two"] , "é":1,"Z":2 } "#;
    assert_eq!(spaced(text), r#"{"b": [null, "two"], "a": true, "é": 1, "Z": 2}"#);
    let sorted = Json::parse(text).expect("valid").to_text(Style::CompactSorted);
    assert_eq!(sorted, r#"{"Z":2,"a":true,"b":[null,"two"],"é":1}"#);
    let nested = Json::parse(r#"[{"b":{"d":1,"c":2},"a":0}]"#).expect("valid").to_text(Style::CompactSorted);
    assert_eq!(nested, r#"[{"a":0,"b":{"c":2,"d":1}}]"#);
}

#[test]
fn a_lone_surrogate_becomes_the_replacement_character() {
    for (text, read) in [
        (r#""\ud800""#, "\u{fffd}"),
        (r#""\udc00x""#, "\u{fffd}x"),
        (r#""\ud800\u0041""#, "\u{fffd}A"),
        (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
    ] {
        assert_eq!(Json::parse(text), Ok(Json::String(read.into())), "{text}");
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for text in [
        "",
        " ",
        "{",
        "[",
        "[1",
        "[1,",
        "[1,]",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "01",
        "-",
        "+1",
        "1.",
        ".5",
        "1e",
        "1e+",
        "--1",
        "nul",
        "truee",
        "1 2",
        "'a'",
        "\"",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\ud800\\u12\"",
        "\"a\nb\"",
        "\"\u{1}\"",
        "\u{feff}1",
        "\u{a0}1",
        "-NaN",
        "[1;2]",
        "\"\\u+123\"",
    ] {
        assert!(Json::parse(text).is_err(), "{text:?} was read");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(Json::parse(&nested(512)).is_ok());
    assert_eq!(Json::parse(&nested(513)), Err(SyntaxError { at: 512, expected: "values nested at most 512 deep" }));
    assert!(Json::parse(&"[{\"a\":".repeat(1_000_000)).is_err());
}

#[test]
fn reading_through_serde_keeps_every_digit() {
    let text = r#"{"n":123456789012345678901234567890,"f":1.0,"b":{"y":1,"x":2}}"#;
    let value: Json = serde_json::from_str(text).expect("valid");
    assert_eq!(
        value.to_text(Style::Spaced),
        r#"{"n": 123456789012345678901234567890, "f": 1.0, "b": {"y": 1, "x": 2}}"#
    );
    assert!(serde_json::from_str::<Json>("[1,]").is_err());
}

const PYTHON_NUMBERS: &[(&str, &str)] = &[
    ("0", "0"),
    ("-0", "0"),
    ("-0.0", "-0.0"),
    ("0.0", "0.0"),
    ("1", "1"),
    ("-17", "-17"),
    ("3.0", "3.0"),
    ("1.5", "1.5"),
    ("0.1", "0.1"),
    ("1e5", "100000.0"),
    ("1E5", "100000.0"),
    ("1e15", "1000000000000000.0"),
    ("1e16", "1e+16"),
    ("-1e16", "-1e+16"),
    ("9999999999999998.0", "9999999999999998.0"),
    ("123456789012345680.0", "1.2345678901234568e+17"),
    ("1e22", "1e+22"),
    ("1e23", "1e+23"),
    ("0.0001", "0.0001"),
    ("0.00001", "1e-05"),
    ("0.000123456789", "0.000123456789"),
    ("1.5e-7", "1.5e-07"),
    ("-2.5E-10", "-2.5e-10"),
    ("5e-324", "5e-324"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("1e400", "Infinity"),
    ("-1e400", "-Infinity"),
    ("NaN", "NaN"),
    ("Infinity", "Infinity"),
    ("-Infinity", "-Infinity"),
    ("123456789012345678901234567890", "123456789012345678901234567890"),
    ("-9223372036854775809", "-9223372036854775809"),
    ("18446744073709551616", "18446744073709551616"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("1e-4", "0.0001"),
    ("9.999e-5", "9.999e-05"),
    ("100e-2", "1.0"),
    ("1.0000000000000002", "1.0000000000000002"),
    ("4503599627370497.5", "4503599627370498.0"),
];

const PYTHON_STRINGS: &[(&str, &str)] = &[
    ("\"a\\\"b\\\\c\\/d\"", "\"a\\\"b\\\\c/d\""),
    ("\"\\b\\f\\n\\r\\t\"", "\"\\b\\f\\n\\r\\t\""),
    ("\"\\u0000\\u001f\\u007f\"", "\"\\u0000\\u001f\u{7f}\""),
    ("\"\\u00e9\\u4f60\\ud83d\\ude00\"", "\"é你😀\""),
    ("\"é你😀\u{2028}\"", "\"é你😀\u{2028}\""),
    ("\"\\u2028<\\u0026>\"", "\"\u{2028}<&>\""),
];
