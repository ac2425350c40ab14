//! What the tests of SQL stores share.

use std::{future::Future, net::SocketAddr, time::Duration};

use libtest_mimic::Trial;
use ordid_harness::{Policy, Server};
use ordid_sqlx::{Backend, ConnectOptions};
use ordid_tests::{
    proxy::Proxy,
    servers::{Client, Servers},
    trials::{Outcome, ignored, run, sqlite_file},
};
use sqlx::{
    AssertSqlSafe, Connection as _, MySql, Postgres, SqlSafeStr as _,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    postgres::{PgConnectOptions, PgSslMode},
    sqlite::SqliteConnectOptions,
};

/// Adds tests of a module that are generic over the database: on each server, with a database of their own.
macro_rules! on_servers {
    ($module:literal, $servers:ident, $trials:ident, $($test:ident),+ $(,)?) => {
        $(
            let name = concat!($module, "::", stringify!($test));
            for server in ["mariadb", "mysql"] {
                ordid_tests::trials::on_scratch::<sqlx::MySql, _, _>(
                    $trials, $servers, server, name, |pool| async move {
                        $test::<sqlx::MySql>((*pool.connect_options()).clone()).await
                    },
                );
            }
            ordid_tests::trials::on_scratch::<sqlx::Postgres, _, _>(
                $trials, $servers, "postgres", name, |pool| async move {
                    $test::<sqlx::Postgres>((*pool.connect_options()).clone()).await
                },
            );
        )+
    };
}

/// As [`on_servers`], and on a file of SQLite.
macro_rules! on_each {
    ($module:literal, $servers:ident, $trials:ident, $($test:ident),+ $(,)?) => {
        $crate::sql::on_servers!($module, $servers, $trials, $($test),+);
        $(
            let name = concat!($module, "::", stringify!($test));
            $trials.push($crate::sql::in_file(name, $test::<sqlx::Sqlite>));
        )+
    };
}

pub(crate) use {on_each, on_servers};

/// A test on a SQLite file of its own.
pub(crate) fn in_file<F: Future<Output = Outcome>>(
    name: &str,
    test: impl FnOnce(SqliteConnectOptions) -> F + Send + 'static,
) -> Trial {
    Trial::test(format!("sqlite::{name}"), move || {
        run(async || {
            let (_folder, options) = sqlite_file()?;
            test(options.busy_timeout(Duration::from_secs(30))).await
        })
    })
}

/// A test on private MariaDB servers, one for each list of options.
pub(crate) fn on_private_mariadb<F: Future<Output = Outcome>>(
    servers: &Servers,
    name: &str,
    options: Vec<Vec<String>>,
    test: impl FnOnce(Vec<Server>) -> F + Send + 'static,
) -> Trial {
    let name = format!("mariadb::{name}");
    // Also where servers of the user's are named: these have to be started in their own way.
    let skipped =
        ["mariadb", "mariadb_2"].into_iter().find_map(|server| {
            match ordid_harness::policy(server) {
                Ok(Policy::Skip(reason)) => Some(reason),
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            }
        });
    if let Some(reason) = servers.url("mariadb").err().or(skipped) {
        return ignored(name, reason);
    }
    Trial::test(name, move || {
        run(async || {
            let started = tokio::task::spawn_blocking(move || {
                let options = options.iter();
                options
                    .map(|options| {
                        let options: Vec<&str> = options.iter().map(String::as_str).collect();
                        ordid_harness::mariadb_with(&options)
                    })
                    .collect::<Result<Vec<_>, _>>()
            });
            test(started.await??).await
        })
    })
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

/// A server that is reached by a port, without TLS: what tests count on the way varies from connection to connection
/// with it, and MySQL has it by default.
pub(crate) trait Network: Backend {
    fn at(options: &ConnectOptions<Self>, port: u16) -> ConnectOptions<Self>;
    fn port(options: &ConnectOptions<Self>) -> u16;
}

macro_rules! network {
    ($database:ty, $options:ty, $plain:expr) => {
        impl Network for $database {
            fn at(options: &$options, port: u16) -> $options {
                <Self as Client>::over_tcp(options)
                    .port(port)
                    .ssl_mode($plain)
            }

            fn port(options: &$options) -> u16 {
                options.get_port()
            }
        }
    };
}

network!(Postgres, PgConnectOptions, PgSslMode::Disable);
network!(MySql, MySqlConnectOptions, MySqlSslMode::Disabled);

pub(crate) async fn proxy_to<DB: Network>(options: &ConnectOptions<DB>) -> std::io::Result<Proxy> {
    Proxy::start(SocketAddr::from(([127, 0, 0, 1], DB::port(options)))).await
}
