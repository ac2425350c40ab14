//! The error of this crate.

use std::fmt;

/// Why a server could not be found, started or chosen.
#[derive(Debug)]
pub struct Error {
    message: String,
    package: Option<&'static str>,
    /// Whether this machine has no means to get the server.
    is_unavailable: bool,
    source: Option<std::io::Error>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            package: None,
            is_unavailable: false,
            source: None,
        }
    }

    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            is_unavailable: true,
            ..Self::new(message)
        }
    }

    pub(crate) fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self {
            source: Some(source),
            ..Self::new(what)
        }
    }

    pub(crate) fn missing(binary: &str, package: &'static str) -> Self {
        Self {
            package: Some(package),
            ..Self::new(format!(
                "`{binary}` was not found: install the Debian package `{package}`"
            ))
        }
    }

    /// Returns whether this machine has no means to get the server, although nothing is wrong with it: it is not
    /// root's, it is no Debian, or the mirror does not answer. Tests of such a server are ignored.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        self.is_unavailable
    }

    /// Returns the Debian package to install, when the error is that a server's binary is missing;
    /// several have a space between them.
    #[must_use]
    pub fn package(&self) -> Option<&'static str> {
        self.package
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

// The cause is already part of the text, so `source` stays `None`: a reporter which walks the
// chain would print it twice.
impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_binary_names_the_package() {
        let error = Error::missing("initdb", "postgresql");
        assert_eq!(
            error.to_string(),
            "`initdb` was not found: install the Debian package `postgresql`"
        );
        assert_eq!(error.package(), Some("postgresql"));
        assert_eq!(Error::new("no").package(), None);
    }
}
