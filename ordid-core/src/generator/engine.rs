//! The order of keys over all threads: one atomic number, no lock.
//!
//! ```text
//! state    | 44 bits: milliseconds since 1970 | 20 bits: index in the millisecond |
//! version  | 32 bits: entropy epoch | 31 bits: count of renewals | 1 bit: renewal under way |
//! ```
//!
//! `state` is the next free slot. A reservation of `n` slots is one compare-and-swap from
//! `max(state, now << 20)` to that plus `n`; a full millisecond carries into the next one by the
//! addition itself. So slots rise strictly over all threads whatever the clock does, and what
//! remains to decide is how far the slots may be *ahead* of the clock: because it stepped back
//! ([`Rollback`]), or because the counter ran over ([`Overflow`]).
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
//! child, which sees the older epoch.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Events, Overflow, Policy, Rollback};
use crate::{
    clock::{Clock, Timestamp},
    entropy::{self, Entropy},
    error::{Error, ErrorKind},
};

/// Bits of the index: 1,048,576 keys a millisecond, three times what one core can make.
const INDEX_BITS: u32 = 20;
/// Slots of one millisecond.
pub(crate) const SLOTS: u64 = 1 << INDEX_BITS;
/// The last millisecond of the state, in the year 2527. A clock beyond it is read as this.
const MAX_MILLIS: u64 = (1 << (64 - INDEX_BITS)) - 1;
/// How often a full counter is waited for before the wait is given up.
const MAX_PAUSES: u32 = 100;

/// A claimed run of slots, and the secret that they were claimed under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) first: u64,
    pub(crate) secret: [u64; 2],
    pub(crate) epoch: u32,
}

/// Returns millisecond and index of a slot.
pub(crate) const fn split(slot: u64) -> (u64, u64) {
    (slot >> INDEX_BITS, slot & (SLOTS - 1))
}

#[derive(Debug)]
pub(crate) struct Engine {
    state: AtomicU64,
    version: AtomicU64,
    secret: [AtomicU64; 2],
    followed: AtomicU64,
    waits: AtomicU64,
    renewals: AtomicU64,
}

/// Why a renewal is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Renewal {
    /// First use, or a fork: order goes on above what was there.
    Epoch,
    /// The slots are further ahead of the clock than allowed: start again at the clock.
    Follow,
}

enum Refusal {
    /// The clock is this many milliseconds behind, further than the policy holds.
    Behind(u64),
    /// The counter ran over into a millisecond that the policy does not allow yet.
    Overflow(u64),
    /// The reservation can never fit what the policy lets run ahead.
    TooLarge,
    /// No time is left before the year 2527.
    Exhausted,
    /// Another thread moved the state.
    Raced,
}

