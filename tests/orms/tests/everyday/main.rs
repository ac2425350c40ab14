//! What applications do every day beside inserts, over `SQLx`, Diesel, diesel-async and `SeaORM`: see
//! [`ordid_tests::everyday`].

#[path = "../shared/connect.rs"]
mod connect;
mod diesel;
#[path = "../shared/establish.rs"]
mod establish;
#[path = "../shared/over.rs"]
mod over;
mod seaorm;
mod sqlx;

use ::diesel::{MysqlConnection, PgConnection, SqliteConnection};
use ::sqlx::{MySql, Postgres, Sqlite};
use diesel_async::{
    AsyncMysqlConnection, AsyncPgConnection, sync_connection_wrapper::SyncConnectionWrapper,
};
use ordid::{KeyType, uuid::Uuid};
use ordid_tests::{everyday, trials::run_all};
use over::{Awaited, Blocking};

/// The key of a note, in all libraries.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, sea_orm, sqlx)]
pub struct NoteId(Uuid);

fn main() {
    run_all(&["postgres", "mariadb"], |servers, trials| {
        everyday::trials::<sqlx::Work<Sqlite>, sqlx::Work<Postgres>, sqlx::Work<MySql>>(
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
    });
}
