//! Generators: a scheme with a clock, a source of entropy, state, and a [`Policy`] that says what happens when the
//! clock steps back or the counter is full.

use alloc::sync::Arc;
use core::time::Duration;

use crate::{
    clock::Timestamp,
    error::Error,
    key::{Generated, KeyType, Scheme},
};

pub(crate) mod engine;
#[cfg(feature = "std")]
mod granted;
mod local_block;
mod observe;
pub(crate) mod ordered;
#[cfg(all(feature = "std", not(loom)))]
pub(crate) mod per_type;
#[cfg(all(feature = "std", not(loom)))]
mod process;
#[cfg(feature = "std")]
mod segments;
pub(crate) mod sync;
#[cfg(feature = "std")]
mod with_high_water_mark;

#[cfg(feature = "std")]
pub use granted::{
    AtCeiling, GrantClock, GrantedGenerator, LeaseKeeper, LeaseRequest, LeaseThread,
    ReservedUnderGrant,
};
pub use local_block::{BlockSource, LocalBlock};
pub use ordered::{DefaultNode, OrderedGenerator, Reserved, Slot, Slotted};
#[cfg(all(feature = "std", not(loom)))]
pub use process::{ProcessReserved, ProcessWide};
#[cfg(feature = "std")]
pub use segments::{SegmentBatch, SegmentFeeder, SegmentGenerator, Steps, WhenEmpty};
#[cfg(feature = "std")]
pub use with_high_water_mark::{ReservedBelowMark, WithHighWaterMark};

/// Makes unique keys of one scheme. If the scheme has an order, keys rise strictly over all threads that share the
/// generator.
pub trait Generator {
    /// The scheme whose keys the generator makes.
    type Scheme: Scheme;

    /// The iterator that [`reserve`](Self::reserve) returns.
    type Reserved<'g>: Iterator<Item = Result<Generated<Self::Scheme>, Error>>
    where
        Self: 'g;

    /// Makes the next key.
    ///
    /// # Errors
    ///
    /// Returns an error if the policy refuses the key ([`is_clock`](Error::is_clock),
    /// [`is_overflow`](Error::is_overflow)), or if the operating system has no entropy
    /// ([`is_entropy`](Error::is_entropy)). In the child of a fork, a generator whose node or numbers belong to the
    /// parent fails with [`is_forked`](Error::is_forked). Generators that depend on a store or a file also return its
    /// errors ([`coordination_failure`](Error::coordination_failure), [`is_high_water`](Error::is_high_water)).
    fn try_generate(&self) -> Result<Generated<Self::Scheme>, Error>;

    /// Makes the next key as a key type of the scheme. Use it for schemes whose generators need a node, which
    /// [`KeyType::generate`] cannot serve.
    ///
    /// # Errors
    ///
    /// As [`try_generate`](Self::try_generate).
    fn try_generate_key<K: KeyType<Scheme = Self::Scheme, Raw = <Self::Scheme as Scheme>::Raw>>(
        &self,
    ) -> Result<K, Error> {
        self.try_generate().map(K::from_generated)
    }

    /// Makes a key for a given time. The key is not ordered with the keys of [`try_generate`](Self::try_generate).
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout, or the operating system has no entropy. If the scheme's keys have no
    /// time, or too few random bits to be unique without the generator's count, the error
    /// [`is_unsupported`](Error::is_unsupported).
    fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<Self::Scheme>, Error>;

    /// Makes `count` keys, in rising order if the scheme has one, and passes them to `put` one by one.
    ///
    /// # Errors
    ///
    /// As [`try_generate`](Self::try_generate). Keys that were passed to `put` before the error are valid.
    fn try_fill_with(
        &self,
        count: usize,
        put: impl FnMut(Generated<Self::Scheme>),
    ) -> Result<(), Error>;

    /// Claims `count` consecutive keys at once: if the scheme has an order, no other key of this generator falls
    /// between them.
    ///
    /// # Errors
    ///
    /// Returns an error if `count` keys would run further ahead of the clock than the policy allows
    /// ([`is_overflow`](Error::is_overflow)), and the errors of [`try_generate`](Self::try_generate). The iterator
    /// yields an error if the random bits cannot be drawn, or, in the child of a fork, if the node or the numbers
    /// belong to the parent.
    fn reserve(&self, count: usize) -> Result<Self::Reserved<'_>, Error>;

