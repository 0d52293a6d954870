//! What `tokenize` reads: texts in parts, ids one by one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use k3_core::tokenizer::PART_CHARS;

/// Where the input comes from.
pub struct Source<'a> {
    /// How messages call it.
    pub name: String,
    /// Its bytes.
    pub reader: Box<dyn BufRead + 'a>,
}

impl<'a> Source<'a> {
    /// The argument, else the file, else standard input.
    pub fn open(text: Option<&'a str>, file: Option<&Path>) -> anyhow::Result<Self> {
        Ok(match (text, file) {
            (Some(text), _) => Source { name: "the argument".to_string(), reader: Box::new(text.as_bytes()) },
            (None, Some(path)) => {
                let name = path.display().to_string();
                let file = File::open(path).with_context(|| name.clone())?;
                Source { name, reader: Box::new(BufReader::new(file)) }
            }
            (None, None) => Source { name: "standard input".to_string(), reader: Box::new(io::stdin().lock()) },
        })
    }
}

/// Reads a text in the parts at whose ends the tokenizer cuts it anyway.
pub struct PartReader<'a> {
    source: Source<'a>,
    /// What is read and not yet given out.
    buffer: Vec<u8>,
    /// How many bytes have been given out.
    given: u64,
}

/// So many bytes hold the characters of a part and, perhaps, the beginning of one more.
const PART_BYTES: usize = 4 * PART_CHARS + 3;

impl<'a> PartReader<'a> {
    pub fn new(source: Source<'a>) -> Self {
        PartReader { source, buffer: Vec::new(), given: 0 }
    }

    /// The next part: of [`PART_CHARS`] characters unless it is the last.
    pub fn next_part(&mut self) -> anyhow::Result<Option<String>> {
        let room = PART_BYTES - self.buffer.len();
        let reader = &mut self.source.reader;
        reader.take(room as u64).read_to_end(&mut self.buffer).with_context(|| self.source.name.clone())?;
        let valid = match str::from_utf8(&self.buffer) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&self.buffer[..error.valid_up_to()])?,
        };
        let length = match valid.char_indices().nth(PART_CHARS) {
            Some((end, _)) => end,
            None if valid.len() == self.buffer.len() || valid.chars().count() == PART_CHARS => valid.len(),
            None => bail!("{}: not UTF-8 at byte {}", self.source.name, self.given + valid.len() as u64),
        };
        let rest = self.buffer.split_off(length);
        let part = std::mem::replace(&mut self.buffer, rest);
        self.given += length as u64;
        Ok(if part.is_empty() { None } else { Some(String::from_utf8(part)?) })
    }
}

/// Reads ids in decimal, separated by commas and whitespace.
pub struct IdReader<'a> {
    source: Source<'a>,
}

/// The digits of the largest id.
const MOST_DIGITS: usize = 10;

impl<'a> IdReader<'a> {
    pub fn new(source: Source<'a>) -> Self {
        IdReader { source }
    }

    /// The next id.
    pub fn next_id(&mut self) -> anyhow::Result<Option<u32>> {
        let mut word = String::new();
        while let Some(byte) = self.next_byte()? {
            let separates = byte == b',' || byte.is_ascii_whitespace();
            if !separates {
                word.push(char::from(byte));
            }
            if separates && !word.is_empty() || word.len() > MOST_DIGITS {
                break;
            }
        }
        if word.is_empty() {
            return Ok(None);
        }
        let plain = word.bytes().all(|byte| byte.is_ascii_digit());
        let id = word.parse().ok().filter(|_| plain);
        id.map(Some).ok_or_else(|| anyhow!("{}: {word:?} is not a token id", self.source.name))
    }

    fn next_byte(&mut self) -> anyhow::Result<Option<u8>> {
        let byte = self.source.reader.fill_buf().with_context(|| self.source.name.clone())?.first().copied();
        self.source.reader.consume(usize::from(byte.is_some()));
        Ok(byte)
    }
}
