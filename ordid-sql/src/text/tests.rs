mod read;
mod staged;
mod upserts;

use std::any::TypeId;

use ordid_core::{entity::Parent, uuid::Uuid};

use super::*;
use crate::{Chunk, ColumnSet};

struct Order;

static PARENTS: [Parent; 1] = [Parent::by_entity::<Option<Uuid>, Order>("parent")];

const KEY_FIRST: &[&str] = &["id", "parent", "total"];
const KEY_IN_BETWEEN: &[&str] = &["parent", "id", "total"];
const KEY_LAST: &[&str] = &["parent", "total", "id"];
const KEY_ALONE: &[&str] = &["id"];

const FIX_UP: Action = Action::FixUp { parent: 0 };
const UNLINK: Action = Action::Unlink { parent: 0 };

fn table(columns: &'static [&'static str]) -> Table {
    Table {
        entity: TypeId::of::<Order>(),
        key: TypeId::of::<Uuid>(),
        schema: None,
        name: "orders",
        key_columns: &["id"],
        leading: TypeId::of::<Uuid>(),
        is_raw: true,
        leading_bytes: 16,
        columns,
        parents: if columns.len() > 1 { &PARENTS } else { &[] },
        version: None,
        returning: &[],
        counts_inserts: true,
        is_named: false,
        rises: true,
        rows: 0,
        updates: 0,
        column_sets: std::sync::Arc::default(),
        deletes: 0,
    }
}

/// Returns the text, and the names of the columns that its parameters are for.
#[track_caller]
fn written(
    engine: &EngineProfile,
    columns: &'static [&'static str],
    action: Action,
    rows: usize,
) -> (String, Vec<&'static str>) {
    let table = table(columns);
    let names = TableNames::of(&table, engine);
    let writer = Writer::new(engine);
    let statement = writer.statement(&table, &names, action, rows, None);
    assert_eq!(statement.rows, rows);
    let taken = statement.columns.iter().map(|it| columns[*it]);
    (statement.sql.to_string(), taken.collect())
}

fn text(
    engine: &EngineProfile,
    columns: &'static [&'static str],
    action: Action,
    rows: usize,
) -> String {
    written(engine, columns, action, rows).0
}

