//! What is sent of upserts.

use super::*;
use crate::{ColumnSet, UpsertStep};

/// The statement of a step for rows that are found by `parent` and `id`, of whose other columns `total` is written.
fn step(engine: &EngineProfile, step: UpsertStep, rows: usize) -> (String, Vec<usize>) {
    step_setting(&[2], engine, step, rows)
}

/// As [`step`], of these columns.
fn step_setting(
    set: &[usize],
    engine: &EngineProfile,
    step: UpsertStep,
    rows: usize,
) -> (String, Vec<usize>) {
    let mut table = table(KEY_IN_BETWEEN);
    table.column_sets = vec![ColumnSet {
        columns: set.to_vec(),
        found_by: Some(vec![0, 1]),
        rows,
        ..ColumnSet::default()
    }]
    .into();
    let names = TableNames::of(&table, engine);
    let writer = Writer::new(engine);
    let action = Action::Upsert { set: 0, step };
    let statement = writer.statement(&table, &names, action, rows, None);
    assert_eq!(statement.rows, rows);
    (statement.sql.to_string(), statement.columns.to_vec())
}

#[test]
fn each_engine_is_asked_which_rows_are_there() {
    let share = crate::catalog::MYSQL_WAITS;
    for (engine, find, confirm) in [
        (
            EngineProfile::POSTGRES,
            "SELECT string_agg(ordid_number, ',') FROM (VALUES ($1, $2, '0'), ($3, $4, '1')) AS ordid_rows (\"parent\", \"id\", \
             ordid_number) WHERE EXISTS (SELECT 1 FROM \"orders\" AS ordid_target WHERE ordid_target.\"parent\" = \
             ordid_rows.\"parent\" AND ordid_target.\"id\" = ordid_rows.\"id\")",
            None,
        ),
        (
            EngineProfile::SQLITE,
            "WITH ordid_rows (\"parent\", \"id\", ordid_number) AS (VALUES (?, ?, '0'), (?, ?, '1')) SELECT \
             group_concat(ordid_number) FROM ordid_rows WHERE EXISTS (SELECT 1 FROM \"orders\" AS ordid_target WHERE ordid_target.\"parent\" = \
             ordid_rows.\"parent\" AND ordid_target.\"id\" = ordid_rows.\"id\")",
            None,
        ),
        (
            EngineProfile::SQL_SERVER,
            "SELECT ordid_number FROM (VALUES (@P1, @P2, '0'), (@P3, @P4, '1')) AS ordid_rows ([parent], [id], \
             ordid_number) WHERE EXISTS (SELECT 1 FROM [orders] AS ordid_target WITH (READCOMMITTEDLOCK) WHERE \
             ordid_target.[parent] = ordid_rows.[parent] AND ordid_target.[id] = ordid_rows.[id])",
            None,
        ),
        (
            EngineProfile::MYSQL,
            "(SELECT '0' FROM `orders` WHERE `parent` = ? AND `id` = ?) UNION ALL (SELECT '1' FROM `orders` WHERE \
             `parent` = ? AND `id` = ?)",
            Some(format!(
                "(SELECT '0' FROM `orders` WHERE `parent` = ? AND `id` = ?{share}) UNION ALL (SELECT '1' FROM `orders` \
                 WHERE `parent` = ? AND `id` = ?{share})"
            )),
        ),
        (
            EngineProfile::ORACLE,
            r#"SELECT '0' FROM "orders" WHERE "parent" = :1 AND "id" = :2"#,
            None,
        ),
    ] {
        let (sql, columns) = step(&engine, UpsertStep::Find, 2);
        assert_eq!((&*sql, &*columns), (find, &[0, 1][..]), "{}", engine.name);
        if let Some(confirm) = confirm {
            assert_eq!(step(&engine, UpsertStep::Confirm, 2).0, confirm);
        }
    }
    let (alone, _) = step(&EngineProfile::MYSQL, UpsertStep::Find, 1);
    assert_eq!(
        alone,
        "SELECT '0' FROM `orders` WHERE `parent` = ? AND `id` = ?"
    );
}

