//! A time of `chrono`, and `ordid` does not have the feature.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: chrono::DateTime<chrono::Utc>) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
