//! Grants of nodes for ranges of embedded time, and the trait of the stores that hand them out.

use alloc::{format, string::String};
use core::{fmt, ops::Range, time::Duration};

use super::CoordinationFailure;
use crate::{
    clock::Timestamp,
    entropy::{Process, process},
    error::Error,
};

/// A node, and the range of time that keys with this node may carry: from `floor` up to, but not including,
/// `ceiling`.
///
/// `epoch` counts the grants of the node, so node and epoch together name the holder. If a process is copied while it
/// holds a grant (a snapshot of its machine), the copy has the same name. The store tells the two apart when the
/// first of them renews.
///
/// A grant belongs to the process that made it. The child of a fork can neither make keys with it, nor renew it,
/// nor give it back ([`Fenced`](CoordinationFailure::Fenced)). The parent goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grant {
    node: u64,
    epoch: u64,
    floor: Timestamp,
    ceiling: Timestamp,
    /// Whose it is.
    process: Process,
}

impl Grant {
    /// Makes a grant from the values that a store has recorded.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if the ceiling is not above the floor, so that the grant
    /// has no time.
    pub fn new(node: u64, epoch: u64, floor: Timestamp, ceiling: Timestamp) -> Result<Self, Error> {
        if ceiling <= floor {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!(
                    "the grant of node {node} has no time: from {} to below {} ms",
                    floor.as_unix_millis(),
                    ceiling.as_unix_millis()
                ),
            ));
        }
        Ok(Self {
            node,
            epoch,
            floor,
            ceiling,
            process: process(),
        })
    }

    /// Refuses a grant of the process that was forked.
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.process == process() {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::Fenced,
            format!(
                "{self} is of process {}, and this is its fork: acquire a grant of the child's own",
                self.process
            ),
        ))
    }

    /// Returns the node's number.
    pub const fn node(&self) -> u64 {
        self.node
    }

    /// Returns the number of this grant among the grants of its node.
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the first millisecond that keys may carry.
    pub const fn floor(&self) -> Timestamp {
        self.floor
    }

    /// Returns the first millisecond after those that keys may carry.
    pub const fn ceiling(&self) -> Timestamp {
        self.ceiling
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "node {} (grant {}), {} to below {} ms",
            self.node,
            self.epoch,
            self.floor.as_unix_millis(),
            self.ceiling.as_unix_millis()
        )
    }
}

/// The terms that all leases of a store share, and their arithmetic.
///
/// All processes that share a store must name the same nodes; the rest may differ. After a fail-over of Redis, the
/// largest [`max_ahead`](Self::max_ahead) that the new master has received counts for all.
///
/// # Example: a grant, its renewal, and the next holder
///
/// ```
/// use ordid_core::{clock::Timestamp, coordination::{Grant, LeaseTerms}};
///
/// let at = |millis: u64| Timestamp::from_unix_millis(1_800_000_000_000 + millis);
/// let terms = LeaseTerms::new(0..1_024)?;
///
/// // Nobody has held node 7 yet; our clock and the store's agree.
/// let (floor, ceiling) = terms.range(None, at(0)?, None, Some(at(0)?))?;
/// assert_eq!((floor, ceiling), (at(0)?, at(3_000)?));
/// let grant = Grant::new(7, 1, floor, ceiling)?;
///
/// // A second later the ceiling moves on.
/// let ceiling = terms.renewed(&grant, grant.epoch(), grant.ceiling(), at(1_000)?, Some(at(1_000)?))?;
/// assert_eq!(ceiling, at(4_000)?);
///
/// // The next holder begins there, although its clock is two seconds behind.
/// let (floor, _) = terms.range(Some(ceiling), at(1_500)?, None, Some(at(3_500)?))?;
/// assert_eq!(floor, ceiling);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseTerms {
    nodes: Range<u64>,
    window: Duration,
    ttl: Duration,
    max_ahead: Duration,
}

impl LeaseTerms {
    /// How much time a grant has by default.
    pub const WINDOW: Duration = Duration::from_secs(3);
    /// How long a holder has to be silent, by default, until its node is free.
    pub const TTL: Duration = Duration::from_secs(10);
    /// How far ahead of the store's clock a grant may reach by default.
    pub const MAX_AHEAD: Duration = Duration::from_secs(10);
    /// How much longer than the window [`max_ahead`](Self::max_ahead) has to be. A grant begins at the clock of its holder,
    /// and is compared with the store's. Synchronized clocks differ by less than this.
    pub const MARGIN: Duration = Duration::from_secs(1);

