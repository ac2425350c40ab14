use super::*;
use ordid_core::storage::dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite};

#[test]
fn each_dialect_writes_its_own_statement() {
    fn of<D: LeaseDialect>() -> String {
        statement::<D>("x", "UPDATE {t} SET a = ? WHERE b = ?")
    }
    for (sql, expected) in [
        (of::<Postgres>(), r#"UPDATE "x" SET a = $1 WHERE b = $2"#),
        (of::<MySql>(), "UPDATE `x` SET a = ? WHERE b = ?"),
        (of::<Sqlite>(), r#"UPDATE "x" SET a = ? WHERE b = ?"#),
        (of::<SqlServer>(), "UPDATE [x] SET a = @P1 WHERE b = @P2"),
        (of::<Babelfish>(), "UPDATE [x] SET a = @P1 WHERE b = @P2"),
        (of::<Oracle>(), r#"UPDATE "x" SET a = :1 WHERE b = :2"#),
    ] {
        assert_eq!(sql, expected);
    }
}

#[test]
fn a_name_is_never_read_as_a_parameter() {
    let sql = statement::<Oracle>("a?{now}{t}", "SELECT ? FROM {t}");
    assert_eq!(sql, r#"SELECT :1 FROM "a?{now}{t}""#);
}

#[test]
fn the_first_rows_are_limited_in_the_words_of_the_dialect() {
    fn of<D: LeaseDialect>() -> Statement {
        Statement::reads_first::<D>("x", 7, "a FROM {t} ORDER BY a")
    }
    for (statement, expected) in [
        (of::<Postgres>(), r#"SELECT a FROM "x" ORDER BY a LIMIT 7"#),
        (of::<MySql>(), "SELECT a FROM `x` ORDER BY a LIMIT 7"),
        (of::<SqlServer>(), "SELECT TOP (7) a FROM [x] ORDER BY a"),
        (
            of::<Oracle>(),
            r#"SELECT a FROM "x" ORDER BY a FETCH FIRST 7 ROWS ONLY"#,
        ),
    ] {
        assert_eq!(&**statement.sql(), expected);
        assert!(statement.may_repeat() && !statement.is_change());
    }
}

/// With `SET NOCOUNT ON` the protocol's own count is not there.
#[test]
fn a_change_is_counted_by_a_returned_row_if_the_dialect_has_it() {
    let change = Statement::changes::<SqlServer>("x", "DELETE FROM {t}");
    assert_eq!(&**change.sql(), "DELETE FROM [x]; SELECT @@ROWCOUNT");
    assert!(change.is_change() && !change.may_repeat());
    let said = Answer {
        rows: [[3].into()].into(),
        ..Answer::default()
    };
    let counted = Answer {
        changed: 2,
        ..Answer::default()
    };
    assert_eq!(said.changed::<SqlServer>(), 3);
    assert_eq!(counted.changed::<Oracle>(), 2);
    assert_eq!(said.changed::<Postgres>(), 0, "what it returns is no count");
}

#[test]
fn names_allow_few_characters() {
    for name in ["ordid_nodes", "Tickets64", "_", &"a".repeat(63)] {
        assert_eq!(checked_name(name), Ok(name));
    }
    for name in [
        "",
        "a b",
        "a;b",
        "a\"b",
        "a]b",
        "a'b",
        "schema.table",
        "größe",
        &"a".repeat(64),
    ] {
        let error = checked_name(name).expect_err("not a name of ours");
        assert_eq!(
            error.coordination_failure(),
            Some(CoordinationFailure::Mismatch)
        );
    }
}
