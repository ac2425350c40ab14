//! Numbers from a counter that a store keeps: a database's sequence or row, ticket servers, Redis or ZooKeeper.
//!
//! ```text
//!  63 62                                                            0
//! +-+----------------------------------------------------------------+
//! |0|                            the number                          |
//! +-+----------------------------------------------------------------+
//! ```
//!
//! | scheme | from | order |
//! |---|---|---|
//! | [`Sequence`] | one counter | the order of reservation |
//! | [`Tickets`] | several counters that share the numbers by their remainders, such as Flickr's ticket servers | none across the counters |
//!
//! Such a key contains only its number: it has no time, and whoever knows one key can predict the next. A
//! [`SegmentSource`](crate::coordination::SegmentSource) reserves the numbers, and a
//! [`SegmentGenerator`](crate::generator::SegmentGenerator) makes keys from them.

use core::{convert::Infallible, marker::PhantomData};

use super::anatomy::{Certainty, Inspection, Layout, check};
use crate::{
    clock::Timestamp,
    coordination::{Ordered, SegmentOrder, Unordered},
    error::Error,
    key::{RisesAsBytes, Scheme},
    layout::Orders,
};

/// The schemes `sequence` and `tickets`.
pub enum Counted<O> {
    /// There are no values: a scheme is a type.
    #[doc(hidden)]
    Never(Infallible, PhantomData<fn() -> O>),
}

/// Numbers of one counter, in the order of their reservation.
pub type Sequence = Counted<Ordered>;

/// Numbers of several counters, in no order across them.
pub type Tickets = Counted<Unordered>;

impl<O: SegmentOrder> Scheme for Counted<O> {
    type Raw = i64;

    const NAME: &'static str = O::SCHEME;
    const ORDERS: Orders = Orders::BYTES;
    const EXPECTED: &'static str = "no sign";

    fn check(raw: &i64) -> bool {
        *raw >= 0
    }

    fn coerce(raw: i64) -> i64 {
        raw & i64::MAX
    }

    fn timestamp(_: &i64) -> Option<Timestamp> {
        None
    }
}

impl RisesAsBytes for Sequence {}

/// The only part is the number.
///
/// # Example
///
/// ```
/// use ordid_core::scheme::{Layout, Sequence};
///
/// assert_eq!(Sequence::unpack(&1_001)?, 1_001);
/// assert!(Sequence::pack(-1).unwrap_err().is_layout());
/// # Ok::<(), ordid_core::Error>(())
/// ```
impl<O: SegmentOrder> Layout for Counted<O> {
    type Parts = i64;

    fn pack(number: i64) -> Result<i64, Error> {
        Self::unpack(&number)
    }

    fn unpack(raw: &i64) -> Result<i64, Error> {
        check::<Self>(raw)?;
        Ok(*raw)
    }

    fn inspect(raw: &i64) -> Result<Inspection, Error> {
        Ok(Inspection {
            counter: Some(Self::unpack(raw)?.cast_unsigned()),
            ..Inspection::of::<Self>(Certainty::Possible)
        })
    }
}
