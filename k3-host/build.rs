//! Puts the WASI command into the program if the environment variable `K3_WASM` names its file.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-env-changed=K3_WASM");
    println!("cargo::rerun-if-changed=build.rs");
    let module = std::env::var_os("K3_WASM").map(PathBuf::from);
    let value = module.as_deref().map_or_else(|| "None".to_owned(), include);
    let out = std::env::var_os("OUT_DIR").expect("Cargo sets OUT_DIR");
    let text = format!("/// The module that is part of the program.\nstatic BUNDLED: Option<&[u8]> = {value};\n");
    std::fs::write(Path::new(&out).join("module.rs"), text).expect("OUT_DIR can be written");
}

/// An expression for the contents of `file`.
fn include(file: &Path) -> String {
    let file = file.canonicalize().unwrap_or_else(|error| panic!("K3_WASM={}: {error}", file.display()));
    println!("cargo::rerun-if-changed={}", file.display());
    format!("Some(include_bytes!({file:?}))")
}
