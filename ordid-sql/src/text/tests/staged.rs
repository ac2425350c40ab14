//! What is sent of rows that go through a temporary table.

use super::*;
use crate::{ColumnSet, UpsertStep};

/// Rows that have a version, or that are upserted by `parent`.
fn texts(engine: &EngineProfile, upserts: bool, columns: &[usize]) -> Vec<String> {
    let mut table = table(KEY_FIRST);
    table.version = (!upserts).then_some(2);
    table.column_sets = vec![ColumnSet {
        columns: columns.to_vec(),
        found_by: upserts.then(|| vec![1]),
        is_unreported: false,
        rows: 2,
    }]
    .into();
    let names = TableNames::of(&table, engine);
    let writer = Writer::new(engine);
    let action = match upserts {
        true => Action::Upsert {
            set: 0,
            step: UpsertStep::Find,
        },
        false => Action::UpdateColumns { set: 0 },
    };
    let staged = staged_action(action);
    let mut statements = writer.stage(&table, &names, staged);
    statements.push(writer.fill(&table, &names, staged, 2));
    statements.extend(writer.take_over(&table, &names, action, 2));
    statements.push(writer.unstage());
    let texts = statements.iter().map(|it| it.sql.to_string());
    texts.collect()
}

#[test]
fn columns_of_rows_with_a_version_are_updated() {
    let joined = "ordid_target.\"id\" = ordid_rows.\"id\" AND ordid_target.\"total\" = ordid_rows.ordid_version";
    assert_eq!(
        texts(&EngineProfile::POSTGRES, false, &[1]),
        [
            "CREATE TEMPORARY TABLE pg_temp.ordid_rows ON COMMIT DROP AS SELECT \"id\", \"parent\", \"total\", \
             \"total\" AS ordid_version FROM \"orders\" WITH NO DATA",
            "INSERT INTO pg_temp.ordid_rows /* of \"orders\" */ (\"id\", \"parent\", \"total\", ordid_version) VALUES \
             ($1, $2, $3, $4), ($5, $6, $7, $8)",
            &format!(
                "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\", \
                 \"total\" = ordid_rows.\"total\" FROM pg_temp.ordid_rows AS ordid_rows WHERE {joined}"
            ),
            "DROP TABLE pg_temp.ordid_rows",
        ]
    );
    let joined = joined.replace('"', "`");
    assert_eq!(
        texts(&EngineProfile::MYSQL, false, &[1]),
        [
            "DROP TEMPORARY TABLE IF EXISTS ordid_rows",
            "CREATE TEMPORARY TABLE ordid_rows (ordid_number BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, \
             ordid_found BOOLEAN NOT NULL DEFAULT FALSE) ENGINE=InnoDB SELECT `id`, `parent`, `total`, \
             `total` AS ordid_version FROM `orders` LIMIT 0",
            "INSERT INTO ordid_rows /* of `orders` */ (`id`, `parent`, `total`, ordid_version) VALUES (?, ?, ?, ?), \
             (?, ?, ?, ?)",
            &format!(
                "UPDATE ordid_rows STRAIGHT_JOIN `orders` AS ordid_target ON {joined} SET \
                 ordid_target.`parent` = ordid_rows.`parent`, ordid_target.`total` = ordid_rows.`total`"
            ),
            "DROP TEMPORARY TABLE ordid_rows",
        ]
    );
}

