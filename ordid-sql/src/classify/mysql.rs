//! MySQL and MariaDB: by number, since their SQLSTATEs are coarser.
//!
//! # References
//!
//! - [MySQL's numbers](https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html)
//! - [MariaDB's numbers](https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference)
//! - [TiDB's own](https://docs.pingcap.com/tidb/stable/error-codes/)
//! - [Vitess's use of 1105](https://vitess.io/docs/reference/errors/query-serving/)

use super::{
    Classified, ErrorKind, Names, Report, ShownValue, is_about_a_row, last_part, names_a_deadlock,
    quoted,
};
use crate::Failure;

/// How the texts begin of errors about a row, where there is no number. The first is that of MariaDB's check
/// constraint.
const ABOUT_A_ROW: [&str; 4] = [
    "CONSTRAINT ",
    "Data too long for column",
    "Out of range value for column",
    "Incorrect ",
];

/// Errors that COMMIT returns before the server begins it, beside those of constraints.
const BEFORE_COMMIT: [i64; 14] = [
    1044, 1045, 1142, 1227, // no privilege
    1064, 1295, // no such statement, or not one to be prepared
    1179, 1397, 1398, 1399, 1400, 1401, // not in this state, or not inside XA
    1197, // larger than the cache of the binary log may be
    8004, // TiDB: too large
];

/// Says what an error means.
pub fn classify(report: &Report<'_>) -> Classified {
    let number = report.number.or_else(|| match report.kind {
        None => number_of_text(report.message),
        Some(_) => None,
    });
    let report = &Report {
        number,
        kind: report.kind.or_else(|| kind_of(report)),
        ..*report
    };
    let classified = match report.number {
        Some(number) => {
            let failure = by_number(number, report.message, report.is_commit);
            Classified::new(report, failure, is_about_a_row(report.sqlstate))
        }
        None => {
            let is_about_a_row = ABOUT_A_ROW.iter().any(|it| report.message.starts_with(it));
            Classified::new(report, by_text(report), is_about_a_row)
        }
    };
    Classified {
        shows_value: match (classified.failure, report.number) {
            (Failure::Duplicate, _) => ShownValue::InQuotes,
            // A value that has not the form of its column.
            (_, Some(1292 | 1366 | 1367 | 1411)) => ShownValue::Quoted,
            (_, None) if report.message.starts_with(ABOUT_A_ROW[3]) => ShownValue::Quoted,
            _ => ShownValue::Nowhere,
        },
        names: names(report),
        is_missing_table: match report.number {
            Some(number) => number == 1146,
            None => {
                report.message.starts_with("Table '") && report.message.ends_with("' doesn't exist")
            }
        },
        ..classified
    }
}

/// Returns which constraint was violated, for a library that has the number alone.
fn kind_of(report: &Report<'_>) -> Option<ErrorKind> {
    match report.number? {
        // MariaDB's. MySQL has another error of this number.
        4025 if report.sqlstate == Some("23000") => Some(ErrorKind::Check),
        number => constraint_of(number),
    }
}

fn constraint_of(number: i64) -> Option<ErrorKind> {
    match number {
        1022 | 1062 | 1169 | 1586 | 1859 => Some(ErrorKind::Unique),
        1216 | 1217 | 1451 | 1452 => Some(ErrorKind::ForeignKey),
        1048 | 1364 => Some(ErrorKind::NotNull),
        3819 => Some(ErrorKind::Check),
        _ => None,
    }
}

