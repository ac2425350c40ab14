//! Ordered primary keys, without a database driver and without async: raw keys and key types ([`key`]), time and
//! randomness ([`clock`], [`entropy`]), schemes and generators ([`scheme`], [`generator`]), the mark that keeps keys
//! rising over restarts ([`high_water`]), column types of each database ([`storage`]), rows with keys ([`entity`])
//! and pages of lists ([`page`]). `ordid-sql` writes the SQL.
//!
//! Users depend on the facade `ordid`, and adapters of database libraries depend on this crate. Byte permutations and
//! comparison rules ([`layout`]) are independent of keys, and columns are independent of schemes.
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
//! - `named`: keys that are computed from names, UUID versions 5 and 8 ([`KeyType::named`]).
//! - `sqids04`: short public ids of integer keys (the module `key::short`).
//! - `tsc`: a clock that reads the processor's time-stamp counter.
//! - `tracing`, `metrics`: an event, or a counter, for each action of a generator's policy.
//! - `test-util`: a clock, an entropy source and in-memory stores of leases and numbers, for tests.
//! - `testing`: the same keys in every run of a test, even in code that calls `generate()`.
//! - `chrono`, `jiff`, `time`: conversions between these crates' times and [`clock::Timestamp`]. With `chrono` and
//!   `time`, their times can also be the [`Version`] of a row.
//! - `serde`, `schemars`, `utoipa`, `async-graphql7`, `juniper018`, `arbitrary`, `proptest`: the traits of these
//!   crates for key types that `#[derive(KeyType)]` makes, and not for raw keys. `serde` also covers
//!   [`key::CompositeKey`], `Assigned` and the types of [`page`]. Other libraries need no feature: they can use
//!   [`RawKey::to_bytes`], [`Scheme::TEXT`] and [`Scheme::coerce`].
//!
//! # Minimum supported Rust version
//!
//! 1.89, the same as `uuid`. It may rise in a minor release.

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
    pub use crate::{error::nearest_time, key::text::excerpt};
}
