//! tiberius' errors as the executor reads them.

use ordid_sql::{
    DriverError, EngineProfile, Failure,
    classify::{Classified, Report},
};
use tiberius::error::{Error, TokenError};

/// Takes an error of anything but a commit with what it means.
pub(crate) fn classify(error: Error) -> DriverError<Error> {
    let own = failure(&error);
    match &error {
        Error::Server(token) => meaning(token, false).of(error),
        _ => DriverError::new(error, own),
    }
}

/// Takes an error of a commit with what it means: it was carried out or not, unless the server says that it was
/// not.
pub(crate) fn classify_commit(error: Error) -> DriverError<Error> {
    match &error {
        Error::Server(token) => meaning(token, true).of(error),
        _ => DriverError::new(error, Failure::Lost),
    }
}

/// Returns what an error of anything but a commit means.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::Server(token) => meaning(token, false).failure,
        Error::Io { .. } | Error::Protocol(_) | Error::Routing { .. } | Error::Tls(_) => {
            Failure::Lost
        }
        _ => Failure::Refused,
    }
}

/// Returns what the server's own error means. Babelfish sends SQL Server's numbers.
fn meaning(token: &TokenError, is_commit: bool) -> Classified {
    EngineProfile::SQL_SERVER.classify(&Report {
        number: Some(token.code().into()),
        severity: token.class(),
        message: token.message(),
        is_commit,
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use Failure::{Lost, Refused};

    use super::*;

    #[test]
    fn only_the_servers_answer_to_commit_says_that_nothing_was_committed() {
        let errors = || {
            let io = Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
            [
                (io, Lost),
                (Error::Protocol("unexpected".into()), Lost),
                (Error::Tls("no".into()), Lost),
                (Error::BulkInput("too long".into()), Refused),
                (Error::Utf8, Refused),
            ]
        };
        for (error, expected) in errors() {
            assert_eq!(failure(&error), expected, "{error}");
            assert_eq!(classify(error).failure, expected);
        }
        for (error, _) in errors() {
            assert_eq!(classify_commit(error).failure, Lost);
        }
    }
}