/// Returns the names in a text. It is in the server's language (`lc_messages`), in which the quotes are the same; what
/// stands in backticks is SQL.
fn names(report: &Report<'_>) -> Names {
    let message = report.message;
    // A text without a number or a kind: Diesel has no kind for MariaDB's check, nor for a value that does not fit.
    let begins = |with: &str| report.number.is_none() && message.starts_with(with);
    match (report.number, report.kind) {
        (Some(1062 | 1586 | 1859), _) | (None, Some(ErrorKind::Unique)) => {
            Names::of_constraint(key_of(message).map(last_part))
        }
        // The text has the constraint as InnoDB would declare it.
        (Some(1451 | 1452), _) | (None, Some(ErrorKind::ForeignKey)) => {
            let declared = message.split_once(", CONSTRAINT ").map(|(_, it)| it);
            Names::of_constraint(declared.and_then(|it| quoted(it, '`')))
        }
        // NULL, no default value, too long, cut off, out of range.
        (Some(1048 | 1364 | 1406 | 1265 | 1264), _) | (None, Some(ErrorKind::NotNull)) => {
            Names::of_column(quoted(message, '\''))
        }
        // MySQL's check; MariaDB's, where one that belongs to a column is called `table.column`.
        (Some(3819), _) | (None, Some(ErrorKind::Check)) => {
            Names::of_constraint(quoted(message, '\''))
        }
        (Some(4025), _) => of_backticks(message),
        _ if begins(ABOUT_A_ROW[0]) => of_backticks(message),
        _ if begins(ABOUT_A_ROW[1]) || begins(ABOUT_A_ROW[2]) => {
            Names::of_column(quoted(message, '\''))
        }
        _ => Names::default(),
    }
}

fn of_backticks(message: &str) -> Names {
    Names::of_constraint(quoted(message, '`').as_deref().map(last_part))
}

/// Returns the text of a duplicate without the value that was refused: only MySQL and MariaDB put that into it, in front
/// of the key's name, each in quotes. The words are in the server's language (`lc_messages`). `None` where there is no
/// value.
pub(crate) fn without_value(text: &str) -> Option<String> {
    let start = text.find('\'')?;
    let last = text.rfind('\'').filter(|&last| last > start)?;
    let behind = key_in(text).map_or(last, |(behind, _)| behind);
    Some(format!(
        "{}{}",
        &text[..start],
        text[behind + 1..].trim_start()
    ))
}

/// Returns the key that the text of a duplicate names.
fn key_of(text: &str) -> Option<&str> {
    key_in(text).map(|(_, key)| key)
}

/// Returns where the value of a duplicate ends, and the key behind it. The value may have quotes in it, the key has none.
/// An old server gives the key's number alone.
fn key_in(text: &str) -> Option<(usize, &str)> {
    let start = text.find('\'')?;
    let last = text.rfind('\'')?;
    let key = text[..last].rfind('\'').filter(|&key| key > start)?;
    let end = text[start + 1..key].rfind('\'')?;
    Some((start + 1 + end, &text[key + 1..last]))
}

