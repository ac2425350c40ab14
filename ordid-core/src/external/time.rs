//! `time`: its `OffsetDateTime` and the times in keys.

use time::OffsetDateTime;

use crate::{clock::Timestamp, error::Error};

impl TryFrom<OffsetDateTime> for Timestamp {
    type Error = Error;

    /// Takes the instant, whatever its offset is, and rounds it down to the millisecond.
    ///
    /// # Errors
    ///
    /// Refuses times before 1970 and beyond 48 bits with an error that [`is_clock`](Error::is_clock).
    fn try_from(time: OffsetDateTime) -> Result<Self, Error> {
        Self::from_unix_nanos(time.unix_timestamp_nanos())
    }
}

/// In UTC.
impl TryFrom<Timestamp> for OffsetDateTime {
    type Error = Error;

    /// # Errors
    ///
    /// A time beyond the year 9999, where those of `time` end unless its feature `large-dates` is on, gives an
    /// error that [`is_conversion`](Error::is_conversion).
    fn try_from(timestamp: Timestamp) -> Result<Self, Error> {
        let nanos = i128::from(timestamp.as_unix_millis()) * 1_000_000;
        let time = Self::from_unix_timestamp_nanos(nanos);
        time.map_err(|_| timestamp.too_late_for("time::OffsetDateTime"))
    }
}
