//! What went wrong, in core's words.

use ordid_core::{Error, coordination::CoordinationFailure};

/// Codes of gRPC of which another time is no better: INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED. UNAUTHENTICATED is
/// none: etcd says it of a token that is too old, and the client may get another. A wrong password is refused at once, when
/// the client connects.
const MISMATCH: [i32; 3] = [3, 7, 12];

/// etcd says this, as INVALID_ARGUMENT, of a token that is older than a change of users or roles.
const OLD_TOKEN: &str = "revision of auth store is old";

/// An error of the library, met while something was done with a key.
pub(crate) fn failed(key: &str, error: &etcd_client::Error) -> Error {
    use etcd_client::Error as Cause;

    let failure = match error {
        Cause::InvalidArgs(_) | Cause::InvalidUri(_) | Cause::InvalidMetadataValue(_) => {
            CoordinationFailure::Mismatch
        }
        Cause::GRpcStatus(status)
            if MISMATCH.contains(&status.code().into())
                && !status.message().contains(OLD_TOKEN) =>
        {
            CoordinationFailure::Mismatch
        }
        _ => CoordinationFailure::Unavailable,
    };
    Error::coordination(failure, format!("etcd, {key}: {error}"))
}

/// A key that is not there, and that `create` makes.
pub(crate) fn lost(key: &str, create: &str) -> Error {
    Error::coordination(
        CoordinationFailure::StateLost,
        format!(
            "etcd has no key {key}: if it is new, call `{create}` once; if it was there, the cluster has \
             lost its data, and `{create}` must be told from where to go on"
        ),
    )
}

/// A value that is not what this crate writes.
pub(crate) fn damaged(key: &str, found: &[u8]) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!(
            "etcd, {key}: it holds `{}`, which is not what ordid-etcd writes",
            found.escape_ascii()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_other_time_mends_is_a_mismatch() {
        for (error, expected) in [
            (
                etcd_client::Error::InvalidArgs("no endpoint".into()),
                CoordinationFailure::Mismatch,
            ),
            (
                etcd_client::Error::IoError(std::io::ErrorKind::ConnectionReset.into()),
                CoordinationFailure::Unavailable,
            ),
            (
                etcd_client::Error::Internal("closed".into()),
                CoordinationFailure::Unavailable,
            ),
        ] {
            let failed = failed("app/orders", &error);
            assert_eq!(failed.coordination_failure(), Some(expected), "{error}");
            assert!(failed.to_string().contains("etcd, app/orders: "));
        }
    }
}
