//! The processor's time-stamp counter between readings of the wall clock: the one `unsafe` of this
//! crate.

#![allow(unsafe_code)]

use std::cell::Cell;

use super::{Clock, SystemClock, Timestamp};

/// Reads the processor's time-stamp counter, and [`SystemClock`] only once a millisecond. It returns exact
/// milliseconds at half the cost of `SystemClock`.
///
/// A thread keeps the last reading until the counter says that its millisecond is over. A step of the wall clock is
/// followed at the next reading, so at most a millisecond late. The same holds after a fork: the child goes on with
/// an equally good copy of the reading. Layouts with fractions of a millisecond read `SystemClock` for each key.
///
/// The ticks per millisecond are measured between readings, never taken from the processor's description, and the
/// shorter measurement counts. After a virtual machine moves to a processor with a slower counter, one reading is
/// late by the ratio of the two counters; then the ticks are measured anew.
#[derive(Debug, Clone, Copy)]
pub struct TscClock {
    /// Only [`TscClock::new`] makes one.
    checked: (),
}

impl TscClock {
    /// Makes the clock, if the processor is an x86-64 with a counter of constant rate that does not stop in sleep
    /// (the "invariant TSC" of Intel and AMD). Returns `None` on all others.
    pub fn new() -> Option<Self> {
        has_invariant_counter().then_some(Self { checked: () })
    }
}

/// What a thread knows of time.
#[derive(Clone, Copy)]
struct Reading {
    counter: u64,
    /// How many ticks after `counter` the millisecond is over.
    ticks_left: u64,
    millis: Timestamp,
    /// The fewest that were measured of late; zero before the first measurement.
    ticks_per_milli: u64,
    /// Where the measurement under way began: the counter, read after the wall clock, and the wall clock's nanoseconds.
    measured_from: (u64, u64),
}

impl Reading {
    const NEVER: Self = Self {
        counter: 0,
        ticks_left: 0,
        millis: Timestamp::MIN,
        ticks_per_milli: 0,
        measured_from: (0, 0),
    };
}

thread_local! {
    static LAST: Last = const {
        Last {
            counter: Cell::new(Reading::NEVER.counter),
            ticks_left: Cell::new(Reading::NEVER.ticks_left),
            millis: Cell::new(Reading::NEVER.millis),
            whole: Cell::new(Reading::NEVER),
        }
    };
}

/// The last reading. What each key looks at is in cells of its own, since one of the whole would be
/// copied for it.
struct Last {
    counter: Cell<u64>,
    ticks_left: Cell<u64>,
    millis: Cell<Timestamp>,
    whole: Cell<Reading>,
}

impl Clock for TscClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let () = self.checked;
        let counter = counter();
        LAST.with(|last| {
            // A counter that went back (another processor, a resumed machine) wraps to a huge
            // distance.
            if counter.wrapping_sub(last.counter.get()) < last.ticks_left.get() {
                return last.millis.get();
            }
            last.read(counter)
        })
    }

    fn now_with_nanos(&self) -> (Timestamp, u32) {
        // Fractions have to be read; there is nothing to keep.
        SystemClock.now_with_nanos()
    }
}

impl Last {
    /// Reads the wall clock, measures the counter's rate against it, and keeps the reading.
    #[cold]
    #[inline(never)]
    fn read(&self, counter: u64) -> Timestamp {
        let (millis, nanos) = SystemClock.now_with_nanos();
        let counters = [counter, self::counter()];
        let next = next_reading(counters, millis, nanos, self.whole.get());
        self.counter.set(next.counter);
        self.ticks_left.set(next.ticks_left);
        self.millis.set(next.millis);
        self.whole.set(next);
        millis
    }
}

/// Keeps a reading of the wall clock, between two of the counter.
///
/// A thread may lose its processor between these. So a measurement begins at the later counter and ends at the earlier
/// one: it finds fewer ticks than there were, and the thread asks again early, never late.
fn next_reading(
    [counter, counter_after]: [u64; 2],
    millis: Timestamp,
    nanos: u32,
    last: Reading,
) -> Reading {
    let unix_nanos = millis
        .as_unix_millis()
        .saturating_mul(1_000_000)
        .saturating_add(u64::from(nanos));
    let (from_counter, from_nanos) = last.measured_from;
    let elapsed = unix_nanos.checked_sub(from_nanos);
    let ticks = counter.checked_sub(from_counter);
    let (measured, measured_from) = match (elapsed, ticks) {
        // Long enough to be exact, short enough to be one stretch of work.
        (Some(elapsed @ 1_000_000..1_000_000_000), Some(ticks @ 0..0x1_0000_0000)) => (
            Some(ticks * 1_000_000 / elapsed),
            (counter_after, unix_nanos),
        ),
        (Some(0..1_000_000), Some(0..0x1_0000_0000)) => (None, last.measured_from),
        // A pause, a step of the clock, another counter: begin anew.
        _ => (None, (counter_after, unix_nanos)),
    };
    let ticks_per_milli = match (measured, last.ticks_per_milli) {
        (None, before) => before,
        (Some(measured), 0) => measured,
        // A small step of the clock may mismeasure; that must not make a reading late.
        (Some(measured), before) => measured.min(before + before / MARGIN),
    };
    let nanos_left = 1_000_000 - u64::from(nanos.min(1_000_000));
    Reading {
        counter,
        // Less than measured: the thread asks again a little early, never late.
        ticks_left: (ticks_per_milli - ticks_per_milli / MARGIN) * nanos_left / 1_000_000,
        millis,
        ticks_per_milli,
        measured_from,
    }
}

