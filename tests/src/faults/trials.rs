//! Tests with a place of their own to write to.

use std::future::Future;

use libtest_mimic::Trial;
use sqlx::{Sqlite, sqlite::SqliteConnectOptions};

use super::{Flusher, Served, Site};
use crate::{
    servers::Servers,
    soak,
    trials::{Outcome, ignored, leave_to_the_soak, on_scratch, run},
};

/// How often a fault is tried: `cargo xtask soak` asks for more.
pub fn times(short: u32, long: u32) -> u32 {
    if soak() { long } else { short }
}

/// Adds a test with a database of its own on a server that others use, too.
pub fn on_server<W, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    W: Flusher<Database: Served>,
    T: FnOnce(Site<W::Database>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{}{name}", W::PREFIX);
    on_scratch::<W::Database, _, _>(trials, servers, server, &name, async |pool| {
        let options = (*pool.connect_options()).clone();
        // Its connections would count as sessions.
        pool.close().await;
        test(Site::create(options).await?).await
    });
}

/// Adds tests on MariaDB, and in the soak the same on MySQL itself.
pub fn on_both(trials: &mut Vec<Trial>, add: impl Fn(&mut Vec<Trial>, &'static str)) {
    add(trials, "mariadb");
    let mut of_mysql = Vec::new();
    add(&mut of_mysql, "mysql");
    let reason = "it runs on MariaDB, and in cargo xtask soak on MySQL";
    leave_to_the_soak(&mut of_mysql, reason);
    trials.append(&mut of_mysql);
}

/// Adds a test with a server of its own, to be killed.
pub fn on_own_server<W, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    W: Flusher,
    T: FnOnce(ordid_harness::Server) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{server}::{}{name}", W::PREFIX);
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(_) => Trial::test(name, move || {
            run(async || test(ordid_harness::start(server)?).await)
        }),
    });
}

/// Adds a test with an SQLite file of its own.
pub fn on_file<W, T, F>(trials: &mut Vec<Trial>, name: &str, test: T)
where
    W: Flusher<Database = Sqlite>,
    T: FnOnce(Site<Sqlite>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("sqlite::{}{name}", W::PREFIX);
    trials.push(Trial::test(name, move || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let options = SqliteConnectOptions::new().filename(folder.path().join("faults.sqlite"));
            test(Site::create(options.create_if_missing(true)).await?).await
        })
    }));
}
