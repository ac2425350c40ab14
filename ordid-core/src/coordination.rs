//! Leased nodes and reserved numbers, on which the generators of several processes have to agree.
//!
//! This crate defines what a store has to guarantee, and does the arithmetic. Adapters do the I/O.
//!
//! - [`Grant`]: a node, and the range of *embedded* time for which it is the holder's. A
//!   [`NodeAllocator`] hands them out, over a store such as a file, a table, Redis or ZooKeeper.
//! - [`Segment`]: a block of a count. A [`SegmentSource`] reserves them.
//!
//! # Why a range of embedded time
//!
//! A lease that ends by a clock can be lost unnoticed. A process then repeats keys if it was paused between its
//! check and its key, or if its clock is behind its successor's. A grant ends by what is *in* the keys. For each
//! node the store keeps a ceiling: a holder makes only keys whose time is below it, and whoever comes next begins
//! at it. So two holders of one node never have a time in common, whatever their clocks read and however late a
//! check comes. Clocks decide only how soon a node is free again.
//!
//! ```text
//! node 7   |--- epoch 3 ---|------ epoch 4 ------|-- epoch 5 ..
//!          floor    ceiling = floor       ceiling = floor       -> time in the keys
//! ```

use core::fmt;

mod grant;
#[cfg(any(test, feature = "test-util"))]
mod memory;
mod node;
mod segment;
#[cfg(feature = "std")]
pub mod swap;

pub use grant::{AsyncNodeAllocator, Grant, LeaseTerms, NodeAllocator};
// These are exported twice, so that the compiler names the feature if it is missing.
#[cfg(feature = "test-util")]
pub use memory::{MemoryCounter, MemoryNodes};
#[cfg(all(test, not(feature = "test-util")))]
pub use memory::{MemoryCounter, MemoryNodes};
#[cfg(feature = "std")]
pub use node::choose_node;
pub use node::{NoNodeRecord, NodeRecord};
pub use segment::{
    AsyncSegmentSource, Ordered, Segment, SegmentOrder, SegmentSource, SegmentValues, Unordered,
};

/// The kinds of failure between a generator and the store that it depends on; see
/// [`Error::coordination_failure`](crate::Error::coordination_failure).
///
/// After none of these failures does a generator make a key that another may make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CoordinationFailure {
    /// The store does not answer, or did not answer in time. It may have carried out the request. A grant or a
    /// segment whose answer was lost is never used, and leaves a gap.
    Unavailable,
    /// The grant's time is over and it was not renewed. There are no keys until it is.
    Expired,
    /// Another process holds the node now, or a copy of this process renewed the same grant, or this is the child of
    /// a fork and the grant belongs to the parent. Acquire another grant.
    Fenced,
    /// All nodes are held.
    NoFreeNode,
    /// The store has lost its data, such as Redis after a restart without persistence. Beginning anew would repeat
    /// keys, so an operator has to say where to go on.
    StateLost,
    /// The store's ceiling is below one that it has already granted: the store was restored from a copy, or failed
    /// over to a replica that lagged behind.
    CeilingRegressed,
    /// The holder's clock, or the node's ceiling, is further ahead of the store's clock than the terms allow. A grant
    /// there would use up all the time in between, in which the node then has no keys.
    TooFarAhead,
    /// A counter has reached its end. It does not wrap.
    CounterExhausted,
    /// The store's data or configuration is not what was expected: another increment, or a damaged record.
    Mismatch,
}

impl fmt::Display for CoordinationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unavailable => "the store is unavailable",
            Self::Expired => "the lease has expired",
            Self::Fenced => "the lease is another's",
            Self::NoFreeNode => "no node is free",
            Self::StateLost => "the store has lost its state",
            Self::CeilingRegressed => "the store's ceiling went back",
            Self::TooFarAhead => "too far ahead of the store's clock",
            Self::CounterExhausted => "the counter is exhausted",
            Self::Mismatch => "not what was asked for",
        })
    }
}
