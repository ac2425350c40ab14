//! Coordinated ids on Redis.
//!
//! | you want to | use |
//! |---|---|
//! | give each process a node that no other has, for Snowflakes and the like | [`RedisLease`] |
//! | count over all processes, in blocks of numbers | [`RedisCounter`] |
//! | do either in threads, without async | [`Blocking`] |
//! | follow the master that Redis Sentinel names | [`Reconnecting`] |
//!
#![doc = include_str!("../README.md")]
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
