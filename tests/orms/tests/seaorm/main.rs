//! `ordid-seaorm` on PostgreSQL and MariaDB on private servers, and on SQLite in files: the same tests on
//! each, since SeaORM's connection is one type for all.

mod bulk;
mod drops;
mod faults;
mod keys;
mod models;
mod nested;
mod observed;
mod saves;
mod schema;
#[path = "../shared/told.rs"]
mod told;
mod updates;
mod work;

use std::future::Future;

use libtest_mimic::Trial;
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, on_scratch, run, run_all},
};
use sea_orm::{
    ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait, SqlxMySqlConnector,
    SqlxPostgresConnector, SqlxSqliteConnector,
};
use sqlx::{
    MySql, Postgres,
    sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions},
};

fn main() {
    told::listen();
    run_all(&["postgres", "mariadb"], |servers, trials| {
        keys::trials(servers, trials);
        saves::trials(servers, trials);
        nested::trials(servers, trials);
        bulk::trials(servers, trials);
        work::trials(servers, trials);
        updates::trials(servers, trials);
        faults::trials(servers, trials);
        drops::trials(servers, trials);
        observed::trials(trials);
        schema::trials(servers, trials);
    });
}

/// Adds a test for the private PostgreSQL.
fn on_postgres<F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, |pool| {
        test(SqlxPostgresConnector::from_sqlx_postgres_pool(pool))
    });
}

/// Adds a test for the private MariaDB.
fn on_mariadb<F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    on_scratch::<MySql, _, _>(trials, servers, "mariadb", name, |pool| {
        test(SqlxMySqlConnector::from_sqlx_mysql_pool(pool))
    });
}

/// Adds a test for SQLite, in a file of its own.
fn on_sqlite<F>(
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    trials.push(Trial::test(format!("sqlite::{name}"), || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let options = SqliteConnectOptions::new()
                .filename(folder.path().join("test.db"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .foreign_keys(true);
            let pool = SqlitePoolOptions::new()
                .max_connections(4)
                .connect_with(options)
                .await?;
            let outcome = test(SqlxSqliteConnector::from_sqlx_sqlite_pool(pool.clone())).await;
            pool.close().await;
            outcome
        })
    }));
}

/// Adds a test for each database.
fn on_all<F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Copy + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    on_postgres(servers, trials, name, test);
    on_mariadb(servers, trials, name, test);
    on_sqlite(trials, name, test);
}

/// Makes the table of an entity.
async fn create<E: EntityTrait>(db: &DatabaseConnection, entity: E) -> Outcome {
    let table = ordid_seaorm::create_table(db.get_database_backend(), entity);
    db.execute(&table).await?;
    Ok(())
}

fn is_mysql(db: &DatabaseConnection) -> bool {
    db.get_database_backend() == DbBackend::MySql
}
