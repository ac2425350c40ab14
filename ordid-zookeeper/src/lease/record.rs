//! What the tree keeps of a node.

use core::fmt;

use ordid_core::clock::Timestamp;

/// `epoch ceiling`, with one space in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) epoch: u64,
    pub(super) ceiling: Timestamp,
}

impl Record {
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let (epoch, ceiling) = core::str::from_utf8(data).ok()?.split_once(' ')?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            ceiling: Timestamp::from_unix_millis(ceiling.parse().ok()?).ok()?,
        })
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.ceiling.as_unix_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = Record {
            epoch: u64::MAX,
            ceiling: Timestamp::MAX,
        };
        let text = record.to_string();
        assert_eq!(text, "18446744073709551615 281474976710655");
        assert_eq!(Record::parse(text.as_bytes()), Some(record));
        for damaged in [
            "",
            "1",
            "1 2 3",
            "1  2",
            "-1 2",
            "1 281474976710656",
            "\u{e9} 2",
        ] {
            assert_eq!(Record::parse(damaged.as_bytes()), None, "{damaged}");
        }
    }
}
