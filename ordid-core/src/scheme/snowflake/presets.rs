//! The layouts of well-known systems.

use super::{SnowflakeLayout, SnowflakeNode};
use crate::error::Error;

/// Twitter's layout of 2010: 41 bits of milliseconds, 5 of datacentre, 5 of worker, 12 of sequence.
///
/// It ends on 2080-07-10T17:30:30.209Z.
#[derive(Debug)]
pub enum Twitter {}

impl SnowflakeLayout for Twitter {
    const NAME: &'static str = "snowflake";
    const EPOCH_UNIX_MILLIS: i64 = 1_288_834_974_657;
    const TIME_BITS: u32 = 41;
    const NODE_BITS: u32 = 10;
    const SEQUENCE_BITS: u32 = 12;
}

/// Bits of the second of two numbers that a node is made of.
const SPLIT: u32 = 5;

impl SnowflakeNode<Twitter> {
    /// Makes a node from the numbers of a datacentre and of a worker in it, each below 32.
    ///
    /// # Errors
    ///
    /// A number of 32 or more gives an error that [`is_layout`](Error::is_layout).
    pub fn of_datacentre(datacentre: u8, worker: u8) -> Result<Self, Error> {
        check_half::<Twitter>("datacentre", datacentre)?;
        check_half::<Twitter>("worker", worker)?;
        Ok(Self::unchecked(
            u64::from(datacentre) << SPLIT | u64::from(worker),
        ))
    }

    /// Returns the number of the datacentre.
    pub const fn datacentre(self) -> u8 {
        (self.get() >> SPLIT & 0x1f) as u8
    }

    /// Returns the number of the worker in its datacentre.
    pub const fn worker(self) -> u8 {
        (self.get() & 0x1f) as u8
    }
}

fn check_half<L: SnowflakeLayout>(field: &'static str, number: u8) -> Result<(), Error> {
    if number >> SPLIT != 0 {
        return Err(Error::field(L::NAME, field, number, SPLIT));
    }
    Ok(())
}

/// Discord's layout: as Twitter's, with another epoch, and a worker and a process for the node.
///
/// Discord gives the time 42 bits, and so uses the sign bit. This layout has 41 bits, and ends on
/// 2084-09-06T15:47:35.552Z. Keys of earlier times are the same in both.
#[derive(Debug)]
pub enum Discord {}

impl SnowflakeLayout for Discord {
    const NAME: &'static str = "discord";
    const EPOCH_UNIX_MILLIS: i64 = 1_420_070_400_000;
    const TIME_BITS: u32 = 41;
    const NODE_BITS: u32 = 10;
    const SEQUENCE_BITS: u32 = 12;
}

impl SnowflakeNode<Discord> {
    /// Makes a node from the numbers of a worker and of a process, each below 32.
    ///
    /// # Errors
    ///
    /// A number of 32 or more gives an error that [`is_layout`](Error::is_layout).
    pub fn of_worker(worker: u8, process: u8) -> Result<Self, Error> {
        check_half::<Discord>("worker", worker)?;
        check_half::<Discord>("process", process)?;
        Ok(Self::unchecked(
            u64::from(worker) << SPLIT | u64::from(process),
        ))
    }
}

/// Sonyflake's layout, version 1: 39 bits of 10 milliseconds, 8 of sequence, and the machine last.
///
/// There are 256 keys in 10 milliseconds. It begins on 2014-09-01 and ends on 2188-11-16.
#[derive(Debug)]
pub enum Sonyflake {}

impl SnowflakeLayout for Sonyflake {
    const NAME: &'static str = "sonyflake";
    const EPOCH_UNIX_MILLIS: i64 = 1_409_529_600_000;
    const UNIT_MILLIS: u32 = 10;
    const TIME_BITS: u32 = 39;
    const NODE_BITS: u32 = 16;
    const SEQUENCE_BITS: u32 = 8;
    const SEQUENCE_ABOVE_NODE: bool = true;
}

