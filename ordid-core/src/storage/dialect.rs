//! Databases: their names, quoting and limits.

use alloc::{format, string::String};

use crate::layout::Comparison;

/// A database's dialect of SQL.
pub trait Dialect: Sized + 'static {
    /// The vendor's name for the database.
    const NAME: &'static str;
    /// The most parameters that one statement may have.
    const MAX_PARAMETERS: usize;
    /// Whether one parameter takes a column's values for all rows of a statement, instead of one value.
    const BINDS_ARRAYS: bool = false;
    /// Whether a foreign key that is declared `DEFERRABLE` can be checked at COMMIT.
    const DEFERS: bool = false;
    /// Whether a row whose foreign key refers to the row itself can be deleted without setting that key to NULL
    /// first.
    const DELETES_ROWS_OF_THEMSELVES: bool = true;
    /// The characters before and after a quoted identifier. The second one is doubled inside. Standard SQL has double
    /// quotes.
    const QUOTES: [char; 2] = ['"'; 2];
    /// The SQL that makes a column the primary key in a `CREATE TABLE`.
    const PRIMARY_KEY: &'static str = "NOT NULL PRIMARY KEY";
    /// For each comparison rule under which the database has a column of 128 bits, the name of that column. Error
    /// messages about lost order suggest it.
    const COLUMNS: &'static [(Comparison, &'static str)];

    /// Returns the identifier in quotes. It may contain any characters.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::storage::{Dialect, dialect::{MySql, Postgres, SqlServer}};
    ///
    /// assert_eq!(Postgres::quote("order"), r#""order""#);
    /// assert_eq!(Postgres::quote(r#"a"b"#), r#""a""b""#);
    /// assert_eq!(MySql::quote("a`b"), "`a``b`");
    /// assert_eq!(SqlServer::quote("[a]"), "[[a]]]");
    /// ```
    fn quote(identifier: &str) -> String {
        let [open, close] = Self::QUOTES;
        let mut quoted = String::with_capacity(identifier.len() + 2);
        quoted.push(open);
        for character in identifier.chars() {
            if character == close {
                quoted.push(character);
            }
            quoted.push(character);
        }
        quoted.push(close);
        quoted
    }

    /// Returns the quoted name of the table, after its quoted schema if it has one.
    fn quote_table(schema: Option<&str>, table: &str) -> String {
        match schema {
            Some(schema) => format!("{}.{}", Self::quote(schema), Self::quote(table)),
            None => Self::quote(table),
        }
    }
}

/// PostgreSQL.
#[derive(Debug, Clone, Copy)]
pub enum Postgres {}

impl Dialect for Postgres {
    const NAME: &'static str = "PostgreSQL";
    const MAX_PARAMETERS: usize = 65_535;
    const DEFERS: bool = true;
    const COLUMNS: &'static [(Comparison, &'static str)] = &[(Comparison::Bytes, "uuid")];
}

/// MySQL, and MariaDB where it does not differ.
#[derive(Debug, Clone, Copy)]
pub enum MySql {}

impl Dialect for MySql {
    const NAME: &'static str = "MySQL";
    const MAX_PARAMETERS: usize = 65_535;
    /// InnoDB checks row by row, and finds the row itself.
    const DELETES_ROWS_OF_THEMSELVES: bool = false;
    const QUOTES: [char; 2] = ['`'; 2];
    const COLUMNS: &'static [(Comparison, &'static str)] = &[
        (Comparison::Bytes, "binary16"),
        (Comparison::DotNetBytes, "binary16_dotnet"),
        (Comparison::UuidToBin, "binary16_swapped"),
    ];
}

/// MariaDB.
#[derive(Debug, Clone, Copy)]
pub enum MariaDb {}

impl Dialect for MariaDb {
    const NAME: &'static str = "MariaDB";
    const MAX_PARAMETERS: usize = MySql::MAX_PARAMETERS;
    const DELETES_ROWS_OF_THEMSELVES: bool = MySql::DELETES_ROWS_OF_THEMSELVES;
    const QUOTES: [char; 2] = MySql::QUOTES;
    const COLUMNS: &'static [(Comparison, &'static str)] = &[
        (Comparison::Bytes, "binary16"),
        (Comparison::DotNetBytes, "binary16_dotnet"),
        (Comparison::UuidToBin, "binary16_swapped"),
        (Comparison::MariaDbUuid, "mariadb_uuid"),
    ];
}

/// SQLite.
#[derive(Debug, Clone, Copy)]
pub enum Sqlite {}

impl Dialect for Sqlite {
    const NAME: &'static str = "SQLite";
    const MAX_PARAMETERS: usize = 32_766;
    const DEFERS: bool = true;
    const COLUMNS: &'static [(Comparison, &'static str)] = &[(Comparison::Bytes, "blob")];
}

/// SQL Server.
///
/// One `VALUES` takes 1,000 rows (no chunk of a flush has more).
#[derive(Debug, Clone, Copy)]
pub enum SqlServer {}

impl Dialect for SqlServer {
    const NAME: &'static str = "SQL Server";
    /// Of SQL Server's 2,100, `sp_executesql` uses two itself: the statement and its declarations.
    const MAX_PARAMETERS: usize = 2_098;
    const QUOTES: [char; 2] = ['[', ']'];
    /// Clustered is the default only if the table has no other clustered index, so it is stated.
    const PRIMARY_KEY: &'static str = "NOT NULL PRIMARY KEY CLUSTERED";
    const COLUMNS: &'static [(Comparison, &'static str)] = &[
        (Comparison::Bytes, "unique_identifier_permuted"),
        (Comparison::SqlServer, "unique_identifier"),
    ];
}

/// Babelfish for PostgreSQL: SQL Server's language and protocol, PostgreSQL's comparisons.
#[derive(Debug, Clone, Copy)]
pub enum Babelfish {}

impl Dialect for Babelfish {
    const NAME: &'static str = "Babelfish";
    const MAX_PARAMETERS: usize = SqlServer::MAX_PARAMETERS;
    const QUOTES: [char; 2] = SqlServer::QUOTES;
    const COLUMNS: &'static [(Comparison, &'static str)] =
        &[(Comparison::Bytes, "babelfish_unique_identifier")];
}

/// Oracle Database.
///
/// An Oracle identifier cannot contain a double quote. A statement with such an identifier fails.
#[derive(Debug, Clone, Copy)]
pub enum Oracle {}

impl Dialect for Oracle {
    const NAME: &'static str = "Oracle";
    const MAX_PARAMETERS: usize = 65_535;
    const BINDS_ARRAYS: bool = true;
    const DEFERS: bool = true;
    const COLUMNS: &'static [(Comparison, &'static str)] = &[
        (Comparison::Bytes, "raw16"),
        (Comparison::DotNetBytes, "raw16_dotnet"),
    ];
}
