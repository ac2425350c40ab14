//! A generator that may use its node only for a range of embedded time.

use core::fmt;
use std::{
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicU64, Ordering, fence},
    },
    time::{Duration, Instant},
};

use super::{
    Events, Generator, OrderedGenerator, Policy, Slotted,
    engine::Slots,
    observe,
    ordered::{key_with, slot_layout_of},
};
use crate::{
    clock::{Clock, Delay, Timestamp},
    coordination::{CoordinationFailure, Grant},
    entropy::Entropy,
    error::{Error, ErrorKind},
    key::{Generated, KeyType},
};

mod keeper;

pub use keeper::{LeaseKeeper, LeaseRequest, LeaseThread};

/// What happens when the time of the grant is over and it has not been renewed yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtCeiling {
    /// Fails with [`CoordinationFailure::Expired`].
    Error,
    /// Waits for the renewal, a millisecond at a time, for at most `max`; then fails with the same error.
    ///
    /// The wait blocks the calling thread, because making a key is not asynchronous. Do not use it on the threads
    /// of an async runtime: the keeper may need the very thread that waits, and then the renewal never comes. Use
    /// [`Error`](Self::Error) and [`generate_within`](GrantedGenerator::generate_within) there.
    Wait {
        /// The longest wait; rounded down to milliseconds.
        max: Duration,
    },
}

