//! `tokenize`: text to ids, and back. The text is held in memory whole.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use k3_core::tokenizer::{CONFIG_FILE, Form, MODEL_FILE, Mode, Printer, Tokenizer};

use crate::failure::{Exit, Failure, Outcome};

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

/// Runs the command.
pub fn run(args: &TokenizeArgs) -> Outcome {
    let (model, config) = (read(&args.folder.join(MODEL_FILE))?, read(&args.folder.join(CONFIG_FILE))?);
    let tokenizer = Tokenizer::new(&model, &config).map_err(|error| Failure::new(Exit::Failed, error))?;
    let text = input(args)?;
    if args.decode {
        write(&tokenizer.decode(&ids(&text)?)?)
    } else if args.jsonl {
        text.lines().enumerate().try_for_each(|(index, line)| {
            let refuse = |error| Failure::new(Exit::Refused, format!("line {}: not a JSON string: {error}", index + 1));
            let text: String = serde_json::from_str(line).map_err(refuse)?;
            encode(args, &tokenizer, &text)
        })
    } else {
        encode(args, &tokenizer, &text)
    }
}

/// This many ids are printed at a time: as JSON, a token takes ten times the room of its text.
const IDS_AT_ONCE: usize = 1 << 16;

/// Encodes one text.
fn encode(args: &TokenizeArgs, tokenizer: &Tokenizer, text: &str) -> Outcome {
    let mut printer = Printer::new(args.form(), tokenizer);
    let mut printed = String::new();
    for ids in tokenizer.encode(text, args.mode()).chunks(IDS_AT_ONCE) {
        printer.print(ids, &mut printed)?;
        write(printed.as_bytes())?;
        printed.clear();
    }
    printer.finish(&mut printed);
    write(printed.as_bytes())
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

fn write(bytes: &[u8]) -> Outcome {
    let written = io::stdout().write_all(bytes);
    written.map_err(|error| Failure::new(Exit::NotWritten, format!("standard output: {error}")))
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    std::fs::read(path).map_err(|error| Failure::new(Exit::Failed, format!("cannot read {}: {error}", path.display())))
}

/// The text to work on.
fn input(args: &TokenizeArgs) -> Outcome<String> {
    if let Some(text) = &args.text {
        return Ok(text.clone());
    }
    let mut bytes = Vec::new();
    let (name, result) = match &args.file {
        Some(path) => (path.display().to_string(), std::fs::read(path).map(|read| bytes = read)),
        None => ("standard input".to_owned(), io::stdin().read_to_end(&mut bytes).map(|_| ())),
    };
    result.map_err(|error| Failure::new(Exit::Refused, format!("cannot read {name}: {error}")))?;
    String::from_utf8(bytes).map_err(|error| Failure::new(Exit::Refused, format!("{name}: {error}")))
}

/// The ids that `text` lists.
fn ids(text: &str) -> Outcome<Vec<u32>> {
    let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace()).filter(|word| !word.is_empty());
    let parsed = words.map(|word| word.parse().map_err(|_| Failure::new(Exit::Refused, format!("{word}: not an id"))));
    parsed.collect()
}
