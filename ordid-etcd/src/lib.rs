//! Coordinated ids on etcd.
//!
//! ```text
//! $ cargo add ordid ordid-etcd
//! ```
//!
//! - [`EtcdLease`]: a node that nobody else has, for as long as it is renewed.
//! - [`EtcdCounter`]: blocks of a count.
//!
//! Both take etcd-client's [`Client`](etcd_client::Client), which connects anew by itself.

#![forbid(unsafe_code)]

mod counter;
mod error;
mod lease;
mod store;

pub use counter::EtcdCounter;
pub use lease::EtcdLease;

/// The example of the README must compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub mod readme {}
