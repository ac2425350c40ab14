//! Layouts given by numbers, so that a key type's attribute can state them.

use core::marker::PhantomData;

use super::SnowflakeLayout;

/// A layout with the given bits of time, node and sequence, from 1970-01-01 in units of `UNIT_MILLIS` milliseconds.
/// [`Since`] gives it another epoch.
///
/// # Example: 45 bits of seconds since 2026
///
/// ```
/// use ordid_core::scheme::{Layout, Snowflake, snowflake::{Bits, Parts, Since}};
///
/// type Invoices = Snowflake<Since<Bits<32, 1, 12, 1_000>, 1_767_225_600_000>>;
///
/// let key = Invoices::pack(Parts { time: 86_400, node: 1, sequence: 3 })?;
/// assert_eq!(key, 86_400 << 13 | 1 << 12 | 3);
/// let inspection = Invoices::inspect(&key)?;
/// assert_eq!(inspection.moment.unwrap().unix_nanos, 1_767_312_000_000_000_000);
/// # Ok::<(), ordid_core::Error>(())
/// ```
#[derive(Debug)]
pub enum Bits<const TIME: u32, const NODE: u32, const SEQUENCE: u32, const UNIT_MILLIS: u32 = 1> {}

impl<const TIME: u32, const NODE: u32, const SEQUENCE: u32, const UNIT: u32> SnowflakeLayout
    for Bits<TIME, NODE, SEQUENCE, UNIT>
{
    const NAME: &'static str = "snowflake_bits";
    const EPOCH_UNIX_MILLIS: i64 = 0;
    const UNIT_MILLIS: u32 = UNIT;
    const TIME_BITS: u32 = TIME;
    const NODE_BITS: u32 = NODE;
    const SEQUENCE_BITS: u32 = SEQUENCE;
}

/// A layout with another epoch, in milliseconds since 1970-01-01T00:00:00Z.
///
/// Its keys look like those of the original layout, so the two must not share a column.
///
/// # Example: Sonyflake's start time
///
/// ```
/// use ordid_core::scheme::{Snowflake, snowflake::{Since, Sonyflake}};
///
/// type Own = Snowflake<Since<Sonyflake, 1_767_225_600_000>>;
///
/// assert_eq!(Own::SCALE.epoch_unix_millis(), 1_767_225_600_000); // 2026
/// assert_eq!(Own::BITS, <Snowflake<Sonyflake>>::BITS);
/// ```
#[derive(Debug)]
pub struct Since<L, const EPOCH_UNIX_MILLIS: i64>(PhantomData<fn() -> L>);

impl<L: SnowflakeLayout, const EPOCH: i64> SnowflakeLayout for Since<L, EPOCH> {
    const NAME: &'static str = L::NAME;
    const EPOCH_UNIX_MILLIS: i64 = EPOCH;
    const UNIT_MILLIS: u32 = L::UNIT_MILLIS;
    const TIME_BITS: u32 = L::TIME_BITS;
    const NODE_BITS: u32 = L::NODE_BITS;
    const SEQUENCE_BITS: u32 = L::SEQUENCE_BITS;
    const SEQUENCE_ABOVE_NODE: bool = L::SEQUENCE_ABOVE_NODE;
    const FIRST_SEQUENCE: u64 = L::FIRST_SEQUENCE;
}
