//! Which database servers the live tests run on, and a scratch database on each.

use std::{
    collections::HashMap,
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering},
};

use ordid_harness::{Access, Error};
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, MySql, MySqlConnection, PgConnection, Pool,
    Postgres, Sqlite, mysql::MySqlConnectOptions, pool::PoolOptions, postgres::PgConnectOptions,
};

/// How to connect to a database.
pub type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// The servers that live tests may ask for; started by this process where they are private and no
/// address is given, stopped when this is dropped.
#[derive(Debug)]
pub struct Servers(HashMap<&'static str, Access>);

impl Servers {
    /// Finds or starts the servers of these names, if they are wanted and not only listed.
    ///
    /// # Errors
    ///
    /// If a private server is missing or does not start, or a name in `ORDID_TEST_SKIP` is none.
    pub fn start(names: &[&'static str], wanted: bool) -> Result<Self, Error> {
        let mut servers = HashMap::new();
        for &name in names {
            let access = if wanted {
                ordid_harness::access(name)?
            } else {
                Access::Skip("only listed".to_owned())
            };
            servers.insert(name, access);
        }
        Ok(Self(servers))
    }

    /// Returns a server's address.
    ///
    /// # Errors
    ///
    /// The reason why its tests are ignored.
    pub fn url(&self, name: &str) -> Result<String, String> {
        match self.0.get(name) {
            Some(Access::Skip(reason)) => Err(reason.clone()),
            Some(access) => access.url().ok_or_else(|| "no address".to_owned()),
            None => Err(format!("no server is called {name}")),
        }
    }
}

/// Drops a database.
pub type Cleanup = Pin<Box<dyn Future<Output = Result<(), sqlx::Error>> + Send>>;

/// A database engine on which a test can have a database of its own.
pub trait Scratch: sqlx::Database {
    /// Makes an empty database on the server; the future drops it.
    fn scratch(
        url: &str,
    ) -> impl Future<Output = Result<(Pool<Self>, Cleanup), sqlx::Error>> + Send;
}

macro_rules! scratch {
    ($database:ident, $options:ty, $drop:literal, $near:path) => {
        impl Scratch for $database {
            async fn scratch(url: &str) -> Result<(Pool<Self>, Cleanup), sqlx::Error> {
                static COUNT: AtomicU32 = AtomicU32::new(0);
                let number = COUNT.fetch_add(1, Ordering::Relaxed);
                let name = format!("ordid_{}_{number}", std::process::id());
                let options: $options = url.parse()?;
                let mut admin =
                    <Self as sqlx::Database>::Connection::connect_with(&options).await?;
                let options = $near(options, &mut admin).await?;
                let create = format!("CREATE DATABASE {name}");
                sqlx::raw_sql(AssertSqlSafe(create))
                    .execute(&mut admin)
                    .await?;
                let pool = PoolOptions::<Self>::new()
                    .max_connections(4)
                    .connect_with(options.database(&name))
                    .await?;
                let open = pool.clone();
                let cleanup = async move {
                    open.close().await;
                    let drop = format!($drop, name);
                    sqlx::raw_sql(AssertSqlSafe(drop))
                        .execute(&mut admin)
                        .await?;
                    admin.close().await
                };
                Ok((pool, Box::pin(cleanup)))
            }
        }
    };
}

scratch!(
    Postgres,
    PgConnectOptions,
    "DROP DATABASE {} WITH (FORCE)",
    as_it_is
);
scratch!(
    MySql,
    MySqlConnectOptions,
    "DROP DATABASE {}",
    by_its_socket
);

async fn as_it_is(
    options: PgConnectOptions,
    _: &mut PgConnection,
) -> Result<PgConnectOptions, sqlx::Error> {
    Ok(options)
}

/// Connects by `MariaDB`'s socket, if it is on this machine. `SQLx` 0.9.0 does not set `TCP_NODELAY`: over TCP, each
/// statement behind one that is closed waits 40 ms. What goes through a proxy goes over TCP all the same, and so does
/// `MySQL`: it ends some TLS handshakes over its socket.
async fn by_its_socket(
    options: MySqlConnectOptions,
    admin: &mut MySqlConnection,
) -> Result<MySqlConnectOptions, sqlx::Error> {
    let socket = "SELECT IF(VERSION() LIKE '%MariaDB%', @@socket, '')";
    let socket: String = sqlx::query_scalar(socket).fetch_one(admin).await?;
    Ok(match std::path::Path::new(&socket).exists() {
        true => options.socket(socket),
        false => options,
    })
}

/// A database whose address other clients than `SQLx` take, too.
pub trait Client: sqlx::Database {
    /// Returns the address as the C clients of PostgreSQL, MySQL and SQLite know it: without `SQLx`'s own
    /// parameters, and without TLS where these options are.
    fn client_url(options: &Options<Self>) -> String;

    /// Returns options for the same database over TCP, without other parameters.
    ///
    /// # Panics
    ///
    /// If the address has no text.
    fn over_tcp(options: &Options<Self>) -> Options<Self> {
        let options = Self::client_url(options).parse();
        options.expect("it is made of options")
    }
}

impl Client for Postgres {
    fn client_url(options: &Options<Self>) -> String {
        let url = options.to_url_lossy();
        let mut pairs = url.query_pairs();
        let is_plain = pairs.any(|(key, value)| key == "sslmode" && value == "disable");
        let place = url.as_str().split('?').next().unwrap_or_default();
        let plain = if is_plain { "?sslmode=disable" } else { "" };
        format!("{place}{plain}")
    }
}

impl Client for MySql {
    fn client_url(options: &Options<Self>) -> String {
        let url = options.to_url_lossy();
        url.as_str()
            .split('?')
            .next()
            .unwrap_or_default()
            .to_owned()
    }
}

impl Client for Sqlite {
    fn client_url(options: &Options<Self>) -> String {
        options.get_filename().to_string_lossy().into_owned()
    }
}
