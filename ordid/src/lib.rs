//! One generator, one key, every database's sort order: primary keys made by the program, before
//! the insert, that rise in time and sort so in PostgreSQL, MySQL, MariaDB and SQLite.
//!
//! - A *key type* is a newtype over a raw key, one per entity, so that ids do not mix:
//!   [`#[derive(KeyType)]`](trait@KeyType). [`uuid::Uuid`] itself is a key type too, so that
//!   existing structs work unchanged.
//! - An *entity* is a row that knows its table, its key and its parents:
//!   [`#[derive(OrderedKey)]`](trait@OrderedKey).
//! - An *adapter*, such as `ordid-sqlx`, stores keys in a database library's columns and writes a
//!   whole graph of new entities in one transaction. This crate has no driver and knows none.
//!
//! # Example: keys before the insert
#![cfg_attr(feature = "derive", doc = "```")]
#![cfg_attr(not(feature = "derive"), doc = "```ignore")]
//! use ordid::{KeyType, OrderedKey, uuid::Uuid};
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "cus")]
//! pub struct CustomerId(Uuid);
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v7, prefix = "ord")]
//! pub struct OrderId(Uuid);
//!
//! #[derive(OrderedKey)]
//! #[ordid(table = "orders")]
//! struct Order { #[ordid(key)] id: Option<OrderId>, #[ordid(parent)] customer: CustomerId, total: i64 }
//!
//! let customer = CustomerId::generate();
//! let mut order = Order { id: None, customer, total: 1250 };
//! let id = order.ensure_key();
//! assert_eq!(order.ensure_key(), id); // assigned once: a retry carries the same key
//! assert!(id < OrderId::generate()); // keys rise, over all threads
//! assert_eq!(id.to_string().parse::<OrderId>()?, id); // ord_01h455vb4pex5vsknk084sn02q
//! assert!(customer.to_string().parse::<OrderId>().is_err()); // ids do not mix
//! assert_eq!(Order::COLUMNS, ["id", "customer", "total"]);
//! # assert_eq!((order.customer, order.total), (customer, 1250));
//! # Ok::<(), ordid::Error>(())
//! ```
//!
//! # Example: no newtype
//!
//! ```
//! use ordid::{KeyType, uuid::Uuid};
//!
//! let mut keys = [Uuid::nil(); 1000];
//! Uuid::fill(&mut keys);
//! assert!(keys.is_sorted());
//! assert_eq!(keys[0].get_version_num(), 7);
//! ```
//!
//! # Features
//!
//! - `std` (on by default): the system's clocks and entropy, and `generate()`. Without it: `alloc`,
//!   64-bit atomics, and a clock and entropy of your own.
//! - `derive` (on by default): the two derives; costs syn at build time.
//! - `tsc`: a clock that reads the processor's time-stamp counter.
//! - `tracing`, `metrics`: an event, a counter, where a generator's policy acts.
//! - `test-util`: a clock and an entropy source for tests, so that keys are the same on every
//!   machine.
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `uuid`; it moves in minor releases.

#![cfg_attr(not(feature = "std"), no_std)]

pub use ordid_core::{
    Error, Fields, KeyField, KeyOf, KeyType, OrderedKey, RawKey, Scheme, Sink, StaticScheme,
    TypedKey, clock, entity, entropy, generator, high_water, key, layout, scheme, storage, uuid,
};
#[cfg(feature = "derive")]
pub use ordid_derive::{KeyType, OrderedKey};

#[doc(hidden)]
pub use ordid_core::__private;
