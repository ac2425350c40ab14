//! PostgreSQL: by SQLSTATE. Databases that speak its protocol use the same.
//!
//! # References
//!
//! - [SQLSTATEs](https://www.postgresql.org/docs/current/errcodes-appendix.html)
//! - [Aurora DSQL's](https://docs.aws.amazon.com/aurora-dsql/latest/userguide/CHAP_quotas.html)

use super::{Classified, ErrorKind, Names, Report, ShownValue, is_about_a_row, names_a_deadlock};
use crate::Failure;

/// undefined_table
const UNDEFINED_TABLE: &str = "42P01";

/// feature_not_supported, and syntax_error: of a text that PostgreSQL takes, both say that the server is another one.
const UNSUPPORTED: [&str; 2] = ["0A000", "42601"];

/// How the texts begin of errors about a row, where there is no SQLSTATE.
const ABOUT_A_ROW: [&str; 2] = ["value too long for type", "numeric field overflow"];

/// Says what an error means.
///
/// Where rows are on several machines, COMMIT is a call to another of them. That it failed within the database does not say
/// that it was rolled back (YugabyteDB's `CommitDone`).
pub fn classify(report: &Report<'_>) -> Classified {
    let (failure, is_about_a_row) = match report.sqlstate {
        // Aurora DSQL takes no more than 100 new connections a second. PostgreSQL has the code for other limits, too, and
        // Diesel does not show it.
        None | Some("53400") if report.message.starts_with("Unable to accept connection") => {
            (Failure::Transient, false)
        }
        // The record of the COMMIT may be written already, and take effect when the server is there again.
        Some(_) if report.is_commit && report.is_fatal => (Failure::Lost, false),
        // The session is over. Poolers say so with any code where no server is behind them.
        Some(sqlstate) if report.is_fatal && !is_about_the_client(sqlstate) => {
            (Failure::Lost, false)
        }
        // The record of the transaction is not there any more, as YugabyteDB says. That may be so after it was committed.
        _ if report.is_commit && report.message.contains("expired or aborted") => {
            (Failure::Lost, false)
        }
        // CockroachDB says so of a COMMIT whose outcome it does not know, if a time-out or a person has struck meanwhile.
        Some("57014") if report.is_commit => (Failure::Lost, false),
        Some(sqlstate) => (by_sqlstate(sqlstate), is_about_a_row(Some(sqlstate))),
        None => {
            let is_about_a_row = ABOUT_A_ROW.iter().any(|it| report.message.starts_with(it));
            (by_text(report), is_about_a_row)
        }
    };
    let of_kind = Report {
        kind: report.kind.or_else(|| report.sqlstate.and_then(kind_of)),
        ..*report
    };
    Classified {
        // Every library has the fields of the protocol.
        names: Names {
            constraint: report.constraint.map(str::to_owned),
            column: report.column.map(str::to_owned),
        },
        is_missing_table: match report.sqlstate {
            Some(sqlstate) => sqlstate == UNDEFINED_TABLE,
            None => is_missing_table(report.message),
        },
        is_unsupported: match report.sqlstate {
            Some(sqlstate) => UNSUPPORTED.contains(&sqlstate),
            None => is_unsupported(report.message),
        },
        shows_value: match report.sqlstate {
            // A value that has not the form of its type, or is out of its range.
            Some("22P02" | "22003" | "22007" | "22008") if report.message.contains('"') => {
                ShownValue::Quoted
            }
            None if report.message.starts_with("invalid input ") => ShownValue::Quoted,
            _ => ShownValue::Nowhere,
        },
        is_of_server: report
            .sqlstate
            .is_some_and(|it| it.starts_with("XX") || it.starts_with("58")),
        ..Classified::new(&of_kind, failure, is_about_a_row)
    }
}

/// Returns what kind of constraint was violated: not every library has kinds of its own.
fn kind_of(sqlstate: &str) -> Option<ErrorKind> {
    Some(match sqlstate {
        "23502" => ErrorKind::NotNull,
        // PostgreSQL 18 has a code of its own for `ON DELETE RESTRICT`.
        "23503" | "23001" => ErrorKind::ForeignKey,
        "23505" => ErrorKind::Unique,
        "23514" => ErrorKind::Check,
        _ => return None,
    })
}

/// Returns whether the end of a session is due to who connects to what, or to how many do: the same at the next server.
fn is_about_the_client(sqlstate: &str) -> bool {
    sqlstate == "57P04"
        || ["28", "3D", "42", "53300"]
            .iter()
            .any(|it| sqlstate.starts_with(it))
}

/// Returns whether an English text says that a table does not exist.
pub(super) fn is_missing_table(message: &str) -> bool {
    message.starts_with("relation \"") && message.ends_with("\" does not exist")
}

