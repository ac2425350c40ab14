//! The traps of each engine, as the engine pages of the guide number them: what goes wrong with plain SQL, and
//! that it does not with ordid's keys and declarations.
//!
//! What loses order at compile time is in `tests/ui`; what a wrong collation does is beside the
//! columns that it happens to.

mod mariadb;
mod postgres;
mod sqlite;

use libtest_mimic::Trial;
use ordid_tests::servers::Servers;
use sqlx::Pool;

use crate::{
    Outcome,
    database::{Binds, Live, Question, one},
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    mariadb::trials(servers, trials);
    postgres::trials(servers, trials);
    sqlite::trials(trials);
}

async fn run<DB: Live>(pool: &Pool<DB>, sql: &str) -> Result<(), sqlx::Error> {
    DB::script(pool, sql).await
}

/// Asserts what a statement counts.
async fn is<DB: Live>(pool: &Pool<DB>, sql: &str, expected: i64) -> Result<(), sqlx::Error> {
    assert_eq!(one::<i64>(pool, sql).await?, expected, "{sql}");
    Ok(())
}

/// Binds a value to an `INSERT`.
async fn put<DB: Live + Binds<T>, T>(
    pool: &Pool<DB>,
    sql: &str,
    value: T,
) -> Result<(), sqlx::Error> {
    let insert = Question::<DB>::new(sql.to_owned()).bind(value);
    insert.ask(pool).await.map(drop)
}

/// Returns the error of a statement that must not succeed.
async fn refused<DB: Live>(pool: &Pool<DB>, sql: &str) -> Outcome<String> {
    match run(pool, sql).await {
        Ok(()) => Err(format!("not refused: {sql}").into()),
        Err(error) => Ok(error.to_string()),
    }
}
