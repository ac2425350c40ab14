//! The traits that an adapter implements for followers.

use std::{error::Error as StdError, pin::Pin};

use ordid_core::{
    KeyOf, OrderedKey,
    storage::dialect::{MySql, Postgres, Sqlite},
};

use crate::{DriverError, StatementDialect};

/// A boxed future, as mapping tables have it, too. If a future holds an unnamed one over a
/// [`Source`](FollowerDriver::Source), rustc cannot prove that it is `Send`
/// (<https://github.com/rust-lang/rust/issues/100013>).
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A dialect whose queries end in `LIMIT`.
pub trait FollowDialect: StatementDialect {}

impl FollowDialect for Postgres {}
impl FollowDialect for MySql {}
impl FollowDialect for Sqlite {}

/// A library and an engine with which an entity's table can be followed. An adapter implements this trait; it
/// translates, and sends each statement once.
pub trait FollowerDriver<E: OrderedKey>: 'static {
    /// The dialect of the engine.
    type Dialect: FollowDialect;
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The pool, connection or transaction over which the statements of a call are sent.
    type Source<'c>: Send;

    /// Whether the database sorts the stored keys in the order of the keys.
    const KEEPS_ORDER: bool;

    /// Sends a query without parameters, which returns one text, and returns that.
    ///
    /// # Errors
    ///
    /// Returns the error of the library or the database, together with its meaning.
    fn text<'a>(
        source: &'a mut Self::Source<'_>,
        sql: &'static str,
    ) -> BoxFuture<'a, Result<String, DriverError<Self::Error>>>;

    /// Sends a query with these keys as its parameters, and returns its rows. The query's text differs from call to
    /// call, so a prepared statement is not worth keeping.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`text`](Self::text), and an error if a row cannot be read as the entity.
    fn rows<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> BoxFuture<'a, Result<Vec<E>, DriverError<Self::Error>>>;

    /// Makes the source prepare nothing by name from now on, and begin a transaction for each statement that is outside
    /// of one. Otherwise a transaction pooler sends the parts of a statement over different connections to the server.
    fn isolate(source: &mut Self::Source<'_>);

    /// Returns a connection to its pool, or closes it if it `is_lost`.
    fn release(source: &mut Self::Source<'_>, is_lost: bool);
}
