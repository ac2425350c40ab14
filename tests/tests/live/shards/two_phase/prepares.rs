//! The servers, as the tests of two-phase commits know them.

use std::time::Duration;

use ordid_sqlx::EngineProfile;
use sqlx::{
    ConnectOptions as _, MySql, Pool, Postgres,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgSslMode},
};

use super::Tenant;
use crate::{
    database::{Executes, Keeps, Live as _, Reads},
    retry::Remote,
};

/// The options of a connection.
pub type Options<DB> = <<DB as sqlx::Database>::Connection as sqlx::Connection>::Options;

/// A database that prepares transactions.
pub trait Prepares:
    Remote + ordid_tests::servers::Scratch + Keeps<Tenant> + Reads<Tenant> + Reads<(String,)>
{
    /// How the statements begin that prepare a transaction, and that end it.
    const PREPARE: &'static str;
    const COMMIT_PREPARED: &'static str;
    const ROLLBACK_PREPARED: &'static str;

    /// Makes the table of tenants.
    const TENANTS: &'static str;

    /// Inserts a row that is no part of any flush.
    const OTHER: &'static str;

    /// An engine that prepares nothing.
    const WITHOUT: EngineProfile;

    /// Whether an attempt finds out at once, and not by a lock, that an earlier one is not over.
    const KNOWS_ITS_IDS: bool;

    /// Returns a pool's options. A transaction waits for a lock no longer than a test should.
    fn patient(connections: u32) -> PoolOptions<Self>;

    /// The same for the options of its connections.
    fn patiently(options: Options<Self>) -> Options<Self>;

    /// Returns these options, of connections through a proxy.
    fn proxied(options: &Options<Self>, port: u16) -> Options<Self>;

    /// Returns these options, under a name by which the server tells the sessions from others.
    fn named(options: Options<Self>) -> Options<Self>;

    /// The statement that a server needs so that there can be such sessions.
    const NAMED: Option<&'static str> = None;

    /// The query that counts them.
    const COUNTS_NAMED: &'static str;

    fn url(options: &Options<Self>) -> String;

    /// Returns the statements that prepare a transaction with these statements.
    fn prepare(gid: &str, sql: &[&str]) -> Vec<String>;

    fn roll_back(gid: &str) -> String;

    /// Returns whether what is prepared stays the connection's.
    async fn is_bound(pool: &Pool<Self>) -> Result<bool, sqlx::Error>;

    /// Returns the ids of what is prepared on a server or in a database.
    async fn gids(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error>;
}

impl Prepares for Postgres {
    const PREPARE: &'static str = "PREPARE TRANSACTION";
    const COMMIT_PREPARED: &'static str = "COMMIT PREPARED";
    const ROLLBACK_PREPARED: &'static str = "ROLLBACK PREPARED";
    const TENANTS: &'static str =
        "CREATE TABLE tenants (id uuid NOT NULL PRIMARY KEY, name text NOT NULL UNIQUE)";
    const OTHER: &'static str = "INSERT INTO tenants VALUES (gen_random_uuid(), 'x')";
    const WITHOUT: EngineProfile = EngineProfile::AURORA_DSQL;
    const KNOWS_ITS_IDS: bool = false;

    fn patient(connections: u32) -> PoolOptions<Self> {
        PoolOptions::new().max_connections(connections)
    }

    fn patiently(options: PgConnectOptions) -> PgConnectOptions {
        options.options([("lock_timeout", "500ms")])
    }

    fn proxied(options: &PgConnectOptions, port: u16) -> PgConnectOptions {
        let options = options.clone().host("127.0.0.1").port(port);
        options.ssl_mode(PgSslMode::Disable)
    }

    fn named(options: PgConnectOptions) -> PgConnectOptions {
        options.application_name("killed")
    }

    const COUNTS_NAMED: &'static str =
        "pg_stat_activity WHERE datname = current_database() AND application_name = 'killed'";

    fn url(options: &PgConnectOptions) -> String {
        options.to_url_lossy().to_string()
    }

    fn prepare(gid: &str, sql: &[&str]) -> Vec<String> {
        let mut all = vec!["BEGIN".to_owned()];
        all.extend(sql.iter().map(|it| (*it).to_owned()));
        all.push(format!("PREPARE TRANSACTION '{gid}'"));
        all
    }

    fn roll_back(gid: &str) -> String {
        format!("ROLLBACK PREPARED '{gid}'")
    }

    async fn is_bound(_: &Pool<Self>) -> Result<bool, sqlx::Error> {
        Ok(false)
    }

    async fn gids(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error> {
        let sql = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()";
        // A pooler may be in between, so nothing is prepared by name.
        let rows = Self::unprepared(pool, sql.to_owned()).await?;
        rows.iter().map(|row| sqlx::Row::try_get(row, 0)).collect()
    }
}

impl Prepares for MySql {
    const PREPARE: &'static str = "XA PREPARE";
    const COMMIT_PREPARED: &'static str = "XA COMMIT";
    const ROLLBACK_PREPARED: &'static str = "XA ROLLBACK";
    const TENANTS: &'static str = "CREATE TABLE tenants (id BINARY(16) NOT NULL PRIMARY KEY, \
        name VARCHAR(100) NOT NULL UNIQUE) ENGINE = InnoDB";
    const OTHER: &'static str = "INSERT INTO tenants VALUES (UNHEX(REPLACE(UUID(), '-', '')), 'x')";
    const WITHOUT: EngineProfile = EngineProfile::GALERA;
    const KNOWS_ITS_IDS: bool = true;

    fn patient(connections: u32) -> PoolOptions<Self> {
        let pools = PoolOptions::new().max_connections(connections);
        pools.after_connect(|connection, _| {
            Box::pin(Self::execute_in(
                connection,
                "SET innodb_lock_wait_timeout = 1",
            ))
        })
    }

    fn patiently(options: MySqlConnectOptions) -> MySqlConnectOptions {
        options
    }

    fn proxied(options: &MySqlConnectOptions, port: u16) -> MySqlConnectOptions {
        let options = <Self as ordid_tests::servers::Client>::over_tcp(options);
        let options = options.host("127.0.0.1").port(port);
        options.ssl_mode(MySqlSslMode::Disabled)
    }

    fn named(options: MySqlConnectOptions) -> MySqlConnectOptions {
        options.username("ordid_killed")
    }

    /// MySQL's `ALL` has the privilege `XA_RECOVER_ADMIN`.
    const NAMED: Option<&'static str> = Some(
        "CREATE USER IF NOT EXISTS ordid_killed@'%'; GRANT ALL ON *.* TO ordid_killed@'%'; \
         CREATE USER IF NOT EXISTS ordid_killed@localhost; GRANT ALL ON *.* TO ordid_killed@localhost",
    );

    const COUNTS_NAMED: &'static str =
        "information_schema.processlist WHERE db = DATABASE() AND user = 'ordid_killed'";

    fn url(options: &MySqlConnectOptions) -> String {
        options.to_url_lossy().to_string()
    }

    fn prepare(gid: &str, sql: &[&str]) -> Vec<String> {
        let mut all = vec![format!("XA START '{gid}'")];
        all.extend(sql.iter().map(|it| (*it).to_owned()));
        all.push(format!("XA END '{gid}'"));
        all.push(format!("XA PREPARE '{gid}'"));
        all
    }

    fn roll_back(gid: &str) -> String {
        format!("XA ROLLBACK '{gid}'")
    }

    async fn is_bound(pool: &Pool<Self>) -> Result<bool, sqlx::Error> {
        let version = Self::texts(pool, "SELECT VERSION()").await?;
        Ok(version[0].contains("MariaDB"))
    }

    async fn gids(pool: &Pool<Self>) -> Result<Vec<String>, sqlx::Error> {
        let rows = Self::unprepared(pool, "XA RECOVER".to_owned()).await?;
        let last = rows.iter().map(|row| sqlx::Row::try_get_unchecked(row, 3));
        last.collect()
    }
}

/// Ends a prepared transaction, also if the server has not noticed so far that the connection is closed which has prepared
/// it.
pub async fn roll_back<DB: Prepares>(pool: &Pool<DB>, gid: &str) -> Result<(), sqlx::Error> {
    for _ in 0..200 {
        if DB::script(pool, &DB::roll_back(gid)).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    DB::script(pool, &DB::roll_back(gid)).await
}