    /// Returns how often the policy had to act.
    fn events(&self) -> Events;
}

/// Lets a generator be shared: `&G` and `Arc<G>` are generators as `G` is.
macro_rules! shared {
    ($shared:ty) => {
        impl<G: Generator> Generator for $shared {
            type Scheme = G::Scheme;
            type Reserved<'g>
                = G::Reserved<'g>
            where
                Self: 'g;

            fn try_generate(&self) -> Result<Generated<G::Scheme>, Error> {
                G::try_generate(self)
            }

            fn generate_at(&self, timestamp: Timestamp) -> Result<Generated<G::Scheme>, Error> {
                G::generate_at(self, timestamp)
            }

            fn try_fill_with(
                &self,
                count: usize,
                put: impl FnMut(Generated<G::Scheme>),
            ) -> Result<(), Error> {
                G::try_fill_with(self, count, put)
            }

            fn reserve(&self, count: usize) -> Result<G::Reserved<'_>, Error> {
                G::reserve(self, count)
            }

            fn events(&self) -> Events {
                G::events(self)
            }
        }
    };
}

shared!(&G);
shared!(Arc<G>);

/// Says what a generator does when its clock steps back or its counter overflows.
///
/// The default policy holds the order through backward steps of up to ten seconds, and follows the clock after larger
/// ones. It lets the counter run up to ten seconds ahead of the clock, and then waits. With this policy a generator
/// never fails while the clock runs, the layout has room for its time and the system has entropy, and never repeats a
/// key. Its order breaks only where a clock steps back by more than ten seconds, which [`Events::clock_followed`]
/// counts. (After such a step, only 14 random bits distinguish new keys of Gregorian time with a fixed
/// [node](crate::scheme::UuidNode) from older ones.) Generators whose keys are told apart by their node alone do not
/// follow the clock; see [`OrderedGenerator::with_node`].
///
/// Ten seconds cover a leap second and most corrections by NTP. They are also short enough that a clock that once
/// read a wrong year does not stamp the keys of a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What happens when the clock is behind the newest key.
    pub rollback: Rollback,
    /// What happens when the counter of a millisecond is used up.
    pub overflow: Overflow,
}

impl Policy {
    /// Holds the order for backward steps of up to ten seconds and then follows the clock; lets the counter run up to
    /// ten seconds ahead of the clock.
    pub const DEFAULT: Self = Self {
        rollback: Rollback::HoldThenFollow {
            max: Duration::from_secs(10),
        },
        overflow: Overflow::Advance {
            max: Duration::from_secs(10),
        },
    };

    /// How many milliseconds the counter may carry keys ahead of the clock.
    pub(crate) const fn ahead_millis(self) -> u64 {
        match self.overflow {
            Overflow::Advance { max } => millis(max),
            Overflow::Wait | Overflow::Error => 0,
        }
    }

    /// How many milliseconds ahead of the clock keys are simply made: one cannot tell what the
    /// counter borrowed from what the clock stepped back.
    pub(crate) const fn hold_millis(self) -> u64 {
        let ahead = self.ahead_millis();
        match self.rollback {
            Rollback::HoldThenFollow { .. } | Rollback::HoldThenError { .. } => {
                let held = self.rollback.max_millis();
                if held > ahead { held } else { ahead }
            }
            Rollback::WaitThenError { .. } => ahead,
        }
    }

