//! What the hash keeps of a node.

use core::{fmt, time::Duration};

use ordid_core::{Error, clock::Timestamp, coordination::NodeRecord};

/// `epoch ceiling free_from`, with one space in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) record: NodeRecord,
    /// When the node is free, by the server's clock.
    pub(super) free_from: Timestamp,
}

impl Record {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (record, free_from) = text.rsplit_once(' ')?;
        Some(Self {
            record: record.parse().ok()?,
            free_from: timestamp(free_from)?,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.record, self.free_from.as_unix_millis())
    }
}

/// Returns a time so much later.
pub(super) fn after(time: Timestamp, by: Duration) -> Timestamp {
    Timestamp::saturating_from_unix_millis(time.as_unix_millis().saturating_add(millis(by)))
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
            record: NodeRecord {
                epoch: u64::MAX,
                ceiling: Timestamp::MAX,
            },
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
