//! RT.Comb's COMBs with Unix milliseconds, in the byte orders of three databases.
//!
//! ```text
//! Sql, text         | b0 b1 b2 b3 | b4 b5 | b6 b7 | b8 b9 | b10 b11 b12 b13 b14 b15 |
//!                   | random      |random | 40 c  | v,c c | milliseconds            |
//! PostgreSql, text  | b0 b1 b2 b3 b4 b5 | b6  b7 | b8  b9 | b10 ... b15 |
//!                   | milliseconds      | 4,c c  | v,c  c,r random     |
//! Binary, wire      | w0 w1 w2 w3 w4 w5 | w6 w7  | w8  w9 | w10 ... w15 |
//!                   | milliseconds      | c  4,c | v,c  c,r random     |
//! ```
//!
//! `4` is the version, `v` the variant, `c` the count of 22 bits, `r` random; `40` has four zero
//! bits, see [`comb`](super). "Wire" is the order of .NET's `Guid.ToByteArray`, which SQLite and
//! Oracle columns of .NET programs hold (RT.Comb's `Binary`); in the text of such a key the first
//! groups are reversed.
//!
//! Whoever knows one key has 48 bits of the next one to guess in `Sql`, and 52 in the others. Up to 1,048,576 keys
//! are made in a millisecond. In RT.Comb they are in random order, or the time of each is 4 ms ahead of the previous
//! one's (its issues #5 and #9).
//!
//! # References
//!
//! RT.Comb `src/RT.Comb/{SqlCombProvider,PostgreSqlCombProvider,BaseCombProvider}.cs`,
//! `UnixDateTimeStrategy.cs`.

use core::cmp::Ordering;

use uuid::Uuid;

use super::{AT_END, MADE_AT_END};
use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesAsBytes, RisesAsDotNetBytes, RisesInMariaDbUuid, RisesInSqlServer, Scheme},
    layout::{
        Comparison, Orders,
        along::{Along, Fixed},
    },
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered, check, fits},
        guid::{self, COUNT_BITS, INDEX_BITS, SEED_BITS, TimeAt},
    },
};

const FIRST_IN_TEXT: Along = Along::new(Comparison::Bytes, Fixed::rfc(4), 48, COUNT_BITS);
const FIRST_ON_WIRE: Along = Along::new(Comparison::DotNetBytes, Fixed::rfc(4), 48, COUNT_BITS);

/// The fields of a COMB with Unix milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnixParts {
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
    /// The other ten bytes of the GUID that the original began with, in wire order (the first ten for `Sql`, the last
    /// ten for the others): random bits, with version 4 and RFC 9562's variant if the GUID was a random UUID. For
    /// other bytes, [`pack`](Layout::pack) makes the value that the original makes, which is not a key of the scheme.
    pub guid: [u8; 10],
}

impl UnixParts {
    fn unpack(raw: &Uuid, at: TimeAt) -> Self {
        let (unix_ts_ms, guid) = at.unpack(raw);
        Self { unix_ts_ms, guid }
    }
}

/// The COMBs of three places.
macro_rules! comb {
    (
        $(#[$docs:meta])* $scheme:ident, $name:literal, $place:expr, $orders:expr,
        compared by $rule:expr, made along $made:expr, within $all:expr, $generator:ident
    ) => {
        $(#[$docs])*
        #[derive(Debug)]
        pub enum $scheme {}

        impl Scheme for $scheme {
            rfc_9562!($name, version 4, $orders);

            fn timestamp(raw: &Uuid) -> Option<Timestamp> {
                let (unix_ts_ms, _) = $place.unpack(raw);
                Self::check(raw).then(|| Timestamp::saturating_from_unix_millis(unix_ts_ms))
            }

            fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
                guid::cmp($rule, left, right)
            }
        }

        impl Slotted for $scheme {
            counter_bits!(index: INDEX_BITS, seed: SEED_BITS, random: $made.random_bits());

            #[inline]
            fn encode(slot: Slot<()>) -> Uuid {
                Uuid::from_bytes($made.lay(slot.time, slot.count, slot.random))
            }
        }

        impl Layout for $scheme {
            type Parts = UnixParts;

            fn pack(parts: UnixParts) -> Result<Uuid, Error> {
                fits::<Self>("unix_ts_ms", parts.unix_ts_ms, 48)?;
                Ok($place.pack(parts.unix_ts_ms, parts.guid))
            }

            fn unpack(raw: &Uuid) -> Result<UnixParts, Error> {
                check::<Self>(raw)?;
                Ok(UnixParts::unpack(raw, $place))
            }

            fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
                let parts = Self::unpack(raw)?;
                let moment = TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms);
                Ok(Inspection {
                    moment: Some(moment),
                    version: Some(4),
                    ..Inspection::of::<Self>(guid::certainty(moment))
                })
            }
        }

        impl TimeOrdered for $scheme {
            fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
                let millis = timestamp.as_unix_millis();
                Ok($all.ends(millis, millis))
            }
        }

        generator! {
            #[doc = concat!("Makes keys of the scheme `", $name, "`, strictly rising over all ")]
            #[doc = "threads that share it."]
            $generator: $scheme
        }
    };
}

comb! {
    /// The scheme `comb_rt_sql`: RT.Comb's `Provider.Sql`, for SQL Server.
    ///
    /// # Example: a key for a uniqueidentifier
    ///
    /// ```
    /// use ordid_core::{clock::Timestamp, scheme::{CombRtSql, TimeOrdered}};
    ///
    /// // 2022-02-22T19:22:22Z
    /// let (lowest, highest) = CombRtSql::bounds_at(Timestamp::from_unix_millis(1_645_557_742_000)?)?;
    /// assert_eq!(lowest.to_string(), "00000000-0000-4000-8000-017f22e279b0");
    /// assert_eq!(highest.to_string(), "ffffffff-ffff-4fff-bfff-017f22e279b0");
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    CombRtSql, "comb_rt_sql", TimeAt::End,
    Orders::SQL_SERVER.and(Comparison::MariaDbUuid),
    compared by Comparison::SqlServer, made along MADE_AT_END, within AT_END,
    CombRtSqlGenerator
}

impl RisesInMariaDbUuid for CombRtSql {}
impl RisesInSqlServer for CombRtSql {}

comb! {
    /// The scheme `comb_rt_postgresql`: RT.Comb's `Provider.PostgreSql`, for every column that
    /// compares the bytes of the text.
    CombRtPostgreSql, "comb_rt_postgresql", TimeAt::FirstInText,
    Orders::BYTES,
    compared by Comparison::Bytes, made along FIRST_IN_TEXT, within FIRST_IN_TEXT,
    CombRtPostgreSqlGenerator
}

impl RisesAsBytes for CombRtPostgreSql {}

comb! {
    /// The scheme `comb_rt_binary`: RT.Comb's layout for columns that hold `Guid.ToByteArray`, such
    /// as .NET's in Oracle and SQLite.
    CombRtBinary, "comb_rt_binary", TimeAt::FirstOnWire,
    Orders::NONE.and(Comparison::DotNetBytes),
    compared by Comparison::DotNetBytes, made along FIRST_ON_WIRE, within FIRST_ON_WIRE,
    CombRtBinaryGenerator
}

impl RisesAsDotNetBytes for CombRtBinary {}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