impl AtCeiling {
    fn max_pauses(self) -> u64 {
        match self {
            Self::Error => 0,
            Self::Wait { max } => u64::try_from(max.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// An [`OrderedGenerator`] that gets its node from a [`Grant`], for schemes whose keys are told apart by their
/// node, such as [`Snowflake`](crate::scheme::Snowflake). It makes only keys whose embedded time lies in the
/// grant's range. This holds whatever the clock reads, and however long the process was stopped between a check and
/// a key.
///
/// When the range ends, calls fail or wait ([`AtCeiling`]) until [`renew`](Self::renew) extends it; a [`LeaseKeeper`]
/// does that in the background. A renewal may change the node; keys go on rising.
///
/// In the child of a fork the generator refuses to work, because the grant belongs to the parent. Acquire another
/// node for the child.
///
/// # What it costs
///
/// A key costs a few more reads than with an [`OrderedGenerator`], of numbers that change only with the grant. It
/// takes no lock.
///
/// # Example
///
/// ```
/// # #[cfg(feature = "test-util")] {
/// use ordid_core::{
///     clock::{ManualClock, Timestamp}, coordination::{CoordinationFailure, Grant},
///     entropy::SeededEntropy,
///     generator::{AtCeiling, Generator, GrantedGenerator, Policy},
///     scheme::{Layout, Snowflake},
/// };
///
/// let at = |millis: u64| Timestamp::saturating_from_unix_millis(1_800_000_000_000 + millis);
/// let grant = Grant::new(7, 1, at(0), at(3_000))?; // of a NodeAllocator
/// let keys = GrantedGenerator::<Snowflake, _, _>::new(
///     grant, ManualClock::at_unix_millis(1_800_000_002_999), SeededEntropy::new(1),
///     Policy::DEFAULT, AtCeiling::Error)?;
/// assert_eq!(<Snowflake>::unpack(&keys.try_generate()?.into_raw())?.node, 7);
///
/// keys.clock().set_unix_millis(1_800_000_003_000);
/// let error = keys.try_generate().unwrap_err();
/// assert_eq!(error.coordination_failure(), Some(CoordinationFailure::Expired));
///
/// keys.renew(Grant::new(7, 1, at(0), at(6_000))?)?;
/// assert!(keys.try_generate().is_ok());
/// # }
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub struct GrantedGenerator<S: Slotted, C, E> {
    keys: OrderedGenerator<S, GrantClock<C>, E>,
    at_ceiling: AtCeiling,
    /// The child of a fork returns this grant if the fork was made while somebody held the lock.
    first_grant: Grant,
    held: Mutex<Held>,
}

/// What the generator holds.
#[derive(Debug)]
struct Held {
    grant: Grant,
    /// How many units of time the grant had left when it came; of its renewals, the most. The range itself grows by what is
    /// over.
    units: u64,
    /// The newest time in its keys, once it was closed: no key is made any more.
    closed: Option<Option<Timestamp>>,
    /// Why it was not renewed, for the error of the key that then cannot be made.
    failure: Option<Error>,
}

/// A clock that never reads past the last millisecond of the grant, so that the engine never has to come back from
/// a later time. It also holds the parts of the grant that every key reads.
pub struct GrantClock<C> {
    clock: C,
    /// The last millisecond of the grant's last unit of time.
    last_millis: AtomicU64,
    published: Published,
}

/// The grant as every key reads it, behind a sequence lock. Times are in the layout's units.
#[derive(Default)]
struct Published {
    /// Odd while it is written.
    version: AtomicU64,
    node: AtomicU64,
    /// The first unit of time.
    first: AtomicU64,
    /// The unit after the last one; `first` if there is none for now.
    end: AtomicU64,
}

/// What a key has read of the grant.
#[derive(Debug, Clone, Copy)]
struct Seen {
    version: u64,
    node: u64,
    first: u64,
    end: u64,
}

impl Seen {
    fn has_time(self) -> bool {
        self.first < self.end
    }
}

impl Published {
    #[inline(always)]
    fn see(&self) -> Seen {
        Seen {
            version: self.version.load(Ordering::Acquire),
            node: self.node.load(Ordering::Relaxed),
            first: self.first.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
        }
    }

    /// Whether what was seen was one grant, and still is what is published.
    ///
    /// Asked after a slot was claimed: whoever closes the generator publishes first and then looks how
    /// far slots were claimed, so that a slot is counted there, or refused here.
    #[inline(always)]
    fn confirms(&self, seen: Seen) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == seen.version && seen.version.is_multiple_of(2)
    }

    /// The caller holds the lock of what is published.
    fn publish(&self, node: u64, first: u64, end: u64) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.node.store(node, Ordering::Relaxed);
        self.first.store(first, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.version.store(version + 2, Ordering::Release);
    }
}

impl<C: Clock> Clock for GrantClock<C> {
    #[inline]
    fn now(&self) -> Timestamp {
        let last = self.last_millis.load(Ordering::Relaxed);
        self.clock
            .now()
            .min(Timestamp::saturating_from_unix_millis(last))
    }

    #[inline]
    fn now_with_nanos(&self) -> (Timestamp, u32) {
        let last = self.last_millis.load(Ordering::Relaxed);
        self.clock
            .now_with_nanos()
            .min((Timestamp::saturating_from_unix_millis(last), 999_999))
    }

    fn pause(&self, duration: Duration) {
        self.clock.pause(duration);
    }
}

impl<C: fmt::Debug> fmt::Debug for GrantClock<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}

/// The units of time that lie wholly in a grant's range: first, and the one after the last.
fn units_of<S: Slotted>(grant: &Grant) -> Result<(u64, u64), Error> {
    let layout = slot_layout_of::<S>();
    let unit_at = |timestamp: Timestamp| {
        let slot = layout
            .at(timestamp, 0)
            .map_err(|refusal| refusal.of_clock(layout, timestamp))?;
        Ok(layout.split(slot).0)
    };
    let mut first = unit_at(grant.floor())?;
    if layout.timestamp(first) < grant.floor() {
        first += 1;
    }
    let end = unit_at(grant.ceiling())?;
    if first >= end {
        return Err(Error::coordination(
            CoordinationFailure::Mismatch,
            format!(
                "{grant} has no whole unit of time of scheme {}: lengthen the window of the terms",
                S::NAME
            ),
        ));
    }
    Ok((first, end))
}

impl<S, C, E> GrantedGenerator<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    /// Makes a generator that uses a grant from a [`NodeAllocator`](crate::coordination::NodeAllocator).
    ///
    /// A grant may begin up to the terms' `max_ahead` ahead of the clock. The policy must hold that gap;
    /// the default policy holds the default `max_ahead`.
    ///
    /// # Errors
    ///
    /// Returns a [`Mismatch`](CoordinationFailure::Mismatch) if the layout has no such node, or if the range contains
    /// no whole unit of the layout's time. Returns an error that [`is_clock`](Error::is_clock) if the grant begins
    /// further ahead of the clock than the policy holds, or outside the layout's time. Returns
    /// [`Fenced`](CoordinationFailure::Fenced) in the child of a fork if the grant belongs to the parent. Returns an
    /// error that [`is_entropy`](Error::is_entropy) if the operating system has no entropy.
    pub fn new(
        grant: Grant,
        clock: C,
        entropy: E,
        policy: Policy,
        at_ceiling: AtCeiling,
    ) -> Result<Self, Error> {
        const {
            assert!(
                !S::RENEWS,
                "only schemes whose keys are told apart by the node alone need a grant"
            );
        }
        grant.check_process()?;
        let node = node_of::<S>(grant.node())?;
        let (first, _) = units_of::<S>(&grant)?;
        let clock = GrantClock {
            clock,
            // The engine begins at the grant's first unit of time, or below.
            last_millis: AtomicU64::new(slot_layout_of::<S>().timestamp(first).as_unix_millis()),
            published: Published::default(),
        };
        let generator = Self {
            keys: OrderedGenerator::with_node(node, clock, entropy, policy),
            at_ceiling,
            first_grant: grant,
            held: Mutex::new(Held {
                grant,
                units: 0,
                closed: None,
                failure: None,
            }),
        };
        generator.keys.begin()?;
        generator.install(&mut generator.locked(), grant)?;
        Ok(generator)
    }

    /// Goes on with a grant. It is the present grant with a later ceiling, or another grant, of the same node or a
    /// different one. Another grant must come from an
    /// [`NodeAllocator::acquire`](crate::coordination::NodeAllocator::acquire) call that was given this generator's
    /// [`newest`](Self::newest) time.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`new`](Self::new). Returns [`Fenced`](CoordinationFailure::Fenced) also if the
    /// generator was closed, or if the same grant has an earlier ceiling than the present one. After an error the
    /// present grant stays. But if the generator was closed, [`closed`](Self::closed) returns the new grant, which
    /// the caller then has to release. In the child of a fork the error [`is_forked`](Error::is_forked).
    pub fn renew(&self, grant: Grant) -> Result<(), Error> {
        // Before the lock: a fork may have left it locked.
        self.keys.check_process()?;
        grant.check_process()?;
        let mut held = self.locked();
        let present = held.grant;
        if held.closed.is_some() {
            // Whoever closed it has to give this one back.
            held.grant = grant;
            return Err(Error::coordination(
                CoordinationFailure::Fenced,
                format!("this generator was closed: {grant} comes too late, and is to be released"),
            ));
        }
        if is_same(&present, &grant) && grant.ceiling() < present.ceiling() {
            return Err(Error::coordination(
                CoordinationFailure::Fenced,
                format!("{grant} is less than this generator has: {present}"),
            ));
        }
        self.install(&mut held, grant)
    }

    fn install(&self, held: &mut Held, grant: Grant) -> Result<(), Error> {
        node_of::<S>(grant.node())?;
        let (first, end) = units_of::<S>(&grant)?;
        let layout = slot_layout_of::<S>();
        let now = self.clock().now();
        let ahead = layout
            .timestamp(first)
            .as_unix_millis()
            .saturating_sub(now.as_unix_millis());
        let most = self.keys.policy().hold_millis();
        if ahead > most {
            return Err(Error::new(ErrorKind::Rollback {
                behind_millis: ahead,
                max_millis: most,
            }));
        }
        let clock = self.keys.clock();
        let mut before = first.checked_sub(1);
        if held.grant.node() != grant.node() {
            // Keys went on under the old node after this grant was asked for, and may have come as far as
            // its floor: those of a lower node would not rise in the same unit of time. Ended first, so
            // that each key of the old node is counted here or refused where it is made.
            clock.published.publish(held.grant.node(), first, first);
            before = before.max(self.keys.newest_time());
        }
        // Before the grant is seen: whoever sees it claims a slot of it.
        if let Some(before) = before {
            self.keys.start_above_time(before);
        }
        let last = layout.timestamp(end).as_unix_millis().saturating_sub(1);
        clock.last_millis.store(last, Ordering::Release);
        clock.published.publish(grant.node(), first, end);
        let now = layout.at(now, 0).map_or(first, |slot| layout.split(slot).0);
        held.units = match end.saturating_sub(now.max(first)) {
            left if held.units > 0 && is_same(&held.grant, &grant) => held.units.max(left),
            // It came too late, which says nothing of the next renewal.
            0 => end - first,
            left => left,
        };
        held.grant = grant;
        held.failure = None;
        Ok(())
    }

    /// Makes the next key. If the grant has no time left for it, the call waits for more time, for at most `max`,
    /// and lets other tasks run meanwhile. Use it in async code, with [`AtCeiling::Error`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`try_generate`](Generator::try_generate), after `max` at the latest.
    ///
    /// # Example
    ///
    /// ```no_run
    /// # use ordid_core::{clock::SystemClock, entropy::ThreadEntropy, generator::GrantedGenerator, scheme::Snowflake};
    /// # async fn example(keys: GrantedGenerator<Snowflake, SystemClock, ThreadEntropy>) -> Result<(), ordid_core::Error> {
    /// use std::time::Duration;
    ///
    /// let key = keys.generate_within(Duration::from_secs(2)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn generate_within(&self, max: Duration) -> Result<Generated<S>, Error> {
        let began = Instant::now();
        loop {
            match self.try_generate() {
                Err(error) if is_over(&error) && self.closed().is_none() => {
                    if began.elapsed() >= max {
                        return Err(error);
                    }
                    Delay::new(Duration::from_millis(1)).await;
                }
                made => return made,
            }
        }
    }