fn by_number(number: i64, message: &str, is_commit: bool) -> Failure {
    match number {
        // Those that another statement may succeed after, if it is sent again.
        1317 // query interrupted, as when the connection is killed
        // Galera: the node is not ready. It refuses ROLLBACK, too, so the transaction may stay open, and the next one would
        // commit it.
        | 1047
        | 1180 // error during COMMIT
        // Group replication: it rolled the transaction back. It may be a conflict. But a member that leaves its group says so,
        // too, of what it has sent to the others, and these may commit it: `unblock_waiting_transactions` in
        // `plugin/group_replication`. The same is true of 3100.
        | 3101
        // TiDB: its placement driver or a store did not answer, a region is not there. If it does not know what became of
        // a COMMIT, it closes the connection.
        | 9001..=9005
        if is_commit => Failure::Lost,
        // MySQL uses this number where it has no other. Vitess puts the number of the shard's error into the text.
        1105 => match errno_in(message) {
            Some(number) if number != 1105 => by_number(number, message, is_commit),
            _ if is_commit || message.contains("code = Unavailable") => Failure::Lost,
            _ if message.contains("code = Aborted") => Failure::Transient,
            _ => Failure::Refused,
        },
        1205 // lock wait time-out
        | 1213 | 1614 // deadlock, seen by a statement or by `XA END`
        | 1402 | 1613 // XA: the transaction was rolled back, after a time-out
        | 1440 // XA: an earlier attempt's transaction with this id is still there
        | 3572 // NOWAIT
        | 1020 // record has changed since last read: MariaDB's snapshot isolation
        | 1317
        | 1412 // the table's definition has changed, try the transaction again
        | 1040 | 1203 // too many connections, of all or of a user
        | 1637 // too many concurrent transactions
        | 1047 // Galera: the node is not ready
        | 3101 // group replication rolled back
        | 8002 | 8005 | 8022 | 8028 | 9007 // TiDB: conflicts, the schema has changed
        | 9001..=9005
        => Failure::Transient,
        // A group has ended the transaction, because another member was faster. The end of a statement says so with the
        // storage engine's number of a deadlock. A savepoint of a name that was taken before says so with the number of
        // one that is not there.
        1180 if message.contains(" 149 ") => Failure::Transient,
        1030 if message.contains(" 153 ") => Failure::Transient,
        // The client's own numbers: a proxy, or Vitess, has lost the server behind it.
        2000..=2999
        | 1053 // shutting down
        | 1152 | 1154..=1161 // aborted, packets that cannot be read or written
        | 1184 // aborted
        | 1836 // read-only
        | 1927 // MariaDB: the connection was killed
        | 4031 // closed after being idle
        => Failure::Lost,
        // Also about other options.
        1290 if is_of_reading_only(message) => Failure::Lost,
        // COMMIT may have been carried out unless the server says otherwise. MariaDB answers with any number if it cannot
        // begin another binary log, after the transaction is committed (`trx_group_commit_leader` in `sql/log.cc`).
        _ if is_commit && !BEFORE_COMMIT.contains(&number) && constraint_of(number).is_none() => {
            Failure::Lost
        }
        _ => Failure::Refused,
    }
}

/// Returns whether a text names an option by which a server takes no writes: `--read-only`, `--super-read-only`.
fn is_of_reading_only(message: &str) -> bool {
    message.contains("read-only") || message.contains("read_only")
}

/// Returns whether a text is about a limit of time that the statement has reached, which it would reach again.
fn is_of_a_time_out(message: &str) -> bool {
    message.contains("maximum statement execution time") || message.contains("max_statement_time")
}

/// Returns the number in a text as `.. (errno 1213) (sqlstate 40001) ..`.
fn errno_in(message: &str) -> Option<i64> {
    let (_, behind) = message.rsplit_once("(errno ")?;
    behind.split_once(')')?.0.parse().ok()
}

/// Returns the number of an error of a clustered engine by its text, which is English, for a library that does not show it.
fn number_of_text(message: &str) -> Option<i64> {
    const BEGINNINGS: [(&str, i64); 11] = [
        ("WSREP has not yet prepared node", 1047),
        ("Plugin instructed the server to rollback", 3101),
        ("Transaction is too large", 8004),
        ("Error: KV error safe to retry", 8022),
        ("Information schema is changed", 8028),
        ("PD server timeout", 9001),
        ("TiKV server timeout", 9002),
        ("TiKV server is busy", 9003),
        ("Resolve lock timeout", 9004),
        ("Region is unavailable", 9005),
        ("Write conflict, txnStartTS", 9007),
    ];
    let mut known = BEGINNINGS.iter();
    if let Some((_, number)) = known.find(|(text, _)| message.starts_with(text)) {
        return Some(*number);
    }
    // Behind the number of the connection, in brackets.
    if message.starts_with('[') && message.ends_with("can not retry select for update statement") {
        return Some(8002);
    }
    // `VT12001: unsupported ..`, and `target: shop.0.primary: vttablet: ..`
    let code = message
        .strip_prefix("VT")
        .and_then(|it| it.split_once(": "));
    let has_code = code.is_some_and(|(code, _)| code.parse::<u32>().is_ok());
    let is_of_shard = message.starts_with("target: ") || message.starts_with("vttablet: ");
    (has_code || is_of_shard).then_some(1105)
}

