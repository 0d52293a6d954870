//! The WASI command `k3.wasm`: what `k3-host` does, inside a sandbox, on one thread, with files read as they are used.

mod args;
mod failure;
mod files;
mod memory;
mod model;
mod run;
mod tokenize;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};

fn main() -> ExitCode {
    failure::end_on_panic();
    let outcome = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Tokenize(args) => tokenize::run(&args),
        Command::Functions => {
            for (name, fingerprint) in k3_core::kernels::fingerprint::elementary_functions() {
                println!("{name} {fingerprint:016x}");
            }
            Ok(())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
