//! Every claim about a database, on that database: PostgreSQL and MariaDB on private servers,
//! SQLite in files, MySQL 8 where `ORDID_TEST_MYSQL_URL` names one.

mod changes;
mod coexistence;
mod copy;
mod engine;
mod flush;
mod graph;
mod instagram;
mod keys;
mod mariadb;
mod mysql;
mod own;
mod postgres;
mod retry;
mod sqlite;
mod traps;

use std::{future::Future, panic::AssertUnwindSafe};

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_tests::servers::Servers;

/// What a live test returns.
type Outcome = Result<(), Box<dyn std::error::Error + Send + Sync>>;

fn main() {
    let mut arguments = Arguments::from_args();
    // Servers and tests share the machine; more at once only times out.
    arguments.test_threads.get_or_insert(2);
    let servers = match Servers::start(&["postgres", "mariadb", "mysql"], !arguments.list) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("live tests: {error}");
            std::process::exit(101);
        }
    };
    let mut trials = Vec::new();
    sqlite::trials(&mut trials);
    postgres::trials(&servers, &mut trials);
    copy::trials(&servers, &mut trials);
    instagram::trials(&servers, &mut trials);
    mariadb::trials(&servers, &mut trials);
    mysql::trials(&servers, &mut trials);
    retry::trials(&servers, &mut trials);
    coexistence::trials(&servers, &mut trials);
    traps::trials(&servers, &mut trials);
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: stop the servers first.
    drop(servers);
    conclusion.exit();
}

/// Runs an async test on a runtime of its own; a panic is a failure of this test alone.
fn run<F: Future<Output = Outcome>>(test: impl FnOnce() -> F) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failed::from(error.to_string()))?;
    match std::panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(test()))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failed::from(error.to_string())),
        Err(_) => Err(Failed::from("panicked, see above")),
    }
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
        Err(reason) => trials.push(
            Trial::test(name, || Ok(()))
                .with_kind(reason)
                .with_ignored_flag(true),
        ),
    }
}
