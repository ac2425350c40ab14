//! SQLite in files.

use diesel::{prelude::*, sql_types::Text};
use libtest_mimic::Trial;
use ordid_tests::trials::ignored;

use crate::{
    async_work,
    engine::columns,
    keys::Long,
    migrations::migrations,
    print_schema::{Declared, sqlite as printed},
    retries,
    scratch::in_file,
    tables::tables,
    upserts::on_conflict,
    work,
};

columns! {
    diesel::SqliteConnection, diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite;
    native: Native, diesel::sql_types::Binary;
    long: Long, diesel::sql_types::Text;
    short: Short, diesel::sql_types::Text;
    base32: Base32, diesel::sql_types::Text;
    no_order: NoOrder, diesel::sql_types::Binary;
    number: Number, diesel::sql_types::BigInt;
    object: Object, diesel::sql_types::Binary;
    push: Push, diesel::sql_types::Text;
    wide: Wide, diesel::sql_types::Binary;
    wide_text: WideText, diesel::sql_types::Text;
}

on_conflict! {
    diesel::SqliteConnection, diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite;
    native_tags: Native, diesel::sql_types::Binary;
    short_tags: Short, diesel::sql_types::Text;
}

tables! {
    diesel::SqliteConnection, diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>, diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite, diesel::sql_types::Binary;

    const IS_FILE: bool = true;
    const WAIT: &'static str = "PRAGMA busy_timeout = 0";
    const SESSION: &'static str = "0";

    /// There is no session.
    fn kill(_: &mut SqliteConnection, _: i64) {}
}

migrations!(
    diesel::SqliteConnection,
    diesel::sqlite::Sqlite,
    ordid::storage::dialect::Sqlite,
    plan,
    "USING COVERING INDEX"
);

/// What the database says of a column's type.
fn declared(connection: &mut SqliteConnection, table: &str, column: &str) -> QueryResult<String> {
    diesel::sql_query("SELECT type AS declared FROM pragma_table_info(?) WHERE name = ?")
        .bind::<Text, _>(table)
        .bind::<Text, _>(column)
        .get_result::<Declared>(connection)
        .map(|it| it.declared)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    detail: String,
}

fn plan(connection: &mut SqliteConnection, key: Long) -> QueryResult<String> {
    let lines: Vec<Line> =
        diesel::sql_query("EXPLAIN QUERY PLAN SELECT id FROM long_keys WHERE id = ?")
            .bind::<Text, _>(key)
            .load(connection)?;
    Ok(lines.into_iter().map(|it| it.detail).collect())
}

pub fn trials(trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test| in_file(trials, name, test);
    columns(&mut add);
    upserts(&mut add);
    add("migrations_have_the_columns_of_keys", migrations);
    add(
        "circles_are_checked_at_commit",
        work::deferred::<diesel::sqlite::Sqlite>,
    );
    let tests = work::tests::<diesel::sqlite::Sqlite>().into_iter();
    let tests = tests.chain(retries::tests::<diesel::sqlite::Sqlite>());
    for (name, test) in tests.chain(async_work::tests::<diesel::sqlite::Sqlite>()) {
        add(name, test);
    }
    commands(|name, test| match test {
        Ok(test) => in_file(trials, name, test),
        Err(reason) => trials.push(ignored(format!("sqlite::{name}"), reason)),
    });
}
