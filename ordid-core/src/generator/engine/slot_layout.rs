//! How a layout cuts the engine's slots into time and index, and what its clock may read.

use crate::{
    clock::{Clock, TimeScale, Timestamp},
    error::{Error, ErrorKind},
    generator::Policy,
};

/// How often a full counter is waited for at least before the wait is given up.
pub(super) const MIN_PAUSES: u64 = 100;

/// How a layout cuts a slot into time and index.
///
/// Time is in units of the layout's ticks, or of two to the power of `fraction_bits` of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotLayout {
    /// What the layout counts.
    pub(crate) scale: TimeScale,
    /// Bits of these ticks.
    pub(crate) tick_bits: u32,
    /// Bits below the unit of time.
    pub(crate) index_bits: u32,
    /// The upper bits of these that the clock gives.
    pub(crate) fraction_bits: u32,
}

impl SlotLayout {
    /// Slots of one unit of time.
    pub(crate) const fn slots(self) -> u64 {
        1 << self.index_bits
    }

    /// The last unit of time with slots. Where the layout has later ones than the state has room
    /// for, it is not quite the last that fits, so that no slot's successor is zero.
    pub(crate) const fn max_time(self) -> u64 {
        if self.saturates() {
            (1 << (64 - self.index_bits)) - 2
        } else {
            (1 << (self.tick_bits - self.fraction_bits)) - 1
        }
    }

    /// Whether the state ends before the layout does, centuries from now. A clock beyond it is then
    /// read as the last unit; where the layout itself ends, such a clock is an error.
    pub(super) const fn saturates(self) -> bool {
        self.tick_bits + self.counter_bits() >= 64
    }

    /// Returns time and index of a slot.
    #[inline]
    pub(crate) const fn split(self, slot: u64) -> (u64, u64) {
        (slot >> self.index_bits, slot & (self.slots() - 1))
    }

    /// Whether `count` slots from this one on are all in the clock's unit of time and not before its
    /// tick.
    #[inline(always)]
    pub(super) const fn is_present(&self, first: u64, count: u64, tick: u64) -> bool {
        if self.fraction_bits == 0 && count == 1 {
            return first >> self.index_bits == tick;
        }
        let now = self.first_of(tick);
        let left = self.slots() - self.split(now).1;
        first.wrapping_sub(now) < left.saturating_sub(count - 1)
    }

    /// Whether this slot is later than the clock's unit of time.
    pub(crate) const fn is_ahead(&self, slot: u64, tick: u64) -> bool {
        slot >= self.first_of(tick) && !self.is_present(slot, 1, tick)
    }

    /// Returns the first slot of a tick that has slots.
    #[inline]
    pub(super) const fn first_of(&self, tick: u64) -> u64 {
        tick << self.counter_bits()
    }

    /// Whether there are so many slots from this tick on, until the last one that there is.
    pub(super) const fn has_slots(&self, tick: u64, count: u64) -> bool {
        match self.first_of(tick).checked_add(count - 1) {
            Some(last) => self.split(last).0 <= self.max_time(),
            None => false,
        }
    }

    /// Bits of a slot that count keys, below all time.
    pub(crate) const fn counter_bits(self) -> u32 {
        self.index_bits - self.fraction_bits
    }

    /// Returns the tick of the present, or the last one that has slots.
    // Always, as all that asks the clock: see `TimeScale::ticks_at`.
    #[inline(always)]
    pub(super) fn tick(self, clock: &impl Clock) -> Result<u64, Refusal> {
        self.within(self.ticks(clock))
    }

    /// Returns the first slot of the present.
    #[inline(always)]
    pub(crate) fn now(self, clock: &impl Clock) -> Result<u64, Refusal> {
        Ok(self.first_of(self.tick(clock)?))
    }

    /// Returns the first slot of a time.
    #[inline]
    pub(crate) fn at(self, timestamp: Timestamp, nanos: u32) -> Result<u64, Refusal> {
        let ticks = self.scale.ticks_at(timestamp.as_unix_millis(), nanos);
        Ok(self.first_of(self.within(ticks)?))
    }

