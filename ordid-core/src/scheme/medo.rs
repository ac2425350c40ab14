//! Medo.Uuid7's form for SQL Server, which `Uuid7.NewMsSqlUniqueIdentifier` makes. ordid only reads it.
//!
//! ```text
//! wire  | w0 w1 w2 w3 w4 w5 | w6       | w7    | w8         | w9     | w10 ... w15             |
//!       | random            | 7, c11-8 | c7-0  | 10, c25-20 | c19-12 | Unix milliseconds       |
//! ```
//!
//! "Wire" is the order of .NET's `Guid.ToByteArray`; `c` is a counter of 26 bits. The version is in its usual place
//! in the wire order, so in the text it is the third digit of the third group, and RFC 9562 reads another version, or
//! none. ordid makes no such keys: its own keys for SQL Server, [`uuid_v8_sql_server`](super::uuid_v8_sql_server),
//! are valid UUIDs.
//!
//! # References
//!
//! Medo.Uuid7 `src/Medo.Uuid7/Uuid7.Implementation.cs`.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    key::{RisesInSqlServer, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered, check, fits},
        guid,
    },
};

/// The scheme `medo`, which has no generator.
#[derive(Debug)]
pub enum Medo {}

impl Scheme for Medo {
    type Raw = Uuid;

    const NAME: &'static str = "medo";
    const ORDERS: Orders = Orders::SQL_SERVER;
    const EXPECTED: &'static str = "7 as the third digit of the third group and variant RFC 9562";
    const TEXT_IS_RAW: bool = true;

    fn check(raw: &Uuid) -> bool {
        let bytes = raw.as_bytes();
        bytes[7] >> 4 == 7 && bytes[8] >> 6 == 0b10
    }

    fn coerce(raw: Uuid) -> Uuid {
        let mut bytes = raw.into_bytes();
        bytes[7] = 0x70 | bytes[7] & 0x0f;
        bytes[8] = 0x80 | bytes[8] & 0x3f;
        Uuid::from_bytes(bytes)
    }

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        let millis = guid::millis_at_end(raw);
        Self::check(raw).then(|| Timestamp::saturating_from_unix_millis(millis))
    }

    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        guid::cmp(Comparison::SqlServer, left, right)
    }
}

/// The fields of such a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// The random bytes, in wire order.
    pub random: [u8; 6],
    /// 26 bits.
    pub counter: u32,
    /// Milliseconds since 1970: 48 bits.
    pub unix_ts_ms: u64,
}

impl RisesInSqlServer for Medo {}

/// # Example: a key, taken apart
///
/// ```
/// use ordid_core::scheme::{Layout, Medo};
///
/// let key = "de569066-6527-9d7e-8a15-000000000000".parse()?;
/// let parts = Medo::unpack(&key)?;
/// assert_eq!((parts.counter, parts.unix_ts_ms), (0xa1_5e9d, 0));
/// assert_eq!(Medo::pack(parts)?, key);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Layout for Medo {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        fits::<Self>("counter", parts.counter, 26)?;
        fits::<Self>("unix_ts_ms", parts.unix_ts_ms, 48)?;
        // 6 bits beside the variant and 8 after it, 4 beside the version and 8 after it.
        let [_, _, c0, c1] = (parts.counter >> 12).to_be_bytes();
        let [_, _, c2, c3] = (parts.counter & 0xfff).to_be_bytes();
        let [_, _, time @ ..] = parts.unix_ts_ms.to_be_bytes();
        let mut wire = [0; 16];
        wire[..6].copy_from_slice(&parts.random);
        wire[6..10].copy_from_slice(&[0x70 | c2, c3, 0x80 | c0, c1]);
        wire[10..].copy_from_slice(&time);
        Ok(Uuid::from_bytes_le(wire))
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        check::<Self>(raw)?;
        let [r0, r1, r2, r3, r4, r5, v, c3, n, c1, ..] = raw.to_bytes_le();
        Ok(Parts {
            random: [r0, r1, r2, r3, r4, r5],
            counter: u32::from(n & 0x3f) << 20
                | u32::from(c1) << 12
                | u32::from(v & 0xf) << 8
                | u32::from(c3),
            unix_ts_ms: guid::millis_at_end(raw),
        })
    }

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Self::unpack(raw)?;
        let moment = TimeScale::UNIX_MILLIS.moment_at(parts.unix_ts_ms);
        Ok(Inspection {
            moment: Some(moment),
            counter: Some(u64::from(parts.counter)),
            version: Some(7),
            ..Inspection::of::<Self>(guid::certainty(moment))
        })
    }
}

impl TimeOrdered for Medo {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let parts = |counter, random| Parts {
            random: [random; 6],
            counter,
            unix_ts_ms: timestamp.as_unix_millis(),
        };
        let highest = Self::pack(parts((1 << 26) - 1, 0xff))?;
        Ok((Self::pack(parts(0, 0))?, highest))
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
