//! Uses a time of `chrono` without the feature of `ordid`.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: chrono::DateTime<chrono::Utc>) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