    /// Returns the present in the layout's ticks, even if they are later than the last slot. Before
    /// the first there is `None`.
    #[inline(always)]
    pub(crate) fn ticks(self, clock: &impl Clock) -> Option<u64> {
        if self.scale.is_fine() {
            let (timestamp, nanos) = clock.now_with_nanos();
            // A clock that says more nanoseconds than a millisecond has stays in the millisecond.
            self.scale
                .ticks_at(timestamp.as_unix_millis(), nanos.min(999_999))
        } else {
            self.scale.ticks_at(clock.now().as_unix_millis(), 0)
        }
    }

    /// Returns a tick that has slots for one that the clock reads.
    #[inline(always)]
    fn within(self, ticks: Option<u64>) -> Result<u64, Refusal> {
        // The last unit of time with all its ticks.
        let last = ((self.max_time() + 1) << self.fraction_bits) - 1;
        // One comparison for both ends.
        let tick = ticks.unwrap_or(u64::MAX);
        if tick <= last {
            return Ok(tick);
        }
        #[cold]
        fn beyond(ticks: Option<u64>, saturates: bool, last: u64) -> Result<u64, Refusal> {
            match ticks {
                None => Err(Refusal::BeforeEpoch),
                Some(_) if saturates => Ok(last),
                Some(_) => Err(Refusal::Exhausted),
            }
        }
        beyond(ticks, self.saturates(), last)
    }

    /// Returns the millisecond in which a unit of time begins.
    pub(crate) const fn timestamp(self, time: u64) -> Timestamp {
        self.scale.timestamp_at(time << self.fraction_bits)
    }

    /// Returns the error of a time after the last unit.
    pub(crate) fn out_of_time(self, timestamp: Timestamp) -> Error {
        Error::new(ErrorKind::TimestampRange {
            millis: timestamp.as_unix_millis(),
            max_millis: self.timestamp(self.max_time()).as_unix_millis(),
        })
    }

    /// Returns a span of milliseconds in units of time, rounded down.
    pub(crate) const fn units(self, millis: u64) -> u64 {
        self.scale.ticks_in(millis) >> self.fraction_bits
    }

    /// Returns a span of time in milliseconds, rounded up.
    pub(super) const fn millis(self, units: u64) -> u64 {
        self.scale
            .millis_in(units.saturating_mul(1 << self.fraction_bits))
    }

    /// How often a full counter is waited for before the wait is given up: for two units of time, or
    /// longer.
    pub(super) const fn max_pauses(self) -> u64 {
        let units = self.millis(2);
        if units > MIN_PAUSES {
            units
        } else {
            MIN_PAUSES
        }
    }

    /// How far the counter may carry keys ahead of the clock.
    pub(super) const fn ahead(self, policy: &Policy) -> u64 {
        self.units(policy.ahead_millis())
    }

    /// How far ahead of the clock keys are simply made. Rounded up: a short step of the clock may cross a boundary.
    pub(super) const fn hold(self, policy: &Policy) -> u64 {
        self.units_up(policy.hold_millis())
    }

    /// Returns a span of milliseconds in units of time, rounded up.
    pub(crate) const fn units_up(self, millis: u64) -> u64 {
        let units = self.units(millis);
        units + (self.millis(units) < millis) as u64
    }

    /// Whether the policy makes keys that are so far ahead of the clock.
    pub(crate) const fn holds(self, ahead: u64, policy: &Policy) -> bool {
        ahead <= self.hold(policy)
    }

    /// The most keys that one reservation can claim.
    pub(crate) const fn max_reservation(self, policy: &Policy) -> u64 {
        let units = self.ahead(policy);
        (if units == 0 { 1 } else { units }).saturating_mul(self.slots())
    }
}

#[derive(Debug)]
pub(crate) enum Refusal {
    /// The clock is so much behind, further than the policy holds.
    Behind(u64),
    /// The counter ran over into a unit of time that the policy does not allow yet.
    Overflow(u64),
    /// No time is left in the layout.
    Exhausted,
    /// The clock reads a time before the layout's first.
    BeforeEpoch,
    /// Another thread moved the state.
    Raced,
}

impl Refusal {
    /// Returns the error of a clock whose reading the layout has no time for.
    pub(crate) fn of_clock(&self, layout: &SlotLayout, timestamp: Timestamp) -> Error {
        match self {
            Self::BeforeEpoch => Error::new(ErrorKind::BeforeScale {
                millis: timestamp.as_unix_millis(),
                epoch_millis: layout.scale.epoch_unix_millis(),
            }),
            _ => layout.out_of_time(timestamp),
        }
    }
}
