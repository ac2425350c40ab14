//! Ordered primary keys, without a driver and without async: raw keys and key types
//! ([`key`]), time and randomness ([`clock`], [`entropy`]), schemes and generators ([`scheme`],
//! [`generator`]), what a generator remembers over restarts ([`high_water`]), columns of each
//! database ([`storage`]), rows with keys ([`entity`]) and pages of lists ([`page`]). `ordid-sql` writes the SQL.
//!
//! Users depend on the facade `ordid`; adapters of database libraries depend on this crate. A byte permutation or a
//! comparison rule ([`layout`]) knows no key, and a column knows no scheme.
//!
//! | you want to | use |
//! |---|---|
//! | make a generator with a clock, entropy and a policy of your own | [`generator::OrderedGenerator`], [`generator::Policy`] |
//! | add a scheme | [`Scheme`], [`generator::Slotted`], [`scheme::Layout`] |
//! | add a column, or store keys through another library | [`storage::Stores`], [`storage::ColumnOn`] |
//! | compare bytes as an engine does | [`layout::Comparison`] |
//! | write rows through another library | [`Fields`], [`Sink`], and `ordid_sql::spi` |
//! | keep leases or counters in another store | [`coordination::NodeAllocator`], [`coordination::SegmentSource`] |
//!
//! # Example: a key before the insert
//!
//! ```
//! use ordid_core::{KeyType, scheme::UuidV7, key::Scheme};
//! use uuid::Uuid;
//!
//! let first = Uuid::generate();
//! let second = Uuid::generate();
//! assert!(first < second);
//! assert!(UuidV7::check(&first));
//! ```
//!
//! # Features
//!
//! - `std` (on by default): the system's clocks and entropy, and the process-wide generators. Without
//!   it: `alloc`, 64-bit atomics, and a clock and entropy of your own.
//! - `catalogue`: every scheme by its name, for tools.
//! - `named`: keys that are computed from names, of versions 5 and 8 ([`KeyType::named`]).
//! - `sqids04`: short public ids of integer keys (the module `key::short`).
//! - `tsc`: a clock that reads the processor's time-stamp counter.
//! - `tracing`, `metrics`: an event, or a counter, when a generator's policy acts.
//! - `test-util`: a clock and an entropy source for tests.
//! - `testing`: the same keys in every run of a test, also in code that calls `generate()`.
//! - `chrono`, `jiff`, `time`: the times of these crates, to and from [`clock::Timestamp`].
//! - `serde`, `schemars`, `utoipa`, `async-graphql7`, `juniper018`, `arbitrary`, `proptest`: the traits of these crates for
//!   key types that `#[derive(KeyType)]` makes, and for no others. [`RawKey::to_bytes`], [`Scheme::TEXT`] and [`Scheme::coerce`] give other libraries
//!   what they need, without these features.
//!
//! # Minimum supported Rust version
//!
//! 1.89, as `uuid`; it moves in minor releases.

#![cfg_attr(not(any(feature = "std", test)), no_std)]
#![cfg_attr(not(feature = "tsc"), forbid(unsafe_code))]
// The model checker's atomics are not `const`, so there are no process-wide generators, nor is
// what only they call.
#![cfg_attr(loom, allow(dead_code))]

extern crate alloc;

pub mod clock;
pub mod coordination;
pub mod entity;
pub mod entropy;
mod error;
mod external;
pub mod generator;
pub mod high_water;
pub mod key;
pub mod layout;
pub mod page;
pub mod scheme;
pub mod storage;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

#[cfg(feature = "std")]
pub use entity::Assigned;
pub use entity::{
    ColumnList, ColumnOf, EnsuredKey, Fields, KeyOf, OrderedKey, RawKeyOf, Reads, Sink, Tracked,
    Version,
};
pub use error::Error;
pub use key::{KeyField, KeyType, RawKey, Scheme, StaticScheme, TypedKey};
pub use uuid;

#[doc(hidden)]
pub mod __private;

/// What `ordid-sql` shares with this crate, and nobody else: exempt from semantic versioning.
#[doc(hidden)]
pub mod spi {
    pub use crate::key::text::excerpt;
}
