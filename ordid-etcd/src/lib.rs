//! Coordinated ids on etcd, over etcd-client's [`Client`](etcd_client::Client), which connects anew by itself.
//!
//! | you want to | use |
//! |---|---|
//! | give each process a node that no other has, for Snowflakes and the like | [`EtcdLease`] |
//! | count over all processes, in blocks of numbers | [`EtcdCounter`] |
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod counter;
mod error;
mod lease;
mod store;

pub use counter::EtcdCounter;
pub use lease::EtcdLease;
