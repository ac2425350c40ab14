//! A lock for each id, on Redis and on ZooKeeper: the slow way, written correctly and measured.
//!
//! The crates of ordid do not have it, because a counter that is reserved in blocks does the same and
//! is a few thousand times as fast. The tour runs both side by side; the tests of this example show
//! what a lock has to check before it may write.

pub mod redis_lock;
pub mod zookeeper_lock;

use ordid_core::{Error, coordination::CoordinationFailure};

/// The numbers of a count are used up.
fn exhausted(place: &str, count: std::num::NonZeroU32) -> Error {
    Error::coordination(
        CoordinationFailure::CounterExhausted,
        format!("{place}: the count does not have {count} more numbers"),
    )
}

/// The count is missing.
fn lost(place: &str) -> Error {
    Error::coordination(
        CoordinationFailure::StateLost,
        format!("{place}: there is no count: create it once"),
    )
}

/// The count is not a number.
fn damaged(place: &str, found: &str) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!("{place}: the count is `{found}`, which is not a number"),
    )
}
