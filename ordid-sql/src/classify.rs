//! What an error of a database means for a flush: whether another time it may succeed, and whether it is about
//! what is in a row. One file for each engine.
//!
//! A limit or a person that ended a statement (a statement's time-out, `pg_cancel_backend`) is not retried: the
//! error counts as refused. A server that has become read-only counts as a lost connection: behind the address of
//! a cluster, another connection reaches the server that now writes.

use crate::{DriverError, Failure, Violation};

pub mod mysql;
pub mod oracle;
pub mod postgres;
pub mod sql_server;
pub mod sqlite;

/// What a library says of an error of the database.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report<'a> {
    /// PostgreSQL's SQLSTATE, where the library has it.
    pub sqlstate: Option<&'a str>,
    /// The number of other engines, where the library has it.
    pub number: Option<i64>,
    /// SQL Server's severity.
    pub severity: u8,
    /// Whether PostgreSQL's severity is `FATAL` or `PANIC`: the session ends, or the whole server.
    pub is_fatal: bool,
    /// What kind of error the library takes it for.
    pub kind: Option<ErrorKind>,
    /// The constraint that was violated, where the library has it in a field: PostgreSQL sends it so. The other engines
    /// have it in their text.
    pub constraint: Option<&'a str>,
    /// The column that the error is about, likewise.
    pub column: Option<&'a str>,
    /// The text. An engine knows errors by it where the library keeps their codes to itself; then all but deadlocks have
    /// to be in English (`lc_messages`), or count as refused, and at COMMIT as lost.
    pub message: &'a str,
    /// Whether it is the answer to COMMIT.
    pub is_commit: bool,
    /// Whether the transaction has ended all the same, where the library can tell.
    pub is_over: bool,
}

/// The kinds of errors that libraries tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A primary or unique key is taken.
    Unique,
    /// A row's parent does not exist, or a deleted row still has children.
    ForeignKey,
    /// A column takes no NULL.
    NotNull,
    /// A check constraint.
    Check,
    /// Another constraint.
    Constraint,
    /// Another transaction was first.
    Serialization,
    /// The transaction cannot write.
    ReadOnly,
    /// The connection is closed.
    Closed,
}

/// The names that an error of the database tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// The constraint that was violated, or the unique index.
    pub constraint: Option<String>,
    /// The column that the error is about.
    pub column: Option<String>,
}

impl Names {
    fn of_constraint(constraint: Option<impl Into<String>>) -> Self {
        Self {
            constraint: constraint.map(Into::into),
            column: None,
        }
    }

    fn of_column(column: Option<impl Into<String>>) -> Self {
        Self {
            constraint: None,
            column: column.map(Into::into),
        }
    }
}

/// Where the text of an error has a value that was refused. It may be a person's, and is not printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShownValue {
    /// There is none.
    Nowhere,
    /// In quotes, in front of the name of a key: duplicates on MySQL and MariaDB.
    InQuotes,
    /// In parentheses at the end: duplicates on SQL Server.
    InParentheses,
    /// In quotes behind words: what has no form of the column's, or is too long for it.
    Quoted,
    /// On a line of its own: duplicates on Oracle.
    OnALine,
}

impl ShownValue {
    /// Returns a text without the value; `None` where there is none.
    pub(crate) fn cut_from(self, text: &str) -> Option<String> {
        match self {
            Self::Nowhere => None,
            Self::InQuotes => mysql::without_value(text),
            Self::InParentheses => sql_server::without_value(text),
            Self::Quoted => without_quoted(text),
            Self::OnALine => oracle::without_values(text),
        }
    }
}

/// Returns a text without the value in its quotes, which may have quotes in it. The names of a column behind it and of a
/// table in front of it stay where the text is English.
fn without_quoted(text: &str) -> Option<String> {
    const BEFORE: [&str; 2] = [" value '", "Truncated value: '"];
    const BEHIND: [&str; 3] = [" for column ", " to data type ", ".' on server "];
    let words = BEFORE
        .iter()
        .filter_map(|it| Some(text.find(it)? + it.len() - 1));
    let start = words.max().or_else(|| text.find(['\'', '"']))?;
    let quote = text[start..].chars().next()?;
    let known = BEHIND.iter().filter_map(|it| text[start..].rfind(it));
    let behind = known.min().map_or(text.len(), |it| start + it);
    let end = text[..behind].rfind(quote).filter(|&end| end > start)?;
    Some(format!("{}{quote}..{}", &text[..start], &text[end..]))
}

/// What an error means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// What it means for the flush.
    pub failure: Failure,
    /// Whether it is about what is in a row, which can be found.
    pub refuses_a_row: bool,
    /// Which constraint was violated, where that is one that users ask for.
    pub violation: Option<Violation>,
    /// Where its text has the value that was refused.
    pub shows_value: ShownValue,
    /// The names that it tells.
    pub names: Names,
    /// Whether it says that a table does not exist.
    pub is_missing_table: bool,
    /// Whether it says that the server does not have such a statement. Then other statements may do the same.
    pub is_unsupported: bool,
    /// Whether something went wrong within the server, and not with what it was asked. As the answer to COMMIT, it leaves
    /// open whether rows on [several machines](crate::EngineProfile::is_distributed) are committed.
    pub is_of_server: bool,
}

