//! Oracle: by the numbers of `ORA-` errors, also of those that stand behind another: a trigger's for one.
//!
//! # References
//!
//! - [Error messages](https://docs.oracle.com/en/error-help/db/)
//! - ODPI-C's `dpiError.c`: the codes after which it holds a session for dead, all of which are here.

use super::{Classified, Names, Report, ShownValue, last_part};
use crate::{Failure, Violation};

/// ORA-00001: unique constraint violated.
const UNIQUE: i64 = 1;
/// ORA-00060: deadlock detected while waiting for resource.
pub const DEADLOCK: i64 = 60;
/// ORA-02291, ORA-02292: integrity constraint violated - parent key not found, child record found.
const FOREIGN_KEY: &[i64] = &[2291, 2292];
/// ORA-02290: check constraint violated.
const CHECK: i64 = 2290;
/// ORA-01400, ORA-01407, ORA-12899: NULL into a column by an insert and by an update, value too large for a column.
const ABOUT_A_COLUMN: &[i64] = &[1400, 1407, 12899];
/// ORA-00942: table or view does not exist. Of a table that the user may not see, it says the same.
const NO_SUCH_TABLE: i64 = 942;
/// ORA-02091: transaction rolled back, by a deferred constraint for one.
const ROLLED_BACK: i64 = 2091;

/// ORA-03301: row with column values already exists, behind ORA-00001.
const ROW: i64 = 3301;

/// What another time may succeed.
const TRANSIENT: &[i64] = &[
    DEADLOCK, 54,    // resource busy, NOWAIT or a time-out
    104,   // deadlock of the server's own processes
    2049,  // distributed transaction waiting for a lock
    4020,  // deadlock for an object of the dictionary
    4021,  // time-out waiting for one
    8177,  // cannot serialize
    30006, // WAIT ran out
    18, 20, 2391, // too many sessions, processes, sessions of the user
    12516, 12518, 12519, 12520, // the listener has nobody to hand it over to
    24418, 24457, 24459, 24496, // the pool has no session left
];

/// The session is over, or what is left of it cannot be used, or none could be made.
const LOST: &[i64] = &[
    22, 28, 31, 45, // no such session; killed, or will be
    41, // resource plan ended the session
    378, 602, 603, 609,  // the server's process has failed
    1012, // not logged on
    1033, 1034, 1089, 1090, 1092, 1109,  // starting, not there, shutting down, not open
    16000, // open for reading only: it was the primary
    1041, 1043, 3122, // the client's state is broken
    2396, // idle for too long
    3113, 3114, 3135, // end of file, not connected, lost contact
    3136, 3156, 12161, // time-out in the midst of a call
    12152, 12153, 12170, 12514, 12521, 12528, 12537, 12541, 12543, 12545, 12547, 12570, 12571,
    12583, // of the network
    25402, 25403, 25404, 25405, 25407, 25408,
    25409, // failed over in the midst of a transaction
    27146, 28511, 56600, // other processes, other servers
];

/// Says what an error means. The number is that of the error itself.
pub fn classify(report: &Report<'_>) -> Classified {
    let has_one_of = |wanted: &[i64]| has_one_of(report, wanted);
    let failure = if report.is_commit {
        // It was carried out or not, unless the database says that it has rolled back.
        if !has_one_of(&[ROLLED_BACK]) {
            Failure::Lost
        } else if has_one_of(TRANSIENT) {
            Failure::Transient
        } else {
            Failure::Refused
        }
    } else if has_one_of(LOST) {
        Failure::Lost
    } else if has_one_of(TRANSIENT) {
        Failure::Transient
    } else if has_one_of(&[UNIQUE]) {
        Failure::Duplicate
    } else {
        Failure::Refused
    };
    let violation = if has_one_of(&[UNIQUE]) {
        Some(Violation::Unique)
    } else if has_one_of(FOREIGN_KEY) {
        Some(Violation::ForeignKey)
    } else {
        None
    };
    Classified {
        failure,
        // It says itself which rows it refused.
        refuses_a_row: false,
        violation,
        shows_value: match has_one_of(&[ROW]) {
            true => ShownValue::OnALine,
            false => ShownValue::Nowhere,
        },
        names: names(report.message),
        is_missing_table: report.number == Some(NO_SUCH_TABLE),
        is_unsupported: false,
        is_of_server: false,
    }
}

/// Returns a text without the line that has the values of a row.
pub(super) fn without_values(text: &str) -> Option<String> {
    let lines = || text.lines();
    let is_about_values = |line: &&str| line.contains("ORA-03301");
    lines().any(|line| is_about_values(&line)).then(|| {
        let kept = lines().filter(|line| !is_about_values(line));
        kept.collect::<Vec<_>>().join("\n")
    })
}

