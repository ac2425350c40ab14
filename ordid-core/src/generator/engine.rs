//! The order of keys over all threads: one atomic number, no lock.
//!
//! ```text
//! state    | 44 bits: milliseconds since 1970 | 20 bits: index in the millisecond |
//! version  | 1 bit: renewal under way | 31 bits: count of renewals | 32 bits: entropy epoch |
//! ```
//!
//! (What is called a millisecond here is the layout's unit of time, and how many bits the index has
//! is its choice too, [`SlotLayout`]; if the layout keeps fractions of a unit, they are the upper bits of
//! the index.)
//!
//! `state` is the next free slot. A reservation of `n` slots adds `n` to it; the first one of a
//! millisecond moves it there by a compare-and-swap to the slot of now plus `n`; and a full
//! millisecond carries into the next one by the addition itself. So slots rise strictly over all
//! threads whatever the clock does, and what remains to decide is how far the slots may be *ahead*
//! of the clock: because it stepped back ([`Rollback`]), or because the counter ran over
//! ([`Overflow`]).
//!
//! The 42-bit counter of a UUID v7 does not fit beside the time in one word. So each millisecond's
//! random start is not stored but computed: a keyed PRF of the millisecond, under a secret that
//! all threads share. Whoever lacks the secret sees a random start per millisecond; whoever has
//! it, on any thread, gets the same one.
//!
//! *Renewal* draws a new secret: at first use, in the child of a fork, and when the clock is
//! followed backwards, so that a millisecond that comes twice has two unrelated starts. `version`
//! is a sequence lock around it: a reservation counts only if the version was the same, and
//! stable, before and after. A renewal that a fork cut off in the parent is taken over by the
//! child, which sees the older epoch. One that only looks so, because the epoch was raised without
//! a fork, gives way when it goes on.
//!
//! `model.rs` runs all this under a model checker.

use core::{fmt, time::Duration};

mod slot_layout;

pub(crate) use slot_layout::{Refusal, SlotLayout};

use super::{Events, Overflow, Policy, Rollback, observe, sync::*};
use crate::{
    clock::Clock,
    entropy::Entropy,
    error::{Error, ErrorKind},
};

/// One pause while a policy waits.
const PAUSE: Duration = Duration::from_millis(1);

/// How often the state is looked at again before a clock is taken to have stepped back by one unit of time.
const LOOKS: u32 = 8;

/// A claimed run of slots, and the secret that they were claimed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) first: u64,
    pub(crate) secret: [u64; 2],
    pub(crate) epoch: u32,
}

/// What the key of a slot depends on beside the slot: it must not change while the slot is claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The secret.
    Secret,
    /// That no renewal came between, which might have lowered the state.
    Version,
    /// Nothing: no clock is ever followed, so the state only rises, and each slot is claimed once
    /// whatever is renewed meanwhile.
    Nothing,
}

/// What [`Engine::snapshot`] or [`Engine::glance`] found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) state: u64,
    /// The clock's.
    pub(crate) tick: u64,
}

impl Snapshot {
    /// Of no epoch, so nothing can be claimed.
    pub(crate) const NOTHING: Self = Self {
        version: 0,
        state: 0,
        tick: 0,
    };
}

pub(crate) struct Engine {
    state: CachePadded<AtomicU64>,
    renewed: CachePadded<Renewed>,
}

/// What changes seldom, away from the cache line that every key writes.
struct Renewed {
    version: AtomicU64,
    secret: [AtomicU64; 2],
    followed: AtomicU64,
    counter_waits: AtomicU64,
    clock_waits: AtomicU64,
    renewals: AtomicU64,
    /// The state behind the last slots of a later unit of time that were claimed in passing and given up. Until others are
    /// claimed behind them, the counter has run over, as if it stood at index 0.
    given_up: AtomicU64,
    /// The last millisecond ahead of the clock that was told of. Nothing depends on it, so the model
    /// checker need not know it.
    reported: core::sync::atomic::AtomicU64,
}

/// A value with cache lines of its own: two, because processors fetch them in pairs.
#[repr(align(128))]
struct CachePadded<T>(T);

/// Why a renewal is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// First use, or a fork: order goes on above what was there.
    Epoch,
    /// The slots are further ahead of the clock than allowed: start again at the clock.
    Follow,
}

