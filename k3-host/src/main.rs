//! The `k3-host` program.

use std::process::ExitCode;

use clap::Parser;
use k3_host::args::{Cli, Command};
use k3_host::commands;

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Run(args) => commands::run::run(&args),
        Command::Chat(args) => commands::chat::run(&args),
        Command::Demo(args) => commands::demo::run(&args),
        Command::Plan(args) => commands::plan::run(&args),
        Command::Bench(args) => commands::bench::run(&args),
        Command::Pack(args) => commands::pack::run(&args),
        Command::Synth(args) => commands::synth::run(&args),
        Command::Tokenize(args) => commands::tokenize::run(&args),
        Command::Trace(args) => commands::trace::run(&args),
        Command::Functions => {
            commands::functions::run();
            Ok(())
        }
        #[cfg(feature = "sandbox")]
        Command::Wasm(args) => commands::wasm::run(&args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
