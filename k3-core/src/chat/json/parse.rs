//! A recursive-descent reader of the dialect described at [`Json::parse`].

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Json, SyntaxError, object};

/// How deep values may nest: far above any schema, far below the stack of a WebAssembly guest.
const MAX_DEPTH: usize = 512;

/// A position in a text.
pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, SyntaxError>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Parser<'a> {
        Parser { text, at: 0, depth: 0 }
    }

    /// The whole text as one value.
    pub(super) fn document(mut self) -> Parsed<Json> {
        let value = self.value()?;
        self.skip_space();
        if self.at == self.text.len() { Ok(value) } else { self.fail("the end of the text") }
    }

    fn fail<T>(&self, expected: &'static str) -> Parsed<T> {
        Err(SyntaxError { at: self.at, expected })
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Steps over `literal` if it comes next.
    fn eat(&mut self, literal: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(literal.as_bytes());
        if found {
            self.at += literal.len();
        }
        found
    }

    fn value(&mut self) -> Parsed<Json> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'{') => self.nested(Parser::object),
            Some(b'[') => self.nested(Parser::array),
            _ => self.scalar(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Parsed<Json>) -> Parsed<Json> {
        if self.depth == MAX_DEPTH {
            return self.fail("values nested at most 512 deep");
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn scalar(&mut self) -> Parsed<Json> {
        const WORDS: [(&str, Json); 6] = [
            ("null", Json::Null),
            ("true", Json::Bool(true)),
            ("false", Json::Bool(false)),
            ("NaN", Json::Float(f64::NAN)),
            ("Infinity", Json::Float(f64::INFINITY)),
            ("-Infinity", Json::Float(f64::NEG_INFINITY)),
        ];
        for (word, value) in WORDS {
            if self.eat(word) {
                return Ok(value);
            }
        }
        self.number()
    }

    fn object(&mut self) -> Parsed<Json> {
        let mut entries = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.eat("}") {
            return Ok(Json::Object(entries));
        }
        loop {
            self.skip_space();
            if self.peek() != Some(b'"') {
                return self.fail("a key in double quotes");
            }
            let key = self.string()?;
            self.skip_space();
            if !self.eat(":") {
                return self.fail("`:`");
            }
            entries.push((key, self.value()?));
            self.skip_space();
            if self.eat("}") {
                return Ok(object(entries));
            }
            if !self.eat(",") {
                return self.fail("`,` or `}`");
            }
        }
    }

    fn array(&mut self) -> Parsed<Json> {
        let mut items = Vec::new();
        self.at += 1;
        self.skip_space();
        if self.eat("]") {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.skip_space();
            if self.eat("]") {
                return Ok(Json::Array(items));
            }
            if !self.eat(",") {
                return self.fail("`,` or `]`");
            }
        }
    }

    /// Steps over a run of decimal digits and says how many there were.
    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn number(&mut self) -> Parsed<Json> {
        let start = self.at;
        self.eat("-");
        let leading_zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (leading_zero && whole > 1) {
            self.at = start;
            return self.fail("a value");
        }
        let integer_end = self.at;
        if self.eat(".") && self.digits() == 0 {
            return self.fail("a digit");
        }
        if self.eat("e") || self.eat("E") {
            let _sign = self.eat("+") || self.eat("-");
            if self.digits() == 0 {
                return self.fail("a digit");
            }
        }
        let text = &self.text[start..self.at];
        if self.at > integer_end {
            return text.parse().map(Json::Float).or_else(|_| self.fail("a number"));
        }
        Ok(Json::Integer(if text == "-0" { "0" } else { text }.to_string()))
    }

    fn string(&mut self) -> Parsed<String> {
        let mut out = String::new();
        self.at += 1;
        loop {
            let rest = &self.text[self.at..];
            let stop = rest.bytes().position(|byte| byte == b'"' || byte == b'\\' || byte < 0x20);
            let Some(length) = stop else {
                return self.fail("a closing quote");
            };
            out.push_str(&rest[..length]);
            self.at += length;
            if self.eat("\"") {
                return Ok(out);
            }
            if !self.eat("\\") {
                return self.fail("no raw control character in a string");
            }
            out.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        const PLAIN: [(&str, char); 8] = [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ];
        for (letter, meaning) in PLAIN {
            if self.eat(letter) {
                return Ok(meaning);
            }
        }
        if !self.eat("u") {
            return self.fail("an escape");
        }
        let first = self.four_hex_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after_first = self.at;
        if self.eat("\\u") {
            let second = self.four_hex_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code_point = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code_point).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = after_first;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn four_hex_digits(&mut self) -> Parsed<u32> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).unwrap_or_default();
        if digits.len() != 4 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return self.fail("four hexadecimal digits");
        }
        let digit = |byte: &u8| char::from(*byte).to_digit(16).unwrap_or_default();
        let value = digits.iter().fold(0, |value, byte| value << 4 | digit(byte));
        self.at += 4;
        Ok(value)
    }
}
