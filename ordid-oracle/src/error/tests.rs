use std::error::Error as _;

use oracle::DbError;
use ordid_sql::{Action, Failure, Place};

use super::*;
use crate::classify::{classify_commit, failed_rows};

fn database(code: i32, offset: u32, message: &str) -> DbError {
    DbError::new(code, offset, message, "", "")
}

fn oci(code: i32, message: &str) -> oracle::Error {
    oracle::Error::OciError(database(code, 0, message))
}

fn refused(source: oracle::Error) -> Error {
    let place = Place::new(Action::Insert, "ORDERS", 2, 2_000..3_000);
    let place = match failed_rows(&source) {
        Some((row, more)) => Place {
            more,
            ..place.with_key(format!("ord_{row}"))
        },
        None => place,
    };
    FlushError::statement(classify(source), place).into()
}

#[test]
fn codes_say_what_it_was() {
    for (code, message, [unique, foreign, deadlock]) in [
        (
            1,
            "ORA-00001: unique constraint (A.B) violated",
            [true, false, false],
        ),
        (
            2291,
            "ORA-02291: integrity constraint (A.B) violated - parent key not found",
            [false, true, false],
        ),
        (
            2292,
            "ORA-02292: integrity constraint (A.B) violated - child record found",
            [false, true, false],
        ),
        (
            60,
            "ORA-00060: deadlock detected while waiting for resource",
            [false, false, true],
        ),
        (
            1400,
            "ORA-01400: cannot insert NULL into (\"A\".\"B\")",
            [false; 3],
        ),
        // Behind a trigger's own error.
        (
            4088,
            "ORA-04088: error during execution of trigger\nORA-00001: unique constraint",
            [true, false, false],
        ),
    ] {
        let error = refused(oci(code, message));
        assert_eq!(
            [
                error.is_unique_violation(),
                error.is_foreign_key_violation(),
                error.is_deadlock()
            ],
            [unique, foreign, deadlock],
            "{message}"
        );
        assert!(!error.is_commit_unknown() && !error.is_client_missing());
        assert_eq!((error.key(), error.chunk()), (None, Some(2)));
    }
}

#[test]
fn the_first_row_of_a_batch_tells() {
    let rows = vec![
        database(2291, 700, "ORA-02291: parent key not found"),
        database(1, 234, "ORA-00001: unique constraint (A.PK) violated"),
        database(1, 900, "ORA-00001: unique constraint (A.PK) violated"),
    ];
    let error = refused(oracle::Error::BatchErrors(rows));
    assert!(error.is_unique_violation() && !error.is_foreign_key_violation());
    assert_eq!(
        error.to_string(),
        "cannot insert into ORDERS (rows 2000 to 2999), key ord_234, nothing was \
         written: ORA-00001: unique constraint (A.PK) violated (and 2 more of these rows)"
    );
    assert_eq!((error.constraint(), error.column()), (Some("PK"), None));
    assert!(matches!(error.driver(), Some(oracle::Error::BatchErrors(rows)) if rows.len() == 3));
}

#[test]
fn what_is_no_flush_has_the_library_s_text() {
    let text = "ORA-01017: invalid username/password; logon denied";
    let error = Error::from(oci(1017, text));
    assert_eq!(error.to_string(), format!("OCI Error: {text}"));
    assert!(error.source().is_none(), "the text has it all");
    let error = Error::from(error.of_connecting());
    assert!(error.to_string().starts_with("cannot begin the flush, "));
    assert!(error.source().is_some());
}

#[test]
fn only_what_was_not_found_out_is_unknown() {
    let refused = FlushError::commit(classify_commit(oci(
        2091,
        "ORA-02091: transaction rolled back\nORA-02291: integrity constraint (A.B) violated",
    )));
    assert!(refused.is_foreign_key_violation() && !refused.is_connection_lost());
    assert!(
        refused
            .to_string()
            .starts_with("cannot commit, nothing was written: ")
    );
    let text = "ORA-03113: end-of-file on communication channel";
    let lost = FlushError::commit(classify_commit(oci(3113, text)));
    assert_eq!(lost.failure(), Failure::Lost);
    assert!(!lost.is_commit_unknown());
    let lost = lost.into_unknown();
    assert!(lost.is_commit_unknown() && lost.is_connection_lost());
    assert_eq!(
        lost.to_string(),
        format!(
            "the answer to COMMIT was lost, so either all rows are written or none is; flush \
             again over a connection that works to find out: OCI Error: {text}"
        )
    );
}
