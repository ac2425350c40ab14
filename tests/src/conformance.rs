//! The order law as a matrix: for each scheme, column and engine, whether the column keeps the
//! order of the scheme's keys, and how that was proven.
//!
//! What the compile-time check says of a pair is taken from it; here it is held against keys.
//! [`Cell::holds_in_arithmetic`] sorts keys by the column's `sort_key`: they must rise where order is
//! declared, and must not where it is refused, or the refusal would be for nothing. [`live`] asks
//! the databases themselves, and H2 in Oracle's place. That SQL Server's rule is SQL Server's is
//! shown by [`vectors`], which Microsoft's own `SqlGuid` answered.

mod cells;
pub mod live;
mod report;
pub mod vectors;

pub use cells::{Cell, Key, cells};
pub use report::{is_written, tables, write};

/// A database, or what stands in for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Engine {
    /// PostgreSQL.
    Postgres,
    /// MySQL 8.
    MySql,
    /// MariaDB.
    MariaDb,
    /// SQLite.
    Sqlite,
    /// SQL Server.
    SqlServer,
    /// Babelfish for PostgreSQL.
    Babelfish,
    /// Oracle.
    Oracle,
}

impl Engine {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 7] = [
        Self::Postgres,
        Self::MySql,
        Self::MariaDb,
        Self::Sqlite,
        Self::SqlServer,
        Self::Babelfish,
        Self::Oracle,
    ];

    /// Those that the tests start by themselves, or emulate: the document says of these that they were asked.
    pub const PRIVATE: [Self; 5] = [
        Self::Postgres,
        Self::MySql,
        Self::MariaDb,
        Self::Sqlite,
        Self::Oracle,
    ];

    /// The vendor's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::MySql => "MySQL",
            Self::MariaDb => "MariaDB",
            Self::Sqlite => "SQLite",
            Self::SqlServer => "SQL Server",
            Self::Babelfish => "Babelfish",
            Self::Oracle => "Oracle",
        }
    }

    /// The server, as the harness calls it, that answers for it; `None` where there is none to ask.
    pub const fn server(self) -> Option<&'static str> {
        match self {
            Self::Postgres => Some("postgres"),
            Self::MySql => Some("mysql"),
            Self::MariaDb => Some("mariadb"),
            Self::Oracle => Some("h2"),
            Self::Sqlite | Self::SqlServer | Self::Babelfish => None,
        }
    }
}

/// How it was proven that a column keeps an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The database sorted the keys.
    Live,
    /// Another database sorted them, byte by byte or as numbers: H2 for Oracle.
    Emulation,
    /// Keys rise by a rule that agrees with vectors made by Microsoft's `SqlGuid`.
    SqlGuid,
    /// Keys rise by the rule that the vendor documents.
    Arithmetic,
}

impl Proof {
    /// What the table says.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Emulation => "emulation",
            Self::SqlGuid => "`SqlGuid`",
            Self::Arithmetic => "arithmetic",
        }
    }
}
