//! What a replica that takes over may lack, and what follows for grants and renewals.
//!
//! Replication does not wait, so the new master may lack the last grants and renewals. It does not know which grants
//! are missing, but none reaches more than the terms' `max_ahead` past the old master's clock. So after a fail-over
//! each grant of a free node begins `max_ahead` after the time at which the fail-over was first seen. Processes may have
//! different terms, so the largest `max_ahead` that any of them has used is written down beside the server.
//!
//! A holder may renew and release only if its node was not free yet at that time. If it was, the old master may have
//! granted it to another, and the new master may lack that grant: the record still looks like the holder's. A node
//! that was not free cannot have been granted again, unless its holder had released it. So a holder whose last renewal
//! the new master lacks renews from the ceiling that it has.
//!
//! A server names itself by a replication id. A replica has its master's id, and gets a new one when it takes over;
//! then its master's id becomes its second id. A server that is only started again also has a new id, but usually no
//! second one, and with `appendfsync always` it lacks nothing. A master of Redis 7 that loads an RDB file does have a
//! second id, and counts as another server: that costs a window of waiting. A fail-over is not seen if the new
//! master is started again before anybody asks it. Nor does this help against two masters at once that different
//! clients ask; only replicas that confirm help there. And the clocks of both servers have to agree: where the new one's is
//! behind by so much, so long is the time that a lost grant and the next one of its node may share.

use core::{fmt, time::Duration};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, LeaseTerms},
};

use super::record::{after, millis, timestamp};

/// The field that names the server.
pub(super) const SERVER: &str = "server";

/// Writes down which server it is now, unless somebody else was faster.
pub(super) const ADOPT: &str = "\
if (redis.call('HGET', KEYS[1], ARGV[1]) or '') == ARGV[2] then
    redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
end";

/// The server that grants nodes now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replication {
    /// Its id; empty if it does not tell.
    pub(super) id: String,
    /// No grant begins before.
    pub(super) from: Timestamp,
    /// The largest of the terms of all processes that have asked.
    max_ahead: Duration,
}

impl Replication {
    /// `info` is what the server says of itself, and `known` what was written down of the last one.
    pub(super) fn read(info: &str, known: &str, store_now: Timestamp, max_ahead: Duration) -> Self {
        let said = |name: &str| {
            let mut lines = info.lines();
            let said = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            said.unwrap_or_default().trim()
        };
        let (id, second) = (said("master_replid"), said("master_replid2"));
        let mut words = known.split(' ');
        let known = words.next().unwrap_or_default();
        let mut from = words.next().and_then(timestamp).unwrap_or(Timestamp::MIN);
        // An earlier version of this crate has not written it down.
        let largest = words.next().and_then(|it| it.parse().ok());
        let largest = largest.map_or(max_ahead, Duration::from_millis);
        if largest < max_ahead && from > Timestamp::MIN {
            // The time at which the last fail-over was seen stays the same.
            from = after(from, max_ahead - largest);
        }
        let max_ahead = max_ahead.max(largest);
        // A version of this crate that wrote no server down cannot say that it is the same. Nor can a server that
        // does not name a second id.
        let is_alone = !second.is_empty() && second.bytes().all(|it| it == b'0');
        let took_over = !id.is_empty() && known != id && !is_alone;
        Self {
            id: id.to_owned(),
            from: match took_over {
                true => from.max(after(store_now, max_ahead)),
                false => from,
            },
            max_ahead,
        }
    }

    /// Whether a grant may be missing of a node that was free from this time on: the old master may have made one
    /// before the fail-over was first seen, which was `max_ahead` before grants begin.
    pub(super) fn may_lack_grant(&self, free_from: Timestamp) -> bool {
        after(free_from, self.max_ahead) <= self.from
    }

    /// Refuses grants that would reach too far ahead: a window of time after another server took over.
    pub(super) fn check(
        &self,
        key: &str,
        terms: &LeaseTerms,
        store_now: Timestamp,
    ) -> Result<(), Error> {
        let (reach, may) = (
            after(self.from, terms.window()).as_unix_millis(),
            after(store_now, terms.max_ahead()).as_unix_millis(),
        );
        if reach <= may {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Unavailable,
            format!(
                "Redis, key {key}: another server took over, which may lack the last grants; nodes are granted \
                 again in {} ms",
                reach - may
            ),
        ))
    }
}

