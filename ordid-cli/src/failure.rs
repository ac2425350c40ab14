//! How a command ends, and the exit codes.

use std::{
    fmt,
    io::{self, Write as _},
    process::ExitCode,
};

/// The exit code of a command that found something.
pub(crate) const FINDINGS: u8 = 1;
/// The exit code of wrong arguments or input.
pub(crate) const WRONG_USE: u8 = 2;
/// The exit code of a command that could not do its work.
pub(crate) const COULD_NOT: u8 = 3;

/// How a command ended that did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// There is nothing to complain about.
    Fine,
    /// It found something that its user wants to know, and has printed it.
    Findings,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Fine => Self::SUCCESS,
            Outcome::Findings => FINDINGS.into(),
        }
    }
}

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments or the input are wrong: another try with the same ones fails, too.
    WrongUse(String),
    /// Something outside is missing or refuses: a file, a server, a right.
    CouldNot(String),
    /// Whoever reads the output has read enough: `| head`.
    NoReader,
}

impl Failure {
    /// The input is wrong.
    pub(crate) fn wrong(message: impl fmt::Display) -> Self {
        Self::WrongUse(message.to_string())
    }

    /// The work could not be done.
    pub(crate) fn could_not(message: impl fmt::Display) -> Self {
        Self::CouldNot(message.to_string())
    }

    /// Returns the exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::WrongUse(_) => WRONG_USE,
            Self::CouldNot(_) => COULD_NOT,
            Self::NoReader => 0,
        }
    }

    /// Writes the message to stderr, in one line.
    pub(crate) fn tell(&self) {
        if let Self::WrongUse(message) | Self::CouldNot(message) = self {
            let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            // If stderr is closed, there is nobody to tell.
            let _ = writeln!(io::stderr(), "ordid: {line}");
        }
    }
}

/// Writing to stdout failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NoReader,
            _ => Self::could_not(format_args!("the output cannot be written: {error}")),
        }
    }
}

/// The server refused, or cannot be reached. Commands that know more say so by [`Failure::could_not`].
impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::could_not(format_args!("the database refused: {error}"))
    }
}
