//! What the tests of SQL stores share.

use std::future::Future;

use libtest_mimic::Trial;
use ordid_harness::{Policy, Server};
use ordid_sqlx::{Backend, ConnectOptions};
use ordid_tests::{
    servers::Servers,
    trials::{Outcome, ignored, run},
};
use sqlx::{
    AssertSqlSafe, Connection as _, SqlSafeStr as _,
    sqlite::{SqliteConnectOptions, SqliteJournalMode},
};

/// A test on a SQLite file of its own.
pub(crate) fn in_file<F: Future<Output = Outcome>>(
    name: &str,
    test: impl FnOnce(SqliteConnectOptions) -> F + Send + 'static,
) -> Trial {
    Trial::test(format!("sqlite::{name}"), move || {
        run(async || {
            let folder = tempfile::tempdir()?;
            let options = SqliteConnectOptions::new()
                .filename(folder.path().join("leases.sqlite"))
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .busy_timeout(std::time::Duration::from_secs(30));
            test(options).await
        })
    })
}

/// A test on a private server of its own, which it may kill.
pub(crate) fn on_own_server<F: Future<Output = Outcome>>(
    trials: &mut Vec<Trial>,
    servers: &Servers,
    server: &'static str,
    name: &str,
    test: impl FnOnce(Server) -> F + Send + 'static,
) {
    let name = format!("{server}::{name}");
    // Only listed, or skipped.
    let reason = servers
        .url(server)
        .err()
        .or_else(|| match ordid_harness::policy(server) {
            Ok(Policy::Skip(reason)) => Some(reason),
            Ok(_) => None,
            Err(error) => Some(error.to_string()),
        });
    trials.push(match reason {
        Some(reason) => ignored(name, reason),
        None => Trial::test(name, move || {
            run(async || {
                let server =
                    tokio::task::spawn_blocking(move || ordid_harness::start(server)).await??;
                test(server).await
            })
        }),
    });
}

/// Runs statements on a connection of their own.
pub(crate) async fn sql<DB: Backend>(options: &ConnectOptions<DB>, text: &str) -> Outcome {
    let mut connection = DB::Connection::connect_with(options).await?;
    let script = AssertSqlSafe(text.to_owned()).into_sql_str();
    DB::run_script(&mut connection, script).await?;
    connection.close().await?;
    Ok(())
}

/// Forks from a thread that runs no tasks: in the child it can have a runtime of its own.
pub(crate) fn outside_of_the_runtime<T: Send + 'static>(
    forks: impl FnOnce() -> T + Send + 'static,
) -> Outcome<T> {
    let thread = std::thread::spawn(forks);
    Ok(thread.join().map_err(|_| "no child")?)
}

/// Runs a future in a forked child, whose threads are not those of its parent.
pub(crate) fn own_runtime<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(work)
}
