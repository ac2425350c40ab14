//! Blocks of reserved numbers, and the traits of the sources that reserve them.

use alloc::format;
use core::{fmt, marker::PhantomData, num::NonZeroU32};

use super::CoordinationFailure;
use crate::error::Error;

/// Says whether the segments of a source rise in the order in which they were reserved: [`Ordered`] or [`Unordered`].
pub trait SegmentOrder: Copy + fmt::Debug + Send + Sync + 'static + sealed::Sealed {
    /// The name of the scheme whose keys come from such segments.
    const SCHEME: &'static str;
    /// Whether a later reservation gets higher numbers.
    const RISES: bool;
}

mod sealed {
    pub trait Sealed {}
}

/// One counter: a later reservation gets higher numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ordered {}

/// Several counters that drift apart, such as Flickr's ticket servers. Numbers are unique and rise within a segment,
/// but two segments are in no order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unordered {}

impl sealed::Sealed for Ordered {}
impl sealed::Sealed for Unordered {}

impl SegmentOrder for Ordered {
    const SCHEME: &'static str = "sequence";
    const RISES: bool = true;
}

impl SegmentOrder for Unordered {
    const SCHEME: &'static str = "tickets";
    const RISES: bool = false;
}

/// Numbers that were reserved together: `first`, `first + stride`, and so on, `count` of them.
///
/// It cannot be cloned: whoever has it owns the numbers. A fork does copy it, and the copy cannot notice that, so do
/// not use a segment in the child. A [`SegmentGenerator`](crate::generator::SegmentGenerator) does notice.
///
/// Several counters can share the numbers by remainder: with a stride of 2, one counter has the odd numbers and one
/// the even ones.
///
/// # Example
///
/// ```
/// use ordid_core::coordination::{Ordered, Segment};
///
/// let mut segment = Segment::<Ordered>::new(1_001, 3, 2)?;
/// let head = segment.split_to(1);
/// assert!(head.values().eq([1_001]));
/// assert!(segment.values().eq([1_003, 1_005]));
/// assert!(Segment::<Ordered>::new(i64::MAX - 1, 3, 1).is_err());
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub struct Segment<O = Ordered> {
    first: i64,
    count: u32,
    stride: u32,
    order: PhantomData<fn() -> O>,
}

impl<O: SegmentOrder> Segment<O> {
    /// Makes a segment from numbers that a source has reserved.
    ///
    /// # Errors
    ///
    /// Returns [`CounterExhausted`](CoordinationFailure::CounterExhausted) if a number is above `i64::MAX`, and
    /// [`Mismatch`](CoordinationFailure::Mismatch) if `first` is negative or `stride` is 0.
    pub fn new(first: i64, count: u32, stride: u32) -> Result<Self, Error> {
        if first < 0 || stride == 0 {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!(
                    "a segment from {first} by {stride} is none: numbers are positive and rise"
                ),
            ));
        }
        let rest = i64::from(count.saturating_sub(1)).checked_mul(i64::from(stride));
        if rest.and_then(|rest| first.checked_add(rest)).is_none() {
            return Err(Error::coordination(
                CoordinationFailure::CounterExhausted,
                format!(
                    "{count} numbers from {first} by {stride} do not end at or below {}",
                    i64::MAX
                ),
            ));
        }
        Ok(Self {
            first,
            count,
            stride,
            order: PhantomData,
        })
    }

    /// Returns how many numbers are left.
    pub const fn len(&self) -> u32 {
        self.count
    }

    /// Returns whether no number is left.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the next number, if one is left.
    pub const fn first(&self) -> Option<i64> {
        if self.count == 0 {
            None
        } else {
            Some(self.first)
        }
    }

    /// Returns the difference between one number and the next.
    pub const fn stride(&self) -> u32 {
        self.stride
    }

    /// Removes the first `count` numbers, or all that are left, and returns them as a segment.
    pub fn split_to(&mut self, count: u32) -> Self {
        let count = count.min(self.count);
        let head = Self {
            first: self.first,
            count,
            stride: self.stride,
            order: PhantomData,
        };
        self.count -= count;
        if self.count > 0 {
            self.first += i64::from(count) * i64::from(self.stride);
        }
        head
    }

    /// Returns an iterator over the numbers, which rise.
    pub fn values(self) -> SegmentValues<O> {
        SegmentValues(self)
    }
}

