//! The random graphs of foreign keys that `ordid-sqlx` is held against, flushed by Diesel's and `SeaORM`'s
//! units of work: see [`ordid_tests::graphs`].

#[path = "../shared/connect.rs"]
mod connect;
mod diesel;
mod seaorm;

use ordid::{KeyType, uuid::Uuid};
use ordid_tests::{graphs, trials::run_all};

/// The key of each row, in both libraries.
#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, sea_orm)]
pub struct RowId(Uuid);

fn main() {
    run_all(&["postgres"], |servers, trials| {
        graphs::trials::<diesel::sqlite::Work, diesel::postgres::Work>(servers, trials);
        graphs::trials::<seaorm::Work<sqlx::Sqlite>, seaorm::Work<sqlx::Postgres>>(servers, trials);
    });
}
