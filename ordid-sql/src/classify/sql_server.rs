//! SQL Server and Babelfish: by number in `sys.messages`, and by severity.
//!
//! # References
//!
//! - [Database Engine events and errors](https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors)
//! - [Transient errors of Azure SQL](https://learn.microsoft.com/azure/azure-sql/database/troubleshoot-common-errors-issues)

use super::{Classified, Names, Report, ShownValue};
use crate::{Failure, Violation};

/// Chosen as the victim of a deadlock.
pub const DEADLOCK: i64 = 1205;

/// A unique index; a primary or unique key.
const DUPLICATE: &[i64] = &[2601, 2627];

/// Invalid object name.
const NO_SUCH_TABLE: i64 = 208;

/// Babelfish's number for every error of PostgreSQL that has no number of SQL Server.
const OTHER_OF_BABELFISH: i64 = 33_557_097;

/// What another time may succeed, by number in `sys.messages`.
const TRANSIENT: &[i64] = &[
    DEADLOCK, 1204, 1222, // no lock to give; a lock did not come in time
    3960, 3961, // another transaction was first, under snapshot isolation
    8645, 8651, // no memory for the statement in time
    921, 922, 4221, 18401, // the server or the database is starting
    10928, 10929, 40501, 40613, 49918, 49919, 49920, // Azure: too busy, or moving
    41301, 41302, 41305, 41325,
    41839, // memory-optimized tables: another transaction was first
];

/// What COMMIT answers after a rollback: a constraint, a deadlock, no transaction, another transaction that was first, a
/// transaction that can only be rolled back.
const IS_ROLLED_BACK: &[i64] = &[
    547, 2601, 2627, DEADLOCK, 3902, 3930, 3960, 3961, 3998, 41301, 41302, 41305, 41325, 41839,
];

/// The session is over, or can do no more here, whatever the severity.
const ENDS_THE_SESSION: &[i64] = &[
    596, 6005, // killed, shutting down
    976, 983, 3906, // a replica that does not take it, a database that is read-only
    40143, 40166, 40197, 40540, // Azure: moves to another machine
];

/// The server ends the connection after an error of this severity or above.
const FATAL: u8 = 20;

/// Errors about a value or a constraint: the same rows would be refused again.
const ABOUT_A_ROW: &[i64] = &[
    220, 232, 8115, // arithmetic overflow
    241, 242, 245, 8114, // conversion failed
    515,  // NULL into a column that allows none
    547,  // CHECK or FOREIGN KEY
    2601, 2627, // unique index; primary or unique key
    2628, 8152, // text or bytes would be cut off
    4815, 4819, 4863, 4864, 4867, // a bulk load's length, order, cut-off, type, overflow
    8023, // a value that is none of its type
];

/// Says what an error means.
pub fn classify(report: &Report<'_>) -> Classified {
    let number = report.number.unwrap_or_default();
    let failure = match number {
        // It may be any error, also that of an interrupted COMMIT.
        OTHER_OF_BABELFISH if report.is_commit => Failure::Lost,
        // COMMIT may have been carried out unless the server says otherwise.
        _ if report.is_commit && !IS_ROLLED_BACK.contains(&number) => Failure::Lost,
        _ => by_number(number, report.severity),
    };
    Classified {
        failure,
        refuses_a_row: ABOUT_A_ROW.contains(&number),
        violation: violation(number, report.message),
        shows_value: match number {
            2601 | 2627 => ShownValue::InParentheses,
            // The conversion of a value failed; a text is too long.
            245 | 2628 => ShownValue::Quoted,
            _ => ShownValue::Nowhere,
        },
        names: names(number, report.message),
        is_missing_table: is_missing_table(number, report.message),
        is_unsupported: false,
        is_of_server: false,
    }
}

/// Returns the text of a duplicate without the value that was refused, which is in parentheses at its end. It may have
/// parentheses and dots in it.
pub(super) fn without_value(text: &str) -> Option<String> {
    let start = text.find('(')?;
    let end = start + text[start..].rfind(").")?;
    Some(format!("{}(..{}", &text[..start], &text[end..]))
}

/// Returns the names in a text. Their quotes and their order depend on the language; a table has its schema in front of
/// it, and a name with a dot in it is passed over.
fn names(number: i64, message: &str) -> Names {
    match number {
        // Babelfish names the table in front of the constraint.
        547 | 2601 | 2627 if let Some((_, name)) = message.split_once("constraint \"") => Names {
            constraint: name.split_once('"').map(|(name, _)| name.to_owned()),
            column: checked_column(number, message),
        },
        547 | 2601 | 2627 => Names {
            constraint: simple_names(message).next().map(str::to_owned),
            column: checked_column(number, message),
        },
        515 => Names::of_column(simple_names(message).next()),
        _ => Names::default(),
    }
}

