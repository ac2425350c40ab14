//! What an adapter implements for followers.

use std::{error::Error as StdError, pin::Pin};

use ordid_core::{
    KeyOf, OrderedKey,
    storage::dialect::{MySql, Postgres, Sqlite},
};

use crate::{DriverError, StatementDialect};

/// Boxed, as those of mapping tables: of a future that holds an unnamed one over a [`Source`](FollowerDriver::Source),
/// rustc cannot prove that it is `Send` (<https://github.com/rust-lang/rust/issues/100013>).
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A dialect whose queries end in `LIMIT`.
pub trait FollowDialect: StatementDialect {}

impl FollowDialect for Postgres {}
impl FollowDialect for MySql {}
impl FollowDialect for Sqlite {}

/// A library and an engine in which the table of an entity can be followed: what an adapter implements. It translates,
/// and sends each statement once.
pub trait FollowerDriver<E: OrderedKey>: 'static {
    /// The engine's words.
    type Dialect: FollowDialect;
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The pool, connection or transaction over which the statements of a call are sent.
    type Source<'c>: Send;

    /// Whether the database sorts the stored keys as the keys are.
    const KEEPS_ORDER: bool;

    /// Sends a query without parameters, and returns its one text.
    ///
    /// # Errors
    ///
    /// What the library or the database says, and what that means.
    fn text<'a>(
        source: &'a mut Self::Source<'_>,
        sql: &'static str,
    ) -> BoxFuture<'a, Result<String, DriverError<Self::Error>>>;

    /// Sends a query with these keys as its parameters, and returns its rows. Its text differs from call to call, so
    /// it is not worth keeping.
    ///
    /// # Errors
    ///
    /// As [`text`](Self::text), and that a row cannot be read as the entity.
    fn rows<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> BoxFuture<'a, Result<Vec<E>, DriverError<Self::Error>>>;

    /// Says that from now on nothing is prepared by name, and that a statement outside of a transaction gets one of its
    /// own: otherwise a pooler of transactions takes its parts to different connections of the server.
    fn isolate(source: &mut Self::Source<'_>);

    /// Gives a pool's connection back; closes it if it `is_lost`.
    fn release(source: &mut Self::Source<'_>, is_lost: bool);
}
