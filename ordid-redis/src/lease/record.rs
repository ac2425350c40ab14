//! What the hash keeps of a node.

use core::{fmt, time::Duration};

use ordid_core::{Error, clock::Timestamp, coordination::Grant};

/// `epoch ceiling free_from`, with one space in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) epoch: u64,
    pub(super) ceiling: Timestamp,
    /// When the node is free, by the server's clock.
    pub(super) free_from: Timestamp,
}

impl Record {
    /// Of a node that has none.
    pub(super) fn never_granted(floor: Timestamp) -> Self {
        Self {
            epoch: 0,
            ceiling: floor,
            free_from: Timestamp::MIN,
        }
    }

    pub(super) fn held(grant: &Grant, store_now: Timestamp, ttl: Duration) -> Self {
        let ttl = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        let until = store_now.as_unix_millis().saturating_add(ttl);
        Self {
            epoch: grant.epoch(),
            ceiling: grant.ceiling(),
            free_from: Timestamp::saturating_from_unix_millis(until),
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let record = Self {
            epoch: words.next()?.parse().ok()?,
            ceiling: timestamp(words.next()?)?,
            free_from: timestamp(words.next()?)?,
        };
        words.next().is_none().then_some(record)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} {}",
            self.epoch,
            self.ceiling.as_unix_millis(),
            self.free_from.as_unix_millis()
        )
    }
}

pub(super) fn timestamp(text: &str) -> Option<Timestamp> {
    Timestamp::from_unix_millis(text.parse().ok()?).ok()
}

/// What the command `TIME` says.
pub(super) fn server_time(seconds: u64, micros: u64) -> Result<Timestamp, Error> {
    Timestamp::from_unix_millis(seconds.saturating_mul(1_000).saturating_add(micros / 1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            epoch: u64::MAX,
            ceiling: Timestamp::MAX,
            free_from: Timestamp::MIN,
        };
        assert_eq!(record.to_string(), "18446744073709551615 281474976710655 0");
        assert_eq!(Record::parse(&record.to_string()), Some(record));
        for damaged in [
            "",
            "1 2",
            "1 2 3 4",
            "1  2 3",
            "1 -2 3",
            "1 281474976710656 3",
            "x 2 3",
        ] {
            assert_eq!(Record::parse(damaged), None, "{damaged}");
        }
    }
}
