//! JSON as Python's `json.dumps(…, ensure_ascii=False)` prints it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

use super::Json;

/// The two forms in which JSON stands in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Tool declarations and schemas: no spaces, keys sorted by code point at every level.
    CompactSorted,
    /// Arguments: a space after `,` and `:`, keys in the order given.
    Spaced,
}

impl Json {
    /// The value as text.
    #[must_use]
    pub fn to_text(&self, style: Style) -> String {
        let mut out = String::new();
        write_value(self, style, &mut out);
        out
    }
}

/// A list of values as the text of one array.
pub fn array_text(items: &[Json], style: Style) -> String {
    let mut out = String::new();
    write_array(items, style, &mut out);
    out
}

fn write_value(value: &Json, style: Style, out: &mut String) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Integer(digits) => out.push_str(digits),
        Json::Float(number) => write_float(*number, out),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => write_array(items, style, out),
        Json::Object(entries) => write_object(entries, style, out),
    }
}

fn write_array(items: &[Json], style: Style, out: &mut String) {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            write_comma(style, out);
        }
        write_value(item, style, out);
    }
    out.push(']');
}

fn write_object(entries: &[(String, Json)], style: Style, out: &mut String) {
    let mut entries: Vec<_> = entries.iter().collect();
    if style == Style::CompactSorted {
        // The order of UTF-8 bytes is the order of code points, which is Python's.
        entries.sort_by(|(left, _), (right, _)| left.cmp(right));
    }
    out.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            write_comma(style, out);
        }
        write_string(key, out);
        out.push_str(if style == Style::Spaced { ": " } else { ":" });
        write_value(value, style, out);
    }
    out.push('}');
}

fn write_comma(style: Style, out: &mut String) {
    out.push_str(if style == Style::Spaced { ", " } else { "," });
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A double as Python's `repr` prints it: the shortest digits that read back, and an exponent below 1e-4 and from 1e16.
fn write_float(number: f64, out: &mut String) {
    if !number.is_finite() {
        out.push_str(match number {
            f64::INFINITY => "Infinity",
            f64::NEG_INFINITY => "-Infinity",
            _ => "NaN",
        });
        return;
    }
    // Rust prints the same shortest digits, but never chooses an exponent by itself.
    if number != 0.0 && !(1e-4..1e16).contains(&number.abs()) {
        let scientific = format!("{number:e}");
        let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |size| ('-', size));
        // Writing to a string cannot fail.
        let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
    } else {
        let _ = write!(out, "{number:?}");
    }
}
