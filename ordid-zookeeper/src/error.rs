//! What went wrong, in core's words.

use ordid_core::{Error, coordination::CoordinationFailure};

/// An error of the library, met while something was done with a node of the tree.
pub(crate) fn failed(path: &str, error: &zookeeper_client::Error) -> Error {
    use zookeeper_client::Error as Cause;

    let failure = match error {
        Cause::NoNode => CoordinationFailure::StateLost,
        Cause::UnmarshalError { .. }
        | Cause::BadArguments(_)
        | Cause::NoAuth
        | Cause::NoChildrenForEphemerals
        | Cause::InvalidAcl
        | Cause::Unimplemented => CoordinationFailure::Mismatch,
        _ => CoordinationFailure::Unavailable,
    };
    Error::coordination(failure, format!("ZooKeeper, {path}: {error}"))
}

/// As [`failed`], for a node that `create` makes.
pub(crate) fn failed_or_lost(path: &str, create: &str, error: &zookeeper_client::Error) -> Error {
    if *error != zookeeper_client::Error::NoNode {
        return failed(path, error);
    }
    Error::coordination(
        CoordinationFailure::StateLost,
        format!(
            "ZooKeeper has no node {path}: if it is new, call `{create}` once; if it was there, the \
             servers have lost their data, and `{create}` must be told from where to go on"
        ),
    )
}

/// Data that is not what this crate writes.
pub(crate) fn damaged(path: &str, found: &[u8]) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!(
            "ZooKeeper, {path}: it holds `{}`, which is not what ordid-zookeeper writes",
            found.escape_ascii()
        ),
    )
}