/// Diesel knows some errors by kind and keeps the number of the others to itself. The client's own texts are
/// English, the server's unless `lc_messages` says otherwise.
fn by_text(report: &Report<'_>) -> Failure {
    const DEADLOCK: &str = "Deadlock found";
    const TRANSIENT: [&str; 10] = [
        DEADLOCK,
        // A savepoint that is gone with its transaction.
        "Got error 153 ",
        // These begin so in every language.
        "XAER_DUPID",
        "XA_RBROLLBACK",
        "XA_RBTIMEOUT",
        "Lock wait timeout exceeded",
        "Statement aborted because lock(s) could not be acquired immediately",
        "Table definition has changed, please retry transaction",
        "Record has changed since last read",
        "Query execution was interrupted",
    ];
    const LOST: [&str; 18] = [
        "MySQL server has gone away",
        "Server has gone away",
        "Lost connection to",
        "Server shutdown in progress",
        "Connection was killed",
        "The client was disconnected by the server because of inactivity",
        "Running in read-only mode",
        "Aborted connection ",
        "Got an error reading communication packets",
        "Got timeout reading communication packets",
        "Got an error writing communication packets",
        "Got timeout writing communication packets",
        "Got packets out of order",
        "Commands out of sync",
        // Of diesel-async's client.
        "Input/output error: ",
        "Driver error: `Connection to the server is closed",
        "Driver error: `Packet out of order",
        "Driver error: `Unexpected packet",
    ];
    let message = report.message;
    let is_one_of = |known: &[&str]| known.iter().any(|it| message.starts_with(it));
    // An error of COMMIT that has no kind: what is not known to have been rolled back may be there.
    if report.is_commit && report.kind.is_none() {
        return match message.starts_with(DEADLOCK) {
            true => Failure::Transient,
            false => Failure::Lost,
        };
    }
    if report.kind == Some(ErrorKind::Serialization)
        || is_one_of(&TRANSIENT) && !is_of_a_time_out(message)
        || names_a_deadlock(message)
    {
        Failure::Transient
    } else if is_one_of(&LOST)
        || message.contains(" server is running with the ") && is_of_reading_only(message)
        || report.kind == Some(ErrorKind::ReadOnly)
    {
        Failure::Lost
    } else {
        Failure::Refused
    }
}

#[cfg(test)]
mod tests {
    use Failure::{Lost, Refused, Transient};

    use super::*;

    /// Diesel shows no numbers.
    #[test]
    fn numbers_and_texts_have_the_same_meaning() {
        for (number, message) in [
            (
                1205,
                "Lock wait timeout exceeded; try restarting transaction",
            ),
            (
                1213,
                "Deadlock found when trying to get lock; try restarting transaction",
            ),
            (1020, "Record has changed since last read in table 'orders'"),
            (1317, "Query execution was interrupted"),
            (
                1412,
                "Table definition has changed, please retry transaction",
            ),
            (
                3572,
                "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.",
            ),
            (1440, "XAER_DUPID: The XID already exists"),
            (1053, "Server shutdown in progress"),
            (
                1152,
                "Aborted connection 7 to db: 'shop' user: 'app' host: 'a' (killed)",
            ),
            (1158, "Got an error reading communication packets"),
            (1159, "Got timeout reading communication packets"),
            (1160, "Got an error writing communication packets"),
            (1161, "Got timeout writing communication packets"),
            (
                1290,
                "The MySQL server is running with the --read-only option so it cannot execute this statement",
            ),
            (
                1290,
                "The MySQL server is running with the --super-read-only option so it cannot execute this statement",
            ),
            (
                1290,
                "The MariaDB server is running with the --read-only option so it cannot execute this statement",
            ),
            (
                1290,
                "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement",
            ),
            (1836, "Running in read-only mode"),
            (1927, "Connection was killed"),
            (
                4031,
                "The client was disconnected by the server because of inactivity. See wait_timeout and \
                 interactive_timeout for configuring this behavior.",
            ),
            (1146, "Table 'shop.read-only' doesn't exist"),
        ] {
            let by_number = Report {
                number: Some(number),
                message,
                ..Report::default()
            };
            let by_text = Report {
                message,
                ..Report::default()
            };
            let [by_number, by_text] = [by_number, by_text].map(|it| classify(&it).failure);
            assert_eq!(by_text, by_number, "{number} {message}");
        }
    }

