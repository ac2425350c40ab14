//! What applications do every day beside inserts, over `SQLx`, Diesel, diesel-async, `SeaORM`, rusqlite, tokio-postgres,
//! the crate `postgres` and mysql_async, each on those of PostgreSQL, MariaDB and SQLite that it has: see
//! [`ordid_tests::everyday`]. On MySQL itself through `SQLx`, and in the soak through the others, as MariaDB stands for it.

/// Adds a change of a row to a unit of work. This is a macro because the units of work of all libraries have functions
/// of the same names.
macro_rules! add_change {
    ($work:expr, $change:expr, $row:ident, $columns:expr, $changed:expr, $deleted:expr) => {
        match $change {
            Change::Add => {
                $work.add($row);
            }
            Change::Update => $work.update($row),
            Change::UpdateStars => $work.update_columns($row, $columns),
            Change::UpdateChanged => $changed,
            Change::Delete => $work.delete($deleted),
            Change::Upsert => {
                $work.upsert($row);
            }
            Change::Ignore => {
                $work.insert_or_ignore($row);
            }
        }
    };
    // Adds a change of a row whose stars have changed since it was read.
    ($work:expr, $change:expr, $row:ident: $entity:ident) => {
        add_change!(
            $work,
            $change,
            $row,
            $entity::stars,
            {
                let mut row = Tracked::new($entity {
                    stars: $row.stars - 1,
                    ..$row
                });
                row.stars += 1;
                assert!($work.update_changed(row).expect("the key is the same"));
            },
            &$row
        )
    };
}

#[path = "../shared/connect.rs"]
mod connect;
mod diesel;
#[path = "../shared/establish.rs"]
mod establish;
mod followed;
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
    everyday,
    trials::{leave_mysql_to_the_soak, run_all},
};
use over::{Awaited, Blocking};
use sqlx::{MySql, Postgres, Sqlite};

/// The key of a note, in all libraries.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, sqlx, tokio_postgres)]
pub struct NoteId(Uuid);

/// How long rusqlite waits for a lock: four tasks write the same row here, each on a thread of its own.
const SQLITE_WAIT: Duration = Duration::from_secs(30);

fn main() {
    run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
        everyday::trials::<plain::Sqlx<Sqlite>, plain::Sqlx<Postgres>, plain::Sqlx<MySql>>(
            servers, trials,
        );
        everyday::trials::<
            diesel::Work<Blocking<SqliteConnection>>,
            diesel::Work<Blocking<PgConnection>>,
            diesel::Work<Blocking<MysqlConnection>>,
        >(servers, trials);
        everyday::trials::<
            diesel::Work<Awaited<SyncConnectionWrapper<SqliteConnection>>>,
            diesel::Work<Awaited<AsyncPgConnection>>,
            diesel::Work<Awaited<AsyncMysqlConnection>>,
        >(servers, trials);
        everyday::trials::<seaorm::Work<Sqlite>, seaorm::Work<Postgres>, seaorm::Work<MySql>>(
            servers, trials,
        );
        use followed::{AsyncSqlite, Diesel, DieselAsync, SeaOrm};
        ordid_tests::followed::on_files::<followed::Rusqlite>(trials);
        ordid_tests::followed::on_server::<followed::MysqlAsync>(servers, trials, "mariadb");
        ordid_tests::followed::on_server::<followed::MysqlAsync>(servers, trials, "mysql");
        ordid_tests::followed::on_postgres::<followed::TokioPostgres>(servers, trials);
        ordid_tests::followed::on_postgres::<followed::PostgresCrate>(servers, trials);
        ordid_tests::followed::trials::<SeaOrm<Sqlite>, SeaOrm<Postgres>, SeaOrm<MySql>>(
            servers, trials,
        );
        ordid_tests::followed::trials::<
            Diesel<SqliteConnection>,
            Diesel<PgConnection>,
            Diesel<MysqlConnection>,
        >(servers, trials);
        ordid_tests::followed::trials::<
            DieselAsync<AsyncSqlite>,
            DieselAsync<AsyncPgConnection>,
            DieselAsync<AsyncMysqlConnection>,
        >(servers, trials);
        everyday::on_files::<works::Rusqlite>(trials);
        everyday::on_server::<works::TokioPostgres>(servers, trials, "postgres");
        everyday::on_server::<works::PostgresCrate>(servers, trials, "postgres");
        everyday::on_server::<works::MysqlAsync>(servers, trials, "mariadb");
        everyday::on_server::<works::MysqlAsync>(servers, trials, "mysql");
        leave_mysql_to_the_soak(trials);
    });
}
