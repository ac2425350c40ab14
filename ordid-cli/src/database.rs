//! A live database, by its URL.

use std::{str::FromStr as _, time::Duration};

use sqlx::{
    Connection, MySqlConnection, MySqlPool, PgConnection, PgPool, SqlitePool,
    mysql::{MySqlConnectOptions, MySqlPoolOptions},
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgPoolOptions},
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::{
    engine::Engine,
    failure::{Failure, shown},
    output::shell_word,
    pooler,
};

/// The variable of the environment that has the URL where the argument is left out.
pub(crate) const VARIABLE: &str = "DATABASE_URL";

/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// Connections to a database.
#[derive(Debug, Clone)]
pub(crate) enum Database {
    /// To PostgreSQL, or what speaks its protocol.
    Postgres(PgPool),
    /// To MySQL or MariaDB, which the engine says.
    MySql(MySqlPool, Engine),
    /// To a file of SQLite.
    Sqlite(SqlitePool),
}

/// The access of a command to a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It reads. A SQLite file is opened read-only, and each session of a server refuses to write.
    Read,
    /// It writes.
    Write,
}

impl Database {
    /// Connects to `postgres://..`, `mysql://..`, `mariadb://..`, `sqlite://..` or the path of a SQLite file that exists.
    ///
    /// # Errors
    ///
    /// The URL is of no engine that can be reached from here, the database does not answer, or a pooler would give the
    /// session's settings to other programs. No message has the URL, which may have a password.
    pub(crate) async fn connect(url: &str, access: Access) -> Result<Self, Failure> {
        let cannot = |error: sqlx::Error| {
            Failure::could_not(format_args!(
                "cannot connect to the database: {}",
                shown(&error)
            ))
        };
        if is_server(url) && cuts_password(url) {
            return Err(Failure::wrong(
                "the URL has an @ behind its host: write / ? # and @ of a password as %2F %3F %23 and %40",
            ));
        }
        let database = match url.split_once(':').map_or("", |(scheme, _)| scheme) {
            "postgres" | "postgresql" => {
                let session = match access {
                    Access::Read => "SET default_transaction_read_only = on",
                    Access::Write => "SET default_transaction_read_only = off",
                };
                let pool = options(PgPoolOptions::new()).after_connect(move |connection, _| {
                    Box::pin(async move {
                        sqlx::raw_sql(session).execute(connection).await?;
                        Ok(())
                    })
                });
                let options = PgConnectOptions::from_str(url).map_err(cannot)?;
                let place = place(options.get_host(), options.get_port());
                let mut one = try_once::<PgConnection>(&options, &place).await?;
                let mut other = try_once::<PgConnection>(&options, &place).await?;
                // Before anything is set in a session.
                pooler::refuse(&mut one, &mut other).await?;
                closed(one).await;
                closed(other).await;
                Self::Postgres(pool.connect_with(options).await.map_err(cannot)?)
            }
            "mysql" | "mariadb" => {
                let session: &[&str] = match access {
                    Access::Read => &["SET autocommit = 1", "SET SESSION TRANSACTION READ ONLY"],
                    Access::Write => &["SET autocommit = 1"],
                };
                let pool = options(MySqlPoolOptions::new()).after_connect(move |connection, _| {
                    Box::pin(async move {
                        for statement in session {
                            sqlx::raw_sql(*statement).execute(&mut *connection).await?;
                        }
                        Ok(())
                    })
                });
                // Both speak one protocol, and only the first name of it is known to the driver.
                let url = url.replacen("mariadb:", "mysql:", 1);
                let options = MySqlConnectOptions::from_str(&url).map_err(cannot)?;
                let place = place(options.get_host(), options.get_port());
                closed(try_once::<MySqlConnection>(&options, &place).await?).await;
                let pool = pool.connect_with(options).await.map_err(cannot)?;
                let version: String = sqlx::query_scalar("SELECT version()")
                    .fetch_one(&pool)
                    .await
                    .map_err(cannot)?;
                let engine = match version.to_ascii_lowercase().contains("mariadb") {
                    true => Engine::Mariadb,
                    false => Engine::Mysql,
                };
                Self::MySql(pool, engine)
            }
            "sqlite" => {
                Self::file(SqliteConnectOptions::from_str(url).map_err(cannot)?, access).await?
            }
            _ if std::path::Path::new(url).is_file() => {
                Self::file(SqliteConnectOptions::new().filename(url), access).await?
            }
            _ if url.is_empty() => {
                return Err(Failure::wrong(format_args!(
                    "the URL of the database is empty: name the database, or set {VARIABLE}"
                )));
            }
            // Nothing of it goes into the message: it may be a password.
            _ => {
                return Err(Failure::wrong(
                    "the database has to be a URL that begins with postgres://, mysql://, mariadb:// or sqlite://, or the \
                     path of a SQLite file that exists",
                ));
            }
        };
        Ok(database)
    }