    #[test]
    fn errors_of_clustered_engines_are_known_by_their_texts() {
        for (message, number, expected) in [
            (
                "[42] can not retry select for update statement",
                Some(8002),
                [Transient; 2],
            ),
            ("TiKV server is busy", Some(9003), [Transient, Lost]),
            (
                "Transaction is too large, size: 104857800",
                Some(8004),
                [Refused; 2],
            ),
            (
                "WSREP has not yet prepared node for application use",
                Some(1047),
                [Transient, Lost],
            ),
            (
                "VT12001: unsupported: a vindex write statement",
                Some(1105),
                [Refused, Lost],
            ),
            (
                "target: shop.0.primary: vttablet: rpc error: code = Aborted desc = transaction 7: ended",
                Some(1105),
                [Transient, Lost],
            ),
            // A trigger of the user's may say this.
            (
                "bad line: rpc error: code = Unavailable",
                None,
                [Refused, Lost],
            ),
            ("VTK is no format", None, [Refused, Lost]),
        ] {
            assert_eq!(number_of_text(message), number, "{message}");
            let of = |is_commit| {
                let report = Report {
                    message,
                    is_commit,
                    ..Report::default()
                };
                classify(&report).failure
            };
            assert_eq!([of(false), of(true)], expected, "{message}");
        }
    }

    #[test]
    fn tidb_knows_what_became_of_a_commit_but_for_stores_that_did_not_answer() {
        for (number, expected) in [
            (9007, Transient),
            (8022, Transient),
            (9002, Lost),
            (9005, Lost),
        ] {
            assert_eq!(by_number(number, "", true), expected, "{number}");
        }
    }

    /// MariaDB 10.11 answers 29 if it cannot make the next binary log, and the row is there. ProxySQL sends numbers of the
    /// client.
    #[test]
    fn an_error_of_commit_without_another_meaning_may_come_after_it() {
        let of = |number, kind, is_commit| {
            let report = Report {
                number: Some(number),
                sqlstate: Some("HY000"),
                kind,
                is_commit,
                ..Report::default()
            };
            classify(&report).failure
        };
        for number in [29, 1026, 1016, 1098, 1907, 1114] {
            assert_eq!(of(number, None, true), Lost, "{number}");
            assert_eq!(of(number, None, false), Refused, "{number}");
        }
        for number in [2006, 2013] {
            assert_eq!([true, false].map(|it| of(number, None, it)), [Lost; 2]);
        }
        for number in [1399, 1197, 1452] {
            assert_eq!(of(number, None, true), Refused, "{number}");
        }
        assert_eq!(of(1213, None, true), Transient);
        for (text, expected) in [
            (
                "target: shop.0.primary: Lost connection to MySQL server (errno 2013) (sqlstate HY000)",
                Lost,
            ),
            (
                "target: shop.0.primary: a foreign key fails (errno 1452) (sqlstate 23000)",
                Refused,
            ),
        ] {
            assert_eq!(by_number(1105, text, true), expected, "{text}");
        }
        // A statement's time-out (MariaDB), a full binary log, a hook of group replication.
        for number in [1969, 1598, 3100] {
            assert_eq!(of(number, None, true), Lost, "{number}");
        }
    }

