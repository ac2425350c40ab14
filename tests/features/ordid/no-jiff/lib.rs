//! Uses a time of `jiff` without the feature of `ordid`.

use ordid::{Error, clock::Timestamp};

pub fn time_of(time: jiff::Timestamp) -> Result<Timestamp, Error> {
    Timestamp::try_from(time)
}