    /// Makes terms with the default times. `nodes` are the nodes to choose from: all that the layout has bits for, or
    /// a part of them.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if the range is empty, or if a node is above `i64::MAX`,
    /// for which stores have no room.
    pub fn new(nodes: Range<u64>) -> Result<Self, Error> {
        if nodes.is_empty() || nodes.end > i64::MAX.unsigned_abs() {
            return Err(mismatch(format!(
                "nodes {nodes:?} are none to choose from: give a range such as 0..1024"
            )));
        }
        Ok(Self {
            nodes,
            window: Self::WINDOW,
            ttl: Self::TTL,
            max_ahead: Self::MAX_AHEAD,
        })
    }

    /// Sets how much time a grant has, counted from its holder's clock; rounded down to milliseconds. A grant is
    /// renewed when a third of it is over. With a long window, holders survive long failures of the store; but a
    /// process that dies leaves up to a window of time unused.
    ///
    /// [`max_ahead`](Self::max_ahead) has to be longer by a second ([`MARGIN`](Self::MARGIN)), because the clocks of process
    /// and store differ. If the only free node is that of a process that has just died, its next grant ends two windows
    /// ahead of the clock, so two windows and a second are better. For a long window, set the other two times first.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if the window is shorter than a millisecond, longer than
    /// [`ttl`](Self::ttl), or not a second shorter than [`max_ahead`](Self::max_ahead).
    pub fn with_window(self, window: Duration) -> Result<Self, Error> {
        Self { window, ..self }.checked()
    }

    /// Sets how long a holder has to be silent, by the store's clock, until its node is free for others. This
    /// decides only how soon nodes come back, never whether keys repeat.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if it is shorter than the window, because healthy
    /// holders would lose their nodes.
    pub fn with_ttl(self, ttl: Duration) -> Result<Self, Error> {
        Self { ttl, ..self }.checked()
    }

    /// Sets how far ahead of the store's clock a ceiling may be. Without this limit, a clock that once reads an hour
    /// too late would use up an hour of the node.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if it is not longer than the window by
    /// [`MARGIN`](Self::MARGIN), a second.
    pub fn with_max_ahead(self, max_ahead: Duration) -> Result<Self, Error> {
        Self { max_ahead, ..self }.checked()
    }

    fn checked(self) -> Result<Self, Error> {
        let longest = self.max_ahead.saturating_sub(Self::MARGIN);
        if self.window.as_millis() == 0 || self.window > longest || self.window > self.ttl {
            return Err(mismatch(format!(
                "a window of {:?} needs a millisecond at least, no more than the time to live ({:?}), and {:?} less than a \
                 grant may reach ahead ({:?}), because the clocks of process and store differ",
                self.window,
                self.ttl,
                Self::MARGIN,
                self.max_ahead
            )));
        }
        Ok(self)
    }

    /// Returns the nodes to choose from.
    pub fn nodes(&self) -> Range<u64> {
        self.nodes.clone()
    }

    /// Returns how much time a grant has.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// Returns how long a holder has to be silent until its node is free.
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Returns how far ahead of the store's clock a ceiling may be.
    pub const fn max_ahead(&self) -> Duration {
        self.max_ahead
    }

    /// Returns floor and ceiling of a new grant of a node.
    ///
    /// `stored` is the ceiling that the store keeps for the node, `None` if the node was never granted. `now` is the
    /// holder's clock. `last` is the newest time in the holder's own keys, whatever their node, so that they go on
    /// rising. `store_now` is the store's clock, if it has one.
    ///
    /// # Errors
    ///
    /// Returns [`TooFarAhead`](CoordinationFailure::TooFarAhead) if the ceiling would be too far ahead of the store's
    /// clock. Another node may have a lower ceiling, so choose the node with the lowest.
    pub fn range(
        &self,
        stored: Option<Timestamp>,
        now: Timestamp,
        last: Option<Timestamp>,
        store_now: Option<Timestamp>,
    ) -> Result<(Timestamp, Timestamp), Error> {
        let after_last = last.map_or(Timestamp::MIN, |last| later(last, 1));
        let floor = now.max(after_last).max(stored.unwrap_or(Timestamp::MIN));
        let ceiling = later(floor, self.window_millis());
        let why = if stored == Some(floor) {
            "the node's ceiling"
        } else {
            "this process's clock"
        };
        self.check_ahead(why, ceiling, store_now)?;
        Ok((floor, ceiling))
    }

