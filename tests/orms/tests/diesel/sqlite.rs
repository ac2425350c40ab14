//! SQLite in files.

use std::{thread, time::Duration};

use diesel::{connection::SimpleConnection as _, prelude::*, sql_types::Text};
use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_diesel::{Retry, UnitOfWork};

use crate::{
    Outcome,
    engine::{add_all, engine},
    keys::{Long, Native},
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

diesel::table! {
    notes (id) { id -> Binary, body -> Text, }
}

#[derive(OrderedKey)]
#[diesel(table_name = notes)]
#[ordid(diesel)]
struct Note {
    id: Native,
    body: String,
}

/// A transaction that reads first, and is not `IMMEDIATE`, cannot write after another writer has committed, however long it waits.
fn upserts_wait(file: &str) -> Outcome {
    let mut connection = SqliteConnection::establish(file)?;
    connection.batch_execute(
        "PRAGMA journal_mode = WAL; PRAGMA busy_timeout = 20000;
         CREATE TABLE notes (id BLOB NOT NULL PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID",
    )?;
    let mut other = SqliteConnection::establish(file)?;
    other.batch_execute("BEGIN IMMEDIATE; INSERT INTO notes VALUES (x'00', 'other')")?;
    let writer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        other.batch_execute("COMMIT")
    });
    let mut work = UnitOfWork::new().with_retry(Retry::NONE).without_record();
    work.upsert(Note {
        id: Native::generate(),
        body: "waits".to_owned(),
    });
    work.flush(&mut connection)?;
    writer.join().expect("it has ended")?;
    assert_eq!(notes::table.count().get_result(&mut connection), Ok(2));
    Ok(())
}

pub fn trials(trials: &mut Vec<Trial>) {
    add_all(trials, "sqlite", tests(), in_file);
    in_file(
        trials,
        "upserts_wait_for_another_writer_and_write_then",
        upserts_wait,
    );
}
