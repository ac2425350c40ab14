//! A time of `time`, and `ordid` does not have the feature.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: time::OffsetDateTime) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
