//! SQLite: by extended result code, of which the lowest byte is the primary code.
//!
//! # References
//!
//! - [Result codes](https://www.sqlite.org/rescode.html)

use super::{Classified, ErrorKind, Names, Report, last_part};
use crate::Failure;

/// How the text begins of an error about a row, where there is no code: that of a `STRICT` table.
const ABOUT_A_ROW: &str = "cannot store ";

/// Pages could not be written.
const IOERR_WRITE: i32 = 778;

/// Asks whether a transaction is open: it fails if one is, and changes nothing, as temporary tables have no such level
/// (`PragTyp_SYNCHRONOUS` in `src/pragma.c`). `BEGIN; ROLLBACK` would tell it, too, but leave a transaction open if it is given up
/// in between.
pub const ASK_OPEN: &str = "PRAGMA temp.synchronous = FULL";

/// Returns whether this is the text of the error of [`ASK_OPEN`].
pub fn says_open(text: &str) -> bool {
    text.contains("may not be changed inside a transaction")
}

/// Returns whether a COMMIT that fails with this code has not begun to end the journal: a full disk, a constraint, the
/// user's hook of COMMIT.
fn is_before_commit(code: i32) -> bool {
    const FULL: i32 = 13;
    const CONSTRAINT: i32 = 19;
    code == IOERR_WRITE || matches!(code & 0xff, FULL | CONSTRAINT)
}

/// Says what an error means.
pub fn classify(report: &Report<'_>) -> Classified {
    let code = report.number.and_then(|code| i32::try_from(code).ok());
    let failure = match code {
        // SQLite calls the user's hook of the write-ahead log when the rows are committed, and the hook may return any code.
        Some(code) if report.is_commit && report.is_over && !is_before_commit(code) => {
            Failure::Lost
        }
        Some(code) => by_code(code, report.is_commit),
        None => by_text(report),
    };
    let report = &Report {
        kind: report.kind.or_else(|| match report.message {
            // SQLite carries out `ON DELETE RESTRICT` as a trigger, and has the code of one.
            "FOREIGN KEY constraint failed" => Some(ErrorKind::ForeignKey),
            _ => kind(code?),
        }),
        ..*report
    };
    Classified {
        names: names(report.message),
        // It has no code for this.
        is_missing_table: report.message.starts_with("no such table: "),
        ..Classified::new(report, failure, report.message.starts_with(ABOUT_A_ROW))
    }
}

/// Returns the names in a text. A unique key is told by its columns, and an index over expressions by its name, in
/// quotes that are not doubled inside of it: `sqlite3UniqueConstraint` of SQLite's `insert.c`.
fn names(message: &str) -> Names {
    let Some((what, of)) = message.split_once(" constraint failed: ") else {
        let column = message.strip_prefix(ABOUT_A_ROW);
        return Names::of_column(
            column.and_then(|it| Some(last_part(it.rsplit_once(" column ")?.1))),
        );
    };
    match what {
        "UNIQUE" => match of
            .strip_prefix("index '")
            .and_then(|it| it.strip_suffix('\''))
        {
            Some(index) => Names::of_constraint(Some(index)),
            None => Names::of_column(Some(last_part(of)).filter(|_| !of.contains(", "))),
        },
        "NOT NULL" => Names::of_column(Some(last_part(of))),
        "CHECK" => Names::of_constraint(Some(of)),
        _ => Names::default(),
    }
}

/// Returns the kind of a constraint that has a code, where the library does not say it: SQLx does.
fn kind(code: i32) -> Option<ErrorKind> {
    const CONSTRAINT_CHECK: i32 = 275;
    const CONSTRAINT_FOREIGNKEY: i32 = 787;
    const CONSTRAINT_NOTNULL: i32 = 1299;
    const CONSTRAINT_PRIMARYKEY: i32 = 1555;
    const CONSTRAINT_UNIQUE: i32 = 2067;

    match code {
        CONSTRAINT_PRIMARYKEY | CONSTRAINT_UNIQUE => Some(ErrorKind::Unique),
        CONSTRAINT_FOREIGNKEY => Some(ErrorKind::ForeignKey),
        CONSTRAINT_NOTNULL => Some(ErrorKind::NotNull),
        CONSTRAINT_CHECK => Some(ErrorKind::Check),
        _ => None,
    }
}

fn by_code(code: i32, is_commit: bool) -> Failure {
    const BUSY: i32 = 5;
    const LOCKED: i32 = 6;
    const CONSTRAINT_ROWID: i32 = 2579;
    const NOMEM: i32 = 7;
    const IOERR: i32 = 10;

    match code & 0xff {
        // The rows may have been written when SQLite failed to end the journal or to give back a lock, perhaps until the next
        // crash only. Or they are in the log, and its index could not grow: whoever recovers the log finds them.
        NOMEM | IOERR if is_commit && code != IOERR_WRITE => Failure::Lost,
        BUSY | LOCKED => Failure::Transient,
        _ if code == CONSTRAINT_ROWID => Failure::Duplicate,
        _ => Failure::Refused,
    }
}

