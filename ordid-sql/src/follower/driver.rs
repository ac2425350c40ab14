//! The traits that an adapter implements for followers.

use ordid_core::{
    KeyOf, OrderedKey,
    storage::dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite},
};

use crate::{
    StatementDialect,
    table_driver::{Sent, TableDriver},
};

/// A dialect in which tables can be followed.
pub trait FollowDialect: StatementDialect {
    /// The text behind the table's name in a query.
    const HINT: &'static str = "";
    /// The condition, with `AND` before it, that makes a query fail if its session reads rows that are not committed. The
    /// text of the error contains `READ-UNCOMMITTED`.
    const COMMITTED: &'static str = "";
}

impl FollowDialect for Postgres {}
impl FollowDialect for Sqlite {}
impl FollowDialect for Oracle {}
/// PostgreSQL's engine below it never reads rows that are not committed, and has no such hint.
impl FollowDialect for Babelfish {}

impl FollowDialect for MySql {
    /// At READ UNCOMMITTED rows would be delivered that are rolled back later. A locking read would wait for every row that
    /// somebody updates, and keep its locks to the end of the caller's transaction; with `SKIP LOCKED` it would pass over
    /// such rows. So the query is refused: the sum exceeds the largest number, and the error quotes the condition. MariaDB
    /// runs what is in `/*M! */`, and MySQL what is in `/*!50720 */`.
    const COMMITTED: &'static str = " AND 18446744073709551615 + \
         (/*M! @@tx_isolation *//*!50720 @@transaction_isolation */ = 'READ-UNCOMMITTED') > 0";
}

impl FollowDialect for SqlServer {
    /// A connection may be at READ UNCOMMITTED, also because another user of its pool has set that: then rows would be
    /// delivered that are rolled back later. Where the database has READ_COMMITTED_SNAPSHOT, as Azure's have, or the
    /// session reads a SNAPSHOT, a row whose transaction is still open would be passed over. With this hint the query
    /// waits for that transaction, whatever the session and the database are set to.
    const HINT: &'static str = " WITH (READCOMMITTEDLOCK)";
}

/// The names by which queries know the table of an entity, each quoted.
#[derive(Debug, Clone)]
pub struct FollowNames {
    /// The table, with its schema if it has one.
    pub table: String,
    /// The column of the key.
    pub key: String,
    /// The columns of a row as they are selected, under their names.
    pub selected: String,
    /// The character that stands for each parameter, if the library writes the placeholders itself.
    pub placeholder: Option<char>,
}

impl FollowNames {
    /// Returns the names that the entity has, as a dialect quotes them.
    pub fn of<D: FollowDialect, E: OrderedKey>() -> Self {
        // A derived entity has the columns that the database fills only in `RETURNING`, and an entity of SeaORM has them
        // in both lists.
        let filled = E::RETURNING.iter().filter(|it| !E::COLUMNS.contains(it));
        let columns = E::COLUMNS.iter().chain(filled).map(|it| D::quote(it));
        Self {
            table: D::quote_table(E::SCHEMA, E::TABLE),
            key: D::quote(E::KEY_COLUMN),
            selected: columns.collect::<Vec<_>>().join(", "),
            placeholder: None,
        }
    }
}

/// A library and an engine with which an entity's table can be followed.
pub trait FollowerDriver<E: OrderedKey>: TableDriver {
    /// The dialect of the engine.
    type Dialect: FollowDialect;
    /// The type that a row is read into.
    type Row: Send;

    /// Whether the database sorts the stored keys in the order of the keys.
    const KEEPS_ORDER: bool;

    /// Returns the names by which queries know the table.
    fn names() -> FollowNames {
        FollowNames::of::<Self::Dialect, E>()
    }

    /// Sends a query with these keys as its parameters, and returns its rows. The query's text differs from call to
    /// call, so a prepared statement is not worth keeping.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`texts`](TableDriver::texts), and an error if a row cannot be read.
    fn rows<'a>(
        source: &'a mut Self::Source<'_>,
        sql: String,
        keys: Vec<KeyOf<E>>,
    ) -> Sent<'a, Self, Vec<Self::Row>>;

    /// Returns the key of a row.
    fn key(row: &Self::Row) -> Option<KeyOf<E>>;

    /// Makes the source prepare nothing by name from now on, and begin a transaction for each statement that is outside
    /// of one. Otherwise a transaction pooler sends the parts of a statement over different connections to the server.
    ///
    /// Does nothing by default: for a library that prepares nothing by name, one that always does, and an engine without
    /// poolers.
    fn isolate(source: &mut Self::Source<'_>) {
        let _ = source;
    }
}
