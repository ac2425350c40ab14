//! Short statements about integers, which leases and counters send to a database. They are written here
//! for every dialect. Adapters send them and return the result ([`StoreDriver`](super::StoreDriver)).
//!
//! Each statement runs in a separate transaction, outside any that the program has open.

use core::{fmt::Write as _, ops::Range};
use std::{format, string::String, sync::Arc};

use ordid_core::{Error, coordination::CoordinationFailure};

pub use crate::answer::Answer;
use crate::{StatementDialect, words::first};

mod dialects;
#[cfg(test)]
mod tests;

/// A dialect in whose tables nodes and numbers are kept: its words for that.
pub trait LeaseDialect: StatementDialect {
    /// The server's time in milliseconds since 1970 as an integer, whatever the session's time zone.
    const CLOCK: &'static str;
    /// A script that each new connection runs first: what statements rely on, whatever the server's defaults are.
    /// Empty where they rely on nothing.
    const SESSION: &'static str = "";
    /// A query with a row, a number, on a member of a cluster whose members all take writes. The number says which cluster
    /// it is. Empty where there is no such cluster.
    const CLUSTER: &'static str = "";

    /// Returns a script for a new connection to such a member, which may be behind the others: each later statement waits
    /// until the member has what the others committed before.
    fn wait_for_others(_cluster: i64) -> &'static str {
        ""
    }

    /// Returns a script that makes a table of nodes of this quoted name, and a row for each of these nodes
    /// that has none.
    fn create_nodes(table: &str, nodes: Range<u64>) -> String;
}

/// A dialect that makes a row, or leaves the one that is there alone, by one `INSERT` of values.
pub trait CounterDialect: LeaseDialect {
    /// The type of a counter's name.
    const NAME_TYPE: &'static str;
    /// The clause behind it by which names are compared byte by byte, if they are not anyway.
    const NAME_COLLATION: &'static str = "";
    /// A counter's new value, where `?` is added.
    const ADDED: &'static str = "value + ?";
    /// The type of a primary key that the engine counts up.
    const COUNTED_KEY: &'static str;
    /// What is behind a table's columns.
    const TABLE_OPTIONS: &'static str = "";

    /// Returns what is behind an INSERT to leave alone the rows that are there; it may name a column.
    fn keep(column: &str) -> String;

    /// Returns a number that the server computes: above 0 if it is one of several that compare before a COMMIT what each
    /// has counted, so that all may count by one.
    fn compares_counts() -> String {
        "CAST(0 AS bigint)".into()
    }

    /// Returns `INSERT` into a table with a [`COUNTED_KEY`](Self::COUNTED_KEY), which counts by one.
    fn insert_by_one() -> String {
        "INSERT".into()
    }

    /// Returns what is behind a statement to return a column, where [`Answer::last_id`] does not.
    fn returning(column: &str) -> String;
}

/// Returns a statement with the dialect's parameters in the place of each `?`, the table's quoted name in
/// that of `{t}`, and the server's time in that of `{now}`.
pub fn statement<D: LeaseDialect>(table: &str, text: &str) -> String {
    let text = text.replace("{now}", D::CLOCK);
    let mut sql = String::with_capacity(text.len() + 64);
    let mut number = 0;
    for character in text.chars() {
        if character == '?' {
            number += 1;
            D::push_placeholder(&mut sql, number);
        } else {
            sql.push(character);
        }
    }
    // Last: whatever is in the name, it stays as it is.
    sql.replace("{t}", &D::quote(table))
}

/// A statement, and what may be done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    sql: Arc<str>,
    changes: bool,
    may_repeat: bool,
    is_prepared: bool,
}

impl Statement {
    /// One that reads.
    pub(super) fn reads<D: LeaseDialect>(table: &str, text: &str) -> Self {
        Self {
            sql: statement::<D>(table, text).into(),
            changes: false,
            may_repeat: true,
            is_prepared: true,
        }
    }

    /// One that reads so many rows at most; of a text that begins behind `SELECT`.
    pub(super) fn reads_first<D: LeaseDialect>(table: &str, rows: usize, text: &str) -> Self {
        let [before, behind] = first::<D>(rows);
        Self::reads::<D>(table, &format!("SELECT {before}{text}{behind}"))
    }

    /// One that changes rows, and would not find again what it has changed.
    pub(super) fn changes<D: LeaseDialect>(table: &str, text: &str) -> Self {
        Self {
            sql: statement::<D>(table, &format!("{text}{}", D::COUNTED)).into(),
            changes: true,
            may_repeat: false,
            is_prepared: true,
        }
    }

    /// It may be carried out twice.
    pub(super) fn repeatable(self) -> Self {
        Self {
            may_repeat: true,
            ..self
        }
    }

    /// It is not prepared by name.
    pub(super) fn unprepared(self) -> Self {
        Self {
            is_prepared: false,
            ..self
        }
    }

    /// Returns its text.
    pub fn sql(&self) -> &Arc<str> {
        &self.sql
    }

    /// Returns whether it changes rows: then what it did has to be committed before it is answered.
    pub fn is_change(&self) -> bool {
        self.changes
    }

    /// Returns whether it may be prepared by name. Otherwise the next message may reach another connection of the
    /// server, unless a transaction is open: it is sent in a transaction of its own.
    pub fn is_prepared(&self) -> bool {
        self.is_prepared
    }

    /// Returns whether it may be carried out twice, so that it may be sent again where nobody knows what became
    /// of it.
    pub fn may_repeat(&self) -> bool {
        self.may_repeat
    }
}

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// An integer.
    Number(i64),
    /// A name.
    Text(&'a str),
}

impl Answer {
    /// Returns the only row, if there is one.
    pub fn row<const N: usize>(&self) -> Option<[i64; N]> {
        let row = self.rows.first()?;
        row.as_slice().try_into().ok()
    }

    /// Returns the number that a statement returned, which has [`CounterDialect::returning`] behind it.
    pub fn returned(&self) -> Option<i64> {
        match self.row() {
            Some([number]) => Some(number),
            None if self.changed > 0 => i64::try_from(self.last_id).ok(),
            None => None,
        }
    }

    /// How many rows a change has changed.
    pub(super) fn changed<D: LeaseDialect>(&self) -> u64 {
        match self.row() {
            Some([number]) if !D::COUNTED.is_empty() => unsigned(number),
            _ => self.changed,
        }
    }
}

/// Checks the name of a table, sequence or counter of ours: it is quoted all the same, but other characters
/// would only be a mistake, and more of them are cut off in silence by PostgreSQL.
///
/// # Errors
///
/// If it has other characters than letters, digits and underscores, or more than 63. The error is a
/// [`Mismatch`](CoordinationFailure::Mismatch).
pub fn checked_name(name: &str) -> Result<&str, Error> {
    const MAX: usize = 63;

    let is_ours = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || name.len() > MAX || !name.bytes().all(is_ours) {
        return Err(Error::coordination(
            CoordinationFailure::Mismatch,
            format!(
                "the name {name:?} is not of 1 to {MAX} letters, digits and underscores, in ASCII"
            ),
        ));
    }
    Ok(name)
}

/// Returns what an integer of a database is as a time or a number, none of which is negative.
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// Returns a number that a database can keep; the terms and times of core are all below.
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Rows of a node each, as one `INSERT` takes them.
fn rows_of(nodes: Range<u64>) -> String {
    let mut rows = String::new();
    for node in nodes {
        let comma = if rows.is_empty() { "" } else { ", " };
        let written = write!(rows, "{comma}({node}, 0, 0, 0)");
        written.expect("a string takes all");
    }
    rows
}
