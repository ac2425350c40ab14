//! SequentialGuid: 48 bits of milliseconds since 0001-01-01 and 80 random bits, in three byte
//! orders.
//!
//! ```text
//! AsString, text  | b0 b1 b2 b3 b4 b5 | b6 ... b15                |
//! AsBinary, wire  | w0 w1 w2 w3 w4 w5 | w6 ... w15                |
//!                 | milliseconds      | count (22), random (58)   |
//! AtEnd, text     | b0 b1 b2 b3 | b4 b5  | b6 b7  | b8 b9     | b10 b11 b12 b13 b14 b15 |
//!                 | random      | random | r   c  | count     | milliseconds            |
//! ```
//!
//! | scheme | type in the original | rises in |
//! |---|---|---|
//! | [`sequential_guid_as_string`](SequentialGuidAsString) | `SequentialAsString` | MySQL `CHAR(36)` and `BINARY(16)`, PostgreSQL `uuid`, SQLite |
//! | [`sequential_guid_as_binary`](SequentialGuidAsBinary) | `SequentialAsBinary` | Oracle `RAW(16)` with .NET's bytes |
//! | [`sequential_guid_at_end`](SequentialGuidAtEnd) | `SequentialAtEnd` | SQL Server `uniqueidentifier` |
//!
//! "Wire" is the order of .NET's `Guid.ToByteArray`. The values have neither version nor variant, so they are not RFC
//! 9562 UUIDs. Nothing in them identifies the scheme except a plausible time. MariaDB's `UUID` refuses some of them,
//! and orders none. 48 bits of these milliseconds end in the year 8920; ordid's generators stop in 2527.
//!
//! In the originals, keys of one millisecond are in random order. Here up to 1,048,576 keys of a millisecond count up
//! from an unpredictable start, in the bits that the column's comparison reads after the time. Whoever knows one key
//! has 58 bits of the next one to guess.
//!
//! # References
//!
//! Jeremy Todd, "GUIDs as fast primary keys under multiple databases" (jhtodd/SequentialGuid);
//! aspnetboilerplate `src/Abp/SequentialGuidGenerator.cs`; ABP
//! `framework/src/Volo.Abp.Guids/Volo/Abp/Guids/SequentialGuidGenerator.cs`.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesAsBytes, RisesAsDotNetBytes, RisesInSqlServer, Scheme},
    layout::{
        Comparison, Orders,
        along::{Along, Fixed},
    },
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered, fits, out_of_time},
        guid::{self, COUNT_BITS, INDEX_BITS, SEED_BITS, TimeAt},
    },
};

/// Milliseconds from 0001-01-01 to 1970-01-01.
const EPOCH: u64 = TimeScale::DOTNET_MILLIS.epoch_unix_millis().unsigned_abs();
/// The last millisecond since 1970 that 48 bits have.
const LAST: u64 = (1 << 48) - 1 - EPOCH;

const fn along(comparison: Comparison) -> Along {
    Along::new(comparison, Fixed::NONE, 48, COUNT_BITS)
}

const AS_STRING: Along = along(Comparison::Bytes);
const AS_BINARY: Along = along(Comparison::DotNetBytes);
const AT_END: Along = along(Comparison::SqlServer);

/// The fields of a sequential GUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// Milliseconds since 0001-01-01: 48 bits. `DateTime.UtcNow.Ticks / 10000` in the original.
    pub millis: u64,
    /// The random bytes, in the original's order.
    pub random: [u8; 10],
}

impl Parts {
    fn unpack(raw: &Uuid, at: TimeAt) -> Self {
        let (millis, random) = at.unpack(raw);
        Self { millis, random }
    }

    fn moment(self) -> Moment {
        TimeScale::DOTNET_MILLIS.moment_at(self.millis)
    }
}

