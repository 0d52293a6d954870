//! How the command fails, with the exit codes of `k3-host`. Never by a trap where it can be helped: a trap tells the host
//! only where the module was.

use std::fmt::Display;
use std::process::ExitCode;

use k3_core::Error;

/// Why the command ends without success.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

/// Exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Loading or computing failed.
    Failed = 1,
    /// The arguments, the config or the checkpoint cannot be trusted.
    Refused = 2,
    /// The results could not be written.
    NotWritten = 3,
    /// The program is at fault.
    Panicked = 101,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A failure with a message.
    pub fn new(exit: Exit, message: impl Display) -> Self {
        Self { exit, message: message.to_string() }
    }

    /// Prints the message and gives the exit code.
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {}", self.message);
        ExitCode::from(self.exit as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::new(if error.is_refusal() { Exit::Refused } else { Exit::Failed }, error)
    }
}

/// Makes a panic print its message and end the program: WebAssembly cannot unwind, and would trap.
pub fn end_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("error: this should not have happened: {panic}");
        std::process::exit(Exit::Panicked as i32);
    }));
}
