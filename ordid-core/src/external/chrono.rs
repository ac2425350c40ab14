//! `chrono`: its `DateTime<Utc>` and the times in keys.

use chrono::{DateTime, Utc};

use crate::{clock::Timestamp, error::Error};

impl TryFrom<DateTime<Utc>> for Timestamp {
    type Error = Error;

    /// Converts a time, rounded down to the millisecond.
    ///
    /// # Errors
    ///
    /// A time before 1970 or beyond 48 bits gives an error that [`is_clock`](Error::is_clock).
    fn try_from(time: DateTime<Utc>) -> Result<Self, Error> {
        let nanos = i128::from(time.timestamp()) * 1_000_000_000;
        Self::from_unix_nanos(nanos + i128::from(time.timestamp_subsec_nanos()))
    }
}

impl From<Timestamp> for DateTime<Utc> {
    fn from(timestamp: Timestamp) -> Self {
        let time = Self::from_timestamp_millis(timestamp.as_unix_millis().cast_signed());
        time.expect("chrono's years end after the 48 bits of milliseconds do")
    }
}
