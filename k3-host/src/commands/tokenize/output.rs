//! What `tokenize` prints for a text.

use std::io::{self, Write};

use k3_core::tokenizer::Tokenizer;

/// The form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The ids, separated by commas.
    Ids,
    /// A JSON list of tokens.
    Json,
    /// The number of ids.
    Count,
}

/// Prints the ids of one text, as they come.
pub struct Printer<'a> {
    form: Form,
    tokenizer: &'a Tokenizer,
    /// How many ids have come.
    count: u64,
    /// Where the next token starts in the text, in bytes.
    offset: u64,
}

impl<'a> Printer<'a> {
    pub fn new(form: Form, tokenizer: &'a Tokenizer) -> Self {
        Printer { form, tokenizer, count: 0, offset: 0 }
    }

    /// Prints more ids.
    pub fn print(&mut self, ids: &[u32], out: &mut impl Write) -> io::Result<()> {
        for &id in ids {
            match self.form {
                Form::Ids => write!(out, "{}{id}", if self.count == 0 { "" } else { "," })?,
                Form::Json => self.print_token(id, out)?,
                Form::Count => {}
            }
            self.count += 1;
        }
        Ok(())
    }

    fn print_token(&mut self, id: u32, out: &mut impl Write) -> io::Result<()> {
        let bytes = self.tokenizer.token(id).map_err(io::Error::other)?;
        let (start, end) = (self.offset, self.offset + bytes.len() as u64);
        let before = if self.count == 0 { "[" } else { "," };
        write!(out, r#"{before}{{"id":{id},"start":{start},"end":{end},"bytes":""#)?;
        for byte in bytes {
            write!(out, "{byte:02x}")?;
        }
        self.offset = end;
        write!(out, r#""}}"#)
    }

    /// Prints what ends the results of the text.
    pub fn finish(self, out: &mut impl Write) -> io::Result<()> {
        match self.form {
            Form::Ids => writeln!(out),
            Form::Json => writeln!(out, "{}", if self.count == 0 { "[]" } else { "]" }),
            Form::Count => writeln!(out, "{}", self.count),
        }
    }
}