/// Diesel keeps the result code to itself. SQLite's texts are always these.
fn by_text(report: &Report<'_>) -> Failure {
    match report.message {
        // As by code: what ends a journal may fail after the rows were written.
        "disk I/O error" | "out of memory" if report.is_commit => Failure::Lost,
        message
            if message.starts_with("database is locked")
                || message.starts_with("database table is locked") =>
        {
            Failure::Transient
        }
        // Of an `INTEGER PRIMARY KEY`, which Diesel has no kind for.
        message if message.starts_with("UNIQUE constraint failed") => Failure::Duplicate,
        _ => Failure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    #[test]
    fn codes_say_whether_another_time_may_succeed() {
        for (codes, expected) in [
            // Busy, also in recovery, with an old snapshot, after a time-out; locked, also by a shared
            // cache and a virtual table.
            (&[5, 261, 517, 773, 6, 262, 518][..], Transient),
            (&[2579], Duplicate),
            // NOT NULL, foreign key, read-only, disk full, I/O.
            (&[1299, 787, 8, 13, 10, 1, 1034, 1290, 1546], Refused),
        ] {
            for code in codes {
                assert_eq!(by_code(*code, false), expected, "{code}");
            }
        }
        // An I/O error of COMMIT that may come after the rows; others come before.
        assert!(
            [10, 1034, 1290, 1546, 4874, 5386, 2058, 2314, 7, 3082]
                .iter()
                .all(|code| by_code(*code, true) == Lost)
        );
        assert_eq!(by_code(778, true), Refused);
        assert_eq!(by_code(5, true), Transient);
    }

    /// A hook of the write-ahead log returns what a checkpoint returned. If it is really busy, the transaction stays open.
    #[test]
    fn any_code_may_be_that_of_a_hook_behind_commit() {
        for (code, is_over, expected) in [
            (5, true, Lost),
            (5, false, Transient),
            (1, true, Lost),
            (1, false, Refused),
            (13, true, Refused),
            (778, true, Refused),
            (787, true, Refused),
            (531, true, Refused),
        ] {
            let report = Report {
                number: Some(code),
                is_commit: true,
                is_over,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{code}, {is_over}");
        }
    }

    /// Diesel has no codes.
    #[test]
    fn texts_say_what_a_commit_may_have_done() {
        for (message, is_commit, expected) in [
            ("disk I/O error", true, Lost),
            ("out of memory", true, Lost),
            ("disk I/O error", false, Refused),
            ("out of memory", false, Refused),
            ("database or disk is full", true, Refused),
        ] {
            let report = Report {
                message,
                is_commit,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
        }
    }

    #[test]
    fn a_parent_that_is_restricted_violates_a_foreign_key() {
        for (number, message, expected) in [
            (
                Some(1811),
                "FOREIGN KEY constraint failed",
                Some(crate::Violation::ForeignKey),
            ),
            (
                None,
                "FOREIGN KEY constraint failed",
                Some(crate::Violation::ForeignKey),
            ),
            (Some(1811), "raised by a trigger", None),
        ] {
            let report = Report {
                number,
                message,
                ..Report::default()
            };
            let classified = classify(&report);
            assert_eq!(classified.violation, expected, "{message}");
            assert_eq!(classified.refuses_a_row, expected.is_some(), "{message}");
        }
    }

    /// Codes: https://www.sqlite.org/rescode.html
    #[test]
    fn codes_say_which_constraint_it_was() {
        use crate::Violation::{ForeignKey, Unique};

        for (number, failure, violation, refuses_a_row) in [
            (1555, Duplicate, Some(Unique), true),
            (2067, Duplicate, Some(Unique), true),
            (2579, Duplicate, Some(Unique), true),
            (787, Refused, Some(ForeignKey), true),
            (1299, Refused, None, true),
            (275, Refused, None, true),
            // A trigger's RAISE, a commit hook, busy, read-only.
            (1811, Refused, None, false),
            (531, Refused, None, false),
            (5, Transient, None, false),
            (8, Refused, None, false),
        ] {
            let report = Report {
                number: Some(number),
                message: "as the test asks",
                ..Report::default()
            };
            let classified = classify(&report);
            let found = (
                classified.failure,
                classified.violation,
                classified.refuses_a_row,
            );
            assert_eq!(found, (failure, violation, refuses_a_row), "{number}");
        }
    }

    #[test]
    fn texts_name_constraints_and_columns() {
        for (message, constraint, column) in [
            (
                "UNIQUE constraint failed: customers.mail",
                None,
                Some("mail"),
            ),
            (
                "UNIQUE constraint failed: orders.shop, orders.number",
                None,
                None,
            ),
            (
                "UNIQUE constraint failed: index 'customers_lower_mail'",
                Some("customers_lower_mail"),
                None,
            ),
            (
                "NOT NULL constraint failed: orders.total",
                None,
                Some("total"),
            ),
            ("CHECK constraint failed: positive", Some("positive"), None),
            (
                "CHECK constraint failed: total > 0",
                Some("total > 0"),
                None,
            ),
            ("FOREIGN KEY constraint failed", None, None),
            (
                "cannot store TEXT value in INTEGER column orders.total",
                None,
                Some("total"),
            ),
            ("database is locked", None, None),
        ] {
            let names = names(message);
            assert_eq!(names.constraint.as_deref(), constraint, "{message}");
            assert_eq!(names.column.as_deref(), column, "{message}");
        }
        for (message, expected) in [
            ("no such table: ordid_flushes", true),
            ("no such column: id", false),
        ] {
            let report = Report {
                number: Some(1),
                message,
                ..Report::default()
            };
            assert_eq!(classify(&report).is_missing_table, expected, "{message}");
        }
    }

    #[test]
    fn texts_say_what_codes_do_not() {
        for (message, is_commit, expected) in [
            ("database is locked", false, Transient),
            ("database is locked", true, Transient),
            ("database table is locked: orders", false, Transient),
            ("UNIQUE constraint failed: orders.id", false, Duplicate),
            ("disk I/O error", false, Refused),
            ("disk I/O error", true, Lost),
        ] {
            let report = Report {
                message,
                is_commit,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
        }
        let taken = Report {
            message: "UNIQUE constraint failed: orders.id",
            ..Report::default()
        };
        assert!(classify(&taken).refuses_a_row);
    }
}