    /// As Vitess writes them, in `go/vt/vterrors` and `go/mysql/sqlerror`.
    #[test]
    fn the_number_of_a_shards_error_stands_in_the_text_of_vitess() {
        let deadlock = "target: shop.-80.primary: vttablet: Deadlock found when trying to get lock; try restarting \
                        transaction (errno 1213) (sqlstate 40001) (CallerID: app): Sql: \"insert into orders\"";
        let aborted = "target: shop.0.primary: vttablet: rpc error: code = Aborted desc = transaction 7: ended";
        let gone = "target: shop.0.primary: vttablet: rpc error: code = Unavailable desc = connection refused";
        let other = "VT12001: unsupported: this statement (errno 1105) (sqlstate HY000)";
        for (text, expected, at_commit) in [
            (deadlock, Transient, Transient),
            (aborted, Transient, Lost),
            (gone, Lost, Lost),
            (other, Refused, Lost),
        ] {
            assert_eq!(by_number(1105, text, false), expected, "{text}");
            assert_eq!(by_number(1105, text, true), at_commit, "{text}");
        }
    }

    /// A member that leaves its group ends the transactions that it has already sent to the others, and these may commit
    /// them.
    #[test]
    fn what_group_replication_ends_at_commit_may_be_on_the_other_members() {
        for (number, elsewhere) in [(3100, Refused), (3101, Transient)] {
            assert_eq!(by_number(number, "", true), Lost, "{number}");
            assert_eq!(by_number(number, "", false), elsewhere, "{number}");
        }
    }

    /// It refuses ROLLBACK, too.
    #[test]
    fn a_node_that_is_not_ready_may_commit_later() {
        assert_eq!(by_number(1047, "", true), Lost);
        assert_eq!(by_number(1047, "", false), Transient);
    }

    /// By number and by text alike.
    #[test]
    fn a_limit_of_time_is_reached_again() {
        for (text, expected) in [
            ("Query execution was interrupted", Transient),
            (
                "Query execution was interrupted, maximum statement execution time exceeded",
                Refused,
            ),
            (
                "Query execution was interrupted (max_statement_time exceeded)",
                Refused,
            ),
        ] {
            let report = Report {
                message: text,
                ..Report::default()
            };
            assert_eq!(by_text(&report), expected, "{text}");
        }
    }

    #[test]
    fn numbers_say_whether_another_time_may_succeed() {
        for (numbers, expected) in [
            (
                &[
                    1205, 1213, 1614, 3572, 1020, 1317, 1412, 1040, 1203, 1047, 3101,
                ][..],
                Transient,
            ),
            (&[8002, 8005, 8022, 8028, 9002, 9005, 9007], Transient),
            (&[1053, 1158, 1160, 1184, 1836, 1927, 4031], Lost),
            // Foreign key, unknown table, statement's time-out (MariaDB, MySQL), another option, a packet that is too
            // large and would be each time.
            (&[1452, 1146, 1969, 3024, 1290, 1153, 1105, 8004], Refused),
        ] {
            for number in numbers {
                assert_eq!(by_number(*number, "", false), expected, "{number}");
            }
        }
        let message = "The MySQL server is running with the --read-only option so it cannot execute \
                       this statement";
        assert_eq!(by_number(1290, message, false), Lost);
        let ended = "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT";
        assert_eq!(by_number(1180, ended, false), Transient);
        assert_eq!(by_number(1180, ended, true), Lost);
        let gone = "Got error 153 - 'No savepoint with that name' from storage engine";
        assert_eq!(by_number(1030, gone, false), Transient);
        let full = "Got error 135 - 'No more room in record file' during COMMIT";
        assert_eq!(by_number(1180, full, false), Refused);
    }

