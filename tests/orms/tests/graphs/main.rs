//! The random graphs of foreign keys that `ordid-sqlx` is held against, flushed by the units of work of
//! Diesel, diesel-async, `SeaORM`, rusqlite, tokio-postgres, the crate `postgres` and mysql_async: see
//! [`ordid_tests::graphs`]. On MySQL itself in the soak: MariaDB stands for it.

#[path = "../shared/connect.rs"]
mod connect;
mod diesel;
#[path = "../shared/establish.rs"]
mod establish;
#[path = "../shared/lite.rs"]
mod lite;
#[path = "../shared/mysql.rs"]
mod mysql;
#[path = "../shared/over.rs"]
mod over;
mod plain;
mod seaorm;
#[path = "../shared/tokio.rs"]
mod tokio;
#[path = "../shared/works.rs"]
mod works;

use std::time::Duration;

use ::diesel::{MysqlConnection, PgConnection, SqliteConnection};
use diesel_async::{
    AsyncMysqlConnection, AsyncPgConnection, sync_connection_wrapper::SyncConnectionWrapper,
};
use ordid::{KeyType, uuid::Uuid};
use ordid_tests::{
    graphs,
    trials::{leave_mysql_to_the_soak, run_all},
};
use over::{Awaited, Blocking};
use sqlx::{MySql, Postgres, Sqlite};

/// The key of each row, in all libraries.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct RowId(Uuid);

/// How long rusqlite waits for a lock: nobody else writes.
const SQLITE_WAIT: Duration = Duration::ZERO;

fn main() {
    run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
        graphs::trials::<
            diesel::Work<Blocking<SqliteConnection>>,
            diesel::Work<Blocking<PgConnection>>,
            diesel::Work<Blocking<MysqlConnection>>,
        >(servers, trials);
        graphs::trials::<
            diesel::Work<Awaited<SyncConnectionWrapper<SqliteConnection>>>,
            diesel::Work<Awaited<AsyncPgConnection>>,
            diesel::Work<Awaited<AsyncMysqlConnection>>,
        >(servers, trials);
        graphs::trials::<seaorm::Work<Sqlite>, seaorm::Work<Postgres>, seaorm::Work<MySql>>(
            servers, trials,
        );
        graphs::on_files::<works::Rusqlite>(trials);
        graphs::on_server::<works::TokioPostgres>(servers, trials, "postgres");
        graphs::on_server::<works::PostgresCrate>(servers, trials, "postgres");
        graphs::on_server::<works::MysqlAsync>(servers, trials, "mariadb");
        graphs::on_server::<works::MysqlAsync>(servers, trials, "mysql");
        leave_mysql_to_the_soak(trials);
    });
}
