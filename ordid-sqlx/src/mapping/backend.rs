//! What a mapping table needs of an engine.

use ordid_sql::mapping::Entry;

use crate::backend::{Backend, BoxFuture};

/// An id and the bytes of its UUID.
pub(super) type IdAndUuid = (i64, Vec<u8>);

/// A whole row, whose other columns may hold anything in a table that somebody else made.
pub(super) type Row = (i64, Option<Vec<u8>>, Option<i64>);

/// A database that can have a [`MappingTable`](crate::MappingTable): `sqlx::Postgres`, `sqlx::MySql`,
/// `sqlx::Sqlite`, each with its feature.
pub trait MappingBackend: Backend {
    /// The columns and constraints.
    #[doc(hidden)]
    const DEFINITION: &'static str;

    /// How many rows one statement looks for.
    #[doc(hidden)]
    const FIND_ROWS: usize;

    /// How many rows one statement inserts.
    #[doc(hidden)]
    const INSERT_ROWS: usize;

    /// Whether a statement for so many rows is worth keeping: it is for one, or for as many as there can be.
    #[doc(hidden)]
    fn repeats(rows: usize) -> bool {
        rows == 1 || rows == Self::FIND_ROWS || rows == Self::INSERT_ROWS
    }

    /// Returns the rows of these UUIDs; `latest` if also those that were committed after the snapshot
    /// of a transaction.
    #[doc(hidden)]
    fn find<'a>(
        connection: &'a mut Self::Connection,
        table: &'a str,
        entries: &'a [Entry],
        latest: bool,
    ) -> BoxFuture<'a, Result<Vec<IdAndUuid>, sqlx::Error>>;

    /// Inserts rows that are not there, as far as is known; `exact` if it matters which are new.
    #[doc(hidden)]
    fn insert<'a>(
        connection: &'a mut Self::Connection,
        table: &'a str,
        entries: &'a [Entry],
        exact: bool,
    ) -> BoxFuture<'a, Result<Inserted, sqlx::Error>>;

    /// Returns the rows with these ids.
    #[doc(hidden)]
    fn rows<'a>(
        connection: &'a mut Self::Connection,
        table: &'a str,
        ids: &'a [i64],
    ) -> BoxFuture<'a, Result<Vec<Row>, sqlx::Error>>;
}

/// What became of an insert.
#[doc(hidden)]
#[derive(Debug)]
pub enum Inserted {
    /// These are new; any others were there.
    These(Vec<IdAndUuid>),
    /// All are new.
    All,
    /// At least one was there, and which of the others are new is not known.
    Unclear,
}

/// Returns `(?, ?), (?, ?)`, which is how MySQL and SQLite write rows of two values.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(super) fn pairs(rows: usize) -> String {
    ["(?, ?)"].repeat(rows).join(", ")
}
