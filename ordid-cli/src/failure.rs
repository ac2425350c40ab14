//! How a command ends, and the exit codes.

use std::{
    borrow::Cow,
    fmt,
    io::{self, Write as _},
    process::ExitCode,
};

use sqlx::postgres::PgDatabaseError;

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

    /// Says more behind the message.
    pub(crate) fn and(self, more: impl fmt::Display) -> Self {
        match self {
            Self::WrongUse(message) => Self::WrongUse(format!("{message}; {more}")),
            Self::CouldNot(message) => Self::CouldNot(format!("{message}; {more}")),
            Self::NoReader => Self::NoReader,
        }
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
            let line = without_password(&line);
            // If stderr is closed, there is nobody to tell.
            let _ = writeln!(io::stderr(), "ordid: {line}");
        }
    }
}

/// Returns a text of lines without the users and passwords of URLs: `postgres://***@host/db`. An argument may have come to
/// the wrong place, and a message repeats it.
pub(crate) fn without_password(text: &str) -> Cow<'_, str> {
    let has_some = |line: &str| line.contains("://") && line.contains('@');
    let has_parameter = |line: &str| line.contains("://") && line.contains("password=");
    if !text
        .lines()
        .any(|line| has_some(line) || has_parameter(line))
    {
        return Cow::Borrowed(text);
    }
    let lines = text.split_inclusive('\n').map(|line| {
        let Some((before, url)) = line.split_once("://") else {
            return line.to_owned();
        };
        // A password may have any character, so that only the last @ is surely behind it.
        let url = match url.rsplit_once('@') {
            Some((_, place)) => format!("***@{place}"),
            None => url.to_owned(),
        };
        let mut parts = url.split("password=");
        let mut shown = format!("{before}://{}", parts.next().unwrap_or_default());
        for part in parts {
            let end = part.find(|c: char| c == '&' || c == '\'' || c == '"' || c.is_whitespace());
            shown = format!("{shown}password=***{}", &part[end.unwrap_or(part.len())..]);
        }
        shown
    });
    Cow::Owned(lines.collect())
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
        Self::could_not(format_args!("the database refused: {}", shown(&error)))
    }
}

/// Returns an error as people read it. The driver ends PostgreSQL's errors with the number of a line, which is one of the server's
/// own sources and not of any SQL.
pub(crate) fn shown(error: &sqlx::Error) -> String {
    let text = error.to_string();
    let line = error
        .as_database_error()
        .and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        .and_then(PgDatabaseError::line);
    match line {
        Some(line) => text
            .trim_end_matches(&format!(" at line {line}"))
            .to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_no_password() {
        for (text, shown) in [
            ("no URL: me@host", "no URL: me@host"),
            ("see https://docs.rs/ordid", "see https://docs.rs/ordid"),
            (
                "invalid value 'postgres://me:secret@host/db' for '<ENGINE>'\nnext",
                "invalid value 'postgres://***@host/db' for '<ENGINE>'\nnext",
            ),
            ("mysql://me:se/c?r#e@t x@host", "mysql://***@host"),
            ("a://u:p@h and b://u:secret@i", "a://***@i"),
            (
                "postgres://host/db?user=me&password=secret&a=b",
                "postgres://host/db?user=me&password=***&a=b",
            ),
            (
                "'postgres://h/db?password=secret' x",
                "'postgres://h/db?password=***' x",
            ),
        ] {
            assert_eq!(without_password(text), shown);
        }
    }
}
