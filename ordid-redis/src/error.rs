//! What went wrong, in core's words.

use ordid_core::{Error, coordination::CoordinationFailure};
use redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::connection::is_for_another;

/// An error of the library, met while something was done with a key.
pub(crate) fn failed(key: &str, error: &RedisError) -> Error {
    let is_ours = match error.kind() {
        ErrorKind::UnexpectedReturnType
        | ErrorKind::Parse
        | ErrorKind::InvalidClientConfig
        | ErrorKind::Server(ServerErrorKind::ResponseError | ServerErrorKind::CrossSlot) => true,
        ErrorKind::Extension => error.code() == Some("WRONGTYPE"),
        _ => false,
    };
    let failure = if is_ours && !is_for_another(error) {
        CoordinationFailure::Mismatch
    } else {
        CoordinationFailure::Unavailable
    };
    Error::coordination(failure, format!("Redis, key {key}: {error}"))
}

/// A value that is not what this crate writes.
pub(crate) fn damaged(key: &str, what: &str, found: &str) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!("Redis, key {key}: {what} is `{found}`, which is not what ordid-redis writes"),
    )
}

/// The key is missing.
pub(crate) fn lost(key: &str, create: &str) -> Error {
    Error::coordination(
        CoordinationFailure::StateLost,
        format!(
            "Redis has no key {key}: if it is new, call `{create}` once; if it was there, the server \
             has lost its data, and `{create}` must be told from where to go on"
        ),
    )
}