/// Returns the column that a `CHECK` constraint is about, which stands behind constraint and database if there is one. Of
/// a foreign key, the column is the parent's.
fn checked_column(number: i64, message: &str) -> Option<String> {
    let is_check = number == 547 && message.contains("CHECK");
    let column = simple_names(message).nth(2).filter(|_| is_check);
    column.map(str::to_owned)
}

/// Returns the names in quotes that have no schema in front of them.
fn simple_names(message: &str) -> impl Iterator<Item = &str> {
    let mut rest = message;
    let names = std::iter::from_fn(move || {
        let start = rest.find(['\'', '"', '«', '“', '„'])?;
        let open = rest[start..].chars().next()?;
        let behind = &rest[start + open.len_utf8()..];
        let close: &[char] = match open {
            '«' => &['»'],
            '“' | '„' => &['”', '“'],
            '"' => &['"'],
            _ => &['\''],
        };
        let end = behind.find(close)?;
        let closing = behind[end..].chars().next()?;
        rest = &behind[end + closing.len_utf8()..];
        Some(behind[..end].trim())
    });
    names.filter(|name| !name.contains('.'))
}

/// Returns whether an error says that a table does not exist. Babelfish 4.3 tells it by the text alone.
pub fn is_missing_table(number: i64, message: &str) -> bool {
    match number {
        NO_SUCH_TABLE => true,
        OTHER_OF_BABELFISH => super::postgres::is_missing_table(message),
        _ => false,
    }
}

fn violation(code: i64, message: &str) -> Option<Violation> {
    let names_a_foreign_key = || {
        // Of a parent that is deleted or a key that is changed the server says REFERENCE, in every language; a `CHECK`
        // constraint has the same number. The constraint's name, in quotes, may have these words, too.
        let mut parts = message.split(['"', '«', '»', '“', '”', '„']).step_by(2);
        parts.any(|words| {
            let words = words.to_uppercase();
            words.contains("FOREIGN KEY") || words.contains("REFERENCE")
        })
    };
    match code {
        code if DUPLICATE.contains(&code) => Some(Violation::Unique),
        547 if names_a_foreign_key() => Some(Violation::ForeignKey),
        _ => None,
    }
}