#[test]
fn rows_are_inserted_or_updated_as_they_were_found() {
    let joined = "ordid_target.\"parent\" = ordid_rows.\"parent\"";
    let new = "ordid_new AS (INSERT INTO \"orders\" (\"id\", \"parent\", \"total\") SELECT \"id\", \"parent\", \"total\" \
        FROM pg_temp.ordid_rows AS ordid_rows WHERE NOT EXISTS (SELECT 1 FROM ordid_there WHERE \
        ordid_there.ordid_number = ordid_rows.ordid_number) ORDER BY ordid_number RETURNING 1) SELECT (SELECT count(*) \
        FROM ordid_new) || ',' || (SELECT count(*) FROM pg_temp.ordid_rows AS ordid_rows WHERE NOT EXISTS (SELECT 1 FROM \
        ordid_there WHERE ordid_there.ordid_number = ordid_rows.ordid_number) AND EXISTS (SELECT 1 FROM \"orders\" AS \
        ordid_target WHERE ordid_target.\"parent\" = ordid_rows.\"parent\")) || coalesce((SELECT string_agg(',' || ordid_number, '') FROM ordid_there), '')";
    assert_eq!(
        texts(&EngineProfile::POSTGRES, true, &[2])[3..],
        [
            &*format!(
                "WITH ordid_there AS (UPDATE \"orders\" AS ordid_target SET \"total\" = ordid_rows.\"total\" FROM \
                 pg_temp.ordid_rows AS ordid_rows WHERE {joined} RETURNING ordid_rows.ordid_number), {new}"
            ),
            "DROP TABLE pg_temp.ordid_rows",
        ]
    );
    assert_eq!(
        texts(&EngineProfile::POSTGRES, true, &[])[3],
        format!(
            "WITH ordid_there AS (SELECT ordid_number FROM pg_temp.ordid_rows AS ordid_rows WHERE EXISTS (SELECT 1 FROM \
             \"orders\" AS ordid_target WHERE {joined})), {new}"
        )
    );
    // Left alone: MySQL asks again, for rows that nobody can change any more.
    let joined = joined.replace('"', "`");
    let share = crate::catalog::MYSQL_WAITS;
    assert_eq!(
        texts(&EngineProfile::MYSQL, true, &[])[3..],
        [
            &*format!(
                "SELECT CAST(CASE WHEN EXISTS (SELECT 1 FROM `orders` AS ordid_target WHERE {joined}) THEN \
                 ordid_number ELSE -ordid_number END AS CHAR) FROM ordid_rows ORDER BY ordid_number"
            ),
            "UPDATE ordid_rows SET ordid_found = TRUE, `id` = `id`, `parent` = `parent`, `total` = `total`",
            "INSERT INTO `orders` (`id`, `parent`, `total`) SELECT `id`, `parent`, `total` FROM ordid_rows WHERE NOT \
             ordid_found ORDER BY ordid_number",
            &format!(
                "SELECT CAST(ordid_number AS CHAR) FROM ordid_rows STRAIGHT_JOIN `orders` AS ordid_target ON {joined} \
                 WHERE ordid_found{share}"
            ),
            "DROP TEMPORARY TABLE ordid_rows",
        ]
    );
    let engine = EngineProfile::MYSQL;
    let writer = Writer::new(&engine);
    let names = TableNames::of(&table(KEY_FIRST), &engine);
    let mark = |numbers: &[i64]| {
        let statements = writer.mark(&names, &[0], Some(numbers));
        let texts = statements.iter().map(|it| it.sql.to_string());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(
        mark(&[3, 5, 6, 7]),
        [
            "UPDATE ordid_rows SET ordid_found = TRUE, `id` = `id` WHERE ordid_number BETWEEN 5 AND 7 OR ordid_number IN (3)"
        ]
    );
    let odd: Vec<i64> = (0..1_500).map(|number| 2 * number + 1).collect();
    assert_eq!(mark(&odd).len(), 2);
}

/// A library keeps a prepared statement under its text.
#[test]
fn each_table_has_a_text_of_its_own() {
    let fill = |name: &'static str| {
        let mut table = table(KEY_FIRST);
        table.name = name;
        let engine = EngineProfile::POSTGRES;
        let names = TableNames::of(&table, &engine);
        let writer = Writer::new(&engine);
        writer.fill(&table, &names, Action::Update, 1).sql
    };
    let texts = ["orders", "or/*ders", "or*/ders", "226f72", "*"].map(fill);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(text.matches("*/").count(), 1, "{text}");
        assert!(!texts[..number].contains(text), "{text}");
    }
}

#[test]
fn a_profile_says_from_how_many_rows_on() {
    let from = |engine: &EngineProfile| engine.stages_from();
    assert_eq!(from(&EngineProfile::MYSQL), Some(100));
    assert_eq!(from(&EngineProfile::PGBOUNCER), Some(1_001));
    for engine in [
        EngineProfile::SQLITE,
        EngineProfile::SQL_SERVER,
        EngineProfile::BABELFISH,
        EngineProfile::ORACLE,
        EngineProfile {
            temporary_tables: false,
            ..EngineProfile::MYSQL
        },
    ] {
        assert_eq!(from(&engine), None, "{}", engine.name);
    }
}
