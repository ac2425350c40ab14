//! MassTransit's NewId, as `NewId.NextGuid` makes it: .NET's ticks in the bytes that SQL Server
//! compares first, then a worker's six bytes and a sequence.
//!
//! ```text
//! wire  | w0 w1    | w2 w3 | w4 w5 w6 w7 | w8 w9       | w10 w11 w12 w13 w14 w15 |
//!       | sequence | n1 n0 | n5 n4 n3 n2 | ticks (low) | ticks (upper 48 bits)   |
//! ```
//!
//! "Wire" is the order of .NET's `Guid.ToByteArray`; `n0` to `n5` are the worker's bytes: in the original a network
//! address, or four bytes of it after a process number. Ticks are 100 ns since 0001-01-01. The values have neither
//! version nor variant, so they are not RFC 9562 UUIDs, and MariaDB's `UUID` refuses some of them and orders none.
//!
//! Nothing is random. Whoever knows one key can compute the worker's other keys, and **two generators with one worker
//! make the same keys**: the caller has to ensure that there are no two (MassTransit issues #5796 and #5908).
//!
//! The original counts a sequence of 16 bits within a tick. ordid's generator uses one tick for each key, ten million
//! a second, and leaves the sequence zero.
//!
//! # References
//!
//! MassTransit `src/MassTransit.Abstractions/NewId/NewIdGenerator.cs`.

use core::cmp::Ordering;

use uuid::Uuid;

use crate::{
    clock::{Moment, TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{RisesInSqlServer, Scheme},
    layout::{Comparison, Orders},
    scheme::{
        anatomy::{Inspection, Layout, TimeOrdered},
        guid,
    },
};

/// Ticks that are counted ahead within one unit of the generator: 8,192, or 0.8 ms.
const UNIT_BITS: u32 = 13;

/// The scheme `newid`.
#[derive(Debug)]
pub enum NewId {}

impl Scheme for NewId {
    any_value!("newid", Uuid: "any 128 bits", Orders::SQL_SERVER);

    fn timestamp(raw: &Uuid) -> Option<Timestamp> {
        Parts::of(raw).moment().timestamp()
    }

    fn cmp(left: &Uuid, right: &Uuid) -> Ordering {
        guid::cmp(Comparison::SqlServer, left, right)
    }
}

impl RisesInSqlServer for NewId {}

impl Slotted for NewId {
    /// The worker.
    type Node = [u8; 6];

    const SCALE: TimeScale = TimeScale::DOTNET_TICKS;
    const TICK_BITS: u32 = 63;
    const INDEX_BITS: u32 = UNIT_BITS;
    const FRACTION_BITS: u32 = UNIT_BITS;
    const SEED_BITS: u32 = 0;
    const RANDOM_BITS: u32 = 0;
    const RENEWS: bool = false;

    #[inline]
    fn encode(slot: Slot<[u8; 6]>) -> Uuid {
        let parts = Parts {
            ticks: slot.time << UNIT_BITS | slot.count,
            worker: slot.node,
            sequence: 0,
        };
        parts.pack()
    }
}

/// The fields of a NewId.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parts {
    /// .NET's ticks: 100 ns since 0001-01-01.
    pub ticks: u64,
    /// The worker, which tells generators apart.
    pub worker: [u8; 6],
    /// The count within a tick.
    pub sequence: u16,
}

impl Parts {
    #[inline]
    fn pack(self) -> Uuid {
        let [n0, n1, n2, n3, n4, n5] = self.worker;
        let [s0, s1] = self.sequence.to_be_bytes();
        let [t0, t1, t2, t3, t4, t5, t6, t7] = self.ticks.to_be_bytes();
        Uuid::from_bytes_le([
            s0, s1, n1, n0, n5, n4, n3, n2, t6, t7, t0, t1, t2, t3, t4, t5,
        ])
    }

    fn of(raw: &Uuid) -> Self {
        // The low two bytes of the ticks come first.
        let [s0, s1, n1, n0, n5, n4, n3, n2, ticks @ ..] = raw.to_bytes_le();
        Self {
            ticks: u64::from_be_bytes(ticks).rotate_left(16),
            worker: [n0, n1, n2, n3, n4, n5],
            sequence: u16::from_be_bytes([s0, s1]),
        }
    }

    fn moment(self) -> Moment {
        TimeScale::DOTNET_TICKS.moment_at(self.ticks)
    }
}

/// # Example: a key, taken apart
///
/// ```
/// use ordid_core::scheme::{Layout, NewId};
///
/// let key = "66905ea1-2765-56de-8000-089f7ff5f7b5".parse()?;
/// let parts = NewId::unpack(&key)?;
/// assert_eq!(parts.ticks, 621_355_968_000_000_000); // DateTime.UnixEpoch.Ticks
/// assert_eq!(parts.worker, [0x66, 0x90, 0x56, 0xde, 0x27, 0x65]);
/// assert_eq!(parts.sequence, 0xa15e);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Layout for NewId {
    type Parts = Parts;

    fn pack(parts: Parts) -> Result<Uuid, Error> {
        Ok(parts.pack())
    }

    fn unpack(raw: &Uuid) -> Result<Parts, Error> {
        Ok(Parts::of(raw))
    }

    fn inspect(raw: &Uuid) -> Result<Inspection, Error> {
        let parts = Parts::of(raw);
        let [n0, n1, n2, n3, n4, n5] = parts.worker;
        Ok(Inspection {
            moment: Some(parts.moment()),
            node: Some(u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5])),
            counter: Some(u64::from(parts.sequence)),
            ..Inspection::of::<Self>(guid::certainty(parts.moment()))
        })
    }
}

impl TimeOrdered for NewId {
    fn bounds_at(timestamp: Timestamp) -> Result<(Uuid, Uuid), Error> {
        let parts = |nanos, worker, sequence| {
            Self::pack(Parts {
                ticks: guid::dotnet_ticks::<Self>("ticks", timestamp, nanos)?,
                worker,
                sequence,
            })
        };
        Ok((parts(0, [0; 6], 0)?, parts(999_999, [0xff; 6], u16::MAX)?))
    }
}

generator_alias! {
    /// Makes NewIds for one worker, strictly rising over all threads that share it.
    ///
    /// # Example: a worker's key
    ///
    /// ```
    /// # #[cfg(feature = "test-util")] {
    /// use ordid_core::{
    ///     clock::ManualClock, entropy::SeededEntropy, generator::{Generator, Policy},
    ///     scheme::newid::NewIdGenerator,
    /// };
    ///
    /// let clock = ManualClock::at_unix_millis(1_645_557_742_000);
    /// let worker = [0x02, 0x42, 0xac, 0x11, 0x00, 0x02];
    /// let keys = NewIdGenerator::with_node(worker, clock, SeededEntropy::new(1), Policy::DEFAULT);
    /// let key = keys.try_generate()?.into_raw();
    /// assert_eq!(key.to_string(), "02420000-0002-ac11-eb00-08d9f638a666");
    /// # }
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    NewIdGenerator<C, E> = OrderedGenerator<NewId, C, E>
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests;
