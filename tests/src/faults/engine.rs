//! The databases: SQLx's executor bounds hold for concrete connections only, so each has its own
//! copy of the few functions.

use std::{
    future::Future,
    net::{SocketAddr, ToSocketAddrs},
    path::Path,
};

use ordid_file::FlushJournal;
use ordid_sqlx::{Backend, Journaled, UnitOfWork, flushes_table};
use sqlx::{
    AssertSqlSafe, MySql, Postgres, Sqlite,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    postgres::{PgConnectOptions, PgSslMode},
    query_scalar, raw_sql,
};

use super::{Customer, Graph, HowChanged, Item, Order, Outcome};
use crate::servers::{Client, Options};

/// A database that fault tests know.
pub trait Engine: Backend + Client {
    /// The column type of a key.
    const KEY: &'static str;

    /// Counts the sessions of others in this database.
    const SESSIONS: Option<&'static str>;

    /// How many rows of the tables of [`Shape::CHUNKS`](super::Shape::CHUNKS) `SQLx`'s adapter sends by
    /// `COPY`.
    const COPIED: [usize; 3];

    /// What stands behind a table.
    const TABLE_OPTIONS: &'static str;

    /// Adds the rows, children first.
    fn add(work: &mut UnitOfWork<Self>, graph: &Graph);

    /// Adds updates of the customers, and deletes the items.
    fn change(work: &mut UnitOfWork<Self>, graph: &Graph);

    /// Returns a journal for these rows in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened.
    fn journaled(path: &Path) -> Outcome<Journaled<Self>>;

    /// Executes SQL without parameters.
    fn execute_sql(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Returns the first column of what a query finds.
    fn numbers(
        connection: &mut Self::Connection,
        sql: &str,
    ) -> impl Future<Output = Result<Vec<i64>, sqlx::Error>> + Send;

    /// Returns the statements that make the tables, which have their foreign keys.
    fn tables() -> [String; 4] {
        let (key, options) = (Self::KEY, Self::TABLE_OPTIONS);
        [
            format!(
                "CREATE TABLE customers (id {key} NOT NULL PRIMARY KEY, unit BIGINT NOT NULL, \
                 position BIGINT NOT NULL, bucket BIGINT NOT NULL) {options}"
            ),
            format!(
                "CREATE TABLE orders (id {key} NOT NULL PRIMARY KEY, customer {key} NOT NULL, unit \
                 BIGINT NOT NULL, position BIGINT NOT NULL, bucket BIGINT NOT NULL, label \
                 VARCHAR(40) NOT NULL UNIQUE, FOREIGN KEY (customer) REFERENCES customers (id)) \
                 {options}"
            ),
            format!(
                "CREATE TABLE items (id {key} NOT NULL, order_id {key} NOT NULL, unit BIGINT NOT NULL, \
                 position BIGINT NOT NULL, PRIMARY KEY (id, order_id), FOREIGN KEY (order_id) REFERENCES \
                 orders (id)) {options}"
            ),
            flushes_table::<Self>().to_owned(),
        ]
    }
}

/// A database behind a network.
pub trait Remote: Engine {
    /// Returns where the server is.
    ///
    /// # Errors
    ///
    /// If its name has no address.
    fn address(options: &Options<Self>) -> Outcome<SocketAddr>;

    /// Returns how to reach the same database through another port of this machine, without TLS: a
    /// proxy is to see what is said.
    fn through(options: &Options<Self>, port: u16) -> Options<Self>;
}

macro_rules! engine {
    ($database:ty, key: $key:literal, options: $options:literal, sessions: $sessions:expr, copied: $copied:expr) => {
        impl Engine for $database {
            const KEY: &'static str = $key;
            const SESSIONS: Option<&'static str> = $sessions;
            const COPIED: [usize; 3] = $copied;
            const TABLE_OPTIONS: &'static str = $options;

            fn add(work: &mut UnitOfWork<Self>, graph: &Graph) {
                for item in graph.items.iter().cloned() {
                    work.add(item);
                }
                for order in graph.orders.iter().cloned() {
                    work.add(order);
                }
                for customer in graph.customers.iter().cloned() {
                    work.add(customer);
                }
            }

            fn change(work: &mut UnitOfWork<Self>, graph: &Graph) {
                for item in &graph.items {
                    work.delete(item);
                }
                for customer in &graph.customers {
                    match customer.changed() {
                        (customer, HowChanged::OnlyBucket) => {
                            work.update_columns(customer, Customer::bucket);
                        }
                        (customer, HowChanged::Whole) => work.update(customer),
                        (customer, HowChanged::Upserted) => {
                            work.upsert(customer);
                        }
                    }
                }
            }

            fn journaled(path: &Path) -> Outcome<Journaled<Self>> {
                let journaled = Journaled::new(FlushJournal::open(path)?);
                Ok(journaled.row::<Customer>().row::<Order>().row::<Item>())
            }

            async fn execute_sql(
                connection: &mut Self::Connection,
                sql: &str,
            ) -> Result<(), sqlx::Error> {
                let sql = AssertSqlSafe(sql.to_owned());
                raw_sql(sql).execute(connection).await.map(drop)
            }

            async fn numbers(
                connection: &mut Self::Connection,
                sql: &str,
            ) -> Result<Vec<i64>, sqlx::Error> {
                let sql = AssertSqlSafe(sql.to_owned());
                query_scalar(sql).fetch_all(connection).await
            }
        }
    };
}

engine!(
    Postgres,
    key: "uuid",
    options: "",
    sessions: Some(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    ),
    copied: [1_100, 2_050, 0]
);
engine!(
    MySql,
    key: "BINARY(16)",
    options: "ENGINE=InnoDB",
    // MySQL's `information_schema` fails on the bytes of keys in the statements of others.
    sessions: Some(
        "SELECT COUNT(*) FROM /*M! information_schema *//*!50700 performance_schema */.processlist \
         WHERE db = DATABASE() AND id <> CONNECTION_ID()"
    ),
    copied: [0; 3]
);
// Who has a file open is gone with its process, and its locks too.
engine!(Sqlite, key: "BLOB", options: "WITHOUT ROWID", sessions: None, copied: [0; 3]);

macro_rules! remote {
    ($database:ty, $options:ty, $no_tls:expr) => {
        impl Remote for $database {
            fn address(options: &$options) -> Outcome<SocketAddr> {
                let address = (options.get_host(), options.get_port());
                let mut found = address.to_socket_addrs()?;
                found
                    .next()
                    .ok_or_else(|| "the server has no address".into())
            }

            fn through(options: &$options, port: u16) -> $options {
                let options = Self::over_tcp(options).host("127.0.0.1").port(port);
                options.ssl_mode($no_tls)
            }
        }
    };
}

remote!(Postgres, PgConnectOptions, PgSslMode::Disable);
remote!(MySql, MySqlConnectOptions, MySqlSslMode::Disabled);