impl Engine {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                state: CachePadded(AtomicU64::new(0)),
                renewed: CachePadded(Renewed {
                    // Epoch 0 is no source's epoch: the first call renews.
                    version: AtomicU64::new(0),
                    secret: [AtomicU64::new(0), AtomicU64::new(0)],
                    followed: AtomicU64::new(0),
                    counter_waits: AtomicU64::new(0),
                    clock_waits: AtomicU64::new(0),
                    renewals: AtomicU64::new(0),
                    given_up: AtomicU64::new(0),
                    reported: core::sync::atomic::AtomicU64::new(0),
                }),
            }
        }
    }

    pub(crate) fn events(&self) -> Events {
        let CachePadded(renewed) = &self.renewed;
        Events {
            clock_followed: renewed.followed.load(Ordering::Relaxed),
            clock_waits: renewed.clock_waits.load(Ordering::Relaxed),
            counter_waits: renewed.counter_waits.load(Ordering::Relaxed),
            renewals: renewed.renewals.load(Ordering::Relaxed),
        }
    }

    /// Whether the secret is of this epoch: not before the first use, nor after a fork.
    pub(crate) fn is_of(&self, epoch: u32) -> bool {
        epoch_of(self.renewed.0.version.load(Ordering::Acquire)) == epoch
    }

    /// Claims `count` consecutive slots in this epoch of the entropy.
    #[inline]
    pub(crate) fn reserve(
        &self,
        layout: &SlotLayout,
        count: u64,
        epoch: u32,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: &Policy,
    ) -> Result<Slots, Error> {
        if count > layout.max_reservation(policy) {
            return Err(too_large(layout, count, policy));
        }
        let snapshot = self.snapshot(layout, clock).ok();
        match snapshot
            .and_then(|snapshot| self.reserve_from(layout, snapshot, count, epoch, policy))
        {
            Some(slots) => Ok(slots),
            None => self.reserve_slowly(layout, count, clock, entropy, policy),
        }
    }

    /// Reads what a claim depends on.
    #[inline(always)]
    fn snapshot(&self, layout: &SlotLayout, clock: &impl Clock) -> Result<Snapshot, Refusal> {
        let version = self.version();
        // The state is read before the clock: a thread that sleeps between the two then finds the
        // clock later than the state, never earlier, and does not take itself for a rollback.
        let state = self.state.0.load(Ordering::Acquire);
        Ok(Snapshot {
            version,
            state,
            tick: layout.tick(clock)?,
        })
    }

    /// As [`snapshot`](Self::snapshot), for [`take`](Self::take). A step of its own, so that the caller can
    /// draw its random bits after the call into the system, over which they would have to be kept.
    ///
    /// The state is read last. Before the clock, a key would wait for it as long as for the call: the
    /// processor has just written it. So a thread that slept meanwhile may find a state that is
    /// [ahead](SlotLayout::is_ahead) of its clock, which tells nothing.
    #[inline(always)]
    pub(crate) fn glance(
        &self,
        layout: &SlotLayout,
        clock: &impl Clock,
        needs: Needs,
    ) -> Option<Snapshot> {
        let before = (needs != Needs::Nothing).then(|| self.version());
        let tick = layout.tick(clock).ok()?;
        Some(Snapshot {
            // Late where that will do: one number less to keep over the call into the system.
            version: before.unwrap_or_else(|| self.version()),
            state: self.state.0.load(Ordering::Acquire),
            tick,
        })
    }

    #[inline(always)]
    fn version(&self) -> u64 {
        self.renewed.0.version.load(Ordering::Acquire)
    }

    /// Claims one slot of the clock's unit of time, if nothing stands in the way: what nearly all
    /// keys need. The state is already in that unit then, so no thread has to win a race against
    /// another.
    ///
    /// What the key does not need is not read: the secret is then zeros.
    #[inline(always)]
    pub(crate) fn take(
        &self,
        layout: &SlotLayout,
        snapshot: Snapshot,
        epoch: u32,
        needs: Needs,
    ) -> Option<Slots> {
        let Snapshot {
            version,
            state,
            tick,
        } = snapshot;
        if !is_stable(version, epoch) || !layout.is_present(state, 1, tick) {
            return None;
        }
        let first = self.state.0.fetch_add(1, Ordering::AcqRel);
        // Where threads ran over the unit between the two lines, a few slots are given up.
        if !layout.is_present(first, 1, tick) {
            self.give_up(first, 1);
            return None;
        }
        self.confirm(first, version, epoch, needs)
    }

    #[cold]
    fn give_up(&self, first: u64, count: u64) {
        let end = first.saturating_add(count);
        self.renewed.0.given_up.fetch_max(end, Ordering::AcqRel);
    }

    /// As [`reserve`](Self::reserve), as far as this snapshot allows.
    #[inline]
    pub(crate) fn reserve_from(
        &self,
        layout: &SlotLayout,
        snapshot: Snapshot,
        count: u64,
        epoch: u32,
        policy: &Policy,
    ) -> Option<Slots> {
        if !is_stable(snapshot.version, epoch) {
            return None;
        }
        let first = self.claim(layout, snapshot, count, policy).ok()?;
        self.confirm(first, snapshot.version, epoch, Needs::Secret)
    }

    #[cold]
    fn reserve_slowly(
        &self,
        layout: &SlotLayout,
        count: u64,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: &Policy,
    ) -> Result<Slots, Error> {
        let renew = |seen, renewal| self.renew(layout, seen, renewal, clock, entropy, policy);
        let (mut counter_pauses, mut clock_pauses, mut looks) = (0, 0, 0);
        loop {
            let epoch = entropy.epoch();
            let snapshot = self
                .snapshot(layout, clock)
                .map_err(|refusal| refusal.of_clock(layout, clock.now()))?;
            let version = snapshot.version;
            if !is_stable(version, epoch) {
                renew((version, epoch), Renewal::Epoch)?;
                continue;
            }
            match self.claim(layout, snapshot, count, policy) {
                Ok(first) => {
                    if let Some(slots) = self.confirm(first, version, epoch, Needs::Secret) {
                        return Ok(slots);
                    }
                    // A renewal came between: the slots are given up, never used under two secrets.
                }
                Err(Refusal::Raced) => {}
                Err(refusal @ Refusal::BeforeEpoch) => {
                    return Err(refusal.of_clock(layout, clock.now()));
                }
                Err(refusal @ Refusal::Exhausted) => match policy.rollback {
                    Rollback::HoldThenFollow { .. }
                        if layout.saturates() && layout.has_slots(snapshot.tick, count) =>
                    {
                        renew((version, epoch), Renewal::Follow)?;
                    }
                    _ => {
                        let next = layout.timestamp(layout.max_time() + 1);
                        return Err(refusal.of_clock(layout, next.max(clock.now())));
                    }
                },
                // A thread that has run over the unit may not have told yet.
                Err(Refusal::Behind(1))
                    if !matches!(policy.overflow, Overflow::Advance { .. }) && looks < LOOKS =>
                {
                    looks += 1;
                    yield_now();
                }
                Err(Refusal::Behind(behind)) => {
                    let behind_millis = layout.millis(behind);
                    let max_millis = policy.rollback.max_millis();
                    match policy.rollback {
                        Rollback::HoldThenFollow { .. } => {
                            renew((version, epoch), Renewal::Follow)?;
                        }
                        Rollback::WaitThenError { .. }
                            if behind_millis.saturating_sub(policy.ahead_millis())
                                <= max_millis - clock_pauses =>
                        {
                            // Counted, so that a clock that stands still is an error in the end.
                            clock_pauses += 1;
                            self.renewed.0.clock_waits.fetch_add(1, Ordering::Relaxed);
                            observe::clock_wait(behind_millis);
                            clock.pause(PAUSE);
                        }
                        Rollback::HoldThenError { .. } | Rollback::WaitThenError { .. } => {
                            observe::refused(behind_millis);
                            return Err(Error::new(ErrorKind::Rollback {
                                behind_millis,
                                max_millis: policy.most_millis(),
                            }));
                        }
                    }
                }
                Err(Refusal::Overflow(time)) => {
                    let give_up =
                        policy.overflow == Overflow::Error || counter_pauses == layout.max_pauses();
                    if give_up {
                        observe::overflowed(layout.timestamp(time).as_unix_millis());
                        return Err(Error::new(ErrorKind::CounterOverflow {
                            timestamp: layout.timestamp(time.saturating_sub(1)),
                        }));
                    }
                    counter_pauses += 1;
                    self.renewed.0.counter_waits.fetch_add(1, Ordering::Relaxed);
                    observe::counter_wait(layout.timestamp(time).as_unix_millis());
                    clock.pause(PAUSE);
                }
            }
        }
    }

    /// Moves the state on by `count` slots, at least one and at most
    /// [`SlotLayout::max_reservation`], and returns the first.
    #[inline]
    fn claim(
        &self,
        layout: &SlotLayout,
        snapshot: Snapshot,
        count: u64,
        policy: &Policy,
    ) -> Result<u64, Refusal> {
        let Snapshot { state, tick, .. } = snapshot;
        if layout.is_present(state, count, tick) {
            // Several of these would run over more than one unit. Where keys may be ahead, that is no harm.
            if count > 1 && !matches!(policy.overflow, Overflow::Advance { .. }) {
                return self.exchange(state, state, count);
            }
            // Where threads ran over the unit between the two lines, or this one slept, slots of a later one are
            // judged as those of a counter that ran over; a refusal gives up a few, and the newest state is judged by
            // a new time.
            let first = self.state.0.fetch_add(count, Ordering::AcqRel);
            if !layout.is_present(first, count, tick) {
                let admitted = self.admit(layout, first, count, tick, policy, true);
                admitted.map_err(|_| {
                    self.give_up(first, count);
                    Refusal::Raced
                })?;
            }
            return Ok(first);
        }
        self.move_on(layout, state, tick, count, policy)
    }

    /// Claims the first slots of a millisecond, or some that are ahead of the clock.
    #[cold]
    #[inline(never)]
    fn move_on(
        &self,
        layout: &SlotLayout,
        state: u64,
        tick: u64,
        count: u64,
        policy: &Policy,
    ) -> Result<u64, Refusal> {
        let first = state.max(layout.first_of(tick));
        if !layout.is_present(first, count, tick) {
            let given_up = self.renewed.0.given_up.load(Ordering::Acquire);
            let ran_over = has_run_over(layout, first, given_up);
            self.admit(layout, first, count, tick, policy, ran_over)?;
        }
        self.exchange(state, first, count)
    }

    /// Claims slots from `first` on, if nobody has claimed any since the state was read.
    fn exchange(&self, state: u64, first: u64, count: u64) -> Result<u64, Refusal> {
        match self.state.0.compare_exchange(
            state,
            first + count,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            Ok(_) => Ok(first),
            Err(_) => Err(Refusal::Raced),
        }
    }

    /// Decides about a claim that is not all in the clock's unit of time, and tells if it is ahead.
    #[cold]
    fn admit(
        &self,
        layout: &SlotLayout,
        first: u64,
        count: u64,
        tick: u64,
        policy: &Policy,
        ran_over: bool,
    ) -> Result<(), Refusal> {
        let now = layout.first_of(tick);
        check_claim(layout, first, count, now, policy, ran_over)?;
        let time = layout.split(first).0;
        let newest = layout.split(first + (count - 1)).0;
        let ahead = newest.saturating_sub(layout.split(now).0);
        let entered = ran_over || newest > time;
        // A key in a unit of time that the counter did not enter by itself is held: the clock
        // stepped back. By one only, it may be that of another processor.
        if ahead < if entered { 1 } else { 2 } {
            return Ok(());
        }
        // Told once a unit of time that keys carry: a held clock stays in one. If the counter runs
        // on to the next meanwhile, that is told as what it is, and the keys in it are explained.
        let reported = &self.renewed.0.reported;
        // Read first: a layout whose keys are made faster than its units pass is here with each key.
        if reported.load(core::sync::atomic::Ordering::Relaxed) != newest
            && reported.swap(newest, core::sync::atomic::Ordering::Relaxed) != newest
        {
            let ahead_millis = layout.millis(ahead);
            if entered {
                observe::advanced(ahead_millis);
            } else {
                observe::held(ahead_millis);
            }
        }
        Ok(())
    }

    /// Goes on above this unit of time: at once, or, unless it is held, only when the clock has come to the next one.
    pub(crate) fn start_above(&self, layout: &SlotLayout, time: u64, is_held: bool) {
        let next = time.saturating_add(1).min(layout.max_time());
        // Index 0 is where a counter that ran over would stand.
        let slot = next << layout.index_bits | u64::from(is_held);
        self.state.0.fetch_max(slot, Ordering::AcqRel);
    }

    /// Returns the newest unit of time of which a slot was claimed; `None` before the first.
    ///
    /// It writes what it reads, so that a claim is either seen here, or sees what this thread wrote
    /// before.
    #[cfg(feature = "std")]
    pub(crate) fn newest(&self, layout: &SlotLayout) -> Option<u64> {
        let state = self.state.0.fetch_add(0, Ordering::AcqRel);
        state.checked_sub(1).map(|newest| layout.split(newest).0)
    }

    /// Does what the first claim would do before it claims, so that it need not: the state is then at
    /// the clock's unit of time.
    pub(crate) fn begin(
        &self,
        layout: &SlotLayout,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: &Policy,
    ) -> Result<(), Error> {
        loop {
            let (version, epoch) = (self.version(), entropy.epoch());
            if is_stable(version, epoch) {
                return Ok(());
            }
            self.renew(
                layout,
                (version, epoch),
                Renewal::Epoch,
                clock,
                entropy,
                policy,
            )?;
        }
    }

    /// Reads the secret and makes sure that it is the one the slots were claimed under.
    #[inline(always)]
    fn confirm(&self, first: u64, version: u64, epoch: u32, needs: Needs) -> Option<Slots> {
        let CachePadded(renewed) = &self.renewed;
        let secret = if needs == Needs::Secret {
            [
                renewed.secret[0].load(Ordering::Acquire),
                renewed.secret[1].load(Ordering::Acquire),
            ]
        } else {
            [0; 2]
        };
        let is_confirmed =
            needs == Needs::Nothing || renewed.version.load(Ordering::Acquire) == version;
        is_confirmed.then_some(Slots {
            first,
            secret,
            epoch,
        })
    }

    /// Starts again at the clock under a new secret, for callers that must go on when the counter
    /// stayed full through every wait.
    #[cfg(feature = "std")]
    #[cold]
    pub(crate) fn follow(
        &self,
        layout: &SlotLayout,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: &Policy,
    ) -> Result<(), Error> {
        let epoch = entropy.epoch();
        let version = self.renewed.0.version.load(Ordering::Acquire);
        self.renew(
            layout,
            (version, epoch),
            Renewal::Follow,
            clock,
            entropy,
            policy,
        )
    }

    fn renew(
        &self,
        layout: &SlotLayout,
        (seen, epoch): (u64, u32),
        renewal: Renewal,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: &Policy,
    ) -> Result<(), Error> {
        if is_busy(seen) && epoch_of(seen) == epoch {
            // Another thread of this process is at it, for the time of one system call.
            yield_now();
            return Ok(());
        }
        // Asked here for its error alone: what counts is the clock's time when the state is moved.
        layout
            .now(clock)
            .map_err(|refusal| refusal.of_clock(layout, clock.now()))?;
        let secret = [entropy.next_u64()?, entropy.next_u64()?];
        let count = count_of(seen) + 1;
        let busy = busy_version(epoch, count);
        let CachePadded(renewed) = &self.renewed;
        if renewed
            .version
            .compare_exchange(seen, busy, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return Ok(());
        }
        if self.put(&renewed.secret[0], busy, |_| secret[0]).is_none()
            || self.put(&renewed.secret[1], busy, |_| secret[1]).is_none()
        {
            return Ok(());
        }
        let moved = self.put(&self.state.0, busy, |state| {
            // A clock that the layout has no time for will be refused by the claim.
            let now = layout.now(clock).unwrap_or(state);
            if renewal == Renewal::Follow {
                return now;
            }
            // A new secret starts a new unit of time: inside the old one its counter could be lower.
            let next = layout
                .split(state)
                .0
                .saturating_add(u64::from(state != 0))
                .min(layout.max_time());
            // Within what the policy holds, it is a time that is held, as the one before was. Beyond it stands at index
            // 0, as a counter that ran over, and waits for the clock.
            let ahead = next.saturating_sub(layout.split(now).0);
            let is_held = ahead > 0 && ahead <= layout.hold(policy);
            (next << layout.index_bits | u64::from(is_held))
                .max(now)
                .max(state)
        });
        let Some((before, after)) = moved else {
            return Ok(());
        };
        if renewal == Renewal::Follow {
            // The slots that were given up may be later than the state is now.
            renewed.given_up.store(0, Ordering::Release);
            renewed.followed.fetch_add(1, Ordering::Relaxed);
            let at = |slot| layout.timestamp(layout.split(slot).0).as_unix_millis();
            observe::followed(at(before), at(after));
        }
        renewed.renewals.fetch_add(1, Ordering::Relaxed);
        observe::renewed(epoch);
        // Fails if the renewal was taken over: then it is the other's to end.
        let _ = renewed.version.compare_exchange(
            busy,
            version(epoch, count),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        Ok(())
    }

    /// Changes a cell in the course of a renewal and returns its values before and after, or
    /// nothing if another renewal took over.
    ///
    /// Always from the newest value: a claim that did not see the renewal begin is either in that
    /// value, or reads this one and then sees the renewal.
    fn put(&self, cell: &AtomicU64, busy: u64, value: impl Fn(u64) -> u64) -> Option<(u64, u64)> {
        let mut before = cell.load(Ordering::Acquire);
        loop {
            // Read after the cell: whoever finds there what a renewal put that took over, also finds
            // that it took over. So a late renewal writes before the other, or not at all.
            if self.renewed.0.version.load(Ordering::Acquire) != busy {
                return None;
            }
            let after = value(before);
            match cell.compare_exchange(before, after, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some((before, after)),
                Err(found) => before = found,
            }
        }
    }
}

