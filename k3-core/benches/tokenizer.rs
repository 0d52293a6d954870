//! Encoding speed on one thread: `cargo bench -p k3-core --bench tokenizer -- --tok DIR FILE…`.
//!
//! Prints the time to load and, for each file, the rate in MB/s. `scripts/tokenizer_speed.py` sets the rates beside those
//! of the Python library.

use std::fs;
use std::hint::black_box;
use std::iter;
use std::path::PathBuf;
use std::time::Duration;

use cpu_time::ThreadTime;
use k3_core::tokenizer::{CONFIG_FILE, MODEL_FILE, Mode, Tokenizer};

/// The length of text encoded in one call.
const CHUNK_BYTES: usize = 100_000;

/// How often each is called; the best counts.
const CALLS: usize = 10;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (Some("--tok"), Some(folder)) = (arguments.next().as_deref(), arguments.next().map(PathBuf::from)) else {
        println!("NOT RUN: needs --tok DIR FILE…");
        return;
    };
    let model = fs::read(folder.join(MODEL_FILE)).unwrap();
    let config = fs::read(folder.join(CONFIG_FILE)).unwrap();
    let load = best(|| Tokenizer::new(&model, &config).unwrap());
    println!("load\t{:.1} ms", load.as_secs_f64() * 1e3);
    let tokenizer = Tokenizer::new(&model, &config).unwrap();
    for file in arguments {
        let text = fs::read_to_string(&file).unwrap();
        let time = chunks(&text).map(|chunk| best(|| tokenizer.encode(chunk, Mode::Plain))).sum::<Duration>();
        println!("{file}\t{:.1}", text.len() as f64 / 1e6 / time.as_secs_f64());
    }
}

/// Cuts a text into chunks of about [`CHUNK_BYTES`], so short that most calls are not interrupted by other programs.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let (chunk, behind) = rest.split_at(rest.ceil_char_boundary(CHUNK_BYTES));
        rest = behind;
        (!chunk.is_empty()).then_some(chunk)
    })
}

/// The shortest time of one call, on a processor: what other programs take does not count.
fn best<T>(mut call: impl FnMut() -> T) -> Duration {
    let time = || {
        let start = ThreadTime::now();
        black_box(call());
        start.elapsed()
    };
    iter::repeat_with(time).take(CALLS).min().unwrap()
}
