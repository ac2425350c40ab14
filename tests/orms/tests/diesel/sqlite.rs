//! SQLite in files.

use diesel::{prelude::*, sql_types::Text};
use libtest_mimic::Trial;

use crate::{
    engine::{add_all, engine},
    keys::Long,
    print_schema::sqlite as printed,
    scratch::in_file,
    tables::tables,
};

engine! {
    diesel::SqliteConnection, diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite,
    diesel::sql_types::Binary, on_conflict, "USING COVERING INDEX";
}

tables! {
    diesel::SqliteConnection, diesel_async::sync_connection_wrapper::SyncConnectionWrapper<diesel::SqliteConnection>, diesel::sqlite::Sqlite, ordid::storage::dialect::Sqlite, diesel::sql_types::Binary;

    const IS_FILE: bool = true;
    const WAIT: &'static str = "PRAGMA busy_timeout = 0";
    const SESSION: &'static str = "0";
    const KILL: &'static str = "SELECT 'there is no session {session}'";
}

const DECLARED: &str = "SELECT type AS declared FROM pragma_table_info(?) WHERE name = ?";

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
    add_all(trials, "sqlite", tests(), in_file);
}