impl Engine {
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU64::new(0),
            // Epoch 0 is no source's epoch: the first call renews.
            version: AtomicU64::new(0),
            secret: [const { AtomicU64::new(0) }; 2],
            followed: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            renewals: AtomicU64::new(0),
        }
    }

    pub(crate) fn events(&self) -> Events {
        Events {
            clock_followed: self.followed.load(Ordering::Relaxed),
            counter_waits: self.waits.load(Ordering::Relaxed),
            renewals: self.renewals.load(Ordering::Relaxed),
        }
    }

    /// Claims `count` consecutive slots.
    #[inline]
    pub(crate) fn reserve(
        &self,
        count: u64,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: Policy,
    ) -> Result<Slots, Error> {
        let epoch = entropy.epoch();
        let version = self.version.load(Ordering::Acquire);
        if is_stable(version, epoch)
            && let Ok(first) = self.claim(count, clock, policy)
            && let Some(slots) = self.confirm(first, version, epoch)
        {
            return Ok(slots);
        }
        self.reserve_slowly(count, clock, entropy, policy)
    }

    #[cold]
    fn reserve_slowly(
        &self,
        count: u64,
        clock: &impl Clock,
        entropy: &impl Entropy,
        policy: Policy,
    ) -> Result<Slots, Error> {
        if count > policy.max_reservation() {
            return Err(too_large(count, policy));
        }
        let mut pauses = 0;
        loop {
            let epoch = entropy.epoch();
            let version = self.version.load(Ordering::Acquire);
            if !is_stable(version, epoch) {
                self.renew(version, epoch, Renewal::Epoch, clock, entropy)?;
                continue;
            }
            match self.claim(count, clock, policy) {
                Ok(first) => {
                    if let Some(slots) = self.confirm(first, version, epoch) {
                        return Ok(slots);
                    }
                    // A renewal came between: the slots are given up, never used under two secrets.
                }
                Err(Refusal::Raced) => {}
                Err(Refusal::TooLarge) => return Err(too_large(count, policy)),
                Err(Refusal::Exhausted) => match policy.rollback {
                    Rollback::HoldThenFollow { .. } => {
                        self.renew(version, epoch, Renewal::Follow, clock, entropy)?;
                    }
                    Rollback::HoldThenError { .. } => {
                        return Err(Error::new(ErrorKind::TimestampRange {
                            millis: MAX_MILLIS + 1,
                            max_millis: MAX_MILLIS,
                        }));
                    }
                },
                Err(Refusal::Behind(behind_millis)) => match policy.rollback {
                    Rollback::HoldThenFollow { .. } => {
                        self.renew(version, epoch, Renewal::Follow, clock, entropy)?;
                    }
                    Rollback::HoldThenError { .. } => {
                        return Err(Error::new(ErrorKind::Rollback {
                            behind_millis,
                            max_millis: policy.rollback.max_millis(),
                        }));
                    }
                },
                Err(Refusal::Overflow(millis)) => {
                    let give_up = policy.overflow == Overflow::Error || pauses == MAX_PAUSES;
                    if give_up {
                        return Err(Error::new(ErrorKind::CounterOverflow {
                            timestamp: Timestamp::saturating_from_unix_millis(
                                millis.saturating_sub(1),
                            ),
                        }));
                    }
                    pauses += 1;
                    self.waits.fetch_add(1, Ordering::Relaxed);
                    clock.pause(std::time::Duration::from_millis(1));
                }
            }
        }
    }

    /// Moves the state on by `count` slots and returns the first.
    #[inline]
    fn claim(&self, count: u64, clock: &impl Clock, policy: Policy) -> Result<u64, Refusal> {
        // The state is read before the clock: a thread that sleeps between the two then finds the
        // clock later than the state, never earlier, and does not take itself for a rollback.
        let state = self.state.load(Ordering::Acquire);
        let now = clock.now().as_unix_millis().min(MAX_MILLIS);
        let first = state.max(now << INDEX_BITS);
        let (millis, index) = split(first);
        let ahead = millis - now;
        if ahead > 0 {
            let max = policy.rollback.max_millis();
            if index == 0 {
                // The counter has just run over into this millisecond (or a renewal chose it).
                let allowed = match policy.overflow {
                    Overflow::Advance => max,
                    Overflow::Wait | Overflow::Error => 0,
                };
                if ahead > allowed && ahead <= max.saturating_add(1) {
                    return Err(Refusal::Overflow(millis));
                }
            }
            if ahead > max {
                return Err(Refusal::Behind(ahead));
            }
        }
        let Some(end) = first.checked_add(count) else {
            return Err(Refusal::Exhausted);
        };
        if count > 1 {
            let last = split(end - 1).0;
            if last > millis && last - now > policy.ahead_millis() {
                return Err(if count > policy.max_reservation() {
                    Refusal::TooLarge
                } else {
                    Refusal::Overflow(last)
                });
            }
        }
        match self
            .state
            .compare_exchange(state, end, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => Ok(first),
            Err(_) => Err(Refusal::Raced),
        }
    }

    /// Reads the secret and makes sure that it is the one the slots were claimed under.
    #[inline]
    fn confirm(&self, first: u64, version: u64, epoch: u32) -> Option<Slots> {
        let secret = [
            self.secret[0].load(Ordering::Acquire),
            self.secret[1].load(Ordering::Acquire),
        ];
        (self.version.load(Ordering::Acquire) == version).then_some(Slots {
            first,
            secret,
            epoch,
        })
    }

    /// Starts again at the clock under a new secret, for callers that must go on when the counter
    /// stayed full through every wait.
    #[cold]
    pub(crate) fn follow(&self, clock: &impl Clock, entropy: &impl Entropy) -> Result<(), Error> {
        let epoch = entropy.epoch();
        let version = self.version.load(Ordering::Acquire);
        self.renew(version, epoch, Renewal::Follow, clock, entropy)
    }

    fn renew(
        &self,
        seen: u64,
        epoch: u32,
        renewal: Renewal,
        clock: &impl Clock,
        entropy: &impl Entropy,
    ) -> Result<(), Error> {
        if is_busy(seen) && epoch_of(seen) == epoch {
            // Another thread of this process is at it, for the time of one system call.
            std::thread::yield_now();
            return Ok(());
        }
        let secret = [entropy::next_u64(entropy)?, entropy::next_u64(entropy)?];
        let count = (seen >> 1) & 0x7fff_ffff;
        let busy = version(epoch, count + 1) | 1;
        if self
            .version
            .compare_exchange(seen, busy, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
        {
            return Ok(());
        }
        self.secret[0].store(secret[0], Ordering::Release);
        self.secret[1].store(secret[1], Ordering::Release);
        let state = self.state.load(Ordering::Acquire);
        let now = clock.now().as_unix_millis().min(MAX_MILLIS);
        let next = split(state)
            .0
            .saturating_add(u64::from(state != 0))
            .min(MAX_MILLIS)
            .max(now);
        if renewal == Renewal::Follow {
            self.state.store(now << INDEX_BITS, Ordering::Release);
            self.followed.fetch_add(1, Ordering::Relaxed);
        } else {
            // A new secret starts a new millisecond: inside the old one its counter could be lower.
            self.state.fetch_max(next << INDEX_BITS, Ordering::AcqRel);
        }
        self.renewals.fetch_add(1, Ordering::Relaxed);
        self.version
            .store(version(epoch, count + 1), Ordering::Release);
        Ok(())
    }
}

const fn version(epoch: u32, count: u64) -> u64 {
    (epoch as u64) << 32 | (count & 0x7fff_ffff) << 1
}

const fn epoch_of(version: u64) -> u32 {
    (version >> 32) as u32
}

const fn is_busy(version: u64) -> bool {
    version & 1 == 1
}

const fn is_stable(version: u64, epoch: u32) -> bool {
    !is_busy(version) && epoch_of(version) == epoch
}

#[cold]
fn too_large(asked: u64, policy: Policy) -> Error {
    let max = policy.max_reservation();
    Error::new(ErrorKind::ReservationTooLarge { asked, max })
}

#[cfg(test)]
mod tests;