/// As it is written down.
impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, max_ahead) = (self.from.as_unix_millis(), millis(self.max_ahead));
        write!(f, "{} {from} {max_ahead}", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: &str = "0000000000000000000000000000000000000000";

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + millis).unwrap()
    }

    fn read(id: &str, second: &str, known: &str) -> Replication {
        let info = format!(
            "# Replication\r\nrole:master\r\nmaster_replid:{id}\r\nmaster_replid2:{second}\r\n"
        );
        Replication::read(&info, known, at(0), Duration::from_secs(10))
    }

    #[test]
    fn grants_begin_later_only_after_a_replica_took_over() {
        let from = |id, second, known| read(id, second, known).from;
        // A hash that an older version has written, the same server, and one that was started again.
        assert_eq!(from("aa", NONE, ""), Timestamp::MIN);
        assert_eq!(from("bb", "aa", "bb 1800000005000"), at(5_000));
        assert_eq!(from("bb", NONE, "aa 1800000005000"), at(5_000));
        // A replica of the last one, of the one before it, and one that took over from a server that was behind it.
        assert_eq!(from("bb", "aa", "aa 0"), at(10_000));
        assert_eq!(from("cc", "bb", "aa 1800000005000"), at(10_000));
        assert_eq!(from("cc", "bb", "aa 1800000015000"), at(15_000));
        assert_eq!(
            read("bb", "aa", "aa 0").to_string(),
            "bb 1800000010000 10000"
        );
        // Where nobody can tell: an older version has written no server, or the server names no second id.
        assert_eq!(from("bb", "aa", ""), at(10_000));
        assert_eq!(from("bb", "", "aa 0"), at(10_000));
        let silent = Replication::read("master_replid:bb", "aa 0", at(0), Duration::from_secs(10));
        assert_eq!(silent.from, at(10_000));
    }

    #[test]
    fn a_grant_may_be_missing_only_of_a_node_that_was_free_when_the_failover_was_seen() {
        for known in ["aa 0", "aa 0 10000", "aa 0 60000", "aa 0 2000"] {
            let seen = read("bb", "aa", known);
            assert!(seen.may_lack_grant(Timestamp::MIN));
            assert!(seen.may_lack_grant(at(0)));
            assert!(!seen.may_lack_grant(at(1)));
        }
        let same = read("aa", NONE, "aa 0");
        assert!(!same.may_lack_grant(Timestamp::MIN));
    }

    #[test]
    fn the_largest_max_ahead_of_all_processes_counts() {
        // A process with 60 s has granted, and one with 10 s sees the fail-over first.
        let seen = read("bb", "aa", "aa 0 60000");
        assert_eq!(seen.to_string(), "bb 1800000060000 60000");
        // One with 5 s has seen it, and then one with 10 s asks: the fail-over was seen at the same time.
        let later = read("bb", "aa", "bb 1800000004000 5000");
        assert_eq!(later.to_string(), "bb 1800000009000 10000");
        let before = Timestamp::from_unix_millis(1_799_999_999_000).unwrap();
        assert!(later.may_lack_grant(before) && !later.may_lack_grant(at(0)));
        assert_eq!(read("aa", NONE, "aa 0 5000").to_string(), "aa 0 10000");
    }

    #[test]
    fn a_server_that_does_not_tell_has_no_id() {
        let unknown = Replication::read("", "aa 7", at(0), Duration::from_secs(10));
        assert_eq!(
            (unknown.id.as_str(), unknown.from.as_unix_millis()),
            ("", 7)
        );
    }

    #[test]
    fn nodes_are_granted_again_after_a_window() {
        let terms = LeaseTerms::new(0..4).unwrap();
        let replication = read("bb", "aa", "aa 0");
        let check = |millis| replication.check("shop", &terms, at(millis));
        assert_eq!(
            check(0).unwrap_err().to_string(),
            "the store is unavailable: Redis, key shop: another server took over, which may lack the last \
             grants; nodes are granted again in 3000 ms"
        );
        assert!(check(2_999).is_err());
        assert_eq!(check(3_000), Ok(()));
    }
}