    async fn file(file: SqliteConnectOptions, access: Access) -> Result<Self, Failure> {
        let file = file
            .create_if_missing(false)
            .read_only(access == Access::Read)
            .busy_timeout(PATIENCE);
        let pool = options(SqlitePoolOptions::new()).connect_with(file).await;
        pool.map(Self::Sqlite).map_err(|error| {
            Failure::could_not(format_args!("cannot open the SQLite file: {error}"))
        })
    }

    /// Returns which engine it is.
    pub(crate) fn engine(&self) -> Engine {
        match self {
            Self::Postgres(_) => Engine::Postgres,
            Self::MySql(_, engine) => *engine,
            Self::Sqlite(_) => Engine::Sqlite,
        }
    }
}

/// Returns a text of a row; an empty one for NULL.
pub(crate) fn text(row: &[Option<String>], at: usize) -> String {
    row.get(at).cloned().flatten().unwrap_or_default()
}

/// Returns how a command that is printed names the database, behind a space: not at all if `DATABASE_URL` has it. A URL is not
/// repeated, as it may have a password.
pub(crate) fn argument(url: &str) -> String {
    let is_in_environment = std::env::var(VARIABLE).is_ok_and(|value| value == url);
    match () {
        () if is_in_environment => String::new(),
        () if is_server(url) => format!(" \"${VARIABLE}\""),
        () => format!(" {}", shell_word(url)),
    }
}

/// Whether it names a server, with `//` or without.
fn is_server(url: &str) -> bool {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    let is_known = matches!(scheme, "postgres" | "postgresql" | "mysql" | "mariadb");
    is_known || url.contains("://") && scheme != "sqlite"
}

/// Whether the password seems to have a `/`, `?` or `#`, at which the host would end: its first part would be taken for the
/// port, and messages would name it.
fn cuts_password(url: &str) -> bool {
    let place = url.split_once("://").map_or(url, |(_, place)| place);
    let behind = place.find(['/', '?', '#']).map_or("", |at| &place[at..]);
    // Parameters may have an @.
    behind
        .split_once('@')
        .is_some_and(|(before, _)| !before.contains('='))
}

/// Returns where a server is: no user, and no password.
fn place(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Opens one connection. A pool would try a server that refuses again and again until its patience ends, and
/// then not say why.
async fn try_once<C: Connection>(options: &C::Options, place: &str) -> Result<C, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::could_not(format_args!(
            "cannot connect to the database at {place}: {error}"
        ))
    };
    match tokio::time::timeout(PATIENCE, C::connect_with(options)).await {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(sqlx::Error::Io(error))) => Err(failed(&error)),
        Ok(Err(error)) => Err(failed(&shown(&error))),
        Err(_) => Err(failed(&format_args!(
            "it has not answered within {} s",
            PATIENCE.as_secs()
        ))),
    }
}

/// Closes a connection. It was good enough to be opened; how it ends does not matter.
async fn closed(connection: impl Connection) {
    let _ = connection.close().await;
}

fn options<DB: sqlx::Database>(options: PoolOptions<DB>) -> PoolOptions<DB> {
    options.max_connections(4).acquire_timeout(PATIENCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_has_no_password() {
        assert_eq!(
            argument("postgres://me:secret@host/db"),
            " \"$DATABASE_URL\""
        );
        assert_eq!(argument("postgres:me:secret@host"), " \"$DATABASE_URL\"");
        assert_eq!(argument("data/shop.sqlite"), " data/shop.sqlite");
        for cut in [
            "12/34@host/db",
            "p@ss/word@host/db",
            "12?3@host",
            "1#2@host",
        ] {
            assert!(cuts_password(&format!("postgres://me:{cut}")), "{cut}");
        }
        for whole in [
            "me:p@ss@host/db",
            "host/db?user=me@it",
            "me@host",
            "host",
            "/db?host=/a",
        ] {
            assert!(!cuts_password(&format!("postgres://{whole}")), "{whole}");
        }
        assert_eq!(argument("my shop's.sqlite"), r" 'my shop'\''s.sqlite'");
        assert_eq!(
            argument("sqlite://shop.sqlite?mode=rw"),
            " 'sqlite://shop.sqlite?mode=rw'"
        );
    }
}