#[test]
fn each_engine_has_its_statements() {
    struct Texts<'a> {
        engine: EngineProfile,
        insert: &'a str,
        update: &'a str,
        fix_up: &'a str,
        unlink: &'a str,
        delete: &'a str,
    }
    for Texts {
        engine,
        insert,
        update,
        fix_up,
        unlink,
        delete,
    } in [
        Texts {
            engine: EngineProfile::POSTGRES,
            insert: r#"INSERT INTO "orders" ("parent", "id", "total") VALUES ($1, $2, $3), ($4, $5, $6)"#,
            update: "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\", \
                \"total\" = ordid_rows.\"total\" \
                FROM (VALUES ($1, $2, $3), ($4, $5, $6)) AS ordid_rows (\"parent\", \"id\", \"total\") \
                WHERE ordid_target.\"id\" = ordid_rows.\"id\"",
            fix_up: "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" \
                FROM (VALUES ($1, $2), ($3, $4)) AS ordid_rows (\"parent\", \"id\") \
                WHERE ordid_target.\"id\" = ordid_rows.\"id\"",
            unlink: r#"UPDATE "orders" SET "parent" = NULL WHERE "id" IN ($1, $2)"#,
            delete: r#"DELETE FROM "orders" WHERE "id" IN ($1, $2)"#,
        },
        Texts {
            engine: EngineProfile::MYSQL,
            insert: "INSERT INTO `orders` (`parent`, `id`, `total`) VALUES (?, ?, ?), (?, ?, ?)",
            update: "UPDATE `orders` SET `parent` = ?, `total` = ? WHERE `id` = ?",
            fix_up: "UPDATE `orders` SET `parent` = ? WHERE `id` = ?",
            unlink: "UPDATE `orders` SET `parent` = NULL WHERE `id` IN (?, ?)",
            delete: "DELETE FROM `orders` WHERE `id` IN (?, ?) ORDER BY `id` DESC",
        },
        Texts {
            engine: EngineProfile::SQLITE,
            insert: r#"INSERT INTO "orders" ("parent", "id", "total") VALUES (?, ?, ?), (?, ?, ?)"#,
            update: "WITH ordid_rows (\"parent\", \"id\", \"total\") AS \
                (VALUES (?, ?, ?), (?, ?, ?)) UPDATE \"orders\" AS ordid_target \
                SET \"parent\" = ordid_rows.\"parent\", \"total\" = ordid_rows.\"total\" \
                FROM ordid_rows WHERE ordid_target.\"id\" = +ordid_rows.\"id\"",
            fix_up: "WITH ordid_rows (\"parent\", \"id\") AS (VALUES (?, ?), (?, ?)) \
                UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" \
                FROM ordid_rows WHERE ordid_target.\"id\" = +ordid_rows.\"id\"",
            unlink: r#"UPDATE "orders" SET "parent" = NULL WHERE "id" IN (?, ?)"#,
            delete: r#"DELETE FROM "orders" WHERE "id" IN (?, ?)"#,
        },
        Texts {
            engine: EngineProfile::SQL_SERVER,
            insert: "INSERT INTO [orders] ([parent], [id], [total]) \
                VALUES (@P1, @P2, @P3), (@P4, @P5, @P6); SELECT @@ROWCOUNT",
            update: "UPDATE ordid_target SET [parent] = ordid_rows.[parent], \
                [total] = ordid_rows.[total] FROM [orders] AS ordid_target \
                JOIN (VALUES (@P1, @P2, @P3), (@P4, @P5, @P6)) AS ordid_rows ([parent], [id], [total]) \
                ON ordid_target.[id] = ordid_rows.[id]; SELECT @@ROWCOUNT",
            fix_up: "UPDATE ordid_target SET [parent] = ordid_rows.[parent] \
                FROM [orders] AS ordid_target \
                JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows ([parent], [id]) \
                ON ordid_target.[id] = ordid_rows.[id]; SELECT @@ROWCOUNT",
            unlink: "UPDATE [orders] SET [parent] = NULL WHERE [id] IN (@P1, @P2); SELECT @@ROWCOUNT",
            delete: "DELETE FROM [orders] WHERE [id] IN (@P1, @P2); SELECT @@ROWCOUNT",
        },
        Texts {
            engine: EngineProfile::ORACLE,
            insert: r#"INSERT INTO "orders" ("parent", "id", "total") VALUES (:1, :2, :3)"#,
            update: r#"UPDATE "orders" SET "parent" = :1, "total" = :2 WHERE "id" = :3"#,
            fix_up: r#"UPDATE "orders" SET "parent" = :1 WHERE "id" = :2"#,
            unlink: r#"UPDATE "orders" SET "parent" = NULL WHERE "id" = :1"#,
            delete: r#"DELETE FROM "orders" WHERE "id" = :1"#,
        },
    ] {
        for (action, expected) in [
            (Action::Insert, insert),
            (Action::Update, update),
            (FIX_UP, fix_up),
            (UNLINK, unlink),
            (Action::Delete, delete),
        ] {
            let found = text(&engine, KEY_IN_BETWEEN, action, 2);
            assert_eq!(found, expected, "{} {action:?}", engine.name);
        }
    }
}

#[test]
fn babelfish_gets_the_statements_of_sql_server() {
    for action in [
        Action::Insert,
        Action::Update,
        FIX_UP,
        UNLINK,
        Action::Delete,
    ] {
        let [left, right] = [EngineProfile::BABELFISH, EngineProfile::SQL_SERVER]
            .map(|engine| text(&engine, KEY_FIRST, action, 3));
        assert_eq!(left, right);
    }
}

#[test]
fn parameters_follow_the_order_of_columns_in_the_statement() {
    for (columns, at_once, by_key) in [
        (
            KEY_FIRST,
            ["id", "parent", "total"],
            ["parent", "total", "id"],
        ),
        (
            KEY_IN_BETWEEN,
            ["parent", "id", "total"],
            ["parent", "total", "id"],
        ),
        (
            KEY_LAST,
            ["parent", "total", "id"],
            ["parent", "total", "id"],
        ),
    ] {
        for (engine, expected) in [
            (EngineProfile::POSTGRES, at_once),
            (EngineProfile::SQLITE, at_once),
            (EngineProfile::SQL_SERVER, at_once),
            (EngineProfile::MYSQL, by_key),
            (EngineProfile::ORACLE, by_key),
        ] {
            let of = |action| written(&engine, columns, action, 2).1;
            assert_eq!(of(Action::Insert), columns);
            assert_eq!(of(Action::Update), expected, "{} {columns:?}", engine.name);
            assert_eq!(of(Action::Delete), ["id"]);
            assert_eq!(of(UNLINK), ["id"]);
            let key_first = expected[0] == "id";
            let fix_up = if key_first {
                ["id", "parent"]
            } else {
                ["parent", "id"]
            };
            assert_eq!(of(FIX_UP), fix_up, "{} {columns:?}", engine.name);
        }
    }
}