/// Without the secret, and without the count that it is to hide.
impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("events", &self.events())
            .finish_non_exhaustive()
    }
}

/// Decides about a claim that is not all in the clock's unit of time.
#[cold]
fn check_claim(
    layout: &SlotLayout,
    first: u64,
    count: u64,
    now: u64,
    policy: &Policy,
    ran_over: bool,
) -> Result<(), Refusal> {
    let time = layout.split(first).0;
    let now = layout.split(now).0;
    // Behind only where the clock was followed meanwhile, which `confirm` will find.
    let ahead = time.saturating_sub(now);
    let (hold, allowed) = (layout.hold(policy), layout.ahead(policy));
    if ahead > 0 && ran_over && ahead > allowed && ahead <= hold.saturating_add(1) {
        // The counter has just run over into this unit (or a renewal or a start chose it, which the policy does not hold).
        return Err(Refusal::Overflow(time));
    }
    if ahead > hold {
        return Err(Refusal::Behind(ahead));
    }
    let Some(end) = first.checked_add(count) else {
        return Err(Refusal::Exhausted);
    };
    let last = layout.split(end - 1).0;
    if last > layout.max_time() {
        return Err(Refusal::Exhausted);
    }
    if last > time && last.saturating_sub(now) > allowed {
        return Err(Refusal::Overflow(last));
    }
    Ok(())
}

