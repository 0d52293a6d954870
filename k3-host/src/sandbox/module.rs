//! Where the module comes from: a file that is named, the program itself, or a file beside the program.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::failure::{Failure, Outcome};

include!(concat!(env!("OUT_DIR"), "/module.rs"));

/// The name of the module beside the program.
const FILE: &str = "k3.wasm";

/// The bytes of the module: those of `file` if it is given.
///
/// # Errors
/// If it cannot be read, or if there is none.
pub fn find(file: Option<&Path>) -> Outcome<Cow<'static, [u8]>> {
    if let Some(file) = file {
        return Ok(Cow::Owned(read(file)?));
    }
    if let Some(bytes) = BUNDLED {
        return Ok(Cow::Borrowed(bytes));
    }
    let places = places();
    let Some(file) = places.iter().find(|file| file.is_file()) else {
        let places: Vec<String> = places.iter().map(|file| file.display().to_string()).collect();
        return Err(Failure::refused(format!(
            "there is no {FILE} ({}): build it with scripts/build-wasm, or name one with --module",
            places.join(", ")
        )));
    };
    Ok(Cow::Owned(read(file)?))
}

fn read(file: &Path) -> Outcome<Vec<u8>> {
    Ok(fs::read(file).with_context(|| format!("cannot read {}", file.display()))?)
}

/// Beside the program, and one folder up, where `scripts/build-wasm` puts it.
fn places() -> Vec<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    program.ancestors().skip(1).take(2).map(|folder| folder.join(FILE)).collect()
}
