use oracle::DbError;

use super::*;

fn database(code: i32, offset: u32, message: &str) -> DbError {
    DbError::new(code, offset, message, "", "")
}

fn oci(code: i32, message: &str) -> oracle::Error {
    oracle::Error::OciError(database(code, 0, message))
}

fn place(action: Action) -> Place {
    Place {
        action,
        table: "ORDERS",
        chunk: 2,
        rows: 2_000..3_000,
        key: None,
    }
}

fn refused(source: oracle::Error) -> Error {
    Error::statement(source, place(Action::Insert), |row| format!("ord_{row}"))
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
        "cannot insert into ORDERS, chunk 2 (rows 2000 to 2999), key ord_234, nothing was \
         written: ORA-00001: unique constraint (A.PK) violated (and 2 more rows of the chunk)"
    );
}

#[test]
fn a_row_that_is_not_there_is_told() {
    let error = |found, more| {
        let mut place = place(Action::Delete);
        place.key = Some("ord_7".to_owned());
        Error::count(Count { found, more }, place)
    };
    let missing = error(0, 0);
    assert!(missing.is_missing_row() && !missing.is_transient());
    assert_eq!(missing.failure(), Failure::Refused);
    assert_eq!(missing.action(), Some(Action::Delete));
    assert_eq!(
        missing.to_string(),
        "cannot delete from ORDERS, chunk 2 (rows 2000 to 2999), key ord_7, nothing was written: \
         there is no such row"
    );
    let text = error(0, 3).to_string();
    assert!(text.ends_with("there is no such row (and 3 more rows of the chunk)"));
    let several = error(2, 0);
    assert!(!several.is_missing_row());
    assert!(several.to_string().ends_with(": 2 rows have this key"));
}

#[test]
fn attempts_are_told() {
    let mut error = refused(oci(60, "ORA-00060: deadlock detected"));
    assert!(error.is_transient() && !error.is_connection_lost());
    error.set_retries(4);
    assert_eq!(error.retries(), 4);
    assert!(error.to_string().ends_with(" (tried 5 times)"));
}

#[test]
fn only_what_was_not_found_out_is_unknown() {
    let refused = Error::commit(oci(
        2091,
        "ORA-02091: transaction rolled back\nORA-02291: integrity constraint (A.B) violated",
    ));
    assert!(refused.is_foreign_key_violation() && !refused.is_connection_lost());
    assert!(
        refused
            .to_string()
            .starts_with("cannot commit, nothing was written: ")
    );
    let text = "ORA-03113: end-of-file on communication channel";
    let lost = Error::commit(oci(3113, text));
    assert_eq!(lost.failure(), Failure::Lost);
    assert!(!lost.is_commit_unknown());
    let lost = lost.into_unknown();
    assert!(lost.is_commit_unknown() && lost.is_connection_lost());
    assert_eq!(
        lost.to_string(),
        format!(
            "the answer to COMMIT was lost, so either all rows are written or none is; flush \
             again over another connection to find out: OCI Error: {text}"
        )
    );
}
