//! What went wrong, as the one line that the user sees.

use std::fmt::{self, Display};

/// A message that says what failed and why.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Display) -> Self {
        Self(message.to_string())
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Servers answer in several lines at times; the promise is one.
        for (number, line) in self.0.lines().enumerate() {
            f.write_str(if number == 0 { "" } else { " " })?;
            f.write_str(line.trim())?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Puts what failed in front of why it failed.
pub(crate) trait Context<T> {
    fn context(self, what: impl Display) -> Result<T, Error>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Error> {
        self.map_err(|why| Error(format!("{what}: {why}")))
    }
}