/// Returns the names in a text, in every language: a constraint stands in parentheses as `(OWNER.NAME)`, a column as
/// `"OWNER"."TABLE"."COLUMN"`.
fn names(message: &str) -> Names {
    let found = lines(message).find_map(|(number, text)| {
        if number == UNIQUE || number == CHECK || FOREIGN_KEY.contains(&number) {
            let (name, _) = text.split_once('(')?.1.split_once(')')?;
            Some(Names::of_constraint(Some(last_part(name))))
        } else if ABOUT_A_COLUMN.contains(&number) {
            // No name of Oracle's has a double quote in it.
            let column = text.split("\".\"").nth(2)?.split_once('"')?.0;
            Some(Names::of_column(Some(column)))
        } else {
            None
        }
    });
    found.unwrap_or_default()
}

/// Returns whether the database said one of these, also behind an error of its own.
pub fn has_one_of(report: &Report<'_>, wanted: &[i64]) -> bool {
    report.number.is_some_and(|number| wanted.contains(&number))
        || numbers(report.message).any(|number| wanted.contains(&number))
}

/// Returns the numbers of a message: one error may stand behind another, each on a line of its own.
fn numbers(message: &str) -> impl Iterator<Item = i64> + '_ {
    lines(message).map(|(number, _)| number)
}

/// Returns the lines of a message that have a number, without it.
fn lines(message: &str) -> impl Iterator<Item = (i64, &str)> {
    message.lines().filter_map(|line| {
        let (number, text) = line.strip_prefix("ORA-")?.split_once(':')?;
        Some((number.parse().ok()?, text))
    })
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;

    fn said(number: i64, message: &str, is_commit: bool) -> Failure {
        let report = Report {
            number: Some(number),
            message,
            is_commit,
            ..Report::default()
        };
        classify(&report).failure
    }

    #[test]
    fn numbers_say_whether_another_time_may_succeed() {
        for (numbers, expected) in [
            (&[60, 54, 8177, 4020, 4021, 30006][..], Transient),
            // No session to be had.
            (
                &[18, 20, 2391, 12516, 12519, 24418, 24457, 24496],
                Transient,
            ),
            (&[28, 31, 603, 1012, 1089, 1092, 2396], Lost),
            (&[3113, 3114, 3135, 12170, 12541, 12570, 25408], Lost),
            (&[1], Duplicate),
            // Foreign key, children, check, NULL, no such table, cut off, stopped by the user, password.
            (&[2291, 2292, 2290, 1400, 942, 12899, 1013, 1017], Refused),
        ] {
            for number in numbers {
                assert_eq!(said(*number, "", false), expected, "{number}");
            }
        }
    }

    #[test]
    fn texts_name_constraints_and_columns() {
        for (message, constraint, column) in [
            (
                "ORA-00001: unique constraint (SHOP.CUSTOMERS_MAIL) violated",
                Some("CUSTOMERS_MAIL"),
                None,
            ),
            // Oracle 23.
            (
                "ORA-00001: unique constraint (SHOP.PK_ORDERS) violated on table SHOP.ORDERS columns (ID)",
                Some("PK_ORDERS"),
                None,
            ),
            (
                "ORA-00001: Unique Constraint (SHOP.CUSTOMERS_MAIL) verletzt",
                Some("CUSTOMERS_MAIL"),
                None,
            ),
            (
                "ORA-02291: integrity constraint (SHOP.ORDERS_CUSTOMER) violated - parent key not found",
                Some("ORDERS_CUSTOMER"),
                None,
            ),
            (
                "ORA-04088: error during execution of trigger 'SHOP.T'\nORA-02290: check constraint (SHOP.POSITIVE) \
                 violated",
                Some("POSITIVE"),
                None,
            ),
            (
                "ORA-01400: cannot insert NULL into (\"SHOP\".\"ORDERS\".\"TOTAL\")",
                None,
                Some("TOTAL"),
            ),
            (
                "ORA-12899: value too large for column \"SHOP\".\"ORDERS\".\"the (text)\" (actual: 20, maximum: 10)",
                None,
                Some("the (text)"),
            ),
            ("ORA-00942: table or view does not exist", None, None),
        ] {
            let names = names(message);
            assert_eq!(names.constraint.as_deref(), constraint, "{message}");
            assert_eq!(names.column.as_deref(), column, "{message}");
        }
    }

    #[test]
    fn errors_behind_another_count() {
        let behind = |text: &str| {
            let text = format!("ORA-04088: error during execution of trigger\n{text}");
            said(4088, &text, false)
        };
        assert_eq!(behind("ORA-00060: deadlock detected"), Transient);
        assert_eq!(behind("ORA-00001: unique constraint"), Duplicate);
        assert_eq!(behind("ORA-01403: no data found"), Refused);
    }

    #[test]
    fn a_commit_is_lost_unless_the_database_rolled_back() {
        for number in [3113, 3135, 12170, 600, 60] {
            assert_eq!(said(number, "", true), Lost, "{number}");
        }
        for (behind, expected) in [(2291, Refused), (1, Refused), (60, Transient)] {
            let text = format!("ORA-02091: transaction rolled back\nORA-{behind:05}: behind it");
            assert_eq!(said(2091, &text, true), expected, "{behind}");
        }
    }
}
