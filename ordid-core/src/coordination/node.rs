//! The record that stores keep as text for each node.

use core::{fmt, str::FromStr};

use crate::clock::Timestamp;
#[cfg(feature = "std")]
use crate::{
    entropy::{Entropy as _, ThreadEntropy},
    error::Error,
};

/// The record of a node: `epoch ceiling`, in decimal digits, with one space in between.
///
/// As text it is readable for people who look into the store, and is the same in each adapter.
///
/// # Example
///
/// ```
/// use ordid_core::{clock::Timestamp, coordination::NodeRecord};
///
/// let record: NodeRecord = "4 1800000003000".parse().unwrap();
/// assert_eq!(record.epoch, 4);
/// assert_eq!(record.ceiling, Timestamp::from_unix_millis(1_800_000_003_000)?);
/// assert_eq!(record.to_string(), "4 1800000003000");
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRecord {
    /// How often the node was granted.
    pub epoch: u64,
    /// The first millisecond, since 1970, that has not been granted to anybody.
    pub ceiling: Timestamp,
}

impl NodeRecord {
    /// Reads a record from a store's bytes. Returns `None` if they are not a record.
    pub fn parse(data: &[u8]) -> Option<Self> {
        core::str::from_utf8(data).ok()?.parse().ok()
    }
}

/// The error of a text that is not a [`NodeRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoNodeRecord;

impl fmt::Display for NoNodeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an epoch and a ceiling in milliseconds, with a space in between")
    }
}

impl core::error::Error for NoNodeRecord {}

impl FromStr for NodeRecord {
    type Err = NoNodeRecord;

    fn from_str(text: &str) -> Result<Self, NoNodeRecord> {
        let (epoch, ceiling) = text.split_once(' ').ok_or(NoNodeRecord)?;
        let number = |digits: &str| digits.parse().map_err(|_| NoNodeRecord);
        Ok(Self {
            epoch: number(epoch)?,
            ceiling: Timestamp::from_unix_millis(number(ceiling)?).map_err(|_| NoNodeRecord)?,
        })
    }
}

impl fmt::Display for NodeRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.epoch, self.ceiling.as_unix_millis())
    }
}

/// Returns the free node to try. `free` lists the best node first, and that node is the result unless other processes
/// were faster `lost_races` times. Each lost race doubles the number of nodes to choose from at random, so that many
/// processes that start at once do not all try the same node. Returns `None` if no node is free.
///
/// # Errors
///
/// If the operating system has no entropy.
#[cfg(feature = "std")]
pub fn choose_node(free: &[u64], lost_races: u32) -> Result<Option<u64>, Error> {
    let among = free.len().min(1 << lost_races.min(16));
    if among < 2 {
        return Ok(free.first().copied());
    }
    let random = ThreadEntropy.next_u64()?;
    let index = random % u64::try_from(among).unwrap_or(1);
    Ok(usize::try_from(index)
        .ok()
        .and_then(|index| free.get(index).copied()))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let record = NodeRecord {
            epoch: u64::MAX,
            ceiling: Timestamp::MAX,
        };
        let text = record.to_string();
        assert_eq!(text, "18446744073709551615 281474976710655");
        assert_eq!(NodeRecord::parse(text.as_bytes()), Some(record));
        for damaged in [
            "",
            "1",
            "1 2 3",
            "1  2",
            "-1 2",
            "1 281474976710656",
            "\u{e9} 2",
        ] {
            assert_eq!(NodeRecord::parse(damaged.as_bytes()), None, "{damaged}");
        }
        assert_eq!(NodeRecord::parse(b"\xff 2"), None);
    }

    #[cfg(feature = "std")]
    #[test]
    fn processes_that_lose_a_race_spread_over_the_nodes() {
        use std::collections::HashSet;

        let free: [u64; 5] = [9, 3, 7, 1, 2];
        let chosen = |lost_races| -> HashSet<u64> {
            let choose = |_| choose_node(&free, lost_races).expect("entropy");
            (0..1_000).filter_map(choose).collect()
        };
        assert_eq!(chosen(0), HashSet::from([9]));
        assert_eq!(chosen(1), HashSet::from([9, 3]));
        assert_eq!(chosen(2), HashSet::from([9, 3, 7, 1]));
        assert_eq!(chosen(u32::MAX), HashSet::from(free));
        assert_eq!(choose_node(&[], 3), Ok(None));
    }
}