    /// As [`generate_within`](Self::generate_within), but returns a key type of the scheme.
    ///
    /// # Errors
    ///
    /// As [`generate_within`](Self::generate_within).
    pub async fn generate_key_within<K>(&self, max: Duration) -> Result<K, Error>
    where
        K: KeyType<Scheme = S, Raw = S::Raw>,
    {
        self.generate_within(max).await.map(K::from_generated)
    }

    /// Closes the generator. It makes no more keys from then on. Returns the grant and the newest time that its keys
    /// may carry, both for [`NodeAllocator::release`](crate::coordination::NodeAllocator::release).
    ///
    /// In the child of a fork, which can neither use the grant nor release it, this and [`grant`](Self::grant) may return
    /// the grant that the generator was made with.
    pub fn close(&self) -> (Grant, Option<Timestamp>) {
        let Some(mut held) = self.held() else {
            return (self.first_grant, self.newest());
        };
        if held.closed.is_none() {
            self.keys.clock().published.publish(0, 0, 0);
            held.closed = Some(self.newest());
        }
        (held.grant, held.closed.flatten())
    }

    /// Returns the result of [`close`](Self::close), if the generator was closed.
    pub fn closed(&self) -> Option<(Grant, Option<Timestamp>)> {
        let held = self.held()?;
        held.closed.map(|newest| (held.grant, newest))
    }

