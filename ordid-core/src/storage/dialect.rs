//! Databases: their names, quoting and limits.

use alloc::{format, string::String};

/// A database flavour.
pub trait Dialect: Sized + 'static {
    /// The vendor's name for it.
    const NAME: &'static str;
    /// The most parameters that one statement may have.
    const MAX_PARAMETERS: usize;
    /// The character around a quoted identifier; doubled inside.
    const QUOTE: char;

    /// Returns the identifier as the dialect wants it written, whatever is in it.
    ///
    /// # Example
    ///
    /// ```
    /// use ordid_core::storage::{Dialect, dialect::{MySql, Postgres}};
    ///
    /// assert_eq!(Postgres::quote("order"), r#""order""#);
    /// assert_eq!(Postgres::quote(r#"a"b"#), r#""a""b""#);
    /// assert_eq!(MySql::quote("a`b"), "`a``b`");
    /// ```
    fn quote(identifier: &str) -> String {
        let mut quoted = String::with_capacity(identifier.len() + 2);
        quoted.push(Self::QUOTE);
        for character in identifier.chars() {
            if character == Self::QUOTE {
                quoted.push(character);
            }
            quoted.push(character);
        }
        quoted.push(Self::QUOTE);
        quoted
    }

    /// Returns the table's name, quoted, behind its schema where there is one.
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
    const QUOTE: char = '"';
}

/// MySQL, and MariaDB where it does not differ.
#[derive(Debug, Clone, Copy)]
pub enum MySql {}

impl Dialect for MySql {
    const NAME: &'static str = "MySQL";
    const MAX_PARAMETERS: usize = 65_535;
    const QUOTE: char = '`';
}

/// MariaDB.
#[derive(Debug, Clone, Copy)]
pub enum MariaDb {}

impl Dialect for MariaDb {
    const NAME: &'static str = "MariaDB";
    const MAX_PARAMETERS: usize = 65_535;
    const QUOTE: char = '`';
}

/// SQLite.
#[derive(Debug, Clone, Copy)]
pub enum Sqlite {}

impl Dialect for Sqlite {
    const NAME: &'static str = "SQLite";
    const MAX_PARAMETERS: usize = 32_766;
    const QUOTE: char = '"';
}
