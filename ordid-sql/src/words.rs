//! How each dialect writes what every statement has.

use ordid_core::storage::{
    Dialect,
    dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite},
};

/// A dialect that statements with parameters are written in, of flushes and of leases.
pub trait StatementDialect: Dialect {
    /// The text behind a change with which the database says how many rows it changed. Empty where the protocol
    /// has a count that cannot be switched off.
    const COUNTED: &'static str = "";

    /// Writes a parameter; they are counted from 1.
    fn push_placeholder(sql: &mut String, number: usize);
}

/// Dialects that number their parameters behind a prefix.
macro_rules! numbered {
    ($($dialect:ty: $prefix:literal $(, counted: $counted:literal)?;)+) => {
        $(impl StatementDialect for $dialect {
            $(const COUNTED: &'static str = $counted;)?

            fn push_placeholder(sql: &mut String, number: usize) {
                sql.push_str($prefix);
                sql.push_str(&number.to_string());
            }
        })+
    };
}

numbered! {
    Postgres: "$";
    Oracle: ":";
    // A login or a server may have `SET NOCOUNT ON`.
    SqlServer: "@P", counted: "; SELECT @@ROWCOUNT";
    Babelfish: "@P", counted: "; SELECT @@ROWCOUNT";
}

/// Dialects that do not number their parameters.
macro_rules! unnumbered {
    ($($dialect:ty),+) => {
        $(impl StatementDialect for $dialect {
            fn push_placeholder(sql: &mut String, _number: usize) {
                sql.push('?');
            }
        })+
    };
}

unnumbered!(MySql, Sqlite);