/// An eighth: how much faster the counter may seem than before, and how much is taken off for it.
const MARGIN: u64 = 8;

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: `rdtsc` reads a register and touches no memory. Every x86-64 processor has it, and
    // `TscClock::new` found the counter usable.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "x86_64")]
#[allow(unused_unsafe)] // Safe since Rust 1.94; this crate supports older ones.
fn has_invariant_counter() -> bool {
    // SAFETY: every x86-64 processor has `cpuid`, and it touches no memory.
    let leaf = |leaf| unsafe { core::arch::x86_64::__cpuid(leaf) };
    leaf(0x8000_0000).eax >= 0x8000_0007 && leaf(0x8000_0007).edx & (1 << 8) != 0
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn has_invariant_counter() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Timestamp {
        Timestamp::saturating_from_unix_millis(millis)
    }

    /// Both readings of the counter, where no time passes between them.
    fn twice(counter: u64) -> [u64; 2] {
        [counter, counter]
    }

    /// Would fail if the counter were read wrongly, or kept beyond its millisecond.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_tsc_clock_agrees_with_the_system_clock() {
        // Whatever the processor says of its counter: over a millisecond each one is steady.
        let clock = TscClock { checked: () };
        let mut late = 0;
        for _ in 0..2_000_000 {
            let before = SystemClock.now();
            let read = clock.now();
            let after = SystemClock.now();
            assert!(read <= after, "{read:?} is in the future of {after:?}");
            late += u32::from(read < before);
        }
        // An interrupt between the counter's reading and its comparison may make a few late.
        assert!(late < 2_000, "{late} of 2,000,000 late");
    }

    #[test]
    fn no_reading_is_cached_before_the_rate_is_known() {
        let first = next_reading(twice(1_000_000), at(5_000), 0, Reading::NEVER);
        assert_eq!(first.ticks_left, 0);
        // Asked again at once, and again: the measurement goes on from the first.
        let asked = next_reading(twice(1_000_100), at(5_000), 40, first);
        let asked = next_reading(twice(1_000_200), at(5_000), 80, asked);
        assert_eq!(asked.ticks_left, 0);
        let second = next_reading(twice(3_500_000), at(5_001), 0, asked);
        assert_eq!(second.ticks_per_milli, 2_500_000);
        assert_eq!(second.ticks_left, 2_187_500);
        // Half of the millisecond is over: half is left.
        assert_eq!(
            next_reading(twice(4_750_000), at(5_001), 500_000, second).ticks_left,
            1_093_750
        );
    }

    #[test]
    fn a_clock_step_never_makes_a_reading_last_longer() {
        let known = Reading {
            counter: 10_000_000,
            ticks_left: 0,
            millis: at(10_000),
            ticks_per_milli: 2_500_000,
            measured_from: (10_000_000, 10_000_000_000),
        };
        // Back by nine seconds: nothing can be measured, the rate stays.
        let back = next_reading(twice(12_500_000), at(1_000), 0, known);
        assert_eq!((back.millis, back.ticks_per_milli), (at(1_000), 2_500_000));
        assert_eq!(back.measured_from, (12_500_000, 1_000_000_000));
        // Slewed so that four milliseconds seem one: hardly believed, and within the margin.
        let slow = next_reading(twice(20_000_000), at(10_001), 0, known);
        assert_eq!(slow.ticks_per_milli, 2_812_500);
        assert!(slow.ticks_left <= 2_500_000);
        // A counter that went back is no measurement.
        let other = next_reading(twice(5), at(10_001), 0, known);
        assert_eq!(other.ticks_per_milli, 2_500_000);
        // One that was measured as too slow recovers.
        let mut reading = Reading {
            ticks_per_milli: 1_000,
            ..known
        };
        for step in 1..100 {
            reading = next_reading(
                twice(10_000_000 + step * 2_500_000),
                at(10_000 + step),
                0,
                reading,
            );
        }
        assert_eq!(reading.ticks_per_milli, 2_500_000);
    }

    #[test]
    fn a_thread_that_loses_its_processor_does_not_measure_a_faster_counter() {
        // For ten milliseconds, right before it reads the wall clock: at the start of the measurement, and at its end.
        let began = next_reading([1_000_000, 26_000_000], at(5_000), 0, Reading::NEVER);
        let ended = next_reading(twice(28_500_000), at(5_001), 0, began);
        assert_eq!(ended.ticks_per_milli, 2_500_000);
        let began = next_reading(twice(1_000_000), at(5_000), 0, Reading::NEVER);
        let ended = next_reading([3_500_000, 28_500_000], at(5_011), 0, began);
        assert!(ended.ticks_per_milli <= 2_500_000);
    }
}
