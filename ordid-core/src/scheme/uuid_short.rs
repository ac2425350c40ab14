//! `UUID_SHORT()` of MySQL and MariaDB: 8 bits of server, and 56 bits of seconds and counter as one number.
//!
//! ```text
//!  63      55                                23                     0
//! +-------+----------------------------------+-----------------------+
//! | server|          32 bits: seconds        |    24 bits: counter   |
//! +-------+----------------------------------+-----------------------+
//!         |     one number: the counter carries into the seconds     |
//! ```
//!
//! A key is a `BIGINT UNSIGNED`; from server 128 on, its highest bit is one. Keys compare as numbers, and so do their
//! bytes, most significant first: **by server, then by time**. So there is a range by time for one server
//! ([`UuidShort::bounds_of`]), but none for all.
//!
//! In the original, the seconds are those of the *server's start*. From then on it only counts, so the time in a key
//! is that of the start plus a second for every 16,777,216 keys. In ordid they are the seconds at which the key was
//! made. A generator counts from zero in each second. After 16,777,216 keys in a second it goes on in the next one,
//! as the original does. A server and a generator with the same number would at some point repeat each other's keys:
//! never give a generator a number that a server has.
//!
//! The original takes `server_id` modulo 256, so servers 1 and 257 make the same keys. This scheme takes a `u8`. **No
//! two generators may have the same server at the same time**, and after a restart a generator has to begin above the
//! last key of the run before ([`start_above`](crate::generator::OrderedGenerator::start_above),
//! [`WithHighWaterMark`](crate::generator::WithHighWaterMark)). The seconds end on 2106-02-07T06:28:15Z. Later times
//! are an error and never carry into the server. Whoever knows one key can predict the next one of the same second.
//!
//! # References
//!
//! MariaDB's manual, "`UUID_SHORT`"; OceanBase's manual, "`UUID_SHORT`" (samples).

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Certainty, Inspection, Layout, fits, tick_at},
};

const SCALE: TimeScale = TimeScale::UNIX_SECONDS;
const COUNTER_BITS: u32 = 24;
/// Seconds and counter.
const NUMBER_BITS: u32 = 56;

/// The scheme `uuid_short`.
#[derive(Debug)]
pub enum UuidShort {}

impl UuidShort {
    /// Returns the value that a server returns at its `n`th call since it started, where 0 is the first: `server_id`,
    /// then `start_second << 24` plus `n`.
    ///
    /// # Errors
    ///
    /// If the number would have more than 56 bits, an error that [`is_layout`](Error::is_layout). In this case the
    /// original changes the server's bits.
    ///
    /// # Example: the counter carries into the seconds
    ///
    /// ```
    /// use ordid_core::scheme::{Layout, UuidShort};
    ///
    /// let key = UuidShort::nth_since_start(1, 1_212_250_578, 0)?;
    /// assert_eq!(key, 92_395_783_831_158_784); // from the manual
    /// let late = UuidShort::nth_since_start(1, 1_212_250_578, 16_777_216)?;
    /// assert_eq!(UuidShort::unpack(&late)?.seconds, 1_212_250_579);
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn nth_since_start(server_id: u8, start_second: u32, n: u64) -> Result<u64, Error> {
        let start = u64::from(start_second) << COUNTER_BITS;
        let number = start.saturating_add(n);
        fits::<Self>("seconds and counter", number, NUMBER_BITS)?;
        Ok(u64::from(server_id) << NUMBER_BITS | number)
    }

    /// Returns the lowest and the highest key that a server's generator can make in the second that contains the
    /// time.
    ///
    /// # Errors
    ///
    /// If the time does not fit the layout; the error [`is_clock`](Error::is_clock).
    pub fn bounds_of(server_id: u8, timestamp: Timestamp) -> Result<(u64, u64), Error> {
        let seconds = tick_at(SCALE, NUMBER_BITS - COUNTER_BITS, timestamp)?;
        let lowest = place(seconds, server_id, 0);
        Ok((lowest, lowest | ((1 << COUNTER_BITS) - 1)))
    }
}

impl Scheme for UuidShort {
    // Most significant byte first, as every database compares integers.
    any_value!("uuid_short", u64: "64 bits", Orders::BYTES);

    fn timestamp(raw: &u64) -> Option<Timestamp> {
        Some(SCALE.timestamp_at(*raw >> COUNTER_BITS & u64::from(u32::MAX)))
    }
}

impl RisesAsBytes for UuidShort {}

impl Slotted for UuidShort {
    /// The server's number. The original uses only its lower 8 bits.
    type Node = u8;

    const SCALE: TimeScale = SCALE;
    const TICK_BITS: u32 = NUMBER_BITS - COUNTER_BITS;
    const INDEX_BITS: u32 = COUNTER_BITS;
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = 0;
    const RENEWS: bool = false;

    #[inline]
    fn encode(slot: Slot<u8>) -> u64 {
        place(slot.time, slot.node, slot.count)
    }
}

