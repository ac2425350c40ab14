//! What mysql_async's errors mean for a flush. What the database's own mean is found in `ordid-sql`.

use mysql_async::{DriverError as OwnError, Error};
use ordid_sql::{DriverError, EngineProfile, Failure, classify::Report};

/// Takes an error of anything but COMMIT with what it means.
pub(crate) fn classify(error: Error) -> DriverError<Error> {
    of(error, false)
}

/// Takes an error of COMMIT with what it means: it was carried out or not, unless the database says that it was not.
pub(crate) fn classify_commit(error: Error) -> DriverError<Error> {
    of(error, true)
}

fn of(error: Error, is_commit: bool) -> DriverError<Error> {
    let Error::Server(found) = &error else {
        let failure = match is_refused(&error) && !is_commit {
            true => Failure::Refused,
            false => Failure::Lost,
        };
        return DriverError::new(error, failure);
    };
    let report = Report {
        sqlstate: Some(&found.state),
        number: Some(found.code.into()),
        message: &found.message,
        is_commit,
        ..Report::default()
    };
    let classified = EngineProfile::MYSQL.classify(&report);
    // The error's own text has a quote behind it, which would be one of the names.
    let text = found.to_string();
    DriverError {
        text: Some(text),
        ..classified.of(error)
    }
}

/// Returns whether an error of mysql_async itself is about settings or a value. Any other one is about the connection, or
/// leaves it in an unknown state.
fn is_refused(error: &Error) -> bool {
    match error {
        Error::Driver(error) => !matches!(
            error,
            OwnError::ConnectionClosed
                | OwnError::PacketOutOfOrder
                | OwnError::UnexpectedPacket { .. }
                | OwnError::BadCompressedPacketHeader
        ),
        Error::Url(_) => true,
        Error::Io(_) | Error::Other(_) | Error::Server(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use mysql_async::ServerError;
    use ordid_sql::Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    fn server(code: u16, state: &str) -> Error {
        Error::Server(ServerError {
            code,
            message: String::new(),
            state: state.into(),
        })
    }

    fn io() -> Error {
        Error::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
    }

    #[test]
    fn an_error_means_what_its_kind_and_its_number_say() {
        for (error, expected) in [
            (server(1213, "40001"), Transient),
            (server(1062, "23000"), Duplicate),
            (server(1064, "42000"), Refused),
            (io(), Lost),
            (Error::Driver(OwnError::ConnectionClosed), Lost),
            (Error::Driver(OwnError::PoolDisconnected), Refused),
        ] {
            let text = error.to_string();
            assert_eq!(classify(error).failure, expected, "{text}");
        }
    }

    #[test]
    fn an_error_of_commit_that_is_not_the_databases_leaves_it_open() {
        for error in [io(), Error::Driver(OwnError::PoolDisconnected)] {
            assert_eq!(classify_commit(error).failure, Lost);
        }
    }
}
