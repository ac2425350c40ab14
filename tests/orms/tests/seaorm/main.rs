//! `ordid-seaorm` on PostgreSQL and MariaDB on private servers, and on SQLite in files: the same tests on
//! each, since SeaORM's connection is one type for all.

/// Adds functions as tests, under their names behind this one.
macro_rules! all {
    ($add:ident($servers:expr, $trials:expr), $module:literal; $($name:ident),+ $(,)?) => {$(
        $add($servers, $trials, concat!($module, stringify!($name)), $name);
    )+};
}

mod bulk;
#[path = "../shared/connect.rs"]
mod connect;
mod drops;
mod faults;
mod keys;
mod models;
mod nested;
mod observed;
mod saves;
mod schema;
mod shards;
#[path = "../shared/told.rs"]
mod told;
mod updates;
mod work;

use std::future::Future;

use libtest_mimic::Trial;
use ordid_tests::{
    servers::{Scratch, Servers},
    trials::{Outcome, on_scratch, over_sqlite, run, run_all, sqlite_file},
};
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, EntityTrait};
use sqlx::{MySql, Postgres, Sqlite};

use crate::connect::Connect;

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
        shards::trials(servers, trials);
    });
}

/// Adds a test for a private server.
fn on_server<DB: Scratch + Connect, F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    on_scratch::<DB, _, _>(trials, servers, server, name, |pool| {
        test(DB::connect(pool))
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
            let (_folder, options) = sqlite_file()?;
            over_sqlite(options, 4, |pool| test(Sqlite::connect(pool))).await
        })
    }));
}

/// Adds a test for each server.
fn on_servers<F>(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    name: &str,
    test: impl FnOnce(DatabaseConnection) -> F + Copy + Send + 'static,
) where
    F: Future<Output = Outcome>,
{
    on_server::<Postgres, _>(servers, trials, "postgres", name, test);
    on_server::<MySql, _>(servers, trials, "mariadb", name, test);
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
    on_servers(servers, trials, name, test);
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
