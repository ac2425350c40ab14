//! How each dialect writes what every statement has.

#[cfg(any(feature = "followers", feature = "leases"))]
use std::fmt::Display;

use ordid_core::storage::{
    Dialect,
    dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite},
};

/// A dialect that statements with parameters are written in, of flushes, leases and followers.
pub trait StatementDialect: Dialect {
    /// The text behind a change with which the database says how many rows it changed. Empty where the protocol
    /// has a count that cannot be switched off.
    const COUNTED: &'static str = "";
    /// What stands before and behind a value to make text of it.
    const AS_TEXT: [&'static str; 2];
    /// A query returns its first `{n}` rows alone if these texts stand before its columns and behind its order.
    const FIRST: [&'static str; 2] = ["", " LIMIT {n}"];

    /// A DELETE of so many rows at most of a table with the key `id`, that a condition names.
    const DELETE_FIRST: &'static str =
        "DELETE FROM {t} WHERE id IN (SELECT id FROM {t} WHERE {where} ORDER BY id LIMIT {n})";

    /// Writes a parameter; they are counted from 1.
    fn push_placeholder(sql: &mut String, number: usize);
}

/// `DELETE` with `TOP`, which takes no order.
const DELETE_TOP: &str = "DELETE TOP ({n}) FROM {t} WHERE {where}";

/// Dialects that number their parameters behind a prefix.
macro_rules! numbered {
    ($($dialect:ty: $prefix:literal, as_text: $as_text:expr $(, counted: $counted:literal)?
      $(, first: $first:expr, delete_first: $delete_first:expr)?;)+) => {
        $(impl StatementDialect for $dialect {
            $(const COUNTED: &'static str = $counted;)?
            const AS_TEXT: [&'static str; 2] = $as_text;
            $(
                const FIRST: [&'static str; 2] = $first;
                const DELETE_FIRST: &'static str = $delete_first;
            )?

            fn push_placeholder(sql: &mut String, number: usize) {
                sql.push_str($prefix);
                sql.push_str(&number.to_string());
            }
        })+
    };
}

numbered! {
    Postgres: "$", as_text: ["CAST(", " AS TEXT)"];
    Oracle: ":", as_text: ["TO_CHAR(", ")"], first: ["", " FETCH FIRST {n} ROWS ONLY"],
        delete_first: "DELETE FROM {t} WHERE {where} AND ROWNUM <= {n}";
    // A login or a server may have `SET NOCOUNT ON`. Times are written as in ISO 8601.
    SqlServer: "@P", as_text: ["CONVERT(nvarchar(64), ", ", 121)"], counted: "; SELECT @@ROWCOUNT",
        first: ["TOP ({n}) ", ""], delete_first: DELETE_TOP;
    Babelfish: "@P", as_text: ["CONVERT(nvarchar(64), ", ", 121)"], counted: "; SELECT @@ROWCOUNT",
        first: ["TOP ({n}) ", ""], delete_first: DELETE_TOP;
}

/// Dialects that do not number their parameters.
macro_rules! unnumbered {
    ($($dialect:ty: $as_text:expr $(, delete_first: $delete_first:expr)?;)+) => {
        $(impl StatementDialect for $dialect {
            const AS_TEXT: [&'static str; 2] = $as_text;
            $(const DELETE_FIRST: &'static str = $delete_first;)?

            fn push_placeholder(sql: &mut String, _number: usize) {
                sql.push('?');
            }
        })+
    };
}

unnumbered! {
    // With an order, replication by statements deletes the same rows.
    MySql: ["CAST(", " AS CHAR)"], delete_first: "DELETE FROM {t} WHERE {where} ORDER BY id LIMIT {n}";
    Sqlite: ["CAST(", " AS TEXT)"];
}

/// Returns the texts before and behind the rest of a query with which it returns so many of its first rows alone.
#[cfg(any(feature = "followers", feature = "leases"))]
pub(crate) fn first<D: StatementDialect>(rows: impl Display) -> [String; 2] {
    D::FIRST.map(|words| words.replace("{n}", &rows.to_string()))
}

/// Returns `INSERT` or `REPLACE` for MySQL and MariaDB, into a table whose `AUTO_INCREMENT` counts by these steps,
/// whatever the server's `auto_increment_increment` is.
///
/// It is one text for both: MariaDB takes the hint for a comment, and MySQL the rest. `SET SESSION` would not do, as
/// Galera sets both variables before each statement (`wsrep_auto_increment_control`).
#[cfg(any(feature = "leases", feature = "mapping"))]
pub(crate) fn mysql_by_steps(verb: &str, increment: u32, offset: u32) -> String {
    format!(
        "/*M!100102 SET STATEMENT auto_increment_increment = {increment}, auto_increment_offset = {offset} FOR */ \
         {verb} /*+ SET_VAR(auto_increment_increment = {increment}) SET_VAR(auto_increment_offset = {offset}) */"
    )
}
