//! tiberius' errors as the executor reads them.

use ordid_sql::{DriverError, EngineProfile, Failure, classify::Report};
use tiberius::error::Error;

/// Classifies an error of any request other than COMMIT.
pub(crate) fn classify(error: Error) -> DriverError<Error> {
    of(error, false)
}

/// Classifies an error of COMMIT. Unless the server itself reports the error, nobody knows whether the COMMIT was
/// carried out.
pub(crate) fn classify_commit(error: Error) -> DriverError<Error> {
    of(error, true)
}

fn of(error: Error, is_commit: bool) -> DriverError<Error> {
    let failure = match &error {
        Error::Server(token) => {
            let report = Report {
                number: Some(token.code().into()),
                severity: token.class(),
                message: token.message(),
                is_commit,
                ..Report::default()
            };
            // Babelfish sends SQL Server's numbers.
            return EngineProfile::SQL_SERVER.classify(&report).of(error);
        }
        Error::Io { .. } | Error::Protocol(_) | Error::Routing { .. } | Error::Tls(_) => {
            Failure::Lost
        }
        _ if is_commit => Failure::Lost,
        _ => Failure::Refused,
    };
    DriverError::new(error, failure)
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
            let text = error.to_string();
            assert_eq!(classify(error).failure, expected, "{text}");
        }
        for (error, _) in errors() {
            assert_eq!(classify_commit(error).failure, Lost);
        }
    }
}
