//! Faults of the world, on real servers and with real processes, and the law that must hold after
//! each of them: see [`ordid_tests::faults`].
//!
//! Each test has a short form; `cargo xtask soak` runs the long one in its place.

mod commit;
mod connection;
mod cut;
mod deadlock;
mod disk;
mod kill;
mod refused;
mod restart;

use std::future::Future;

use libtest_mimic::Trial;
use ordid_tests::{
    faults::{Engine, Site},
    servers::{Scratch, Servers},
    soak,
    trials::{Outcome, ignored, on_scratch, run, run_all},
};
use sqlx::{Sqlite, sqlite::SqliteConnectOptions};

fn main() {
    run_all(&["postgres", "mariadb"], |servers, trials| {
        cut::trials(servers, trials);
        commit::trials(servers, trials);
        connection::trials(servers, trials);
        restart::trials(servers, trials);
        kill::trials(servers, trials);
        deadlock::trials(servers, trials);
        refused::trials(servers, trials);
        disk::trials(trials);
    });
}

/// How often a fault is tried: `cargo xtask soak` asks for more.
fn times(short: u32, long: u32) -> u32 {
    if soak() { long } else { short }
}

/// Adds a test with a database of its own on a server that others use, too.
fn on_server<DB, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    DB: Engine + Scratch,
    T: FnOnce(Site<DB>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    on_scratch::<DB, _, _>(trials, servers, server, name, async |pool| {
        let options = (*pool.connect_options()).clone();
        // Its connections would count as sessions.
        pool.close().await;
        test(Site::create(options).await?).await
    });
}

/// Adds a test with a server of its own, to be killed.
fn on_own_server<T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    T: FnOnce(ordid_harness::Server) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{server}::{name}");
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(_) => Trial::test(name, move || {
            run(async || test(ordid_harness::start(server)?).await)
        }),
    });
}

/// Adds a test with an SQLite file of its own.
fn on_file<T, F>(trials: &mut Vec<Trial>, name: &str, test: T)
where
    T: FnOnce(Site<Sqlite>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    trials.push(Trial::test(format!("sqlite::{name}"), move || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let options = SqliteConnectOptions::new().filename(folder.path().join("faults.sqlite"));
            test(Site::create(options.create_if_missing(true)).await?).await
        })
    }));
}