macro_rules! sequential_guid {
    (
        $(#[$docs:meta])* $scheme:ident, $name:literal, $place:expr, $orders:expr,
        compared by $rule:expr, along $along:expr, $generator:ident
    ) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub enum $scheme {}

        impl Scheme for $scheme {
            any_value!($name, Uuid: "any 128 bits", $orders);

            fn timestamp(raw: &Uuid) -> Option<Timestamp> {
                Parts::unpack(raw, $place).moment().timestamp()
            }

            fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
                guid::cmp($rule, left, right)
            }
        }

        impl Slotted for $scheme {
            counter_bits!(index: INDEX_BITS, seed: SEED_BITS, random: $along.random_bits());

            // The slots count from 1970 on, the layout from year 1.
            const LAST_TICK: u64 = LAST;

            #[inline]
            fn encode(slot: Slot<()>) -> Uuid {
                Uuid::from_bytes($along.lay(EPOCH + slot.time, slot.count, slot.random))
            }
        }

        impl Layout for $scheme {
            type Parts = Parts;

            fn pack(parts: Parts) -> Result<Uuid, Error> {
                fits::<Self>("millis", parts.millis, 48)?;
                Ok($place.pack(parts.millis, parts.random))
            }

            fn unpack(raw: &Uuid) -> Result<Parts, Error> {
                Ok(Parts::unpack(raw, $place))
            }

            fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
                let moment = Parts::unpack(raw, $place).moment();
                Ok(Inspection {
                    moment: Some(moment),
                    ..Inspection::of::<Self>(guid::certainty(moment))
                })
            }
        }

        impl TimeOrdered for $scheme {
            fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
                let millis = timestamp.as_unix_millis();
                if millis > LAST {
                    let last = Timestamp::saturating_from_unix_millis(LAST);
                    return Err(out_of_time(timestamp, last));
                }
                Ok($along.ends(EPOCH + millis, EPOCH + millis))
            }
        }

        generator! {
            #[doc = concat!("Makes keys of the scheme `", $name, "`, strictly rising over all ")]
            #[doc = "threads that share it."]
            $generator: $scheme
        }
    };
}

sequential_guid! {
    /// The scheme `sequential_guid_as_string`: `SequentialAsString`. Its keys rise as text.
    ///
    /// # Example: a key, taken apart
    ///
    /// ```
    /// use ordid_core::scheme::{Layout, SequentialGuidAsString};
    ///
    /// let key = "3883122c-d800-9066-56de-27655bf9a15e".parse()?;
    /// let parts = SequentialGuidAsString::unpack(&key)?;
    /// assert_eq!(parts.millis, 62_135_596_800_000); // 1970-01-01
    /// assert_eq!(SequentialGuidAsString::pack(parts)?, key);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    SequentialGuidAsString, "sequential_guid_as_string", TimeAt::FirstInText,
    Orders::BYTES,
    compared by Comparison::Bytes, along AS_STRING, SequentialGuidAsStringGenerator
}

impl RisesAsBytes for SequentialGuidAsString {}

sequential_guid! {
    /// The scheme `sequential_guid_as_binary`: `SequentialAsBinary`. Its keys rise in the bytes of
    /// `Guid.ToByteArray`.
    SequentialGuidAsBinary, "sequential_guid_as_binary", TimeAt::FirstOnWire,
    Orders::NONE.and(Comparison::DotNetBytes),
    compared by Comparison::DotNetBytes, along AS_BINARY, SequentialGuidAsBinaryGenerator
}

impl RisesAsDotNetBytes for SequentialGuidAsBinary {}

sequential_guid! {
    /// The scheme `sequential_guid_at_end`: `SequentialAtEnd`. Its keys rise in SQL Server.
    SequentialGuidAtEnd, "sequential_guid_at_end", TimeAt::End,
    Orders::SQL_SERVER,
    compared by Comparison::SqlServer, along AT_END, SequentialGuidAtEndGenerator
}

impl RisesInSqlServer for SequentialGuidAtEnd {}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