impl Classified {
    /// Takes a library's error with this meaning.
    pub fn of<D>(self, error: D) -> DriverError<D> {
        DriverError {
            refuses_a_row: self.refuses_a_row,
            violation: self.violation,
            shows_value: self.shows_value,
            names: self.names,
            is_missing_table: self.is_missing_table,
            is_unsupported: self.is_unsupported,
            is_of_server: self.is_of_server,
            ..DriverError::new(error, self.failure)
        }
    }

    /// An error that an engine knows: what the library says of its kind is added.
    fn new(report: &Report<'_>, failure: Failure, refuses_a_row: bool) -> Self {
        let failure = match report.kind {
            Some(ErrorKind::Unique) => Failure::Duplicate,
            Some(ErrorKind::Closed) => Failure::Lost,
            _ => failure,
        };
        let is_of_constraint = matches!(
            report.kind,
            Some(
                ErrorKind::Unique
                    | ErrorKind::ForeignKey
                    | ErrorKind::NotNull
                    | ErrorKind::Check
                    | ErrorKind::Constraint
            )
        );
        Self {
            failure,
            refuses_a_row: refuses_a_row || is_of_constraint || failure == Failure::Duplicate,
            violation: match report.kind {
                _ if failure == Failure::Duplicate => Some(Violation::Unique),
                Some(ErrorKind::ForeignKey) => Some(Violation::ForeignKey),
                _ => None,
            },
            shows_value: ShownValue::Nowhere,
            names: Names::default(),
            is_missing_table: false,
            is_unsupported: false,
            is_of_server: false,
        }
    }
}

/// Classifies the errors of an engine.
pub type Classify = fn(&Report<'_>) -> Classified;

/// Returns whether a text is that of a deadlock, for which many languages have the English word. One that has it by
/// chance is tried again for nothing.
fn names_a_deadlock(text: &str) -> bool {
    text.to_lowercase().contains("deadlock")
}

/// Returns the first name in quotes of this kind in a text, in which two quotes stand for one.
fn quoted(text: &str, quote: char) -> Option<String> {
    let mut rest = text.split_once(quote)?.1;
    let mut name = String::new();
    loop {
        let (part, behind) = rest.split_once(quote)?;
        name.push_str(part);
        match behind.strip_prefix(quote) {
            Some(behind) => {
                name.push(quote);
                rest = behind;
            }
            None => return Some(name),
        }
    }
}

/// Returns a name without the schema or the table in front of it.
fn last_part(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(_, last)| last)
}

/// Returns whether a SQLSTATE is of class 22 (data exception) or 23 (integrity constraint violation).
fn is_about_a_row(sqlstate: Option<&str>) -> bool {
    sqlstate
        .is_some_and(|code| code.len() == 5 && (code.starts_with("22") || code.starts_with("23")))
}

#[cfg(test)]
mod tests {
    use super::ShownValue;

    /// A value may be a person's.
    #[test]
    fn values_are_cut_from_texts() {
        use ShownValue::{OnALine, Quoted};

        for (shown, text, expected) in [
            (
                Quoted,
                "1366 (22007): Incorrect integer value: 'ada's' for column `shop`.`orders`.`total` at row 1",
                "1366 (22007): Incorrect integer value: '..' for column `shop`.`orders`.`total` at row 1",
            ),
            (
                Quoted,
                "Incorrect datetime value: '2026-13-01' for column 'at' at row 3",
                "Incorrect datetime value: '..' for column 'at' at row 3",
            ),
            (
                Quoted,
                "Falscher integer-Wert: 'ada' f\u{fc}r Feld 'total' in Zeile 1",
                "Falscher integer-Wert: '..' in Zeile 1",
            ),
            (
                Quoted,
                "Token error: 'Conversion failed when converting the varchar value 'a' b' to data type int.' on server db \
                 executing  on line 1 (code: 245, state: 1, class: 16)",
                "Token error: 'Conversion failed when converting the varchar value '..' to data type int.' on server db \
                 executing  on line 1 (code: 245, state: 1, class: 16)",
            ),
            (
                Quoted,
                "Token error: 'String or binary data would be truncated in table 'shop.dbo.orders', column 'name'. \
                 Truncated value: 'Ada's'.' on server db executing  on line 1 (code: 2628, state: 1, class: 16)",
                "Token error: 'String or binary data would be truncated in table 'shop.dbo.orders', column 'name'. \
                 Truncated value: '..'.' on server db executing  on line 1 (code: 2628, state: 1, class: 16)",
            ),
            (
                Quoted,
                "invalid input value for enum mood: \"so \"so\"\"",
                "invalid input value for enum mood: \"..\"",
            ),
            (
                OnALine,
                "ORA-00001: unique constraint (SHOP.MAIL) violated on table SHOP.CUSTOMERS columns (MAIL)\nORA-03301: \
                 (ORA-00001 details) row with column values (MAIL:'ada') already exists",
                "ORA-00001: unique constraint (SHOP.MAIL) violated on table SHOP.CUSTOMERS columns (MAIL)",
            ),
        ] {
            assert_eq!(shown.cut_from(text).as_deref(), Some(expected));
        }
        assert_eq!(Quoted.cut_from("no value"), None);
    }
}