    #[test]
    fn a_number_says_which_constraint_was_violated() {
        use crate::Violation::{ForeignKey, Unique};

        for (number, sqlstate, violation, refuses_a_row) in [
            (1062, "23000", Some(Unique), true),
            (1586, "23000", Some(Unique), true),
            (1451, "23000", Some(ForeignKey), true),
            (1452, "23000", Some(ForeignKey), true),
            (1048, "23000", None, true),
            (3819, "HY000", None, true),
            (4025, "23000", None, true),
            (4025, "HY000", None, false),
            (1064, "42000", None, false),
        ] {
            let classified = classify(&Report {
                number: Some(number),
                sqlstate: Some(sqlstate),
                ..Report::default()
            });
            assert_eq!(classified.violation, violation, "{number}");
            assert_eq!(classified.refuses_a_row, refuses_a_row, "{number}");
            let is_duplicate = classified.failure == Failure::Duplicate;
            assert_eq!(is_duplicate, violation == Some(Unique), "{number}");
        }
    }

    /// What MySQL 9.7 and MariaDB 10.11 return: `XA COMMIT` of what is not there, `BEGIN` inside of XA, `XA START` inside a
    /// transaction, `XA RECOVER` without the privilege, `XA START` with an id that is taken, `XA END` of a deadlock's victim.
    /// The others by <https://dev.mysql.com/doc/mysql-errors/9.7/en/server-error-reference.html>.
    #[test]
    fn numbers_of_xa_say_whether_the_transaction_was_rolled_back() {
        for (number, expected) in [
            (1397, Refused),   // XAER_NOTA
            (1398, Refused),   // XAER_INVAL
            (1399, Refused),   // XAER_RMFAIL
            (1400, Refused),   // XAER_OUTSIDE
            (1401, Refused),   // XAER_RMERR
            (4091, Refused),   // a temporary table inside of XA
            (1402, Transient), // XA_RBROLLBACK
            (1440, Transient), // XAER_DUPID
            (1613, Transient), // XA_RBTIMEOUT
            (1614, Transient), // XA_RBDEADLOCK
        ] {
            assert_eq!(by_number(number, "", false), expected, "{number}");
        }
    }

