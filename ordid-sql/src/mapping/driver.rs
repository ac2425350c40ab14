//! The traits that a library and a dialect implement for mapping tables.

use std::error::Error as StdError;

use ordid_core::storage::Dialect;

use super::Entry;
use crate::{DriverError, answer::Answer, spi::BoxFuture};

/// A library and an engine that can have a [`MappingTable`](super::MappingTable): what an adapter implements. It
/// translates, and sends each statement once.
pub trait MappingDriver: 'static {
    /// The engine's words.
    type Dialect: MappingDialect;
    /// The library's error.
    type Error: StdError + Send + Sync + 'static;
    /// The pool, connection or transaction over which the statements of a call are sent.
    type Source<'c>: Send;

    /// Sends a statement, over a connection that is opened if there is none; `is_kept` if it is worth keeping.
    ///
    /// # Errors
    ///
    /// What the library or the database says, and what that means.
    fn ask<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
        values: Values<'a>,
        is_kept: bool,
    ) -> BoxFuture<'a, Result<Answer<MappingRow>, DriverError<Self::Error>>>;

    /// Says that from now on nothing is prepared by name, and that a statement outside of a transaction gets one of its
    /// own: otherwise a pooler of transactions takes its parts to different connections of the server.
    fn isolate(source: &mut Self::Source<'_>);

    /// Runs a script of several statements over a pool's connection, without parameters: as [`ask`](Self::ask), with
    /// the rows of all of them, the sum of their counts, and the last id that is not 0. If one of them fails, rolls
    /// back the transaction that it left open, or closes the connection.
    ///
    /// # Errors
    ///
    /// As [`ask`](Self::ask), of the first statement that failed.
    fn run<'a>(
        source: &'a mut Self::Source<'_>,
        script: String,
    ) -> BoxFuture<'a, Result<Answer<MappingRow>, DriverError<Self::Error>>>;

    /// Gives a pool's connection back; closes it if it `is_lost`, and then perhaps others of the pool are, too.
    fn release(source: &mut Self::Source<'_>, is_lost: bool);

    /// Returns whether another connection can be had. Over one connection nothing is tried again, as a transaction
    /// of the user's would be gone.
    fn may_reconnect(source: &Self::Source<'_>) -> bool;
}

/// An id, the bytes of its UUID, and the hash where it was asked for: a table that somebody else made may hold
/// anything.
pub type MappingRow = (i64, Option<Vec<u8>>, Option<i64>);

/// The parameters of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// No parameters.
    None,
    /// Ids: each is a parameter, or all are one array.
    Ids(&'a [i64]),
    /// The hash and the UUID of each, or an array of both; of one entry, always two parameters.
    Entries(&'a [Entry]),
}

/// A dialect that has mapping tables.
pub trait MappingDialect: Dialect {
    /// The columns and constraints.
    const DEFINITION: &'static str;
    /// How many rows one statement looks for.
    const FIND_ROWS: usize;
    /// How many rows one statement inserts.
    const INSERT_ROWS: usize;
    /// Whether an insert returns the rows that are new, and passes over those that are there. Otherwise it says how
    /// many are new, and of one row the id; where it was to be `exact`, it is refused as a duplicate.
    const RETURNS_ROWS: bool;

    /// Returns the script that sends a statement in a transaction of its own, where the settings of a connection could
    /// keep it from being committed or have it read rows that are not. `write` writes the statement for a table that is
    /// quoted, and the values are those of its parameters.
    fn script(write: &dyn Fn(&str) -> String, table: &str, values: Values<'_>) -> Option<String> {
        let _ = (write, table, values);
        None
    }

    /// Whether a statement for so many rows is worth keeping: it is for one, or for as many as there can be.
    fn repeats(rows: usize) -> bool {
        rows == 1 || rows == Self::FIND_ROWS || rows == Self::INSERT_ROWS
    }

    /// Returns the query that has a row if the servers of a cluster compare before a COMMIT which ids each has given, so
    /// that all may count by one. `None` where nobody counts otherwise.
    fn compares_ids() -> Option<String> {
        None
    }

    /// Looks for so many UUIDs; `latest` if also for those that were committed after the snapshot of a transaction.
    fn find(table: &str, rows: usize, latest: bool) -> String;

    /// Inserts rows that are not there, as far as is known; `exact` if it matters which are new. `by_one` if ids are
    /// counted by one, and not by the server's steps.
    fn insert(table: &str, rows: usize, exact: bool, by_one: bool) -> String;

    /// Looks for so many ids.
    fn rows(table: &str, ids: usize) -> String;
}
