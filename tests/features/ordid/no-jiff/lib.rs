//! A time of `jiff`, and `ordid` does not have the feature.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: jiff::Timestamp) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
