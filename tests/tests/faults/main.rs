//! Faults of the world, on real servers and with real processes, and the law that must hold after
//! each of them: see [`ordid_tests::faults`].
//!
//! Each test has a short form; `cargo xtask soak` runs the long one in its place.

mod commit;
mod cut;
mod deadlock;
mod kill;
mod refused;
mod restart;

use std::{future::Future, panic::AssertUnwindSafe};

use libtest_mimic::{Arguments, Failed, Trial};
use ordid_tests::{
    faults::{Engine, Outcome, Site},
    servers::{Scratch, Servers},
    soak,
};
use sqlx::{Sqlite, sqlite::SqliteConnectOptions};

fn main() {
    let mut arguments = Arguments::from_args();
    // Servers and tests share the machine; more at once only times out.
    arguments.test_threads.get_or_insert(2);
    let servers = match Servers::start(&["postgres", "mariadb"], !arguments.list) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("fault tests: {error}");
            std::process::exit(101);
        }
    };
    let mut trials = Vec::new();
    cut::trials(&servers, &mut trials);
    commit::trials(&servers, &mut trials);
    restart::trials(&servers, &mut trials);
    kill::trials(&servers, &mut trials);
    deadlock::trials(&servers, &mut trials);
    refused::trials(&servers, &mut trials);
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: stop the servers first.
    drop(servers);
    conclusion.exit();
}

/// How often a fault is tried: `cargo xtask soak` asks for more.
fn times(short: u32, long: u32) -> u32 {
    if soak() { long } else { short }
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

fn ignored(name: String, reason: String) -> Trial {
    let trial = Trial::test(name, || Ok(()));
    trial.with_kind(reason).with_ignored_flag(true)
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
    let name = format!("{server}::{name}");
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            run(async || {
                let (pool, cleanup) = DB::scratch(&url).await?;
                let options = (*pool.connect_options()).clone();
                // Its connections would count as sessions.
                pool.close().await;
                let outcome = match Site::create(options).await {
                    Ok(site) => test(site).await,
                    Err(error) => Err(error),
                };
                cleanup.await?;
                outcome
            })
        }),
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