impl<O> PartialEq for Segment<O> {
    fn eq(&self, other: &Self) -> bool {
        (self.first, self.count, self.stride) == (other.first, other.count, other.stride)
    }
}

impl<O> Eq for Segment<O> {}

impl<O> fmt::Debug for Segment<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Segment({} from {} by {})",
            self.count, self.first, self.stride
        )
    }
}

/// Iterates over the numbers of a segment: [`Segment::values`].
#[derive(Debug)]
pub struct SegmentValues<O = Ordered>(Segment<O>);

impl<O: SegmentOrder> Iterator for SegmentValues<O> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        self.0.split_to(1).first()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.0.count).unwrap_or(usize::MAX);
        (left, Some(left))
    }
}

impl<O: SegmentOrder> ExactSizeIterator for SegmentValues<O> {}

/// Reserves numbers from a counter in a store, outside the transaction that uses them.
///
/// A source has to guarantee that no number comes twice, whatever fails. A reservation whose answer was lost leaves a
/// gap, and so does a rollback. The counter never wraps, and never starts anew because the store has lost it. Make
/// errors with [`Error::coordination`].
#[doc(alias("sequence", "nextval", "ticket server"))]
pub trait SegmentSource: Send + Sync {
    /// Whether segments rise in the order of their reservation: [`Ordered`] or [`Unordered`].
    type Order: SegmentOrder;

    /// Reserves `count` numbers in one round trip, as one segment.
    ///
    /// # Errors
    ///
    /// [`Unavailable`](CoordinationFailure::Unavailable),
    /// [`StateLost`](CoordinationFailure::StateLost),
    /// [`CounterExhausted`](CoordinationFailure::CounterExhausted),
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    fn reserve(&self, count: NonZeroU32) -> Result<Segment<Self::Order>, Error>;

    /// Returns the largest count that one call can reserve, or `None` if there is no limit. A
    /// [`SegmentGenerator`](crate::generator::SegmentGenerator) reserves larger counts in several calls. An
    /// [`Unordered`] source must have no limit, because a batch of its numbers has to fit into one segment.
    fn most(&self) -> Option<NonZeroU32> {
        None
    }
}

/// A [`SegmentSource`] for a store with an async API.
///
/// Dropping a future may leave a gap.
pub trait AsyncSegmentSource: Send + Sync {
    /// As [`SegmentSource::Order`].
    type Order: SegmentOrder;

    /// As [`SegmentSource::reserve`].
    fn reserve(
        &self,
        count: NonZeroU32,
    ) -> impl Future<Output = Result<Segment<Self::Order>, Error>> + Send;

    /// As [`SegmentSource::most`].
    fn most(&self) -> Option<NonZeroU32> {
        None
    }
}

macro_rules! shared {
    ($shared:ty) => {
        impl<S: SegmentSource + ?Sized> SegmentSource for $shared {
            type Order = S::Order;

            fn reserve(&self, count: NonZeroU32) -> Result<Segment<S::Order>, Error> {
                (**self).reserve(count)
            }

            fn most(&self) -> Option<NonZeroU32> {
                (**self).most()
            }
        }
    };
}

shared!(&S);
shared!(alloc::boxed::Box<S>);
shared!(alloc::sync::Arc<S>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_end_at_the_last_number_and_do_not_wrap() {
        let last = Segment::<Ordered>::new(i64::MAX - 2, 3, 1).unwrap();
        assert!(last.values().eq([i64::MAX - 2, i64::MAX - 1, i64::MAX]));
        let error = Segment::<Ordered>::new(i64::MAX - 2, 2, 3).unwrap_err();
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::CounterExhausted)
        );
        assert_eq!(
            error.to_string(),
            "the counter is exhausted: 2 numbers from 9223372036854775805 by 3 do not end at or below 9223372036854775807"
        );
        for (first, stride) in [(-1, 1), (1, 0)] {
            let error = Segment::<Ordered>::new(first, 1, stride).unwrap_err();
            assert_eq!(
                error.coordination_failure(),
                Some(CoordinationFailure::Mismatch)
            );
        }
    }

    #[test]
    fn numbers_taken_from_a_segment_are_not_given_out_again() {
        let mut segment = Segment::<Unordered>::new(2, 5, 2).unwrap();
        assert!(segment.split_to(2).values().eq([2, 4]));
        assert!(segment.split_to(9).values().eq([6, 8, 10]));
        assert!(segment.is_empty());
        assert_eq!(segment.first(), None);
        assert!(segment.split_to(1).is_empty());
    }
}
