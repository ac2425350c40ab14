//! `jiff`: its `Timestamp` and the times in keys.

use crate::{clock::Timestamp, error::Error};

impl TryFrom<jiff::Timestamp> for Timestamp {
    type Error = Error;

    /// Converts a time, rounded down to the millisecond.
    ///
    /// # Errors
    ///
    /// A time before 1970 gives an error that [`is_clock`](Error::is_clock).
    fn try_from(time: jiff::Timestamp) -> Result<Self, Error> {
        Self::from_unix_nanos(time.as_nanosecond())
    }
}

impl TryFrom<Timestamp> for jiff::Timestamp {
    type Error = Error;

    /// # Errors
    ///
    /// A time after the year 9999, with which jiff's times end, gives an error that
    /// [`is_conversion`](Error::is_conversion).
    fn try_from(timestamp: Timestamp) -> Result<Self, Error> {
        let time = Self::from_millisecond(timestamp.as_unix_millis().cast_signed());
        time.map_err(|_| timestamp.too_late_for("jiff::Timestamp"))
    }
}
