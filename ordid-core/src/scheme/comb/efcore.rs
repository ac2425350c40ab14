//! The sequential GUIDs of Entity Framework Core: .NET's ticks in the bytes that SQL Server compares
//! first.
//!
//! ```text
//! text  | b0 b1 b2 b3 | b4 b5  | b6 b7    | b8 b9       | b10 b11 b12 b13 b14 b15 |
//!       | random      | random | 4 random | ticks (low) | ticks (upper 48 bits)   |
//! ```
//!
//! Ticks are 100 ns since 0001-01-01. They cover the variant, so the values have version 4 but are not RFC 9562
//! UUIDs. MariaDB's `UUID` refuses some such values and orders none. The other 60 bits are random; whoever knows one
//! key has them to guess for the next.
//!
//! The original reads the clock once, when its generator is made, and then adds one for each key. So the keys of two
//! processes interleave with an offset, and a process that was restarted goes on at the clock's time, below its
//! earlier keys if it made more than ten million a second. Here each key gets the clock's tick, or the next free one,
//! as far ahead of the clock as the [`Policy`](crate::generator::Policy) allows: ten million keys a second.
//!
//! # References
//!
//! EF Core `src/EFCore/ValueGeneration/SequentialGuidValueGenerator.cs`; its issues #20527, #30753,
//! #33579.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::Error,
    generator::{Slot, Slotted},
    key::{RisesInSqlServer, Scheme},
    layout::{
        Comparison, Orders,
        along::{Along, Fixed},
    },
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered, check},
        guid,
    },
};

/// Ticks that are counted ahead within one unit of the generator: 8,192, or 0.8 ms.
const UNIT_BITS: u32 = 13;
/// The count is the time's.
const ALONG: Along = Along::new(Comparison::SqlServer, Fixed::version(4), 64, 0);

/// The scheme `comb_efcore`.
#[derive(Debug)]
pub enum CombEfCore {}

impl Scheme for CombEfCore {
    version_of_any_variant!("comb_efcore", version 4: "version 4", Orders::SQL_SERVER);

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        Self::check(raw)
            .then(|| EfCoreParts::of(raw).moment().timestamp())
            .flatten()
    }

    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        guid::cmp(Comparison::SqlServer, left, right)
    }
}

impl RisesInSqlServer for CombEfCore {}

impl Slotted for CombEfCore {
    type Node = ();

    const SCALE: TimeScale = TimeScale::DOTNET_TICKS;
    const TICK_BITS: u32 = 63;
    const INDEX_BITS: u32 = UNIT_BITS;
    const FRACTION_BITS: u32 = UNIT_BITS;
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = ALONG.random_bits();

    #[inline]
    fn encode(slot: Slot<()>) -> Uuid {
        let ticks = slot.time << UNIT_BITS | slot.count;
        Uuid::from_bytes(ALONG.lay(ticks, 0, slot.random))
    }
}

/// The fields of a sequential GUID of EF Core.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EfCoreParts {
    /// The counter: .NET's ticks when the generator was made, plus one a key.
    pub counter: u64,
    /// The first eight bytes of a random GUID, in wire order, with its version 4. For another version,
    /// [`pack`](Layout::pack) makes the value that the original makes, which is not a key of the scheme.
    pub guid: [u8; 8],
}

impl EfCoreParts {
    fn of(raw: &Uuid) -> Self {
        let [guid @ .., c1, c0, c7, c6, c5, c4, c3, c2] = raw.to_bytes_le();
        let counter = u64::from_be_bytes([c7, c6, c5, c4, c3, c2, c1, c0]);
        Self { counter, guid }
    }

    /// The counter as a time.
    fn moment(self) -> Moment {
        TimeScale::DOTNET_TICKS.moment_at(self.counter)
    }
}

/// # Example: the time of a key
///
/// ```
/// use ordid_core::scheme::{CombEfCore, Layout};
///
/// let key = "de569066-6527-495b-8000-089f7ff5f7b5".parse()?;
/// let parts = CombEfCore::unpack(&key)?;
/// assert_eq!(parts.counter, 621_355_968_000_000_000); // DateTime.UnixEpoch.Ticks
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Layout for CombEfCore {
    type Parts = EfCoreParts;

    fn pack(parts: EfCoreParts) -> Result<Uuid, Error> {
        let mut wire = [0; 16];
        wire[..8].copy_from_slice(&parts.guid);
        let [c7, c6, c5, c4, c3, c2, c1, c0] = parts.counter.to_be_bytes();
        wire[8..].copy_from_slice(&[c1, c0, c7, c6, c5, c4, c3, c2]);
        Ok(Uuid::from_bytes_le(wire))
    }

    fn unpack(raw: &Uuid) -> Result<EfCoreParts, Error> {
        check::<Self>(raw)?;
        Ok(EfCoreParts::of(raw))
    }

    /// The moment is the counter, read as ticks. In a key of the original it is behind the clock, because the counter
    /// begins when the generator is made.
    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let moment = Self::unpack(raw)?.moment();
        Ok(Inspection {
            moment: Some(moment),
            version: Some(4),
            ..Inspection::of::<Self>(guid::certainty(moment))
        })
    }
}

impl TimeOrdered for CombEfCore {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let ticks = |nanos| guid::dotnet_ticks::<Self>("counter", timestamp, nanos);
        Ok(ALONG.ends(ticks(0)?, ticks(999_999)?))
    }
}

generator! {
    /// Makes keys of the scheme `comb_efcore`, strictly rising over all threads that share it: ten
    /// million a second.
    ///
    /// # Example: a table of EF Core goes on
    ///
    /// ```
    /// use ordid_core::{
    ///     StaticScheme,
    ///     generator::ProcessWide,
    ///     scheme::CombEfCore,
    ///     storage::{Stores, column::UniqueIdentifier},
    /// };
    ///
    /// // SELECT TOP (1) Id FROM Orders ORDER BY Id DESC
    /// let newest = "475a981d-caa0-4cfb-c0c7-08d56268f1f7".parse()?;
    ///
    /// // The one that `OrderId::generate()` asks.
    /// CombEfCore::process_wide().start_above(&newest)?;
    /// let key = CombEfCore::generate().into_raw();
    /// assert!(UniqueIdentifier::sort_key(key) > UniqueIdentifier::sort_key(newest));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    CombEfCoreGenerator: CombEfCore
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