    /// Returns the present grant, or the last one if the generator was closed.
    pub fn grant(&self) -> Grant {
        self.held().map_or(self.first_grant, |held| held.grant)
    }

    /// Returns the newest time that the keys made so far may carry. Before the first key this is the last millisecond
    /// of the grant's first unit of time.
    pub fn newest(&self) -> Option<Timestamp> {
        let layout = slot_layout_of::<S>();
        let newest = self.keys.newest_time()?;
        // The last millisecond of the unit: the next unit begins after it.
        let next = layout.timestamp(newest.saturating_add(1)).as_unix_millis();
        Some(Timestamp::saturating_from_unix_millis(
            next.saturating_sub(1),
        ))
    }

    /// Returns the clock that was passed to [`new`](Self::new).
    pub fn clock(&self) -> &C {
        &self.keys.clock().clock
    }

    /// Says why the grant was not renewed: the text of the errors that follow from it.
    fn not_renewed(&self, failure: Error) {
        if let Some(mut held) = self.held() {
            held.failure = Some(failure);
        }
    }

    /// Locks what the generator holds. Only after a check of the process: see [`held`](Self::held).
    fn locked(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks what the generator holds, in the child of a fork, too. `None` if the fork was made while somebody had the lock:
    /// nobody gives it back in the child.
    fn held(&self) -> Option<MutexGuard<'_, Held>> {
        match self.keys.check_process() {
            Ok(()) => Some(self.locked()),
            Err(_) => tried(&self.held),
        }
    }

    /// Returns what is published, once a key can be made of it.
    #[inline(always)]
    fn see(&self) -> Result<Seen, Error> {
        let seen = self.keys.clock().published.see();
        if seen.has_time() {
            return Ok(seen);
        }
        self.wait_for_time(1)
    }