#[test]
fn what_is_there_is_updated_by_what_it_is_found_by() {
    let insert = text(&EngineProfile::POSTGRES, KEY_IN_BETWEEN, Action::Insert, 2);
    let inserted = step(&EngineProfile::POSTGRES, UpsertStep::Insert, 2);
    assert_eq!(inserted, (insert, vec![0, 1, 2]));
    for (engine, update, columns) in [
        (
            EngineProfile::POSTGRES,
            "UPDATE \"orders\" AS ordid_target SET \"total\" = ordid_rows.\"total\" FROM (VALUES ($1, $2, $3), ($4, $5, \
             $6)) AS ordid_rows (\"parent\", \"id\", \"total\") WHERE ordid_target.\"parent\" = ordid_rows.\"parent\" AND \
             ordid_target.\"id\" = ordid_rows.\"id\"",
            [0, 1, 2],
        ),
        (
            EngineProfile::MYSQL,
            "UPDATE `orders` SET `total` = ? WHERE `parent` = ? AND `id` = ?",
            [2, 0, 1],
        ),
        (
            EngineProfile::ORACLE,
            r#"UPDATE "orders" SET "total" = :1 WHERE "parent" = :2 AND "id" = :3"#,
            [2, 0, 1],
        ),
    ] {
        let (sql, taken) = step(&engine, UpsertStep::Update, 2);
        assert_eq!((&*sql, &*taken), (update, &columns[..]), "{}", engine.name);
    }
}

#[test]
fn what_a_row_is_found_by_is_written_if_it_is_named() {
    for (engine, update, columns) in [
        (
            EngineProfile::POSTGRES,
            "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" FROM (VALUES ($1, $2)) AS \
             ordid_rows (\"parent\", \"id\") WHERE ordid_target.\"parent\" = ordid_rows.\"parent\" AND \
             ordid_target.\"id\" = ordid_rows.\"id\"",
            &[0, 1][..],
        ),
        (
            EngineProfile::SQL_SERVER,
            "UPDATE ordid_target SET [parent] = ordid_rows.[parent] FROM [orders] AS ordid_target JOIN (VALUES (@P1, \
             @P2)) AS ordid_rows ([parent], [id]) ON ordid_target.[parent] = ordid_rows.[parent] AND ordid_target.[id] = \
             ordid_rows.[id]; SELECT @@ROWCOUNT",
            &[0, 1],
        ),
        (
            EngineProfile::MYSQL,
            "UPDATE `orders` SET `parent` = ? WHERE `parent` = ? AND `id` = ?",
            &[0, 0, 1],
        ),
        (
            EngineProfile::ORACLE,
            r#"UPDATE "orders" SET "parent" = :1 WHERE "parent" = :2 AND "id" = :3"#,
            &[0, 0, 1],
        ),
    ] {
        let (sql, taken) = step_setting(&[0], &engine, UpsertStep::Update, 1);
        assert_eq!((&*sql, &*taken), (update, columns), "{}", engine.name);
    }
}

#[test]
fn the_engines_own_statement_inserts_or_updates() {
    for (engine, set, sql) in [
        (
            EngineProfile::SQLITE,
            &[2][..],
            "INSERT INTO \"orders\" (\"parent\", \"id\", \"total\") VALUES (?, ?, ?), (?, ?, ?) ON CONFLICT (\"parent\", \
             \"id\") DO UPDATE SET \"total\" = excluded.\"total\"",
        ),
        (
            EngineProfile::MYSQL,
            &[0, 2],
            "INSERT INTO `orders` (`parent`, `id`, `total`) VALUES (?, ?, ?), (?, ?, ?) ON DUPLICATE KEY UPDATE `parent` = \
             VALUES(`parent`), `total` = VALUES(`total`)",
        ),
    ] {
        let written = step_setting(set, &engine, UpsertStep::Write, 2);
        assert_eq!(written, (sql.to_owned(), vec![0, 1, 2]), "{}", engine.name);
    }
}