fn by_number(code: i64, class: u8) -> Failure {
    if DUPLICATE.contains(&code) {
        Failure::Duplicate
    } else if class >= FATAL || ENDS_THE_SESSION.contains(&code) {
        Failure::Lost
    } else if TRANSIENT.contains(&code) {
        Failure::Transient
    } else {
        Failure::Refused
    }
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    #[test]
    fn a_foreign_key_is_known_in_every_language() {
        for (message, expected) in [
            (
                "The INSERT statement conflicted with the FOREIGN KEY constraint \"fk\". The conflict occurred in database \
                 \"shop\", table \"dbo.customers\", column 'id'.",
                true,
            ),
            (
                "The DELETE statement conflicted with the REFERENCE constraint \"fk\". The conflict occurred in database \
                 \"shop\", table \"dbo.orders\", column 'customer'.",
                true,
            ),
            (
                "Die DELETE-Anweisung steht in Konflikt mit der REFERENCE-Einschränkung „fk“.",
                true,
            ),
            (
                "L'instruction DELETE est en conflit avec la contrainte REFERENCE \"fk\".",
                true,
            ),
            (
                "DELETE ステートメントは REFERENCE 制約 \"fk\" と競合しています。",
                true,
            ),
            ("DELETE 语句与 REFERENCE 约束\"fk\"冲突。", true),
            (
                "insert or update on table \"orders\" violates foreign key constraint \"fk\"",
                true,
            ),
            (
                "The INSERT statement conflicted with the CHECK constraint \"reference FOREIGN KEY\". The conflict occurred \
                 in database \"shop\", table \"dbo.orders\", column 'total'.",
                false,
            ),
        ] {
            let expected = expected.then_some(Violation::ForeignKey);
            assert_eq!(violation(547, message), expected, "{message}");
        }
    }

    #[test]
    fn a_missing_table_of_babelfish_is_known_by_its_text() {
        for (number, message, expected) in [
            (208, "Nom d'objet 'leases' non valide.", true),
            (33_557_097, "relation \"leases\" does not exist", true),
            (33_557_097, "column \"leases\" does not exist", false),
            (33_557_097, "syntax error", false),
            (229, "relation \"leases\" does not exist", false),
        ] {
            assert_eq!(is_missing_table(number, message), expected, "{message}");
        }
    }

    /// The text is tiberius's, which puts the server and the code behind the message.
    #[test]
    fn a_duplicate_is_cut_before_its_value() {
        let before = "Token error: 'Violation of UNIQUE KEY constraint 'mail'. Cannot insert duplicate key in object \
                      'dbo.customers'. The duplicate key value is (";
        let behind = ").' on server db executing  on line 1 (code: 2627, state: 1, class: 14)";
        for value in ["ada@example.org", "a). b", "1, (x)."] {
            let cut = without_value(&format!("{before}{value}{behind}"));
            assert_eq!(cut, Some(format!("{before}..{behind}")));
        }
        assert_eq!(without_value("no value"), None);
    }

    #[test]
    fn texts_name_constraints_and_columns() {
        for (number, message, constraint, column) in [
            (
                2627,
                "Violation of UNIQUE KEY constraint 'customers_mail'. Cannot insert duplicate key in object \
                 'dbo.customers'. The duplicate key value is (ada's).",
                Some("customers_mail"),
                None,
            ),
            (
                2601,
                "Cannot insert duplicate key row in object 'dbo.customers' with unique index 'ix_mail'. The duplicate \
                 key value is (ada's).",
                Some("ix_mail"),
                None,
            ),
            (
                547,
                "The INSERT statement conflicted with the FOREIGN KEY constraint \"orders_customer\". The conflict \
                 occurred in database \"shop\", table \"dbo.customers\", column 'id'.",
                Some("orders_customer"),
                None,
            ),
            (
                547,
                "The INSERT statement conflicted with the CHECK constraint \"positive\". The conflict occurred in \
                 database \"shop\", table \"dbo.orders\", column 'total'.",
                Some("positive"),
                Some("total"),
            ),
            (
                547,
                "The INSERT statement conflicted with the CHECK constraint \"in_order\". The conflict occurred in \
                 database \"shop\", table \"dbo.orders\".",
                Some("in_order"),
                None,
            ),
            (
                515,
                "Cannot insert the value NULL into column 'total', table 'shop.dbo.orders'; column does not allow \
                 nulls. INSERT fails.",
                None,
                Some("total"),
            ),
            (
                515,
                "テーブル 'shop.dbo.orders' の列 'total' に値 NULL を挿入できません。この列では NULL 値が許可されていません。\
                 INSERT は失敗します。",
                None,
                Some("total"),
            ),
            (
                2627,
                "Violation de la contrainte UNIQUE KEY « customers_mail ». Impossible d'insérer une clé en double dans \
                 l'objet « dbo.customers ».",
                Some("customers_mail"),
                None,
            ),
            // Babelfish sends PostgreSQL's texts under SQL Server's numbers.
            (
                2627,
                "duplicate key value violates unique constraint \"customers_mail\"",
                Some("customers_mail"),
                None,
            ),
            (
                547,
                "insert or update on table \"orders\" violates foreign key constraint \"orders_customer\"",
                Some("orders_customer"),
                None,
            ),
            (
                547,
                "new row for relation \"orders\" violates check constraint \"positive\"",
                Some("positive"),
                None,
            ),
            (
                515,
                "null value in column \"total\" of relation \"orders\" violates not-null constraint",
                None,
                Some("total"),
            ),
            (208, "Invalid object name 'orders'.", None, None),
        ] {
            let names = names(number, message);
            assert_eq!(names.constraint.as_deref(), constraint, "{message}");
            assert_eq!(names.column.as_deref(), column, "{message}");
        }
    }

    #[test]
    fn any_error_of_babelfish_leaves_a_commit_unknown() {
        for (is_commit, expected) in [(true, Lost), (false, Refused)] {
            let report = Report {
                number: Some(OTHER_OF_BABELFISH),
                severity: 16,
                is_commit,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected);
        }
    }

    #[test]
    fn an_error_of_commit_without_another_meaning_may_come_after_it() {
        for (number, severity, expected) in [
            (9002, 17, Lost),
            (40613, 17, Lost),
            (40143, 17, Lost),
            (547, 16, Refused),
            (2627, 14, Duplicate),
            (1205, 13, Transient),
            (1205, 21, Lost),
            (3960, 16, Transient),
        ] {
            let report = Report {
                number: Some(number),
                severity,
                is_commit: true,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{number}");
        }
    }

    #[test]
    fn number_and_severity_say_whether_another_time_may_succeed() {
        for (codes, class, expected) in [
            (&[2601, 2627][..], 14, Duplicate),
            (TRANSIENT, 13, Transient),
            (&[596, 6005, 976, 983, 3906, 40197], 16, Lost),
            // The log is not available; a deadlock that ends the connection, too.
            (&[9001, 1205], 21, Lost),
            // Foreign key, no such table, log full, login failed, no such database.
            (&[547, 208, 9002, 18456, 4060], 16, Refused),
        ] {
            for code in codes {
                assert_eq!(by_number(*code, class), expected, "{code}");
            }
        }
    }
}
