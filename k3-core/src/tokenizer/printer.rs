//! What a command prints for the ids of a text.

use alloc::string::String;
use core::fmt::Write;

use super::Tokenizer;
use crate::Result;

/// The form of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The ids, separated by commas.
    Ids,
    /// A JSON list of tokens: `id`, `start` and `end` in bytes of the text, and its `bytes` as hex digits.
    Json,
    /// The number of ids.
    Count,
}

/// Prints the ids of one text as they come. Each call appends to a string, which the caller may write out and clear.
#[derive(Debug)]
pub struct Printer<'a> {
    form: Form,
    tokenizer: &'a Tokenizer,
    /// How many ids have come.
    count: u64,
    /// Where the next token starts in the text, in bytes.
    offset: u64,
}

impl<'a> Printer<'a> {
    /// Begins the results of a text.
    #[must_use]
    pub fn new(form: Form, tokenizer: &'a Tokenizer) -> Self {
        Printer { form, tokenizer, count: 0, offset: 0 }
    }

    /// Appends more ids.
    ///
    /// # Errors
    /// As of [`Tokenizer::token`], in the form that shows tokens: an id is outside the vocabulary.
    pub fn print(&mut self, ids: &[u32], out: &mut String) -> Result<()> {
        for &id in ids {
            match self.form {
                Form::Ids => append(out, format_args!("{}{id}", if self.count == 0 { "" } else { "," })),
                Form::Json => self.print_token(id, out)?,
                Form::Count => {}
            }
            self.count += 1;
        }
        Ok(())
    }

    fn print_token(&mut self, id: u32, out: &mut String) -> Result<()> {
        let bytes = self.tokenizer.token(id)?;
        let (start, end) = (self.offset, self.offset + bytes.len() as u64);
        let before = if self.count == 0 { "[" } else { "," };
        append(out, format_args!(r#"{before}{{"id":{id},"start":{start},"end":{end},"bytes":""#));
        for byte in bytes {
            append(out, format_args!("{byte:02x}"));
        }
        out.push_str(r#""}"#);
        self.offset = end;
        Ok(())
    }

    /// Appends what ends the results of the text.
    pub fn finish(self, out: &mut String) {
        match self.form {
            Form::Ids => out.push('\n'),
            Form::Json => out.push_str(if self.count == 0 { "[]\n" } else { "]\n" }),
            Form::Count => append(out, format_args!("{}\n", self.count)),
        }
    }
}

fn append(out: &mut String, text: core::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}
