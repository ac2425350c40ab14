//! Tests of the query that reads the columns that the database fills.

use super::*;
use crate::text::Sees;

#[track_caller]
fn reads(engine: &EngineProfile, found_by: &[usize], rows: usize, sees: Sees) -> String {
    let table = Table {
        returning: &["created_at", "number"],
        ..table(KEY_FIRST)
    };
    let writer = Writer::new(engine);
    let query = writer.read(&TableNames::of(&table, engine), found_by, rows, sees);
    assert_eq!((query.kind, query.rows), (StatementKind::Read, rows));
    assert_eq!(*query.columns, *found_by);
    query.sql.to_string()
}

#[test]
fn each_engine_reads_rows_by_their_keys() {
    for (engine, expected) in [
        (
            EngineProfile::POSTGRES,
            r#"SELECT ordid_number, "created_at", "number" FROM (VALUES ($1, '0'), ($2, '1')) AS ordid_rows ("id", ordid_number) JOIN "orders" AS ordid_target ON ordid_target."id" = ordid_rows."id""#,
        ),
        (
            EngineProfile::SQLITE,
            r#"WITH ordid_rows ("id", ordid_number) AS (VALUES (?, '0'), (?, '1')) SELECT ordid_number, ordid_target."created_at", ordid_target."number" FROM ordid_rows JOIN "orders" AS ordid_target ON ordid_target."id" = +ordid_rows."id""#,
        ),
        (
            EngineProfile::SQL_SERVER,
            "SELECT ordid_number, [created_at], [number] FROM (VALUES (@P1, '0'), (@P2, '1')) AS ordid_rows ([id], ordid_number) JOIN [orders] AS ordid_target ON ordid_target.[id] = ordid_rows.[id]",
        ),
        (
            EngineProfile::MYSQL,
            "(SELECT '0', `created_at`, `number` FROM `orders` WHERE `id` = ?) UNION ALL (SELECT '1', `created_at`, `number` FROM `orders` WHERE `id` = ?)",
        ),
    ] {
        assert_eq!(
            reads(&engine, &[0], 2, Sees::Own),
            expected,
            "{}",
            engine.name
        );
    }
}

#[test]
fn rows_of_other_transactions_are_read_as_they_are_committed() {
    let mysql = |sees| reads(&EngineProfile::MYSQL, &[0], 1, sees);
    let query = "SELECT '0', `created_at`, `number` FROM `orders` WHERE `id` = ?";
    assert_eq!(mysql(Sees::Own), query);
    let waits = EngineProfile::MYSQL
        .words
        .confirms
        .expect("it has a word for it");
    assert_eq!(mysql(Sees::Others), format!("{query}{waits}"));
    let [before, _] = EngineProfile::SQL_SERVER.words.reads_committed;
    assert!(!before.is_empty());
    let query = reads(&EngineProfile::SQL_SERVER, &[0, 2], 1, Sees::Others);
    assert_eq!(
        query,
        format!(
            "SELECT ordid_number, [created_at], [number] FROM (VALUES (@P1, @P2, '0')) AS ordid_rows ([id], [total], \
             ordid_number) JOIN [orders] AS ordid_target{before} ON ordid_target.[id] = ordid_rows.[id] AND \
             ordid_target.[total] = ordid_rows.[total]"
        )
    );
}
