//! Why rows go by statements, and not by the engine's bulk command.

use std::fmt;

use crate::{
    Action, EngineProfile, Plan, Table, catalog,
    spi::{RowBinder, TransactionScope},
};

/// Why rows of a table go by statements, and not by the engine's bulk command: `COPY` on PostgreSQL, a bulk load on
/// SQL Server. Its text is for people.
///
/// # Example
///
/// ```
/// use ordid_sql::NotBulk;
///
/// let reason = NotBulk::ColumnType("price");
/// assert_eq!(reason.to_string(), "the type of the column price is not one that is sent in bulk");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NotBulk {
    /// The rows are updated or deleted.
    NotInserted,
    /// The rows are upserted. `COPY` may put them into a temporary table, but not into their own.
    Upserted,
    /// The engine has no such command, or the library, or this kind of connection, cannot send it.
    NoCommand,
    /// The profile of the engine has it switched off: [`EngineProfile::bulk`].
    SwitchedOff,
    /// The flush is in a savepoint of your transaction, which a command that is cut off would spoil.
    Savepoint,
    /// The flush is over a connection of yours, which could not be closed if the flush is dropped in the midst of the
    /// command.
    BorrowedConnection,
    /// There are so few rows that statements are faster.
    FewRows,
    /// The server refused the command, as one that it does not have. The transaction was rolled back then, and the flush
    /// began anew with statements.
    Refused,
    /// The server did not say what the table is: it is too old, it is another server that speaks the same protocol, or
    /// the table may not be read. On SQL Server, this is also the reason for
    /// a view.
    Unanswered,
    /// It is no table, as a view or a foreign table, or it is not there.
    NoTable,
    /// The table has rules, which rewrite an `INSERT` alone.
    Rule,
    /// Row-level security is active for this user.
    RowSecurity,
    /// The table, or a partition of it, has a trigger; on SQL Server one that stands in the place of an `INSERT`.
    Trigger,
    /// An index of the table has `IGNORE_DUP_KEY`, and leaves rows out without an error.
    IgnoresDuplicates,
    /// The table has a column of a domain.
    Domain,
    /// An `INSERT` cannot set this column: the server does, or it is not there.
    ServerColumn(&'static str),
    /// The type of this column is not one that is sent in bulk.
    ColumnType(&'static str),
    /// A value is not of its column's own type, so that an `INSERT` would convert it; with the column, where it is
    /// known. The rows before it may have gone in bulk.
    Value(Option<&'static str>),
}

impl NotBulk {
    /// Returns the query that tells whether a bulk load on SQL Server may leave rows of a table out, by its quoted name. If it
    /// may, the query has a row with one text.
    pub fn sql_server_query(table: &str) -> String {
        catalog::sql_server_leaves_rows_out(table)
    }

    /// Returns what the text of such a row means.
    pub fn of_sql_server(text: &str) -> Self {
        match text {
            "trigger" => Self::Trigger,
            "index" => Self::IgnoresDuplicates,
            _ => Self::Unanswered,
        }
    }
}

impl fmt::Display for NotBulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInserted => "the rows are not inserted",
            Self::Upserted => "the rows may be there already",
            Self::NoCommand => "there is no bulk command for this engine, library and connection",
            Self::SwitchedOff => "the profile of the engine has `bulk` switched off",
            Self::Savepoint => "the flush is inside your transaction",
            Self::BorrowedConnection => "the flush is over a connection of yours, and not over a pool",
            Self::FewRows => "there are so few rows that statements are faster",
            Self::Refused => "the server does not have the command",
            Self::Unanswered => {
                "the server did not say what the table is: it is too old or another one, or the table may not be read"
            }
            Self::NoTable => "it is a view or a foreign table, or it is not there",
            Self::Rule => "the table has a rule",
            Self::RowSecurity => "row-level security is active",
            Self::Trigger => "the table or a partition has a trigger",
            Self::IgnoresDuplicates => "an index of the table has `IGNORE_DUP_KEY`",
            Self::Domain => "the table has a column of a domain",
            Self::Value(None) => "a value is not of its column's own type",
            Self::ServerColumn(column) => {
                return write!(f, "an `INSERT` cannot set the column {column}");
            }
            Self::ColumnType(column) => {
                return write!(f, "the type of the column {column} is not one that is sent in bulk");
            }
            Self::Value(Some(column)) => {
                return write!(f, "a value of the column {column} is not of the column's own type");
            }
        })
    }
}

/// Returns for each table whether its rows are offered to the bulk command, as far as that is known without a server.
pub(crate) fn offered<B: RowBinder>(
    plan: &Plan,
    tables: &[Table],
    engine: &EngineProfile,
    scope: TransactionScope,
) -> Vec<Result<(), NotBulk>> {
    let mut statements = vec![0; tables.len()];
    for chunk in plan.chunks() {
        statements[chunk.table] += usize::from(chunk.action == Action::Insert);
    }
    let offered = tables.iter().zip(statements);
    let offered =
        offered.map(|(table, statements)| offer::<B>(table.rows(), statements, engine, scope));
    offered.collect()
}

/// Returns whether so many rows are offered to the bulk command, which would take so many statements otherwise.
pub(crate) fn offer<B: RowBinder>(
    rows: usize,
    statements: usize,
    engine: &EngineProfile,
    scope: TransactionScope,
) -> Result<(), NotBulk> {
    match B::offers_bulk(rows, statements) {
        Err(NotBulk::NoCommand) => Err(NotBulk::NoCommand),
        _ if !engine.bulk => Err(NotBulk::SwitchedOff),
        _ if scope == TransactionScope::Savepoint => Err(NotBulk::Savepoint),
        offered => offered,
    }
}

/// How an attempt sends the inserted rows of each table: either by the bulk command, if at least this number of rows
/// follow each other, or by statements for this reason.
#[derive(Debug)]
pub(crate) struct Ways(pub(crate) Vec<Result<usize, NotBulk>>);

impl Ways {
    /// Returns why rows of a table go by statements, of which so many follow each other from here on; `None` if they go
    /// by the command.
    pub(crate) fn not_bulk(
        &self,
        table: usize,
        action: Action,
        rows_together: impl FnOnce() -> usize,
    ) -> Option<NotBulk> {
        match self.0.get(table) {
            _ if action != Action::Insert => Some(NotBulk::NotInserted),
            None => Some(NotBulk::NoCommand),
            Some(Err(reason)) => Some(*reason),
            Some(Ok(least)) => (rows_together() < *least).then_some(NotBulk::FewRows),
        }
    }
}
