//! How a command fails, and the exit code that says so.

use std::process::ExitCode;

use k3_core::Error;

/// Why the program ends without success; the number is its exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Loading or computing failed, or a result is not what it should be.
    Failed = 1,
    /// The arguments, the config or the checkpoint cannot be trusted; no work has begun.
    Refused = 2,
    /// The results could not be written.
    NotWritten = 3,
    /// A routed expert could not be read.
    Expert = 4,
    /// Somebody wanted it to end; what was done until then is written.
    Interrupted = 5,
}

/// A failed command.
#[derive(Debug)]
pub struct Failure {
    /// The kind of failure.
    pub exit: Exit,
    /// What happened, from the outside in.
    pub error: anyhow::Error,
}

/// The result of a command.
pub type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    /// A refusal with a message.
    pub fn refused(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Refused, error: anyhow::anyhow!("{message}") }
    }

    /// A failure with a message.
    pub fn failed(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Failed, error: anyhow::anyhow!("{message}") }
    }

    /// Results that could not be written.
    pub fn not_written(error: anyhow::Error) -> Self {
        Self { exit: Exit::NotWritten, error }
    }

    /// An end that somebody wanted.
    pub fn interrupted(message: impl std::fmt::Display) -> Self {
        Self { exit: Exit::Interrupted, error: anyhow::anyhow!("{message}") }
    }

    /// The same failure, said to be of `subject`.
    #[must_use]
    pub fn context(self, subject: impl std::fmt::Display) -> Self {
        Self { exit: self.exit, error: self.error.context(subject.to_string()) }
    }

    /// Prints the message and gives the exit code.
    #[must_use]
    pub fn report(&self) -> ExitCode {
        eprintln!("error: {:#}", self.error);
        ExitCode::from(self.exit as u8)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::Expert { .. } => Exit::Expert,
            error if error.is_refusal() => Exit::Refused,
            _ => Exit::Failed,
        };
        Self { exit, error: error.into() }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self { exit: Exit::Failed, error }
    }
}
