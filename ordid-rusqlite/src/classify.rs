//! Finds the meaning of rusqlite's errors for a flush. `ordid-sql` has the meaning of SQLite's own.

use ordid_sql::{DriverError, EngineProfile, Failure, classify::Report};

/// Takes an error of a statement with this text, or of what is sent beside statements, with what it means.
pub(crate) fn classify(error: rusqlite::Error, sql: &str) -> DriverError<rusqlite::Error> {
    of(error, sql, None)
}

/// Takes an error of COMMIT with what it means. `is_over` says whether the transaction has ended.
pub(crate) fn classify_commit(
    error: rusqlite::Error,
    is_over: bool,
) -> DriverError<rusqlite::Error> {
    of(error, "", Some(is_over))
}

/// `commit` says of the answer to COMMIT whether the transaction has ended.
fn of(error: rusqlite::Error, sql: &str, commit: Option<bool>) -> DriverError<rusqlite::Error> {
    let own = match &error {
        rusqlite::Error::SqliteFailure(_, message) => message.clone(),
        _ => None,
    };
    let message = own.unwrap_or_else(|| without_sql(error.to_string(), sql));
    let number = error.sqlite_error().map(|found| found.extended_code.into());
    if commit.is_some() && number.is_none() {
        return DriverError::new(error, Failure::Lost);
    }
    let report = Report {
        number,
        message: &message,
        is_commit: commit.is_some(),
        is_over: commit == Some(true),
        ..Report::default()
    };
    let classified = EngineProfile::SQLITE.classify(&report);
    DriverError {
        text: Some(message),
        ..classified.of(error)
    }
}

/// Takes the statement out of the text of an error: an `INSERT` of a thousand rows is long. The error of a text that SQLite
/// does not parse has it, in a variant that rusqlite has only with some of its features.
fn without_sql(mut message: String, sql: &str) -> String {
    if let Some((what, _)) = message.split_once(&format!(" in {sql} at offset ")) {
        message.truncate(what.len());
    }
    message
}

#[cfg(test)]
mod tests {
    use Failure::{Duplicate, Lost, Refused, Transient};
    use ordid_sql::Violation;
    use rusqlite::{Connection, ffi};

    use super::*;

    fn failed(code: i32) -> rusqlite::Error {
        rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)
    }

    #[test]
    fn codes_say_what_an_error_means() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, Transient),
            (ffi::SQLITE_BUSY_SNAPSHOT, Transient),
            (ffi::SQLITE_LOCKED_SHAREDCACHE, Transient),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, Duplicate),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, Duplicate),
            (ffi::SQLITE_CONSTRAINT_ROWID, Duplicate),
            (ffi::SQLITE_CONSTRAINT_FOREIGNKEY, Refused),
            (ffi::SQLITE_FULL, Refused),
            (ffi::SQLITE_IOERR_FSYNC, Refused),
        ] {
            assert_eq!(classify(failed(code), "").failure, expected, "{code}");
        }
        let foreign = classify(failed(ffi::SQLITE_CONSTRAINT_FOREIGNKEY), "");
        assert_eq!(foreign.violation, Some(Violation::ForeignKey));
        assert!(foreign.refuses_a_row);
        assert_eq!(
            classify_commit(failed(ffi::SQLITE_IOERR_FSYNC), false).failure,
            Lost
        );
        assert_eq!(
            classify_commit(failed(ffi::SQLITE_BUSY), false).failure,
            Transient
        );
        assert_eq!(
            classify_commit(rusqlite::Error::InvalidQuery, false).failure,
            Lost
        );
        assert_eq!(classify(rusqlite::Error::InvalidQuery, "").failure, Refused);
        for (is_over, expected) in [(false, Refused), (true, Lost)] {
            let error = classify_commit(failed(ffi::SQLITE_ERROR), is_over);
            assert_eq!(error.failure, expected);
        }
    }

    #[test]
    fn a_text_that_is_not_parsed_is_not_repeated() {
        let connection = Connection::open_in_memory().expect("it needs no file");
        let sql = "INSERT INTO orders (total) VALUES (1), (2)";
        let error = classify(connection.prepare(sql).expect_err("there is no table"), sql);
        assert_eq!(error.text.as_deref(), Some("no such table: orders"));
        assert!(error.is_missing_table && error.failure == Refused);

        let created = connection.execute_batch("CREATE TABLE orders (id INTEGER)");
        created.expect("it is a table");
        let error = classify(
            connection.prepare(sql).expect_err("there is no column"),
            sql,
        );
        let text = "table orders has no column named total";
        assert_eq!(error.text.as_deref(), Some(text));

        let sql = "SELECT total FROM orders";
        let error = connection
            .prepare(sql)
            .expect_err("there is no such column");
        // If rusqlite is built for a SQLite that knows where in the text an error is.
        assert!(error.to_string().contains(sql), "{error}");
        let error = classify(error, sql);
        assert_eq!(error.text.as_deref(), Some("no such column: total"));
        assert!(!error.is_missing_table && error.failure == Refused);
    }
}
