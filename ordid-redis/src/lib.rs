//! Coordinated ids on Redis.
//!
//! ```text
//! $ cargo add ordid ordid-redis
//! ```
//!
//! - [`RedisLease`]: a node that nobody else has, for as long as it is renewed.
//! - [`RedisCounter`]: blocks of a count.
//! - [`Blocking`]: for threads, a connection that connects anew.
//! - [`Reconnecting`]: the same for tasks, for Sentinel.

#![forbid(unsafe_code)]

mod connection;
mod counter;
mod error;
mod lease;
mod reconnecting;

pub use connection::{Blocking, Connection};
pub use counter::RedisCounter;
pub use lease::RedisLease;
pub use reconnecting::Reconnecting;

/// The example of the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
