//! The same rows through `SQLx`, Diesel, diesel-async and `SeaORM`, on SQLite rusqlite, on PostgreSQL tokio-postgres,
//! and on MariaDB mysql_async: what one of them writes into a table, another reads, orders, follows, changes and deletes.
//! A test's name says the database, the column of the keys, who writes, and who reads and changes. MariaDB stands for MySQL,
//! which is not among the databases.
//!
//! A library more is one more implementation of [`library::Library`], a name in [`library::NAMES`], and what
//! `test` in `engine.rs` makes of that name. One that has not every engine is an `own` one of those that it has.

mod column;
#[path = "../shared/connect.rs"]
mod connect;
mod engine;
#[path = "../shared/establish.rs"]
mod establish;
mod library;
#[path = "../shared/lite.rs"]
mod lite;
#[path = "../shared/mysql.rs"]
mod mysql;
mod mysql_async;
mod rusqlite;
#[path = "../shared/tokio.rs"]
mod tokio;
mod tokio_postgres;

use std::time::Duration;

use ordid_tests::trials::run_all;

/// How long rusqlite waits for a lock: nobody else writes.
const SQLITE_WAIT: Duration = Duration::ZERO;

fn main() {
    run_all(&["postgres", "mariadb"], |servers, trials| {
        engine::postgres::trials(servers, trials);
        engine::mariadb::trials(servers, trials);
        engine::sqlite::trials(trials);
    });
}