/// Sonyflake's layout, version 2: as version 1 by default, but from 2025-01-01.
///
/// Keys of the two versions look alike, so they must not share a column.
#[derive(Debug)]
pub enum SonyflakeV2 {}

impl SnowflakeLayout for SonyflakeV2 {
    const NAME: &'static str = "sonyflake_v2";
    const EPOCH_UNIX_MILLIS: i64 = 1_735_689_600_000;
    const UNIT_MILLIS: u32 = Sonyflake::UNIT_MILLIS;
    const TIME_BITS: u32 = Sonyflake::TIME_BITS;
    const NODE_BITS: u32 = Sonyflake::NODE_BITS;
    const SEQUENCE_BITS: u32 = Sonyflake::SEQUENCE_BITS;
    const SEQUENCE_ABOVE_NODE: bool = true;
}

/// Baidu's `UidGenerator`: 28 bits of seconds since an epoch, 22 of worker, 13 of sequence.
///
/// **The default epoch is over**: 28 bits of seconds from 2016-05-20T00:00:00+08:00 ended after 2024-11-20T13:24:15Z.
/// Keys with this epoch can be read, but not made: every call is an error that [`is_clock`](Error::is_clock). Give
/// another epoch, such as `BaiduUid<1_767_225_600>` for 2026; it lasts eight and a half years.
///
/// The original takes a new worker number from an auto-increment table at each start, so it never uses one twice.
#[derive(Debug)]
pub enum BaiduUid<const EPOCH_UNIX_SECONDS: u32 = 1_463_673_600> {}

impl<const EPOCH_UNIX_SECONDS: u32> SnowflakeLayout for BaiduUid<EPOCH_UNIX_SECONDS> {
    const NAME: &'static str = "baidu_uid";
    const EPOCH_UNIX_MILLIS: i64 = EPOCH_UNIX_SECONDS as i64 * 1_000;
    const UNIT_MILLIS: u32 = 1_000;
    const TIME_BITS: u32 = 28;
    const NODE_BITS: u32 = 22;
    const SEQUENCE_BITS: u32 = 13;
}

/// yitter's `IdGenerator` with its defaults: milliseconds, 6 bits of worker, 6 of sequence.
///
/// The original begins each millisecond at 5. It leaves 0 for keys made by hand, and uses 1 to 4 for keys that it
/// makes in the past when the clock steps back. That is how its keys decrease (issue 42) and, in one port, repeat
/// (issue 77). Generators of ordid never use these numbers. They make 32 keys in a millisecond, 5 to 36, and then use
/// the next millisecond as the [`Policy`](crate::generator::Policy) allows, where the original makes 59 and then
/// drifts.
///
/// Its advantage is short keys: until 2089 they are below 2^53, so that JavaScript reads them without loss.
#[derive(Debug)]
pub enum Yitter {}

impl SnowflakeLayout for Yitter {
    const NAME: &'static str = "yitter";
    const EPOCH_UNIX_MILLIS: i64 = 1_582_136_402_000;
    const TIME_BITS: u32 = 51;
    const NODE_BITS: u32 = 6;
    const SEQUENCE_BITS: u32 = 6;
    const FIRST_SEQUENCE: u64 = 5;
}

/// Few nodes and a wide sequence, for a generator that never has to wait: 41 bits of milliseconds since 2024, 4 of
/// node, 18 of sequence.
///
/// There are 262,144 keys in a millisecond, 64 times as many as Twitter's. It ends on 2093-09-06.
#[derive(Debug)]
pub enum WideSequence {}

impl SnowflakeLayout for WideSequence {
    const NAME: &'static str = "snowflake_wide";
    const EPOCH_UNIX_MILLIS: i64 = 1_704_067_200_000;
    const TIME_BITS: u32 = 41;
    const NODE_BITS: u32 = 4;
    const SEQUENCE_BITS: u32 = 18;
}