    #[test]
    fn the_text_of_a_duplicate_loses_the_value_and_keeps_the_key() {
        for (text, expected) in [
            (
                "error returned from database: 1062 (23000): Duplicate entry 'ada@example.org' for key \
                 'customers.mail'",
                Some(
                    "error returned from database: 1062 (23000): Duplicate entry for key 'customers.mail'",
                ),
            ),
            (
                "Duplicate entry 'it' for key 'x' for key 'PRIMARY'",
                Some("Duplicate entry for key 'PRIMARY'"),
            ),
            (
                "Duplicate entry '' for key 2",
                Some("Duplicate entry for key 2"),
            ),
            (
                "Doppelter Eintrag 'it's' für Schlüssel 'orders.label'",
                Some("Doppelter Eintrag für Schlüssel 'orders.label'"),
            ),
            (
                "'ada' は索引 'mail' で重複しています。",
                Some("は索引 'mail' で重複しています。"),
            ),
            ("Verweis ohne Wert", None),
        ] {
            assert_eq!(without_value(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn texts_name_constraints_and_columns() {
        use ErrorKind::{Check, ForeignKey, NotNull, Unique};
        for (number, kind, message, constraint, column) in [
            (
                1062,
                Some(Unique),
                "Duplicate entry 'ada's' for key 'customers.mail'",
                Some("mail"),
                None,
            ),
            (
                1062,
                Some(Unique),
                "Doppelter Eintrag 'ada' für Schlüssel 'PRIMARY'",
                Some("PRIMARY"),
                None,
            ),
            (
                1062,
                Some(Unique),
                "Duplicate entry '' for key 2",
                None,
                None,
            ),
            (
                1452,
                Some(ForeignKey),
                "Cannot add or update a child row: a foreign key constraint fails (`shop`.`orders`, CONSTRAINT \
                 `the ``customer``` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`))",
                Some("the `customer`"),
                None,
            ),
            (
                1451,
                Some(ForeignKey),
                "Kann Eltern-Zeile nicht löschen oder aktualisieren: eine Fremdschlüsselbedingung schlägt fehl \
                 (`shop`.`orders`, CONSTRAINT `orders_customer` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`))",
                Some("orders_customer"),
                None,
            ),
            // To a user who may not see the other table.
            (
                1216,
                Some(ForeignKey),
                "Cannot add or update a child row: a foreign key constraint fails",
                None,
                None,
            ),
            (
                1048,
                Some(NotNull),
                "Column 'total' cannot be null",
                None,
                Some("total"),
            ),
            (
                1364,
                Some(NotNull),
                "Field 'total' doesn't have a default value",
                None,
                Some("total"),
            ),
            (
                3819,
                Some(Check),
                "Check constraint 'positive' is violated.",
                Some("positive"),
                None,
            ),
            (
                4025,
                None,
                "CONSTRAINT `positive` failed for `shop`.`orders`",
                Some("positive"),
                None,
            ),
            (
                4025,
                None,
                "CONSTRAINT `orders.total` failed for `shop`.`orders`",
                Some("total"),
                None,
            ),
            (
                1406,
                None,
                "Data too long for column 'label' at row 3",
                None,
                Some("label"),
            ),
            (
                1264,
                None,
                "Out of range value for column 'total' at row 1",
                None,
                Some("total"),
            ),
            // Its first quotes are around a value.
            (
                1366,
                None,
                "Incorrect integer value: 'x' for column 'total' at row 1",
                None,
                None,
            ),
            (1146, None, "Table 'shop.orders' doesn't exist", None, None),
        ] {
            // Diesel has no number.
            for number in [Some(number), None] {
                let report = Report {
                    number,
                    kind,
                    message,
                    ..Report::default()
                };
                let Classified {
                    names,
                    is_missing_table,
                    ..
                } = classify(&report);
                assert_eq!(is_missing_table, message.starts_with("Table"), "{message}");
                assert_eq!(names.constraint.as_deref(), constraint, "{message}");
                assert_eq!(names.column.as_deref(), column, "{message}");
            }
        }
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        for number in [1317, 1969, 1180, 1598, 1053, 1927] {
            assert_eq!(by_number(number, "", true), Lost, "{number}");
        }
        // Galera refuses at COMMIT, and has rolled back.
        assert_eq!(by_number(1213, "", true), Transient);
    }

    #[test]
    fn texts_say_what_kinds_do_not() {
        for (message, expected) in [
            (
                "Lock wait timeout exceeded; try restarting transaction",
                Transient,
            ),
            (
                "Beim Versuch, eine Sperre anzufordern, ist ein Deadlock aufgetreten. Versuchen Sie, die \
                 Transaktion neu zu starten",
                Transient,
            ),
            ("XAER_DUPID: The XID already exists", Transient),
            (
                "XA_RBROLLBACK: Transaction branch was rolled back",
                Transient,
            ),
            (
                "XA_RBTIMEOUT: Transaction branch was rolled back: took too long",
                Transient,
            ),
            ("Lost connection to MySQL server during query", Lost),
            ("Lost connection to server during query", Lost),
            ("Server has gone away", Lost),
            (
                "Input/output error: Input/output error: Broken pipe (os error 32)",
                Lost,
            ),
            ("Driver error: `Connection to the server is closed.'", Lost),
            (
                "The MariaDB server is running with the --read-only option so it cannot execute \
                 this statement",
                Lost,
            ),
            ("Data too long for column 'name' at row 1", Refused),
        ] {
            let report = Report {
                message,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
        }
        let check = Report {
            message: "CONSTRAINT `CONSTRAINT_1` failed for `shop`.`orders`",
            ..Report::default()
        };
        assert!(classify(&check).refuses_a_row);
    }

    #[test]
    fn an_error_of_commit_without_a_number_leaves_it_open() {
        let of_commit = |message| {
            let report = Report {
                message,
                is_commit: true,
                ..Report::default()
            };
            classify(&report).failure
        };
        assert_eq!(of_commit("anything"), Lost);
        assert_eq!(
            of_commit("Deadlock found when trying to get lock"),
            Transient
        );
    }
}
