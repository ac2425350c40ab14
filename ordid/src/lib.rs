//! Makes primary keys in your program, before the insert. They rise in time, and databases sort them in that order:
//! PostgreSQL, MySQL, MariaDB, SQLite, SQL Server, Babelfish and Oracle.
//!
//! ```text
//! $ cargo add ordid
//! $ cargo add ordid-sqlx --features sqlite     # or postgres, mysql; or another adapter
//! ```
//!
//! | you want to | use |
//! |---|---|
//! | make a key type for an entity | [`#[derive(KeyType)]`](trait@KeyType), or [`uuid::Uuid`] as it is |
//! | make a key, or many | `OrderId::generate()`, [`KeyType::fill`] |
//! | declare a row with its key and its parents | [`#[derive(OrderedKey)]`](trait@OrderedKey) |
//! | write rows | the `UnitOfWork` of an adapter, such as `ordid-sqlx` |
//! | choose another kind of key | [`scheme`], and the guide's [six questions](https://github.com/ordid/ordid/blob/main/docs/src/choose-a-key.md) |
//! | say what happens if the clock steps back | [`generator::Policy`] |
//! | share 64-bit ids among processes | [`coordination`] |
//! | get all rows of a day | [`KeyType::range`] |
//! | write pages of a list | [`page`] |
//! | make the same key of the same name | `KeyType::named` (feature `named`) |
//! | get the same keys in every test | `testing::with_keys` (feature `testing`) |
//! | find out what went wrong | [`Error`] |
//!
//! - A *key type* is a newtype over a raw key, one per entity, so that ids do not mix:
//!   [`#[derive(KeyType)]`](trait@KeyType). [`uuid::Uuid`] itself is a key type too, so that
//!   existing structs work unchanged.
//! - An *entity* is a row that knows its table, its key and its parents:
//!   [`#[derive(OrderedKey)]`](trait@OrderedKey).
//! - An *adapter* (`ordid-sqlx`, `ordid-diesel`, `ordid-seaorm`, `ordid-tokio-postgres`, `ordid-mysql-async`,
//!   `ordid-rusqlite`, `ordid-tiberius`, `ordid-oracle`) stores keys in a database library's columns and writes a
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
//! # Example: a scheme with parameters
#![cfg_attr(all(feature = "derive", feature = "std"), doc = "```")]
#![cfg_attr(not(all(feature = "derive", feature = "std")), doc = "```ignore")]
//! use ordid::{
//!     KeyType, clock::SystemClock, entropy::ThreadEntropy, generator::{Generator, Policy},
//!     scheme::snowflake::{SnowflakeGenerator, SnowflakeNode}, uuid::Uuid,
//! };
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = snowflake(epoch = "2026-01-01", unit = 10, time = 39, node = 8, sequence = 6))]
//! pub struct OrderId(i64); // 53 bits, which JavaScript reads without loss
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = uuid_v4_clustered(period = Minute))]
//! pub struct EventId(Uuid);
//!
//! // The node tells keys apart, so it is yours to give.
//! let node = SnowflakeNode::new(255)?;
//! let orders = SnowflakeGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
//! let id: OrderId = orders.try_generate_key()?;
//! assert!(id.to_raw() < 1 << 53);
//! assert_ne!(EventId::generate(), EventId::generate());
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
//! # Example: keys in JSON
#![cfg_attr(all(feature = "derive", feature = "serde"), doc = "```")]
#![cfg_attr(not(all(feature = "derive", feature = "serde")), doc = "```ignore")]
//! use ordid::{KeyType, uuid::Uuid};
//!
//! #[derive(KeyType)]
//! #[ordid(prefix = "ord")]
//! struct OrderId(Uuid);
//!
//! let json = r#""ord_01h455vb4pex5vsknk084sn02q""#;
//! let id: OrderId = serde_json::from_str(json)?;
//! assert_eq!(serde_json::to_string(&id)?, json);
//! assert!(serde_json::from_str::<OrderId>(r#""cus_01h455vb4pex5vsknk084sn02q""#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```
//!
//! # Example: keys in JSON Schema
#![cfg_attr(all(feature = "derive", feature = "schemars"), doc = "```")]
#![cfg_attr(not(all(feature = "derive", feature = "schemars")), doc = "```ignore")]
//! # use ordid::{KeyType, uuid::Uuid};
//! # #[derive(KeyType)]
//! # #[ordid(prefix = "ord")]
//! # struct OrderId(Uuid);
//! let schema = schemars::schema_for!(OrderId);
//! assert_eq!(schema.get("title").unwrap(), "OrderId");
//! assert_eq!(schema.get("pattern").unwrap(), "^ord_[0-7][0-9a-hjkmnp-tv-z]{25}$");
//! ```
//!
//! # Example: keys in OpenAPI
#![cfg_attr(all(feature = "derive", feature = "utoipa"), doc = "```")]
#![cfg_attr(not(all(feature = "derive", feature = "utoipa")), doc = "```ignore")]
//! # use ordid::{KeyType, uuid::Uuid};
//! # #[derive(KeyType)]
//! # struct OrderId(Uuid);
//! #[derive(utoipa::ToSchema)]
//! struct Order { id: OrderId }
//!
//! #[utoipa::path(get, path = "/orders/{id}", params(("id" = OrderId, Path)),
//!     responses((status = 200, body = Order)))]
//! fn order() {}
//! ```
//!
//! # Example: keys in GraphQL
#![cfg_attr(all(feature = "derive", feature = "async-graphql7"), doc = "```")]
#![cfg_attr(
    not(all(feature = "derive", feature = "async-graphql7")),
    doc = "```ignore"
)]
//! # use ordid::{KeyType, uuid::Uuid};
//! # #[derive(KeyType)]
//! # #[ordid(prefix = "ord")]
//! # struct OrderId(Uuid);
//! struct Query;
//!
//! #[async_graphql::Object]
//! impl Query {
//!     async fn order(&self, id: OrderId) -> OrderId { // scalar OrderId
//!         id
//!     }
//! }
//! ```
//!
//! # Example: keys from a fuzzer, and in property tests
#![cfg_attr(
    all(feature = "derive", feature = "arbitrary", feature = "proptest"),
    doc = "```"
)]
#![cfg_attr(
    not(all(feature = "derive", feature = "arbitrary", feature = "proptest")),
    doc = "```ignore"
)]
//! # use ordid::{KeyType, uuid::Uuid};
//! # #[derive(KeyType)]
//! # struct OrderId(Uuid);
//! use arbitrary::{Arbitrary, Unstructured};
//!
//! // Bits of the fuzzer's choice, but for version and variant.
//! let id = OrderId::arbitrary(&mut Unstructured::new(&[0xff; 16])).unwrap();
//! assert_eq!(id.to_string(), "ffffffff-ffff-7fff-bfff-ffffffffffff");
//!
//! proptest::proptest!(|(id: OrderId)| {
//!     proptest::prop_assert_eq!(id.to_string().parse(), Ok(id));
//! });
//! ```
//!
//! # Features
//!
//! - `std` (on by default): the system's clocks and entropy, and `generate()`. Without it: `alloc`,
//!   64-bit atomics, and a clock and entropy of your own.
//! - `derive` (on by default): the two derives; costs syn at build time.
//! - `catalogue`: `scheme::catalogue`, every scheme by its name, for tools.
//! - `named`: `OrderId::named(namespace, ["shop 7", "4711"])`, keys that are computed from names (versions
//!   5 and 8), such as those of an import that may run twice.
//! - `tsc`: a clock that reads the processor's time-stamp counter.
//! - `tracing`, `metrics`: an event, or a counter, when a generator's policy acts.
//! - `test-util`: a clock and an entropy source for tests, so that keys are the same on every
//!   machine.
//! - `testing`: `testing::with_keys(seed, || ..)`. Inside it, code that calls `generate()` makes the same keys in
//!   each run of a test, too.
//! - `chrono`, `jiff`, `time`: the times of these crates (chrono 0.4, jiff 0.2, time 0.3) to and from
//!   `clock::Timestamp`. The times of `chrono` and `time` can be versions of rows, too.
//! - `sqids04`: `#[ordid(short = SHORT)]` gives integer keys short public ids (module `key::short`, sqids 0.4).
//! - `serde`, `schemars`, `utoipa`, `async-graphql7`, `juniper018`, `arbitrary`, `proptest`: the traits of these crates
//!   (schemars 1, utoipa 6, juniper 0.18, arbitrary 1, proptest 1) for every derived key type. With serde a key is its
//!   canonical text in human-readable formats, and its bytes in others. Do not implement or derive these
//!   traits for a key type yourself, not even with the feature off: another crate of the program may
//!   turn it on. With `async-graphql7`, crates with `#![no_std]` cannot derive key types. [`uuid::Uuid`] has the
//!   impls that the features of its own crate give it.
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `uuid`; it moves in minor releases.

#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
pub use ordid_core::Assigned;
pub use ordid_core::{
    ColumnList, ColumnOf, EnsuredKey, Error, Fields, KeyField, KeyOf, KeyType, OrderedKey, RawKey,
    Reads, Scheme, Sink, StaticScheme, Tracked, TypedKey, Version, clock, coordination, entity,
    entropy, generator, high_water, key, layout, page, scheme, storage, uuid,
};
#[cfg(feature = "derive")]
pub use ordid_derive::{KeyType, OrderedKey};

#[cfg(feature = "testing")]
pub use ordid_core::testing;

#[doc(hidden)]
pub use ordid_core::__private;
