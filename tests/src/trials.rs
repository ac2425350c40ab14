//! What test programs with their own `main` share (libtest-mimic): servers that are started for them,
//! tests that are ignored with a reason, async tests.

use std::{
    future::{Future, poll_fn},
    pin::pin,
    task::Poll,
    time::Duration,
};

use libtest_mimic::{Arguments, Failed, Trial};
use sqlx::{
    Pool, Sqlite,
    pool::PoolOptions,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

use crate::{
    servers::{Client, Scratch, Servers},
    soak,
};

/// What a test returns.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Runs the tests of a program on the servers of these names, and ends the process.
pub fn run_all(names: &[&'static str], add: impl FnOnce(&Servers, &mut Vec<Trial>)) -> ! {
    let mut arguments = Arguments::from_args();
    // More than cores: most tests wait for a server, or for a lease to end.
    arguments.test_threads.get_or_insert(6);
    let servers = match Servers::start(names, !arguments.list) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("servers of the tests: {error}");
            std::process::exit(101);
        }
    };
    let mut trials = Vec::new();
    add(&servers, &mut trials);
    let conclusion = libtest_mimic::run(&arguments, trials);
    // `exit` runs no destructors: stop the servers first.
    drop(servers);
    conclusion.exit()
}

/// A test that cannot run here, for this reason.
pub fn ignored(name: impl Into<String>, reason: String) -> Trial {
    let trial = Trial::test(name, || Ok(()));
    trial.with_kind(reason).with_ignored_flag(true)
}

/// Leaves MySQL itself to the soak, but for SQLx: what another library does is seen on MariaDB, and what MySQL does, over
/// SQLx.
pub fn leave_mysql_to_the_soak(trials: &mut [Trial]) {
    let is_long = |trial: &Trial| {
        let test = trial.name().strip_prefix("mysql::");
        test.is_some_and(|test| test.contains("::")) && !trial.has_ignored_flag()
    };
    let of_mysql = trials.iter_mut().filter(|trial| is_long(trial));
    leave_to_the_soak(of_mysql, "long over this library: see cargo xtask soak");
}

/// Leaves tests to the soak, for this reason.
pub fn leave_to_the_soak<'t>(trials: impl IntoIterator<Item = &'t mut Trial>, reason: &str) {
    if soak() {
        return;
    }
    for trial in trials {
        if !trial.has_ignored_flag() {
            *trial = ignored(trial.name(), reason.to_owned());
        }
    }
}

/// After this a test is taken to wait for what will not come.
fn endless() -> Duration {
    Duration::from_mins(if soak() { 120 } else { 15 })
}

/// Runs an async test on a new runtime.
///
/// # Errors
///
/// Returns the error of the test, or an error if the test does not end or there is no runtime.
pub fn run<F: Future<Output = Outcome>>(test: impl FnOnce() -> F) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failed::from(error.to_string()))?;
    let endless = endless();
    let limited = async { tokio::time::timeout(endless, test()).await };
    match runtime.block_on(limited) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(Failed::from(error.to_string())),
        Err(_) => Err(Failed::from(format!("still running after {endless:?}"))),
    }
}

/// Polls a future so many times and drops it. Returns what it came to if it was over.
pub async fn cut_off<F: Future>(future: F, mut polls: usize) -> Option<F::Output> {
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending if polls > 1 => {
            polls -= 1;
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Returns options for a SQLite file of its own, which is there as long as the folder: in WAL mode, with foreign
/// keys.
///
/// # Errors
///
/// If there can be no folder.
pub fn sqlite_file() -> std::io::Result<(tempfile::TempDir, SqliteConnectOptions)> {
    let folder = tempfile::tempdir()?;
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.sqlite"))
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .foreign_keys(true);
    Ok((folder, options))
}

/// Runs a test over so many connections, which are closed then.
///
/// # Errors
///
/// What the test returns, and that there is no connection.
pub async fn over_sqlite<F: Future<Output = Outcome>>(
    options: SqliteConnectOptions,
    connections: u32,
    test: impl FnOnce(Pool<Sqlite>) -> F,
) -> Outcome {
    let pool = PoolOptions::new().max_connections(connections);
    let pool = pool.connect_with(options).await?;
    let outcome = test(pool.clone()).await;
    pool.close().await;
    outcome
}

/// Adds a test with a database of its own on a server: ignored, with the reason in its name, where
/// there is no server.
pub fn on_scratch<DB, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    DB: Scratch,
    T: FnOnce(Pool<DB>) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    let name = format!("{server}::{name}");
    trials.push(match servers.url(server) {
        Err(reason) => ignored(name, reason),
        Ok(url) => Trial::test(name, move || {
            run(async || {
                let (pool, cleanup) = DB::scratch(&url).await?;
                let outcome = test(pool).await;
                cleanup.await?;
                outcome
            })
        }),
    });
}

/// The same for a test over another client, which gets the database's address.
pub fn on_address<DB, T, F>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: T,
) where
    DB: Scratch + Client,
    T: FnOnce(String) -> F + Send + 'static,
    F: Future<Output = Outcome>,
{
    on_scratch::<DB, _, _>(trials, servers, server, name, async |pool| {
        let url = DB::client_url(&pool.connect_options());
        pool.close().await;
        test(url).await
    });
}

/// Adds functions as tests, each with a new database on a server. The name of a test is this beginning and the
/// function's name.
#[macro_export]
macro_rules! scratch_tests {
    ($trials:ident, $servers:ident, $database:ty: $server:expr, $begin:literal; $($test:ident),+ $(,)?) => {$(
        $crate::trials::on_scratch::<$database, _, _>(
            $trials,
            $servers,
            $server,
            concat!($begin, stringify!($test)),
            $test,
        );
    )+};
}

/// Adds functions as tests, each of which gets the address of a new database on a server. The name of a test is this
/// beginning and the function's name.
#[macro_export]
macro_rules! address_tests {
    ($trials:ident, $servers:ident, $database:ty: $server:expr, $begin:literal; $($test:ident),+ $(,)?) => {$(
        $crate::trials::on_address::<$database, _, _>(
            $trials,
            $servers,
            $server,
            concat!($begin, stringify!($test)),
            $test,
        );
    )+};
}
