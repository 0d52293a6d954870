//! The bindings. Each call computes until it is done, so a page makes them in a worker.
//!
//! What the input is to blame for comes back as a JavaScript error. A panic does so too, but leaves the module in pieces:
//! the page must not call it again.

mod files;
mod model;
mod tokenizer;

use std::fmt::Write;

use k3_core::kernels::{Backend, fingerprint};
use wasm_bindgen::prelude::wasm_bindgen;

pub use model::{LoadedModel, ModelFiles};
pub use tokenizer::{TextMode, TextTokenizer};

/// Runs when the module is loaded. A trap says only where the module was; a thrown error says why.
#[wasm_bindgen(start)]
pub fn throw_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        wasm_bindgen::throw_str(&format!("this should not have happened: {panic}"));
    }));
}

/// The names of the kernels that [`LoadedModel::generate`] can be told to use, the fastest last.
#[wasm_bindgen]
#[must_use]
pub fn backends() -> Vec<String> {
    Backend::available().iter().map(|backend| backend.name().to_owned()).collect()
}

/// The fingerprints of the elementary functions, as the command `functions` prints them.
#[wasm_bindgen]
#[must_use]
pub fn functions() -> String {
    let mut lines = String::new();
    for (name, hash) in fingerprint::elementary_functions() {
        writeln!(lines, "{name} {hash:016x}").expect("a string takes all that is written to it");
    }
    lines
}
