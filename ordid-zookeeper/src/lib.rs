//! Coordinated ids on ZooKeeper.
//!
//! ```text
//! $ cargo add ordid ordid-zookeeper
//! ```
//!
//! - [`ZooKeeperLease`]: a node that nobody else has, for as long as it is renewed.
//! - [`ZooKeeperCounter`]: blocks of a count.
//! - [`SequentialNode`]: a node of the tree for each id.
//! - [`Session`]: what they share.

#![forbid(unsafe_code)]

mod counter;
mod error;
mod lease;
mod sequential_node;
mod session;
mod tree;

pub use counter::ZooKeeperCounter;
pub use lease::ZooKeeperLease;
pub use sequential_node::SequentialNode;
pub use session::Session;

/// The example of the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
