//! `tokenize`: text to ids, and back.

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use anyhow::Context;
use k3_core::tokenizer::{Form, Mode, Printer, Tokenizer};

use crate::failure::{Exit, Failure, Outcome};
use crate::tokenizer;

mod input;

use input::{IdReader, PartReader, Source};

/// Arguments of `tokenize`.
#[derive(Debug, clap::Args)]
pub struct TokenizeArgs {
    /// The folder with tiktoken.model and tokenizer_config.json
    #[arg(long = "tok", value_name = "DIR")]
    pub folder: PathBuf,
    /// The text, or with --decode the ids, separated by commas or spaces [default: standard input]
    #[arg(value_name = "TEXT")]
    pub text: Option<String>,
    /// Take the text from this file, every byte of it
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    pub file: Option<PathBuf>,
    /// Each line of the input is a text, as a JSON string; one line of results for each
    #[arg(long)]
    pub jsonl: bool,
    /// Print a JSON list of the tokens: id, where its bytes start and end in the text, the bytes as hex digits
    #[arg(long)]
    pub json: bool,
    /// Print the number of ids only
    #[arg(long, conflicts_with = "json")]
    pub count: bool,
    /// Ids in, their bytes out: exactly the text that was encoded
    #[arg(long, conflicts_with_all = ["jsonl", "json", "count", "special", "plain"])]
    pub decode: bool,
    /// The spelling of a special token is the special token; this is the default
    #[arg(long, conflicts_with = "plain")]
    pub special: bool,
    /// The spelling of a special token is ordinary text, as in what a user writes
    #[arg(long)]
    pub plain: bool,
}

/// Runs the command. Input is read and results are written piece by piece: its size does not matter.
///
/// # Errors
/// [`Exit::Failed`] if the tokenizer cannot be loaded; [`Exit::Refused`] if the input cannot be read, is not UTF-8 (the
/// message says where) or not of the form that the flags say; [`Exit::NotWritten`] if the results cannot be written.
pub fn run(args: &TokenizeArgs) -> Outcome {
    let tokenizer = tokenizer::load(&args.folder)?;
    let source = Source::open(args.text.as_deref(), args.file.as_deref()).map_err(refused)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let result = match (args.decode, args.jsonl) {
        (true, _) => decode(&tokenizer, source, &mut out),
        (false, true) => encode_lines(args, &tokenizer, source, &mut out),
        (false, false) => encode(args, &tokenizer, source, &mut out),
    };
    match result.and_then(|()| out.flush().map_err(not_written)) {
        // Whoever reads the results has read enough of them.
        Err(failure) if is_broken_pipe(&failure.error) => Ok(()),
        result => result,
    }
}

/// Encodes the whole input as one text.
fn encode(args: &TokenizeArgs, tokenizer: &Tokenizer, source: Source<'_>, out: &mut impl Write) -> Outcome {
    let mut printer = Printer::new(args.form(), tokenizer);
    let mut parts = PartReader::new(source);
    let (mut ids, mut printed) = (Vec::new(), String::new());
    while let Some(part) = parts.next_part().map_err(refused)? {
        ids.clear();
        tokenizer.encode_into(&part, args.mode(), &mut ids);
        printer.print(&ids, &mut printed)?;
        out.write_all(printed.as_bytes()).map_err(not_written)?;
        printed.clear();
    }
    printer.finish(&mut printed);
    out.write_all(printed.as_bytes()).map_err(not_written)
}

/// Encodes each line of the input, a JSON string, as a text.
fn encode_lines(args: &TokenizeArgs, tokenizer: &Tokenizer, source: Source<'_>, out: &mut impl Write) -> Outcome {
    let name = source.name.clone();
    let mut printed = String::new();
    for (index, line) in source.reader.split(b'\n').enumerate() {
        let place = || format!("{name}, line {}", index + 1);
        let line = line.with_context(place).map_err(refused)?;
        let text: String =
            serde_json::from_slice(&line).context("not a JSON string").with_context(place).map_err(refused)?;
        let mut printer = Printer::new(args.form(), tokenizer);
        printer.print(&tokenizer.encode(&text, args.mode()), &mut printed)?;
        printer.finish(&mut printed);
        out.write_all(printed.as_bytes()).map_err(not_written)?;
        printed.clear();
    }
    Ok(())
}

/// Writes the bytes of the ids in the input.
fn decode(tokenizer: &Tokenizer, source: Source<'_>, out: &mut impl Write) -> Outcome {
    let name = source.name.clone();
    let mut ids = IdReader::new(source);
    while let Some(id) = ids.next_id().map_err(refused)? {
        let bytes = tokenizer.token(id).with_context(|| name.clone()).map_err(refused)?;
        out.write_all(bytes).map_err(not_written)?;
    }
    Ok(())
}

impl TokenizeArgs {
    fn mode(&self) -> Mode {
        if self.plain { Mode::Plain } else { Mode::Special }
    }

    fn form(&self) -> Form {
        match (self.json, self.count) {
            (true, _) => Form::Json,
            (_, true) => Form::Count,
            _ => Form::Ids,
        }
    }
}

fn refused(error: anyhow::Error) -> Failure {
    Failure { exit: Exit::Refused, error }
}

fn not_written(error: io::Error) -> Failure {
    Failure::not_written(anyhow::Error::new(error).context("standard output"))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
