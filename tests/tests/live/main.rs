//! Every claim about a database, on that database: PostgreSQL and MariaDB on private servers,
//! SQLite in files, MySQL 8 where `ORDID_TEST_MYSQL_URL` names one.

mod changes;
mod coexistence;
mod copy;
mod engine;
mod flush;
mod graph;
mod instagram;
mod journal;
mod keys;
mod mariadb;
mod mysql;
mod own;
mod postgres;
mod retry;
mod shards;
mod sqlite;
mod traps;

use std::future::Future;

use libtest_mimic::Trial;
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, ignored, run, run_all},
};

fn main() {
    journal::run_if_told();
    run_all(&["postgres", "mariadb", "mysql"], |servers, trials| {
        sqlite::trials(trials);
        postgres::trials(servers, trials);
        copy::trials(servers, trials);
        instagram::trials(servers, trials);
        journal::trials(servers, trials);
        mariadb::trials(servers, trials);
        mysql::trials(servers, trials);
        retry::trials(servers, trials);
        coexistence::trials(servers, trials);
        traps::trials(servers, trials);
        shards::trials(servers, trials);
    });
}

/// Adds one test for a server: ignored, with the reason in its name, where there is no server.
fn server_trial<DB, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    DB: ordid_tests::servers::Scratch,
    T: FnOnce(sqlx::Pool<DB>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{server}::{name}");
    match servers.url(server) {
        Ok(url) => trials.push(Trial::test(name, move || {
            run(async || {
                let (pool, cleanup) = DB::scratch(&url).await?;
                let outcome = test(pool).await;
                cleanup.await?;
                outcome
            })
        })),
        Err(reason) => trials.push(ignored(name, reason)),
    }
}