/// The statement is that of a fix-up of the same column, whatever the engine's way of updating.
#[test]
fn some_columns_are_updated_and_no_others() {
    let of = |engine: &EngineProfile, columns: Vec<usize>, rows| {
        let mut table = table(KEY_IN_BETWEEN);
        table.column_sets = vec![ColumnSet {
            columns,
            rows,
            ..ColumnSet::default()
        }]
        .into();
        let names = TableNames::of(&table, engine);
        let writer = Writer::new(engine);
        let action = Action::UpdateColumns { set: 0 };
        writer.statement(&table, &names, action, rows, None).sql
    };
    for engine in [
        EngineProfile::POSTGRES,
        EngineProfile::MYSQL,
        EngineProfile::SQLITE,
        EngineProfile::SQL_SERVER,
        EngineProfile::ORACLE,
    ] {
        assert_eq!(
            *of(&engine, vec![0], 2),
            text(&engine, KEY_IN_BETWEEN, FIX_UP, 2)
        );
    }
    assert_eq!(
        &*of(&EngineProfile::POSTGRES, vec![0, 2], 1),
        "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\", \
         \"total\" = ordid_rows.\"total\" FROM (VALUES ($1, $2, $3)) AS ordid_rows (\"parent\", \"id\", \"total\") \
         WHERE ordid_target.\"id\" = ordid_rows.\"id\""
    );
    assert_eq!(
        &*of(&EngineProfile::MYSQL, vec![], 1),
        "UPDATE `orders` SET `id` = `id` WHERE `id` = ?"
    );
}

