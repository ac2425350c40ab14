//! ObjectIds in the form of before 2018, whose generators are told apart by host and process.
//!
//! # References
//!
//! `mongodb/mongo-python-driver@001d72b`, `bson/objectid.py`.

use super::{COUNTER_BITS, LegacyParts, ObjectIdScheme, SCALE, SECOND_BITS, place};
use crate::{
    clock::{TimeScale, Timestamp},
    error::Error,
    generator::{OrderedGenerator, Slot, Slotted},
    key::{ObjectId, RisesAsBytes, Scheme},
    layout::Orders,
    scheme::anatomy::{Inspection, Layout, TimeOrdered, fits},
};

const MACHINE_BITS: u32 = 24;

/// The scheme `object_id` with a host and a process instead of the random bytes: the form of before 2018.
///
/// Its generators are given a [`HostAndProcess`]. Apart from a counter that begins each second at random, only this
/// tells their keys of one second apart: two containers of one image, both process 1 of a host `localhost`, make the
/// same keys sooner or later. Use the present form, [`ObjectIdScheme`], unless a reader needs this one.
#[derive(Debug)]
pub enum ObjectIdLegacy {}

impl Scheme for ObjectIdLegacy {
    type Raw = ObjectId;

    const NAME: &'static str = ObjectIdScheme::NAME;
    const ORDERS: Orders = ObjectIdScheme::ORDERS;
    const EXPECTED: &'static str = ObjectIdScheme::EXPECTED;
    const TEXT_IS_RAW: bool = true;

    fn check(raw: &ObjectId) -> bool {
        ObjectIdScheme::check(raw)
    }

    fn timestamp(raw: &ObjectId) -> Option<Timestamp> {
        ObjectIdScheme::timestamp(raw)
    }
}

impl RisesAsBytes for ObjectIdLegacy {}

impl Slotted for ObjectIdLegacy {
    type Node = HostAndProcess;

    const SCALE: TimeScale = SCALE;
    const TICK_BITS: u32 = SECOND_BITS;
    const INDEX_BITS: u32 = COUNTER_BITS - 1;
    /// The counter has one bit more, which begins as zero.
    const SEED_BITS: u32 = COUNTER_BITS - 1;
    const RANDOM_BITS: u32 = 0;
    /// A child of a fork is another process, and 23 random bits are too few to tell two runs in the same second
    /// apart.
    const RENEWS: bool = false;

    #[inline]
    fn encode(slot: Slot<HostAndProcess>) -> ObjectId {
        place(slot.time, slot.node.bits(), slot.count)
    }
}

impl Layout for ObjectIdLegacy {
    type Parts = LegacyParts;

    fn pack(parts: LegacyParts) -> Result<ObjectId, Error> {
        parts.pack()
    }

    fn unpack(raw: &ObjectId) -> Result<LegacyParts, Error> {
        Ok(LegacyParts::of(raw))
    }

    fn inspect(raw: &ObjectId) -> Result<Inspection, Error> {
        ObjectIdScheme::inspect(raw)
    }
}

impl TimeOrdered for ObjectIdLegacy {
    fn bounds_at(timestamp: Timestamp) -> Result<(ObjectId, ObjectId), Error> {
        ObjectIdScheme::bounds_at(timestamp)
    }
}

/// The node of an [`ObjectIdLegacy`] generator: 24 bits of the host, 16 of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostAndProcess {
    machine: u32,
    process: u16,
}

impl HostAndProcess {
    /// Makes a node from the two numbers.
    ///
    /// # Errors
    ///
    /// A machine of more than 24 bits gives an error that [`is_layout`](Error::is_layout).
    pub fn new(machine: u32, process: u16) -> Result<Self, Error> {
        fits::<ObjectIdScheme>("machine", machine, MACHINE_BITS)?;
        Ok(Self { machine, process })
    }

    /// Makes a node from the first three bytes of the MD5 of the host's name, as drivers did, and the lower 16 bits
    /// of the process number (`std::process::id()`). PyMongo used the remainder by 65,535 instead.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::{
    ///     clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
    ///     scheme::object_id::{HostAndProcess, LegacyParts, ObjectIdLegacyGenerator},
    /// };
    ///
    /// let node = HostAndProcess::of("db-1.example", 66_000);
    /// let keys =
    ///     ObjectIdLegacyGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
    /// let parts = LegacyParts::of(&keys.try_generate()?.into_raw());
    /// assert_eq!((parts.machine, parts.process), (0xdd_7c5b, 464));
    /// # Ok::<(), ordid_core::Error>(())
    /// ```
    pub fn of(host: &str, process: u32) -> Self {
        let digest = md5::compute(host);
        let [_, _, high, low] = process.to_be_bytes();
        Self {
            machine: u32::from_be_bytes([0, digest[0], digest[1], digest[2]]),
            process: u16::from_be_bytes([high, low]),
        }
    }

    const fn bits(self) -> u64 {
        (self.machine as u64) << 16 | self.process as u64
    }
}

generator_alias! {
    /// Makes ObjectIds in the form of before 2018.
    ObjectIdLegacyGenerator<C, E> = OrderedGenerator<ObjectIdLegacy, C, E>
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::scheme::testing::{next, scripted_at};

    #[test]
    fn keys_carry_the_hash_of_the_host_and_the_process() {
        // `printf localhost | md5sum` begins with 421aa9.
        let node = HostAndProcess::of("localhost", 0x1_e9c4);
        assert_eq!(node, HostAndProcess::new(0x42_1aa9, 0xe9c4).unwrap());
        let keys = scripted_at::<ObjectIdLegacy>(node, 1_457_650_802_000);
        let [first, second] = [(); 2].map(|()| next(&keys));
        let parts = LegacyParts::of(&first);
        assert_eq!(parts.seconds, 1_457_650_802);
        assert_eq!((parts.machine, parts.process), (0x42_1aa9, 0xe9c4));
        let counter = parts.counter + 1;
        assert_eq!(LegacyParts::of(&second), LegacyParts { counter, ..parts });
    }

    #[test]
    fn a_machine_of_more_bits_is_refused() {
        let error = HostAndProcess::new(1 << 24, 0).unwrap_err();
        assert!(error.is_layout());
    }
}
