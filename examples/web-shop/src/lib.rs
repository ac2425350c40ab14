//! A web shop: products, customers, orders and their lines, over HTTP.
//!
//! ```text
//! cargo run --release -p web-shop                                          # SQLite, no server
//! DATABASE_URL=postgres://user@host/shop cargo run --release -p web-shop
//! ```
//!
//! What ordered keys are good for, here:
//!
//! - An order and its lines know each other before either is in the database: one unit of work inserts
//!   them, in one transaction of two statements (`store/queries.rs`, `place`).
//! - A client may make the order's key itself, and send its cart again until it hears an answer: it is
//!   ordered once.
//! - Lists are newest first by the primary key alone. The next page is what stands before the last key
//!   of this one, so that pages neither shift nor get slower (`orders`).
//! - An order has no column for the time at which it was placed: its key tells.
//! - Ids do not mix: `prod_...` in the place of `cus_...` is answered 400 with the reason, and in the
//!   program it does not compile.
//!
//! `store` has the database, `http` the rest.

mod error;
mod http;
mod model;
mod store;

pub use error::Error;
pub use http::router;
pub use store::Store;