/// Returns whether an English text says that the server does not have a statement.
fn is_unsupported(message: &str) -> bool {
    message.starts_with("unsupported ")
        || message.starts_with("syntax error")
        || message.ends_with(" not supported")
}

fn by_sqlstate(sqlstate: &str) -> Failure {
    match sqlstate {
        "23505" => Failure::Duplicate,
        "40001" // serialization failure
        | "40P01" // deadlock
        | "55P03" // lock not available
        | "53300" // too many connections
        => Failure::Transient,
        "40003" // statement completion unknown: not PostgreSQL's own
        | "57P01" | "57P02" | "57P03" // shut down, crashed, starting
        | "57P05" | "25P03" | "25P04" // ended by a time-out of the session or the transaction
        | "25006" // read-only
        => Failure::Lost,
        _ if sqlstate.starts_with("08") => Failure::Lost,
        _ => Failure::Refused,
    }
}

/// Diesel knows few of the errors by kind and keeps the SQLSTATE of the others to itself.
fn by_text(report: &Report<'_>) -> Failure {
    match report.kind {
        Some(ErrorKind::Serialization) => return Failure::Transient,
        Some(ErrorKind::ReadOnly) => return Failure::Lost,
        _ => {}
    }
    match report.message {
        "deadlock detected" | "canceling statement due to lock timeout" => Failure::Transient,
        message if message.starts_with("could not obtain lock") => Failure::Transient,
        message
            if message.starts_with("terminating connection")
                || message.starts_with("server closed the connection") =>
        {
            Failure::Lost
        }
        // It may say in another language (`lc_messages`) that the server went down before it could tell how COMMIT ended.
        _ if report.is_commit && report.kind.is_none() => Failure::Lost,
        message if message.starts_with("canceling statement") => Failure::Refused,
        message if names_a_deadlock(message) => Failure::Transient,
        _ => Failure::Refused,
    }
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};

    use super::*;
    use crate::EngineProfile;

    #[test]
    fn sqlstates_say_whether_another_time_may_succeed() {
        for (codes, expected) in [
            (&["40001", "40P01", "55P03", "53300"][..], Transient),
            (
                &["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"],
                Lost,
            ),
            (
                &[
                    "08000", "08003", "08006", "08007", "08P01", "40003", "25006",
                ],
                Lost,
            ),
            (&["23505"], Duplicate),
            // Foreign key, cut off, no such table, disk full, canceled, database dropped.
            (
                &["23503", "22001", "42P01", "53100", "57014", "57P04"],
                Refused,
            ),
        ] {
            for code in codes {
                assert_eq!(by_sqlstate(code), expected, "{code}");
            }
        }
    }

    /// tokio-postgres has no kinds.
    #[test]
    fn sqlstates_say_what_was_violated() {
        use crate::Violation::{ForeignKey, Unique};

        for (sqlstate, expected) in [
            ("23505", Some(Unique)),
            ("23503", Some(ForeignKey)),
            ("23001", Some(ForeignKey)),
            ("23502", None),
            ("23514", None),
            ("22001", None),
        ] {
            let report = Report {
                sqlstate: Some(sqlstate),
                ..Report::default()
            };
            let classified = classify(&report);
            assert_eq!(classified.violation, expected, "{sqlstate}");
            assert!(classified.refuses_a_row, "{sqlstate}");
        }
    }

    #[test]
    fn what_may_have_been_committed_is_lost() {
        for (sqlstate, is_fatal, expected) in [
            // The log cannot be written: by itself, and where the server goes down.
            ("58030", false, Refused),
            ("58030", true, Lost),
            ("53100", true, Lost),
            ("XX000", true, Lost),
            ("57014", false, Lost),
            ("23503", false, Refused),
            ("40001", false, Transient),
        ] {
            let report = Report {
                sqlstate: Some(sqlstate),
                is_fatal,
                is_commit: true,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{sqlstate}");
        }
    }

    #[test]
    fn a_session_that_is_over_is_lost() {
        for (sqlstate, is_fatal, expected) in [
            // A pooler without a server; the disk of the server.
            ("58000", true, Lost),
            ("XX000", true, Lost),
            ("53100", true, Lost),
            ("53100", false, Refused),
            // A password, a database, too many.
            ("28P01", true, Refused),
            ("3D000", true, Refused),
            ("57P04", true, Refused),
            ("53300", true, Transient),
        ] {
            let report = Report {
                sqlstate: Some(sqlstate),
                is_fatal,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{sqlstate}");
        }
    }

    #[test]
    fn a_commit_over_several_machines_may_be_there_after_more_errors() {
        let expired = "Transaction 7 expired or aborted by a conflict: 40001";
        for (sqlstate, message, before, at_commit, over_several) in [
            (Some("40001"), expired, Transient, Lost, Lost),
            (
                Some("40001"),
                "could not serialize access",
                Transient,
                Transient,
                Transient,
            ),
            (
                Some("XX000"),
                "Timed out waiting for UpdateTransaction",
                Refused,
                Refused,
                Lost,
            ),
            (Some("58C01"), "", Refused, Refused, Lost),
            (Some("23503"), "", Refused, Refused, Refused),
            // Diesel keeps the SQLSTATE to itself.
            (None, expired, Refused, Lost, Lost),
        ] {
            let report = |is_commit| Report {
                sqlstate,
                message,
                is_commit,
                ..Report::default()
            };
            assert_eq!(classify(&report(false)).failure, before, "{sqlstate:?}");
            for (engine, expected) in [
                (EngineProfile::POSTGRES, at_commit),
                (EngineProfile::YUGABYTEDB, over_several),
                (EngineProfile::COCKROACHDB, over_several),
                (EngineProfile::CITUS, over_several),
                (EngineProfile::AURORA_DSQL, over_several),
            ] {
                let error = classify(&report(true)).of(message);
                assert_eq!(engine.of_commit(error).failure, expected, "{sqlstate:?}");
            }
        }
    }

    #[test]
    fn a_limit_of_new_connections_passes_and_others_do_not() {
        for (message, expected) in [
            ("Unable to accept connection, rate exceeded.", Transient),
            (
                "temporary file size exceeds \"temp_file_limit\" (1024kB)",
                Refused,
            ),
        ] {
            let report = Report {
                sqlstate: Some("53400"),
                message,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
        }
    }

    #[test]
    fn a_missing_table_is_known_by_its_code_or_an_english_text() {
        for (sqlstate, message, expected) in [
            (
                Some("42P01"),
                "Relation »ordid_flushes« existiert nicht",
                true,
            ),
            (
                Some("42501"),
                "permission denied for table ordid_flushes",
                false,
            ),
            (None, "relation \"ordid_flushes\" does not exist", true),
            (
                None,
                "column \"id\" of relation \"ordid_flushes\" does not exist",
                false,
            ),
            (None, "Relation »ordid_flushes« existiert nicht", false),
        ] {
            let report = Report {
                sqlstate,
                message,
                ..Report::default()
            };
            assert_eq!(classify(&report).is_missing_table, expected, "{message}");
        }
    }

    #[test]
    fn a_statement_that_the_server_does_not_have_is_known_by_its_code_or_an_english_text() {
        for (sqlstate, message, expected) in [
            (Some("0A000"), "unsupported statement: Copy", true),
            (Some("42601"), "Syntaxfehler bei »COPY«", true),
            (Some("42501"), "permission denied for table orders", false),
            (None, "unsupported statement: Copy", true),
            (None, "COPY FROM STDIN is not supported", true),
            (None, "syntax error at or near \"COPY\"", true),
            (None, "permission denied for table orders", false),
        ] {
            let report = Report {
                sqlstate,
                message,
                ..Report::default()
            };
            let classified = classify(&report);
            assert_eq!(classified.is_unsupported, expected, "{message}");
            assert_eq!(classified.failure, Refused);
        }
    }

    #[test]
    fn texts_say_what_kinds_do_not() {
        for (message, expected) in [
            ("deadlock detected", Transient),
            ("Verklemmung (Deadlock) entdeckt", Transient),
            ("canceling statement due to lock timeout", Transient),
            ("terminating connection due to administrator command", Lost),
            ("canceling statement due to statement timeout", Refused),
            ("relation \"orders\" does not exist", Refused),
        ] {
            let report = Report {
                message,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
            assert!(!classify(&report).refuses_a_row);
        }
        // The message is in the server's language, and only an English one is known.
        for (message, kind, expected) in [
            (
                "breche Verbindung ab aufgrund von Anweisung des Administrators",
                None,
                Lost,
            ),
            // Its SQLSTATE, 57014, has the same meaning.
            ("canceling statement due to statement timeout", None, Lost),
            (
                "doppelter Schlüsselwert",
                Some(ErrorKind::Unique),
                Duplicate,
            ),
            (
                "Fremdschlüssel-Constraint",
                Some(ErrorKind::ForeignKey),
                Refused,
            ),
        ] {
            let report = Report {
                message,
                kind,
                is_commit: true,
                ..Report::default()
            };
            assert_eq!(classify(&report).failure, expected, "{message}");
        }
        let too_long = Report {
            message: "value too long for type character varying(10)",
            ..Report::default()
        };
        assert!(classify(&too_long).refuses_a_row);
    }
}
