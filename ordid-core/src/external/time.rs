//! `time`: its `OffsetDateTime` and the times in keys.

use time::OffsetDateTime;

use crate::{clock::Timestamp, error::Error};

impl TryFrom<OffsetDateTime> for Timestamp {
    type Error = Error;

    /// Converts the instant, whatever its offset is, rounded down to the millisecond.
    ///
    /// # Errors
    ///
    /// A time before 1970 or beyond 48 bits gives an error that [`is_clock`](Error::is_clock).
    fn try_from(time: OffsetDateTime) -> Result<Self, Error> {
        Self::from_unix_nanos(time.unix_timestamp_nanos())
    }
}

/// Converts the time to UTC.
impl TryFrom<Timestamp> for OffsetDateTime {
    type Error = Error;

    /// # Errors
    ///
    /// A time after the year 9999 gives an error that [`is_conversion`](Error::is_conversion), because the times of
    /// `time` end there unless its feature `large-dates` is on.
    fn try_from(timestamp: Timestamp) -> Result<Self, Error> {
        let nanos = i128::from(timestamp.as_unix_millis()) * 1_000_000;
        let time = Self::from_unix_timestamp_nanos(nanos);
        time.map_err(|_| timestamp.too_late_for("time::OffsetDateTime"))
    }
}