    /// The widest gap in milliseconds that a key may be made after, at once or after a wait.
    pub(crate) const fn most_millis(self) -> u64 {
        match self.rollback {
            Rollback::WaitThenError { .. } => self.ahead_millis() + self.rollback.max_millis(),
            _ => self.hold_millis(),
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What happens when the clock reads earlier than the newest key.
///
/// While the clock is at most `max` behind, the generator keeps the order: it holds the time of the newest key, or
/// waits. A wider gap means that the clock is wrong now or was wrong before. A single reading of the year 2100 would
/// otherwise put that year into every later key.
///
/// A counter that ran ahead under [`Overflow::Advance`] and a clock that stepped back look alike. So gaps within the
/// bound of `Advance` are always held. In a layout whose units of time are longer than a millisecond, `max` is rounded up to
/// whole units, as a short step may lead into the unit before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rollback {
    /// Keys go on rising from the newest one, with its time, while the clock is at most `max` behind. If the gap is
    /// wider, the generator starts again at the clock's time with a new random counter (RFC 9562 section 6.1: a new
    /// clock sequence). The order then breaks once, but no call fails and no key repeats.
    HoldThenFollow {
        /// The widest gap that is held; rounded down to milliseconds, at most a day.
        max: Duration,
    },
    /// Keys go on rising from the newest one, with its time, while the clock is at most `max`
    /// behind. If the gap is wider, every call fails until the gap is at most `max` again, so the order never
    /// breaks. With a `max` of zero ([`Rollback::ERROR`]), every step back is an error.
    HoldThenError {
        /// The widest gap that is held; rounded down to milliseconds, at most a day.
        max: Duration,
    },
    /// If the clock is at most `max` behind, a call waits until the clock has caught up, and fails if the clock
    /// stands still. If the gap is wider, every call fails. With [`Overflow::Wait`] or [`Overflow::Error`], no key
    /// carries a later time than the clock's.
    WaitThenError {
        /// The widest gap and longest wait; rounded down to milliseconds, at most a day.
        max: Duration,
    },
}

impl Rollback {
    /// Makes any step back an error until the clock has caught up. With [`Overflow::Advance`], steps within the
    /// bound of `Advance` are still held; use [`Overflow::Wait`] or [`Overflow::Error`] instead.
    pub const ERROR: Self = Self::HoldThenError {
        max: Duration::ZERO,
    };

    /// The widest gap in milliseconds.
    pub(crate) const fn max_millis(self) -> u64 {
        let (Self::HoldThenFollow { max }
        | Self::HoldThenError { max }
        | Self::WaitThenError { max }) = self;
        millis(max)
    }
}

/// Returns a bound in milliseconds, at most a day.
const fn millis(max: Duration) -> u64 {
    const DAY: u64 = 86_400_000;
    let seconds = max.as_secs();
    if seconds >= DAY / 1000 {
        return DAY;
    }
    seconds * 1000 + max.subsec_millis() as u64
}

/// What happens when the keys of a millisecond are used up. UUID version 7 has 1,048,576 of them. (A layout that
/// counts time in other units has a limit for each of its units.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// Uses the next millisecond before the clock reaches it, at most `max` ahead. Beyond that, calls wait for the
    /// clock, and fail if it stands still. Making all keys of a millisecond takes longer than a millisecond in UUID
    /// version 7, so there only a stopped clock or a large `reserve` reaches the bound.
    Advance {
        /// How far ahead; rounded down to milliseconds, at most a day.
        max: Duration,
    },
    /// Waits for the clock to reach the next millisecond, and fails if the clock stands still.
    Wait,
    /// Fails with an error that [`is_overflow`](Error::is_overflow).
    Error,
}

/// How often a generator's policy had to act, since the generator was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Events {
    /// How often the clock stepped back beyond the bound and the generator followed it. Each time breaks the order
    /// once.
    pub clock_followed: u64,
    /// How often a call waited a millisecond for a clock that had stepped back.
    pub clock_waits: u64,
    /// How often a call waited a millisecond for the clock because the counter was full.
    pub counter_waits: u64,
    /// How often a new secret for the counter's random starts was drawn: at first use, after a fork, and whenever the
    /// clock was followed.
    pub renewals: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_in_milliseconds_and_at_most_a_day() {
        let hold = |max| Rollback::HoldThenError { max }.max_millis();
        assert_eq!(hold(Duration::from_micros(1_999)), 1);
        assert_eq!(hold(Duration::from_secs(10)), 10_000);
        assert_eq!(hold(Duration::MAX), 86_400_000);
    }
}