    /// Returns the new ceiling of a grant that its holder renews. It is never below the present one.
    ///
    /// `epoch` and `stored` are the values that the store has for the grant's node now. The other parameters are
    /// those of [`range`](Self::range).
    ///
    /// # Errors
    ///
    /// Returns [`Fenced`](CoordinationFailure::Fenced) if the node was granted anew, if somebody renewed the same
    /// grant, or if this is the child of a fork and the grant belongs to the parent. Returns
    /// [`CeilingRegressed`](CoordinationFailure::CeilingRegressed) if the store has an earlier epoch or a lower
    /// ceiling than it granted, and [`TooFarAhead`](CoordinationFailure::TooFarAhead) as [`range`](Self::range) does.
    pub fn renewed(
        &self,
        grant: &Grant,
        epoch: u64,
        stored: Timestamp,
        now: Timestamp,
        store_now: Option<Timestamp>,
    ) -> Result<Timestamp, Error> {
        compare(grant, epoch, stored)?;
        let ceiling = later(now, self.window_millis()).max(stored);
        self.check_ahead("this process's clock", ceiling, store_now)?;
        Ok(ceiling)
    }

    /// Returns the ceiling of a grant that its holder gives back. It is above the newest key and no higher, so that a
    /// short run uses up no time. `last` is the newest time in keys of this grant. A release may be repeated: if the
    /// store has this ceiling already, the result is the same.
    ///
    /// # Errors
    ///
    /// Returns [`Fenced`](CoordinationFailure::Fenced) or
    /// [`CeilingRegressed`](CoordinationFailure::CeilingRegressed), as [`renewed`](Self::renewed), if the node is no
    /// longer the holder's. Nothing may be written then.
    pub fn released(
        &self,
        grant: &Grant,
        epoch: u64,
        stored: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Timestamp, Error> {
        let used = last
            .map_or(grant.floor, |last| later(last, 1))
            .clamp(grant.floor, grant.ceiling);
        // The answer to a release was lost, and it is asked for again. Whoever wrote this ceiling: it is above all keys.
        let again = epoch == grant.epoch && stored == used;
        if again {
            grant.check_process()?;
        } else {
            compare(grant, epoch, stored)?;
        }
        Ok(used)
    }

    fn window_millis(&self) -> u64 {
        millis(self.window)
    }

    fn check_ahead(
        &self,
        why: &str,
        ceiling: Timestamp,
        store_now: Option<Timestamp>,
    ) -> Result<(), Error> {
        let Some(store_now) = store_now else {
            return Ok(());
        };
        let ahead = ceiling
            .as_unix_millis()
            .saturating_sub(store_now.as_unix_millis());
        if ahead <= millis(self.max_ahead) {
            return Ok(());
        }
        Err(Error::coordination(
            CoordinationFailure::TooFarAhead,
            format!(
                "{why} would move the ceiling {ahead} ms ahead of it, more than the {} ms of the terms: one of the clocks is wrong, or was",
                millis(self.max_ahead)
            ),
        ))
    }
}

/// Whether what the store keeps is what the holder was granted.
fn compare(grant: &Grant, epoch: u64, stored: Timestamp) -> Result<(), Error> {
    grant.check_process()?;
    if epoch == grant.epoch && stored == grant.ceiling {
        return Ok(());
    }
    let (failure, why) = if epoch < grant.epoch || (epoch == grant.epoch && stored < grant.ceiling)
    {
        (
            CoordinationFailure::CeilingRegressed,
            "the store was restored from a copy, or fell over to one that lagged behind",
        )
    } else if epoch == grant.epoch {
        (
            CoordinationFailure::Fenced,
            "somebody renewed the same grant: a copy of this process, or a renewal whose answer was \
             lost",
        )
    } else {
        (
            CoordinationFailure::Fenced,
            "the node was granted to another",
        )
    };
    Err(Error::coordination(
        failure,
        format!(
            "{grant} is no longer this process's: the store has grant {epoch}, below {} ms; {why}",
            stored.as_unix_millis()
        ),
    ))
}

fn later(timestamp: Timestamp, millis: u64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(timestamp.as_unix_millis().saturating_add(millis))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn mismatch(message: String) -> Error {
    Error::coordination(CoordinationFailure::Mismatch, message)
}

/// Hands out nodes from a store that keeps an epoch and a ceiling for each node.
///
/// A store has to guarantee:
///
/// 1. For one node, each new grant has a floor at or above the ceiling of all earlier ones, and a
///    higher epoch. One atomic step of the store reads and moves both.
/// 2. When a call returns, the ceiling is durable: no crash undoes it.
/// 3. [`renew`](Self::renew) moves the ceiling only if the store still has the grant's epoch and ceiling. Otherwise
///    it fails.
/// 4. Missing state is an error, unless somebody declared that the store is new.
///
/// [`LeaseTerms`] does the arithmetic. `now` is the time of the generator's clock, and `last` the newest time in
/// its keys. Make errors with [`Error::coordination`].
#[doc(alias("snowflake", "worker id", "machine id"))]
pub trait NodeAllocator: Send + Sync {
    /// Grants a free node.
    ///
    /// # Errors
    ///
    /// [`NoFreeNode`](CoordinationFailure::NoFreeNode), [`Unavailable`](CoordinationFailure::Unavailable),
    /// [`StateLost`](CoordinationFailure::StateLost), [`TooFarAhead`](CoordinationFailure::TooFarAhead),
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error>;

    /// Moves the ceiling of a grant forward, and tells the store that the holder is alive. Returns the same grant
    /// with its new ceiling.
    ///
    /// # Errors
    ///
    /// [`Fenced`](CoordinationFailure::Fenced), [`CeilingRegressed`](CoordinationFailure::CeilingRegressed), and all
    /// of [`acquire`](Self::acquire) except `NoFreeNode`. After `CeilingRegressed` make no more keys with the grant,
    /// because the store may have granted the same node and times to another holder. After the other failures the
    /// grant stays valid up to its ceiling.
    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error>;

    /// Gives a node back. `last` is the newest time in keys of this grant. No key may be made with the grant from now
    /// on.
    ///
    /// # Errors
    ///
    /// As [`renew`](Self::renew). A release that was [`Unavailable`](CoordinationFailure::Unavailable) may be repeated.
    /// After an error the node becomes free when its holder has been silent long enough; in ZooKeeper, when its session has
    /// ended or acquires a node.
    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error>;

    /// Returns the terms of the store's grants.
    fn terms(&self) -> &LeaseTerms;
}

/// A [`NodeAllocator`] for a store with an async API.
///
/// If a future is dropped, its request may or may not have been carried out, as after a lost answer.
pub trait AsyncNodeAllocator: Send + Sync {
    /// As [`NodeAllocator::acquire`].
    fn acquire(
        &self,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// As [`NodeAllocator::renew`].
    fn renew(
        &self,
        grant: &Grant,
        now: Timestamp,
    ) -> impl Future<Output = Result<Grant, Error>> + Send;

    /// As [`NodeAllocator::release`].
    fn release(
        &self,
        grant: &Grant,
        last: Option<Timestamp>,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Returns the terms of the store's grants.
    fn terms(&self) -> &LeaseTerms;
}

macro_rules! shared {
    ($shared:ty) => {
        impl<A: NodeAllocator + ?Sized> NodeAllocator for $shared {
            fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
                (**self).acquire(now, last)
            }

            fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
                (**self).renew(grant, now)
            }

            fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
                (**self).release(grant, last)
            }

            fn terms(&self) -> &LeaseTerms {
                (**self).terms()
            }
        }
    };
}

shared!(&A);
shared!(alloc::boxed::Box<A>);
shared!(alloc::sync::Arc<A>);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_unix_millis(1_800_000_000_000 + millis).unwrap()
    }

    fn failure<T: fmt::Debug>(result: Result<T, Error>) -> Option<CoordinationFailure> {
        result.unwrap_err().coordination_failure()
    }

    #[test]
    fn a_floor_is_at_or_above_the_ceiling_and_above_the_last_key() {
        let terms = LeaseTerms::new(0..4).unwrap();
        for (stored, now, last, floor) in [
            (None, 5, None, 5),
            (Some(9), 5, None, 9),
            (Some(3), 5, None, 5),
            (Some(9), 5, Some(9), 10),
            (None, 5, Some(4), 5),
        ] {
            let range = terms.range(stored.map(at), at(now), last.map(at), Some(at(0)));
            assert_eq!(range, Ok((at(floor), at(floor + 3_000))));
        }
    }

    #[test]
    fn a_range_an_hour_ahead_of_the_stores_clock_is_refused() {
        let terms = LeaseTerms::new(0..4).unwrap();
        let error = terms
            .range(None, at(3_600_000), None, Some(at(0)))
            .unwrap_err();
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::TooFarAhead)
        );
        assert_eq!(
            error.to_string(),
            "too far ahead of the store's clock: this process's clock would move the ceiling 3603000 \
             ms ahead of it, more than the 10000 ms of the terms: one of the clocks is wrong, or was"
        );
        let burnt = terms.range(Some(at(3_600_000)), at(0), None, Some(at(0)));
        assert!(
            burnt
                .unwrap_err()
                .to_string()
                .contains("the node's ceiling would")
        );
        // Up to the bound it may, and a store without a clock cannot tell.
        assert!(terms.range(None, at(7_000), None, Some(at(0))).is_ok());
        assert!(terms.range(None, at(3_600_000), None, None).is_ok());
    }

    #[test]
    fn only_the_holder_of_what_is_stored_renews() {
        let terms = LeaseTerms::new(0..4).unwrap();
        let grant = Grant::new(2, 5, at(0), at(3_000)).unwrap();
        let renew = |epoch, stored| terms.renewed(&grant, epoch, at(stored), at(1_000), None);
        assert_eq!(renew(5, 3_000), Ok(at(4_000)));
        assert_eq!(failure(renew(6, 9_000)), Some(CoordinationFailure::Fenced));
        assert_eq!(failure(renew(5, 3_001)), Some(CoordinationFailure::Fenced));
        let regressed = Some(CoordinationFailure::CeilingRegressed);
        assert_eq!(failure(renew(5, 2_999)), regressed);
        assert_eq!(failure(renew(4, 9_000)), regressed);
        // A clock that stepped back takes nothing back.
        assert_eq!(
            terms.renewed(&grant, 5, at(3_000), Timestamp::MIN, None),
            Ok(at(3_000))
        );
    }

    #[test]
    fn a_grant_of_another_process_is_refused_as_fenced() {
        let terms = LeaseTerms::new(0..4).unwrap();
        let grant = Grant::new(2, 5, at(0), at(3_000)).unwrap();
        let mut parents = grant;
        parents.process.id += 1;
        let error = terms
            .renewed(&parents, 5, at(3_000), at(1_000), None)
            .unwrap_err();
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Fenced)
        );
        assert_eq!(
            error.to_string(),
            format!(
                "the lease is another's: node 2 (grant 5), 1800000000000 to below 1800000003000 ms is of \
                 process {}, and this is its fork: acquire a grant of the child's own",
                parents.process
            )
        );
        let released = terms.released(&parents, 5, at(3_000), None);
        assert_eq!(failure(released), Some(CoordinationFailure::Fenced));
    }

    #[test]
    fn a_release_keeps_what_was_used() {
        let terms = LeaseTerms::new(0..4).unwrap();
        let grant = Grant::new(2, 5, at(10), at(3_000)).unwrap();
        let release = |last: Option<u64>| terms.released(&grant, 5, at(3_000), last.map(at));
        assert_eq!(release(None), Ok(at(10)));
        assert_eq!(release(Some(500)), Ok(at(501)));
        assert_eq!(release(Some(2_999)), Ok(at(3_000)));
        // Keys of an earlier node, and keys that there cannot be.
        assert_eq!(release(Some(3)), Ok(at(10)));
        assert_eq!(release(Some(9_000)), Ok(at(3_000)));
        let fenced = terms.released(&grant, 6, at(3_000), None);
        assert_eq!(failure(fenced), Some(CoordinationFailure::Fenced));
        // Once more, when the answer was lost.
        let again = |epoch, stored| terms.released(&grant, epoch, at(stored), Some(at(500)));
        assert_eq!(again(5, 501), Ok(at(501)));
        let regressed = Some(CoordinationFailure::CeilingRegressed);
        assert_eq!(failure(again(5, 502)), regressed);
        assert_eq!(failure(again(4, 501)), regressed);
        assert_eq!(failure(again(6, 501)), Some(CoordinationFailure::Fenced));
    }

    #[test]
    fn impossible_lease_terms_are_refused() {
        assert!(LeaseTerms::new(4..4).is_err());
        assert!(LeaseTerms::new(0..u64::MAX).is_err());
        let terms = LeaseTerms::new(0..4).unwrap();
        let seconds = Duration::from_secs;
        for refused in [
            terms.clone().with_window(Duration::from_micros(999)),
            terms.clone().with_window(seconds(11)),
            terms.clone().with_ttl(seconds(2)),
            terms.clone().with_max_ahead(seconds(2)),
        ] {
            assert_eq!(failure(refused), Some(CoordinationFailure::Mismatch));
        }
        // Nothing would be granted to a process whose clock is a millisecond ahead of the store's.
        let error = terms.clone().with_window(seconds(10)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "not what was asked for: a window of 10s needs a millisecond at least, no more than the time to live (10s), \
             and 1s less than a grant may reach ahead (10s), because the clocks of process and store differ"
        );
        assert!(terms.clone().with_max_ahead(seconds(3)).is_err());
        assert!(terms.clone().with_max_ahead(seconds(4)).is_ok());
        let longest = terms.clone().with_window(seconds(9)).unwrap();
        assert!(longest.range(None, at(1_000), None, Some(at(0))).is_ok());
        let grant = Grant::new(0, 1, at(5), at(5));
        assert_eq!(failure(grant), Some(CoordinationFailure::Mismatch));
    }
}