/// Whether the counter has run over into the unit of this slot, and none of its slots was used since.
const fn has_run_over(layout: &SlotLayout, first: u64, given_up: u64) -> bool {
    let (time, index) = layout.split(first);
    index == 0 || first <= given_up && layout.split(given_up).0 == time
}

/// The upper bit of a version.
const BUSY: u64 = 1 << 63;

const fn version(epoch: u32, count: u64) -> u64 {
    (count & 0x7fff_ffff) << 32 | epoch as u64
}

/// The version while a renewal is under way: the epoch is written as its complement, so that keys
/// need not look at the upper bit. No process comes to that one.
const fn busy_version(epoch: u32, count: u64) -> u64 {
    BUSY | version(!epoch, count)
}

const fn count_of(version: u64) -> u64 {
    version >> 32 & 0x7fff_ffff
}

const fn epoch_of(version: u64) -> u32 {
    let written = lower_half(version);
    if is_busy(version) { !written } else { written }
}

const fn is_busy(version: u64) -> bool {
    version & BUSY != 0
}

/// Whether a secret of this epoch can be used: one comparison for both.
const fn is_stable(version: u64, epoch: u32) -> bool {
    lower_half(version) == epoch
}

const fn lower_half(version: u64) -> u32 {
    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    let lower = version as u32;
    lower
}

#[cold]
fn too_large(layout: &SlotLayout, asked: u64, policy: &Policy) -> Error {
    let max = layout.max_reservation(policy);
    Error::new(ErrorKind::ReservationTooLarge { asked, max })
}

// Two attributes, not `all(..)`: Clippy knows a test module by `cfg(test)` alone.
#[cfg(test)]
#[cfg(loom)]
mod model;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