    /// Waits until so many slots can be claimed in the grant's range, as long as [`AtCeiling`] says,
    /// and returns what is published then.
    #[cold]
    #[inline(never)]
    fn wait_for_time(&self, count: u64) -> Result<Seen, Error> {
        // Before the lock: a fork may have left it locked.
        self.keys.check_process()?;
        let layout = slot_layout_of::<S>();
        let published = &self.keys.clock().published;
        // A single slot begins no unit of time that it does not need.
        let units = if count == 1 {
            0
        } else {
            count / layout.slots() + 1
        };
        let mut pauses = self.at_ceiling.max_pauses();
        loop {
            {
                let held = self.locked();
                if held.closed.is_some() {
                    let failure = held.failure.as_ref();
                    if failure.is_some_and(is_regressed) {
                        return Err(expired(&held.grant, failure, None));
                    }
                    return Err(Error::coordination(
                        CoordinationFailure::Expired,
                        "this generator was closed and its node given back",
                    ));
                }
                let (first, end) = units_of::<S>(&held.grant)?;
                if units >= held.units {
                    // One that fills its last unit of time may begin another one.
                    let most = (held.units - 1).saturating_mul(layout.slots());
                    return Err(Error::new(ErrorKind::ReservationTooLarge {
                        asked: count,
                        max: most.saturating_sub(1).max(1),
                    }));
                }
                let now = layout
                    .at(self.clock().now(), 0)
                    .map_or(first, |slot| layout.split(slot).0);
                let newest = self.keys.newest_time().unwrap_or(first).max(now);
                let is_lapsed = newest >= end;
                if newest + units < end {
                    if !published.see().has_time() {
                        published.publish(held.grant.node(), first, end);
                    }
                    return Ok(published.see());
                }
                if is_lapsed && published.see().has_time() {
                    // So that nobody claims slots in vain.
                    published.publish(held.grant.node(), first, first);
                }
                if pauses == 0 {
                    observe::lease_expired(&held.grant);
                    let ran_ahead = (now < end && held.failure.is_none()).then(|| {
                        let millis = |unit| layout.timestamp(unit).as_unix_millis();
                        (layout.slots(), millis(first + 1) - millis(first))
                    });
                    return Err(expired(&held.grant, held.failure.as_ref(), ran_ahead));
                }
            }
            pauses -= 1;
            self.clock().pause(Duration::from_millis(1));
        }
    }

    /// Whether a claimed slot's unit of time is in the range that was seen, and the clock not past it.
    #[inline(always)]
    fn is_granted(&self, seen: Seen, time: u64) -> bool {
        // The last unit is judged apart: the clock may be past it and not show it.
        time >= seen.first && time + 1 < seen.end && self.keys.clock().published.confirms(seen)
    }

    /// As [`is_granted`](Self::is_granted), for the last unit, too.
    #[cold]
    #[inline(never)]
    fn is_granted_at_last(&self, seen: Seen, from: u64, until: u64) -> bool {
        let end = slot_layout_of::<S>().timestamp(seen.end);
        from >= seen.first
            && until < seen.end
            && self.clock().now() < end
            && self.keys.clock().published.confirms(seen)
    }

    /// Returns how many of so many keys a fill claims together: no more than the grant has time for now, but one at
    /// least, which waits for more time as a single key does.
    fn piece(&self, left: usize) -> usize {
        let layout = slot_layout_of::<S>();
        let seen = self.keys.clock().published.see();
        let now = layout.at(self.clock().now(), 0);
        let now = now.map_or(seen.first, |slot| layout.split(slot).0);
        let newest = self.keys.newest_time().unwrap_or(seen.first).max(now);
        // Several slots may begin one unit of time more than they fill.
        let units = seen.end.saturating_sub(newest).saturating_sub(1);
        let most = units.saturating_mul(layout.slots()).saturating_sub(1);
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        self.keys.piece(left).min(most)
    }

    /// Claims slots together, all in one range, and returns them with their node.
    fn claim(&self, count: u64) -> Result<(S::Node, Slots), Error> {
        let layout = slot_layout_of::<S>();
        loop {
            let seen = self.wait_for_time(count)?;
            let slots = self.keys.claim(count)?;
            let from = layout.split(slots.first).0;
            let until = layout.split(slots.first + (count - 1)).0;
            if self.is_granted_at_last(seen, from, until) {
                return Ok((node_of::<S>(seen.node)?, slots));
            }
        }
    }
}

impl<S: Slotted, C, E> fmt::Debug for GrantedGenerator<S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held = tried(&self.held);
        let held: &dyn fmt::Debug = match &held {
            Some(held) => &**held,
            // By another thread, or by one that a fork left behind.
            None => &format_args!("<locked>"),
        };
        f.debug_struct("GrantedGenerator")
            .field("scheme", &S::NAME)
            .field("held", held)
            .finish_non_exhaustive()
    }
}