#[test]
fn rows_with_a_key_of_two_columns_are_found_by_both() {
    let of = |engine: &EngineProfile, action, rows| {
        let mut table = table(KEY_IN_BETWEEN);
        table.key_columns = &["id", "total"];
        table.parents = &PARENTS;
        let names = TableNames::of(&table, engine);
        let writer = Writer::new(engine);
        let exists = writer.exists(&names);
        assert_eq!(*exists.columns, [1, 2]);
        let statement = writer.statement(&table, &names, action, rows, None);
        let asked = exists.sql.to_string();
        (statement.sql.to_string(), statement.columns.to_vec(), asked)
    };
    let (update, columns, asked) = of(&EngineProfile::POSTGRES, Action::Update, 2);
    assert_eq!(
        update,
        "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" \
         FROM (VALUES ($1, $2, $3), ($4, $5, $6)) AS ordid_rows (\"parent\", \"id\", \"total\") \
         WHERE ordid_target.\"id\" = ordid_rows.\"id\" AND ordid_target.\"total\" = ordid_rows.\"total\""
    );
    assert_eq!(columns, [0, 1, 2]);
    assert_eq!(
        asked,
        r#"SELECT 1 FROM "orders" WHERE "id" = $1 AND "total" = $2"#
    );
    let (update, columns, _) = of(&EngineProfile::MYSQL, FIX_UP, 1);
    assert_eq!(
        update,
        "UPDATE `orders` SET `parent` = ? WHERE `id` = ? AND `total` = ?"
    );
    assert_eq!(columns, [0, 1, 2]);
    for (engine, unlink) in [
        (
            EngineProfile::SQLITE,
            "WITH ordid_rows (\"id\", \"total\") AS (VALUES (?, ?), (?, ?)) UPDATE \"orders\" SET \"parent\" = NULL \
             WHERE (\"id\", \"total\") IN (SELECT \"id\", \"total\" FROM ordid_rows)",
        ),
        (
            EngineProfile::MYSQL,
            "UPDATE `orders` SET `parent` = NULL WHERE `id` = ? AND `total` = ? OR `id` = ? AND `total` = ?",
        ),
        (
            EngineProfile::SQL_SERVER,
            "UPDATE ordid_target SET [parent] = NULL FROM [orders] AS ordid_target \
             JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows ([id], [total]) \
             ON ordid_target.[id] = ordid_rows.[id] AND ordid_target.[total] = ordid_rows.[total]; \
             SELECT @@ROWCOUNT",
        ),
        (
            EngineProfile::ORACLE,
            r#"UPDATE "orders" SET "parent" = NULL WHERE "id" = :1 AND "total" = :2"#,
        ),
    ] {
        let (text, columns, _) = of(&engine, UNLINK, 2);
        assert_eq!((&*text, &*columns), (unlink, &[1, 2][..]));
    }
    let (delete, ..) = of(&EngineProfile::MYSQL, Action::Delete, 2);
    assert!(
        delete.ends_with(" ORDER BY `id` DESC, `total` DESC"),
        "{delete}"
    );
}

/// A row is found by its key and by the version that it was read with, whose value comes last.
#[test]
fn rows_with_a_version_are_found_by_it() {
    const COLUMNS: &[&str] = &["version", "id", "total"];
    let of = |engine: &EngineProfile, action, rows| {
        let mut table = table(COLUMNS);
        table.parents = &[];
        table.version = Some(0);
        let names = TableNames::of(&table, engine);
        let writer = Writer::new(engine);
        let statement = writer.statement(&table, &names, action, rows, None);
        (statement.sql.to_string(), statement.columns.to_vec())
    };
    for (engine, update, delete, delete_one) in [
        (
            EngineProfile::POSTGRES,
            "UPDATE \"orders\" AS ordid_target SET \"version\" = ordid_rows.\"version\", \
             \"total\" = ordid_rows.\"total\" FROM (VALUES ($1, $2, $3, $4), ($5, $6, $7, $8)) AS ordid_rows \
             (\"version\", \"id\", \"total\", ordid_version) WHERE ordid_target.\"id\" = ordid_rows.\"id\" \
             AND ordid_target.\"version\" = ordid_rows.ordid_version",
            r#"DELETE FROM "orders" WHERE ("id", "version") IN (VALUES ($1, $2), ($3, $4))"#,
            r#"DELETE FROM "orders" WHERE "id" = $1 AND "version" = $2"#,
        ),
        (
            EngineProfile::SQLITE,
            "WITH ordid_rows (\"version\", \"id\", \"total\", ordid_version) AS (VALUES (?, ?, ?, ?), \
             (?, ?, ?, ?)) UPDATE \"orders\" AS ordid_target SET \"version\" = ordid_rows.\"version\", \
             \"total\" = ordid_rows.\"total\" FROM ordid_rows WHERE ordid_target.\"id\" = +ordid_rows.\"id\" \
             AND ordid_target.\"version\" = +ordid_rows.ordid_version",
            "WITH ordid_rows (\"id\", ordid_version) AS (VALUES (?, ?), (?, ?)) DELETE FROM \"orders\" \
             WHERE (\"id\", \"version\") IN (SELECT \"id\", ordid_version FROM ordid_rows)",
            r#"DELETE FROM "orders" WHERE "id" = ? AND "version" = ?"#,
        ),
        (
            EngineProfile::MYSQL,
            "UPDATE `orders` SET `version` = ?, `total` = ? WHERE `id` = ? AND `version` = ?",
            "DELETE FROM `orders` WHERE `id` = ? AND `version` = ? OR `id` = ? AND `version` = ?",
            "DELETE FROM `orders` WHERE `id` = ? AND `version` = ?",
        ),
        (
            EngineProfile::SQL_SERVER,
            "UPDATE ordid_target SET [version] = ordid_rows.[version], [total] = ordid_rows.[total] \
             FROM [orders] AS ordid_target JOIN (VALUES (@P1, @P2, @P3, @P4), (@P5, @P6, @P7, @P8)) AS ordid_rows \
             ([version], [id], [total], ordid_version) ON ordid_target.[id] = ordid_rows.[id] \
             AND ordid_target.[version] = ordid_rows.ordid_version; SELECT @@ROWCOUNT",
            "DELETE ordid_target FROM [orders] AS ordid_target JOIN (VALUES (@P1, @P2), (@P3, @P4)) AS ordid_rows \
             ([id], ordid_version) ON ordid_target.[id] = ordid_rows.[id] \
             AND ordid_target.[version] = ordid_rows.ordid_version; SELECT @@ROWCOUNT",
            "DELETE FROM [orders] WHERE [id] = @P1 AND [version] = @P2; SELECT @@ROWCOUNT",
        ),
        (
            EngineProfile::ORACLE,
            r#"UPDATE "orders" SET "version" = :1, "total" = :2 WHERE "id" = :3 AND "version" = :4"#,
            r#"DELETE FROM "orders" WHERE "id" = :1 AND "version" = :2"#,
            r#"DELETE FROM "orders" WHERE "id" = :1 AND "version" = :2"#,
        ),
    ] {
        let is_by_row = matches!(engine.updates, Updates::RowByRow | Updates::Arrays);
        let update_columns = match is_by_row {
            true => vec![0, 2, 1, 3],
            false => vec![0, 1, 2, 3],
        };
        assert_eq!(
            of(&engine, Action::Update, 2),
            (update.to_owned(), update_columns)
        );
        assert_eq!(
            of(&engine, Action::Delete, 2),
            (delete.to_owned(), vec![1, 3])
        );
        assert_eq!(of(&engine, Action::Delete, 1).0, delete_one);
        // What is inserted has no other version yet.
        assert_eq!(of(&engine, Action::Insert, 2).1, [0, 1, 2]);
    }
}

/// A row that is deleted is unlinked only with the version that it was read with, and MySQL must not raise the version.
#[test]
fn a_row_with_a_version_is_unlinked_by_it_and_keeps_it() {
    let of = |engine: &EngineProfile, action| {
        let mut table = table(KEY_IN_BETWEEN);
        table.version = Some(2);
        let names = TableNames::of(&table, engine);
        let statement = Writer::new(engine).statement(&table, &names, action, 1, None);
        (statement.sql.to_string(), statement.columns.to_vec())
    };
    for (engine, unlink, fix_up) in [
        (
            EngineProfile::POSTGRES,
            r#"UPDATE "orders" SET "parent" = NULL WHERE "id" = $1 AND "total" = $2"#,
            "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" FROM (VALUES ($1, $2)) AS \
             ordid_rows (\"parent\", \"id\") WHERE ordid_target.\"id\" = ordid_rows.\"id\"",
        ),
        (
            EngineProfile::MYSQL,
            "UPDATE `orders` SET `parent` = NULL, `total` = `total` WHERE `id` = ? AND `total` = ?",
            "UPDATE `orders` SET `parent` = ?, `total` = `total` WHERE `id` = ?",
        ),
        (
            EngineProfile::ORACLE,
            r#"UPDATE "orders" SET "parent" = NULL WHERE "id" = :1 AND "total" = :2"#,
            r#"UPDATE "orders" SET "parent" = :1 WHERE "id" = :2"#,
        ),
    ] {
        assert_eq!(of(&engine, UNLINK), (unlink.to_owned(), vec![1, 3]));
        assert_eq!(of(&engine, FIX_UP), (fix_up.to_owned(), vec![0, 1]));
    }
}

/// The row has to be there all the same.
#[test]
fn a_row_with_nothing_but_its_key_is_updated() {
    let of = |engine: &EngineProfile| text(engine, KEY_ALONE, Action::Update, 2);
    assert_eq!(
        of(&EngineProfile::POSTGRES),
        "UPDATE \"orders\" AS ordid_target SET \"id\" = ordid_target.\"id\" \
         FROM (VALUES ($1), ($2)) AS ordid_rows (\"id\") WHERE ordid_target.\"id\" = ordid_rows.\"id\""
    );
    assert_eq!(
        of(&EngineProfile::SQLITE),
        "WITH ordid_rows (\"id\") AS (VALUES (?), (?)) UPDATE \"orders\" AS ordid_target \
         SET \"id\" = ordid_target.\"id\" FROM ordid_rows WHERE ordid_target.\"id\" = +ordid_rows.\"id\""
    );
    assert_eq!(
        of(&EngineProfile::SQL_SERVER),
        "UPDATE ordid_target SET [id] = ordid_target.[id] FROM [orders] AS ordid_target \
         JOIN (VALUES (@P1), (@P2)) AS ordid_rows ([id]) ON ordid_target.[id] = ordid_rows.[id]; \
         SELECT @@ROWCOUNT"
    );
    assert_eq!(
        of(&EngineProfile::MYSQL),
        "UPDATE `orders` SET `id` = `id` WHERE `id` = ?"
    );
    assert_eq!(
        of(&EngineProfile::ORACLE),
        r#"UPDATE "orders" SET "id" = "id" WHERE "id" = :1"#
    );
    let insert = text(&EngineProfile::SQLITE, KEY_ALONE, Action::Insert, 2);
    assert_eq!(insert, r#"INSERT INTO "orders" ("id") VALUES (?), (?)"#);
}

#[test]
fn one_row_is_matched_by_equality_and_not_by_a_list() {
    let of = |action| text(&EngineProfile::POSTGRES, KEY_FIRST, action, 1);
    assert_eq!(
        of(Action::Delete),
        r#"DELETE FROM "orders" WHERE "id" = $1"#
    );
    assert_eq!(
        of(UNLINK),
        r#"UPDATE "orders" SET "parent" = NULL WHERE "id" = $1"#
    );
    // The shape stays, so that a list's types are those of the statements of many rows.
    assert_eq!(
        of(FIX_UP),
        "UPDATE \"orders\" AS ordid_target SET \"parent\" = ordid_rows.\"parent\" \
         FROM (VALUES ($1, $2)) AS ordid_rows (\"id\", \"parent\") \
         WHERE ordid_target.\"id\" = ordid_rows.\"id\""
    );
}

#[test]
fn rows_may_have_values_for_some_columns() {
    let table = table(KEY_FIRST);
    let engine = EngineProfile::POSTGRES;
    let names = TableNames::of(&table, &engine);
    let writer = Writer::new(&engine);
    let of = |action, rows| {
        let statement = writer.statement(&table, &names, action, rows, Some(&[0, 2]));
        (statement.sql.to_string(), statement.columns.to_vec())
    };
    let (insert, columns) = of(Action::Insert, 2);
    assert_eq!(
        insert,
        r#"INSERT INTO "orders" ("id", "total") VALUES ($1, $2), ($3, $4)"#
    );
    assert_eq!(columns, [0, 2]);
    let (many, columns) = of(Action::Update, 2);
    assert_eq!(
        many,
        "UPDATE \"orders\" AS ordid_target SET \"total\" = ordid_rows.\"total\" \
         FROM (VALUES ($1, $2), ($3, $4)) AS ordid_rows (\"id\", \"total\") \
         WHERE ordid_target.\"id\" = ordid_rows.\"id\""
    );
    assert_eq!(columns, [0, 2]);
    let (one, columns) = of(Action::Update, 1);
    assert_eq!(one, r#"UPDATE "orders" SET "total" = $1 WHERE "id" = $2"#);
    assert_eq!(columns, [2, 0]);
}

#[test]
fn the_text_around_a_value_is_repeated_in_each_row() {
    let table = table(KEY_FIRST);
    let around = |engine: &EngineProfile| {
        let mut names = TableNames::of(&table, engine);
        names.around = vec![
            Some(["CAST(".to_owned(), " AS uuid)".to_owned()]),
            None,
            Some([String::new(), "::money".to_owned()]),
        ];
        names
    };
    let of = |engine: EngineProfile, action, rows| {
        let writer = Writer::new(&engine);
        let statement = writer.statement(&table, &around(&engine), action, rows, None);
        statement.sql.to_string()
    };
    assert_eq!(
        of(EngineProfile::POSTGRES, Action::Insert, 2),
        "INSERT INTO \"orders\" (\"id\", \"parent\", \"total\") \
         VALUES (CAST($1 AS uuid), $2, $3::money), (CAST($4 AS uuid), $5, $6::money)"
    );
    assert_eq!(
        of(EngineProfile::POSTGRES, Action::Delete, 2),
        r#"DELETE FROM "orders" WHERE "id" IN (CAST($1 AS uuid), CAST($2 AS uuid))"#
    );
    assert_eq!(
        of(EngineProfile::MYSQL, Action::Update, 1),
        "UPDATE `orders` SET `parent` = ?, `total` = ?::money WHERE `id` = CAST(? AS uuid)"
    );
    let engine = EngineProfile::POSTGRES;
    let writer = Writer::new(&engine);
    assert_eq!(
        &*writer.exists(&around(&engine)).sql,
        r#"SELECT 1 FROM "orders" WHERE "id" = CAST($1 AS uuid)"#
    );
}

/// A library that numbers its parameters itself wants one sign for all.
#[test]
fn a_library_may_have_its_own_placeholder() {
    let table = table(KEY_FIRST);
    let engine = EngineProfile::SQL_SERVER;
    let names = TableNames::of(&table, &engine);
    let writer = Writer {
        placeholder: Some('\u{1}'),
        ..Writer::new(&engine)
    };
    let insert = writer.statement(&table, &names, Action::Insert, 1, None);
    assert_eq!(
        &*insert.sql,
        "INSERT INTO [orders] ([id], [parent], [total]) VALUES (\u{1}, \u{1}, \u{1}); SELECT @@ROWCOUNT"
    );
    let marker = writer.marker(StatementKind::Exists);
    assert_eq!(
        &*marker.sql,
        "SELECT 1 FROM ordid_flushes WITH (READCOMMITTEDLOCK) WHERE id = \u{1}"
    );
}

#[test]
fn names_are_quoted_and_may_be_given() {
    let mut odd = table(&["id", "a\"b"]);
    odd.schema = Some("my shop");
    odd.name = "or\"ders";
    let engine = EngineProfile::POSTGRES;
    let names = TableNames::of(&odd, &engine);
    assert_eq!(names.table, r#""my shop"."or""ders""#);
    assert_eq!(names.columns, [r#""id""#, r#""a""b""#]);
    let given = TableNames::new("elsewhere".to_owned(), vec!["x".into(), "y".into()], &odd);
    let writer = Writer::new(&engine);
    let delete = writer.statement(&odd, &given, Action::Delete, 1, None);
    assert_eq!(&*delete.sql, "DELETE FROM elsewhere WHERE x = $1");
    let key_last = TableNames::of(&table(KEY_LAST), &engine);
    assert_eq!(key_last.keys, [2]);
    assert!(key_last.around.is_empty());
}

/// One round trip asks for all tables. The answer has the number of each table that is protected.
#[test]
fn the_catalog_is_asked_for_all_tables_at_once() {
    for (engine, first, second) in [
        (
            EngineProfile::POSTGRES,
            "SELECT CAST(0 AS TEXT) FROM pg_catalog.pg_index AS i WHERE i.indrelid = to_regclass(",
            " UNION ALL SELECT CAST(1 AS TEXT) FROM pg_catalog.pg_index AS i WHERE i.indrelid = to_regclass(",
        ),
        (
            EngineProfile::MYSQL,
            "SELECT CAST(0 AS CHAR) FROM information_schema.statistics AS i WHERE i.table_schema = DATABASE() AND ",
            " UNION ALL SELECT CAST(1 AS CHAR) FROM information_schema.statistics AS i WHERE ",
        ),
        (
            EngineProfile::SQL_SERVER,
            "SELECT CONVERT(nvarchar(64), 0, 121) FROM sys.indexes AS i WHERE i.object_id = OBJECT_ID(N'",
            " UNION ALL SELECT CONVERT(nvarchar(64), 1, 121) FROM sys.indexes AS i WHERE ",
        ),
        (
            EngineProfile::ORACLE,
            "SELECT TO_CHAR(0) FROM (SELECT MAX(o) KEEP ",
            " UNION ALL SELECT TO_CHAR(1) FROM (SELECT MAX(o) KEEP ",
        ),
    ] {
        let writer = Writer::new(&engine);
        let names = TableNames::of(&table(KEY_IN_BETWEEN), &engine);
        let tables = [(&names, &[0, 1][..]), (&names, &[1])];
        let asked = writer.are_protected(tables.into_iter()).unwrap().sql;
        assert!(asked.starts_with(first), "{asked}");
        assert!(asked.contains(second), "{asked}");
    }
    let sqlite = EngineProfile::SQLITE;
    let writer = Writer::new(&sqlite);
    assert!(writer.are_protected(std::iter::empty()).is_none());
}

#[test]
fn marker_rows_and_probes_use_the_same_columns() {
    for (engine, insert, exists, probe) in [
        (
            EngineProfile::POSTGRES,
            "INSERT INTO ordid_flushes (id) VALUES ($1)",
            "SELECT 1 FROM ordid_flushes WHERE id = $1",
            r#"SELECT 1 FROM "orders" WHERE "id" = $1"#,
        ),
        (
            EngineProfile::MYSQL,
            "INSERT INTO ordid_flushes (id) VALUES (?)",
            "SELECT 1 FROM ordid_flushes WHERE id = ? /*M! LOCK IN SHARE MODE *//*M!100600 SKIP LOCKED *//*!80000 FOR SHARE SKIP LOCKED */",
            "SELECT 1 FROM `orders` WHERE `id` = ? /*M! LOCK IN SHARE MODE *//*M!100600 SKIP LOCKED *//*!80000 FOR SHARE SKIP LOCKED */",
        ),
        (
            EngineProfile::SQL_SERVER,
            "INSERT INTO ordid_flushes (id) VALUES (@P1); SELECT @@ROWCOUNT",
            "SELECT 1 FROM ordid_flushes WITH (READCOMMITTEDLOCK) WHERE id = @P1",
            "SELECT 1 FROM [orders] WITH (READCOMMITTEDLOCK) WHERE [id] = @P1",
        ),
        (
            EngineProfile::ORACLE,
            "INSERT INTO ordid_flushes (id) VALUES (:1)",
            "SELECT 1 FROM ordid_flushes WHERE id = :1",
            r#"SELECT 1 FROM "orders" WHERE "id" = :1"#,
        ),
    ] {
        let writer = Writer::new(&engine);
        let marker = |kind| {
            let marker = writer.marker(kind);
            assert_eq!((marker.kind, marker.rows, marker.is_kept), (kind, 1, true));
            marker.sql
        };
        assert_eq!(&*marker(StatementKind::Insert), insert);
        assert_eq!(&*marker(StatementKind::Exists), exists);
        let found = writer.exists(&TableNames::of(&table(KEY_IN_BETWEEN), &engine));
        assert_eq!((&*found.sql, &found.columns[..]), (probe, &[1][..]));
    }
}

#[test]
fn no_statement_is_kept_behind_a_pooler_of_transactions() {
    let engine = EngineProfile::PGBOUNCER;
    let mut orders = table(KEY_ALONE);
    orders.rows = 25;
    let names = TableNames::of(&orders, &engine);
    let writer = Writer {
        keeps_up_to: 1_000,
        ..Writer::new(&engine)
    };
    let marker = |kind| writer.marker(kind).is_kept;
    assert!(!marker(StatementKind::Insert) && !marker(StatementKind::Exists));
    assert!(!writer.exists(&names).is_kept);
    let chunk = Chunk {
        action: Action::Insert,
        table: 0,
        number: 0,
        rows: 0..10,
    };
    let mut statements = Statements::new(writer, vec![(orders, names)]);
    assert!(!statements.of(&chunk, 10, None).is_kept);
}

#[test]
fn only_statements_that_are_repeated_are_kept() {
    let engine = EngineProfile::POSTGRES;
    let mut orders = table(KEY_ALONE);
    orders.rows = 25;
    let names = TableNames::of(&orders, &engine);
    let writer = Writer::new(&engine);
    let chunk = |number: usize, rows: std::ops::Range<usize>| Chunk {
        action: Action::Insert,
        table: 0,
        number,
        rows,
    };
    let mut statements = Statements::new(writer, vec![(orders.clone(), names.clone())]);
    let first = statements.of(&chunk(0, 0..10), 10, None);
    let second = statements.of(&chunk(1, 10..20), 10, None);
    assert!(first.is_kept && second.is_kept);
    assert!(Arc::ptr_eq(&first.sql, &second.sql), "it is written once");
    let last = statements.of(&chunk(2, 20..25), 5, None);
    assert_eq!((last.is_kept, last.rows), (false, 5));
    // Rows with other columns are few.
    assert!(!statements.of(&chunk(0, 0..10), 10, Some(&[0])).is_kept);
    let delete = Chunk {
        action: Action::Delete,
        ..chunk(0, 0..10)
    };
    let delete = statements.of(&delete, 10, None);
    assert_eq!(
        delete.kind,
        StatementKind::Delete,
        "the same number of rows"
    );
    // Some libraries keep all short ones.
    let keeps_up_to = last.sql.len();
    let writer = Writer {
        keeps_up_to,
        ..writer
    };
    let mut statements = Statements::new(writer, vec![(orders, names)]);
    assert!(statements.of(&chunk(2, 20..25), 5, None).is_kept);
    assert!(!statements.of(&chunk(2, 19..25), 6, None).is_kept);
}
