//! MySQL and MariaDB: by number, since their SQLSTATEs are coarser.
//!
//! # References
//!
//! - [MySQL's numbers](https://dev.mysql.com/doc/mysql-errors/8.4/en/server-error-reference.html)
//! - [MariaDB's numbers](https://mariadb.com/docs/server/reference/error-codes/mariadb-error-code-reference)

use super::{Classified, ErrorKind, Report, is_about_a_row, names_a_deadlock};
use crate::Failure;

/// How the texts begin of errors about a row, where there is no number. The first is that of MariaDB's check
/// constraint.
const ABOUT_A_ROW: [&str; 4] = [
    "CONSTRAINT ",
    "Data too long for column",
    "Out of range value for column",
    "Incorrect ",
];

/// Says what an error means.
pub fn classify(report: &Report<'_>) -> Classified {
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
        shows_value: classified.failure == Failure::Duplicate,
        ..classified
    }
}

/// Returns the text of a duplicate without the value that was refused: only MySQL and MariaDB put that into it, in front
/// of the key's name, each in quotes. The words are in the server's language (`lc_messages`). `None` where there is no
/// value.
pub(crate) fn without_value(text: &str) -> Option<String> {
    // The value may have quotes in it, the key has none. An old server gives the key's number alone.
    let start = text.find('\'')?;
    let last = text.rfind('\'').filter(|&last| last > start)?;
    let key = text[..last].rfind('\'').filter(|&key| key > start);
    let end = key.and_then(|key| text[start + 1..key].rfind('\''));
    let behind = end.map_or(last, |end| start + 1 + end);
    Some(format!(
        "{}{}",
        &text[..start],
        text[behind + 1..].trim_start()
    ))
}

fn by_number(number: i64, message: &str, is_commit: bool) -> Failure {
    match number {
        1317 // query interrupted, as when the connection is killed
        | 1180 // error during COMMIT
        if is_commit => Failure::Lost,
        1205 // lock wait time-out
        | 1213 | 1614 // deadlock
        | 3572 // NOWAIT
        | 1020 // record has changed since last read: MariaDB's snapshot isolation
        | 1317
        | 1040 | 1203 // too many connections, of all or of a user
        | 1637 // too many concurrent transactions
        | 1047 // Galera: the node is not ready
        | 3101 // group replication rolled back
        => Failure::Transient,
        1053 // shutting down
        | 1152 | 1154..=1161 // aborted, packets that cannot be read or written
        | 1184 // aborted
        | 1836 // read-only
        | 1927 // MariaDB: the connection was killed
        | 4031 // closed after being idle
        => Failure::Lost,
        // Also about other options.
        1290 if message.contains("read-only") || message.contains("read_only") => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// Diesel knows some errors by kind and keeps the number of the others to itself. The client's own texts are
/// English, the server's unless `lc_messages` says otherwise.
fn by_text(report: &Report<'_>) -> Failure {
    const DEADLOCK: &str = "Deadlock found";
    const TRANSIENT: [&str; 4] = [
        DEADLOCK,
        "Lock wait timeout exceeded",
        "Record has changed since last read",
        "Query execution was interrupted",
    ];
    const LOST: [&str; 11] = [
        "MySQL server has gone away",
        "Server has gone away",
        "Lost connection to",
        "Server shutdown in progress",
        "Connection was killed",
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
        || is_one_of(&TRANSIENT)
        || names_a_deadlock(message)
    {
        Failure::Transient
    } else if is_one_of(&LOST)
        || message.contains("--read-only")
        || message.contains("--read_only")
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

    #[test]
    fn numbers_say_whether_another_time_may_succeed() {
        for (numbers, expected) in [
            (
                &[1205, 1213, 1614, 3572, 1020, 1317, 1040, 1203, 1047, 3101][..],
                Transient,
            ),
            (&[1053, 1158, 1160, 1184, 1836, 1927, 4031], Lost),
            // Foreign key, unknown table, statement's time-out (MariaDB, MySQL), another option, a packet that is too
            // large and would be each time.
            (&[1452, 1146, 1969, 3024, 1290, 1153], Refused),
        ] {
            for number in numbers {
                assert_eq!(by_number(*number, "", false), expected, "{number}");
            }
        }
        let message = "The MySQL server is running with the --read-only option so it cannot execute \
                       this statement";
        assert_eq!(by_number(1290, message, false), Lost);
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
    fn what_may_have_been_committed_is_lost() {
        for number in [1317, 1180, 1053, 1927] {
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