/// Locks if nobody has the lock.
fn tried<T>(lock: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match lock.try_lock() {
        Ok(locked) => Some(locked),
        Err(TryLockError::Poisoned(locked)) => Some(locked.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns whether one grant is the other, or its renewal.
fn is_same(one: &Grant, other: &Grant) -> bool {
    (one.node(), one.epoch()) == (other.node(), other.epoch())
}

/// Returns a layout's node of this number.
#[inline(always)]
fn node_of<S: Slotted<Node: TryFrom<u64>>>(number: u64) -> Result<S::Node, Error> {
    #[cold]
    fn refused(scheme: &str, number: u64) -> Error {
        Error::coordination(
            CoordinationFailure::Mismatch,
            format!("scheme {scheme} has no node {number}: narrow the nodes of the terms"),
        )
    }
    S::Node::try_from(number).map_err(|_| refused(S::NAME, number))
}

/// Says why there is no time left: the renewal failed, or the keys came to the end before the clock, at this rate of
/// keys and milliseconds.
fn expired(grant: &Grant, failure: Option<&Error>, ran_ahead: Option<(u64, u64)>) -> Error {
    let why = match (failure, ran_ahead) {
        (Some(failure), _) => format!("it was not renewed: {failure}"),
        (None, Some((keys, millis))) => format!(
            "its keys have come to the end of this time before the clock, as the layout has {keys} keys a node in \
             {millis} ms and more were made; wait, as `generate_within` does, make them more slowly, or take a layout \
             with a longer sequence"
        ),
        (None, None) => "it was not renewed in time".to_owned(),
    };
    Error::coordination(CoordinationFailure::Expired, format!("{grant}: {why}"))
}

/// Whether the store's record went back, after which a [`LeaseKeeper`] closes the generator.
fn is_regressed(error: &Error) -> bool {
    error.coordination_failure() == Some(CoordinationFailure::CeilingRegressed)
}

fn is_over(error: &Error) -> bool {
    error.coordination_failure() == Some(CoordinationFailure::Expired)
}

impl<S, C, E> Generator for GrantedGenerator<S, C, E>
where
    S: Slotted<Node: TryFrom<u64>>,
    C: Clock,
    E: Entropy,
{
    type Scheme = S;
    type Reserved<'g>
        = ReservedUnderGrant<'g, S, C, E>
    where
        Self: 'g;

    #[inline]
    fn try_generate(&self) -> Result<Generated<S>, Error> {
        let mut seen = self.see()?;
        loop {
            let (slot, begin, random) = self.keys.next_slot()?;
            let time = slot_layout_of::<S>().split(slot).0;
            if self.is_granted(seen, time) || self.is_granted_at_last(seen, time, time) {
                return Ok(key_with(node_of::<S>(seen.node)?, slot, begin, random));
            }
            seen = self.wait_for_time(1)?;
        }
    }

    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<S>, Error> {
        self.keys.generate_at(timestamp)
    }

    fn try_fill_with(&self, count: usize, mut put: impl FnMut(Generated<S>)) -> Result<(), Error> {
        let mut left = count;
        while left > 0 {
            let piece = self.piece(left);
            let (node, slots) = self.claim(piece as u64)?;
            self.keys.keys(node, slots, piece, &mut put)?;
            left -= piece;
        }
        Ok(())
    }

    /// All keys belong to one grant and stay valid, even if the grant ends before they are returned.
    fn reserve(&self, count: usize) -> Result<ReservedUnderGrant<'_, S, C, E>, Error> {
        let claimed = match count {
            0 => None,
            count => Some(self.claim(count as u64)?),
        };
        Ok(ReservedUnderGrant {
            generator: self,
            claimed,
            left: count,
        })
    }

    fn events(&self) -> Events {
        self.keys.events()
    }
}

/// Keys that were claimed together under one grant; the iterator yields them one by one. Keys that are not taken are
/// never used.
pub struct ReservedUnderGrant<'g, S: Slotted, C, E> {
    generator: &'g GrantedGenerator<S, C, E>,
    claimed: Option<(S::Node, Slots)>,
    left: usize,
}

impl<S: Slotted, C: Clock, E: Entropy> Iterator for ReservedUnderGrant<'_, S, C, E> {
    type Item = Result<Generated<S>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let (node, slots) = self.claimed.as_mut()?;
        if self.left == 0 {
            return None;
        }
        let keys = &self.generator.keys;
        if slots.epoch != keys.entropy().epoch()
            && let Err(forked) = keys.check_process()
        {
            // These slots are the parent's, and so is the node.
            return Some(Err(forked));
        }
        let key = keys.key_of_with(*node, *slots);
        if key.is_ok() {
            slots.first += 1;
            self.left -= 1;
        }
        Some(key)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<S: Slotted, C: Clock, E: Entropy> ExactSizeIterator for ReservedUnderGrant<'_, S, C, E> {}

impl<S: Slotted, C, E> fmt::Debug for ReservedUnderGrant<'_, S, C, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReservedUnderGrant")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
