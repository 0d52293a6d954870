//! `wasm`: the command for WebAssembly, inside a sandbox that is part of this program.

use std::path::PathBuf;
use std::time::Duration;

use crate::failure::Outcome;
use crate::sandbox::{self, Grant, module};

/// Arguments of `wasm`.
#[derive(Debug, clap::Args)]
pub struct WasmArgs {
    /// Let the module read this folder and what is in it; may be given more than once
    #[arg(long = "dir", value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Most bytes of memory that the module gets [default: the 4 GiB that WebAssembly can address]
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<u32>,
    /// End the module after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub timeout: Option<u32>,
    /// Run this module instead of the one that came with the program
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// The command for the module and its arguments, for instance: run DIR --ids 1,2,3
    #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub args: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say; those of the module are passed on.
pub fn run(args: &WasmArgs) -> Outcome {
    let module = module::find(args.module.as_deref())?;
    let grant = Grant {
        args: args.args.clone(),
        folders: args.folders.clone(),
        max_memory: args.max_memory.map(|bytes| bytes as usize),
        timeout: args.timeout.map(|seconds| Duration::from_secs(seconds.into())),
    };
    sandbox::run(&module, &grant)
}