/// The fields of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// `server_id & 255`.
    pub server_id: u8,
    /// Seconds since 1970, unsigned. In keys of a server: the second of its start, plus the counter's carries. In
    /// keys of a generator: the second at which the key was made.
    pub seconds: u32,
    /// 24 bits.
    pub counter: u32,
}

#[inline]
const fn place(seconds: u64, server_id: u8, counter: u64) -> u64 {
    (server_id as u64) << NUMBER_BITS | seconds << COUNTER_BITS | counter
}

impl Layout for UuidShort {
    fields!(Parts: server_id = 8, seconds = NUMBER_BITS - COUNTER_BITS, counter = COUNTER_BITS);

    fn inspect(raw: &u64) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        Ok(Inspection {
            moment: Some(SCALE.moment_at(u64::from(parts.seconds))),
            node: Some(u64::from(parts.server_id)),
            counter: Some(u64::from(parts.counter)),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}

generator_alias! {
    /// Makes keys in the layout of `UUID_SHORT()` for a server's number
    /// ([`with_node`](OrderedGenerator::with_node)), strictly rising over all threads that share it.
    UuidShortGenerator<C, E> = OrderedGenerator<UuidShort, C, E>
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{generator::Generator, scheme::testing::*};

    fn scripted(server_id: u8) -> Scripted<UuidShort> {
        scripted_at(server_id, START)
    }

    #[test]
    fn observed_values_are_taken_apart() {
        for case in vectors("uuid_short")["observed"].as_array().unwrap() {
            let number = |name: &str| case[name].as_u64().unwrap();
            let parts = Parts {
                server_id: u8::try_from(number("server_id")).unwrap(),
                seconds: u32::try_from(number("startup_s")).unwrap(),
                counter: u32::try_from(number("counter")).unwrap(),
            };
            assert_eq!(UuidShort::unpack(&number("id")).unwrap(), parts);
            assert_eq!(UuidShort::pack(parts).unwrap(), number("id"));
            let nth = |n| UuidShort::nth_since_start(parts.server_id, parts.seconds, n).unwrap();
            assert_eq!(nth(0), number("id"));
            // One number: no wrap at 24 bits.
            assert_eq!(nth((1 << 24) - 1) + 1, nth(1 << 24));
            assert_eq!(
                UuidShort::unpack(&nth(1 << 24)).unwrap().seconds,
                parts.seconds + 1
            );
        }
    }

    #[test]
    fn uuid_short_parts_that_do_not_fit_are_named() {
        let parts = Parts {
            server_id: 255,
            seconds: u32::MAX,
            counter: 0xff_ffff,
        };
        assert_eq!(UuidShort::pack(parts).unwrap(), u64::MAX);
        let counter = 1 << 24;
        does_not_fit::<UuidShort, _>([(Parts { counter, ..parts }, "counter 16777216", 24)]);
        let last = UuidShort::nth_since_start(255, u32::MAX, 0xff_ffff).unwrap();
        assert_eq!(last, u64::MAX);
        for n in [1 << 24, u64::MAX] {
            let error = UuidShort::nth_since_start(0, u32::MAX, n).unwrap_err();
            assert!(error.is_layout(), "{error}");
        }
    }

    #[test]
    fn a_full_second_carries_into_the_next() {
        let generator = scripted(7);
        generator.clock().freeze();
        let first = next(&generator);
        assert_eq!(first, place(START / 1_000, 7, 0));
        let _ = generator.reserve((1 << 24) - 3).unwrap();
        for n in (1 << 24) - 2..(1 << 24) + 3 {
            assert_eq!(next(&generator), first + n);
        }
    }

    #[test]
    fn uuid_short_seconds_end_with_an_error_and_leave_the_server_alone() {
        let generator = scripted(7);
        let last = u64::from(u32::MAX) * 1_000 + 999;
        generator.clock().set_unix_millis(last);
        assert_eq!(UuidShort::unpack(&next(&generator)).unwrap().server_id, 7);
        let _ = generator.reserve((1 << 24) - 2).unwrap();
        let highest = next(&generator);
        assert_eq!(highest, place(u64::from(u32::MAX), 7, 0xff_ffff));
        assert!(generator.try_generate().unwrap_err().is_clock());
        generator.clock().set_unix_millis(last + 1);
        assert!(generator.try_generate().unwrap_err().is_clock());
    }

    #[test]
    fn a_server_has_ranges_by_time() {
        let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
        let (lowest, highest) = UuidShort::bounds_of(7, at(START)).unwrap();
        let key = next(&scripted(7));
        assert!((lowest..=highest).contains(&key));
        let next = UuidShort::bounds_of(7, at(START + 1_000)).unwrap();
        assert_eq!(next.0, highest + 1);
        let after = at((u64::from(u32::MAX) + 1) * 1_000);
        assert!(UuidShort::bounds_of(7, after).unwrap_err().is_clock());
    }
}
