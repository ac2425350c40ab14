//! Uses a time of `time` without the feature of `ordid`.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: time::OffsetDateTime) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
