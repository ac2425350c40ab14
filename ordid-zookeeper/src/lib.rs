//! Coordinated ids on ZooKeeper.
//!
//! | you want to | use |
//! |---|---|
//! | give each process a node that no other has, for Snowflakes and the like | [`ZooKeeperLease`] |
//! | count over all processes, in blocks of numbers | [`ZooKeeperCounter`] |
//! | get each number from ZooKeeper itself, by a sequential node of its tree | [`SequentialNode`] |
//! | share one session between them | [`Session`] |
//!
#![doc = include_str!("../README.md")]
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
