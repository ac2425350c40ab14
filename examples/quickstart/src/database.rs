//! What the program asks of a database beside the flush, and the tables it makes there.

use std::{
    fmt::Display,
    path::{Path, PathBuf},
    time::Duration,
};

use ordid::{KeyType, OrderedKey, key::KeyField, storage::ColumnOn};
use ordid_sqlx::{Backend, Entity, StoredAs};
use sqlx::{Connection, Decode, QueryBuilder, Type};

use crate::{
    entities::FlightId,
    error::{Context, Error},
};

#[cfg(feature = "servers")]
mod mysql;
#[cfg(feature = "servers")]
mod postgres;
mod sqlite;

pub(crate) use sqlite::{default_file, file};

/// The tables, parents first.
pub(crate) const TABLES: [&str; 4] = ["airlines", "airports", "planes", "flights"];
/// The flights once more, under random keys; gone when the program ends.
pub(crate) const RANDOM: &str = "flights_v4";

/// How long a server may take to answer the first time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A database as this program uses it: one file each implements it.
pub(crate) trait Database: Backend {
    /// The names of the column types.
    const TYPES: Types;
    /// Whether `CREATE TABLE` can be rolled back.
    const ROLLS_BACK_TABLES: bool;

    /// Returns the product and its version.
    async fn describe(connection: &mut Self::Connection) -> Result<String, sqlx::Error>;

    /// Returns which of the names are taken where new tables would be made.
    async fn taken(connection: &mut Self::Connection) -> Result<Vec<String>, sqlx::Error>;

    /// Measures a table of flights with this many rows.
    async fn size(
        connection: &mut Self::Connection,
        table: &str,
        rows: u64,
    ) -> Result<Size, sqlx::Error>;

    // The rest is the same for all three, but only a concrete connection can execute.

    async fn run(connection: &mut Self::Connection, sql: String) -> Result<(), sqlx::Error>;

    async fn send(
        connection: &mut Self::Connection,
        query: QueryBuilder<Self>,
    ) -> Result<(), sqlx::Error>;

    async fn keys<K: Key<Self>>(
        connection: &mut Self::Connection,
        sql: String,
    ) -> Result<Vec<K>, sqlx::Error>;
}

/// A database that `--database` names.
#[cfg(feature = "servers")]
pub(crate) trait Server: Database {
    /// Says how the options are called in messages, without the password; refuses those that
    /// cannot do.
    fn name(options: &Options<Self>) -> Result<String, Error>;
}

/// Implements the methods of [`Database`] that are the same everywhere.
macro_rules! through_sqlx {
    () => {
        async fn run(connection: &mut Self::Connection, sql: String) -> Result<(), sqlx::Error> {
            sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
                .execute(connection)
                .await
                .map(drop)
        }

        async fn send(
            connection: &mut Self::Connection,
            mut query: sqlx::QueryBuilder<Self>,
        ) -> Result<(), sqlx::Error> {
            query.build().execute(connection).await.map(drop)
        }

        async fn keys<K: crate::database::Key<Self>>(
            connection: &mut Self::Connection,
            sql: String,
        ) -> Result<Vec<K>, sqlx::Error> {
            sqlx::query_scalar(sqlx::AssertSqlSafe(sql))
                .fetch_all(connection)
                .await
        }
    };
}
use through_sqlx;

/// A key type that the database returns.
pub(crate) trait Key<DB: Database>:
    KeyType + Display + Type<DB> + for<'r> Decode<'r, DB> + Unpin
{
}

impl<DB: Database, K> Key<DB> for K where
    K: KeyType + Display + Type<DB> + for<'r> Decode<'r, DB> + Unpin
{
}

/// An entity that the database takes, and whose keys it returns.
pub(crate) trait TableRow<DB: Database>:
    Entity<DB> + OrderedKey<Field: KeyField<Key: Key<DB>>>
{
}

impl<DB: Database, E> TableRow<DB> for E where
    E: Entity<DB> + OrderedKey<Field: KeyField<Key: Key<DB>>>
{
}

/// SQLx's connect options.
pub(crate) type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// Where to load to.
pub(crate) struct Target<DB: Database> {
    pub(crate) options: Options<DB>,
    /// For messages.
    pub(crate) name: String,
    /// The file that connecting makes, to be removed if nothing gets into it.
    pub(crate) new_file: Option<PathBuf>,
}

#[cfg(feature = "servers")]
impl<DB: Server> Target<DB> {
    /// Reads a URL.
    pub(crate) fn from_url(url: &str) -> Result<Self, Error> {
        let options: Options<DB> = url.parse().context("cannot read the URL of --database")?;
        let name = DB::name(&options)?;
        Ok(Self {
            options,
            name,
            new_file: None,
        })
    }
}

impl<DB: Database> Target<DB> {
    /// Connects, or says soon that it cannot: a pool would try again for half a minute.
    pub(crate) async fn connect(&self) -> Result<DB::Connection, Error> {
        let connecting = DB::Connection::connect_with(&self.options);
        match tokio::time::timeout(PATIENCE, connecting).await {
            Ok(connected) => connected.context(format_args!("cannot connect to {}", self.name)),
            Err(_) => Err(Error::new(format_args!(
                "cannot connect to {}: no answer within {} s",
                self.name,
                PATIENCE.as_secs()
            ))),
        }
    }

    /// Removes the file that connecting made.
    pub(crate) fn remove(&self, file: &Path) -> Result<(), Error> {
        sqlite::remove(file).context(format_args!("cannot remove {}", self.name))
    }
}

/// The room that a table takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// The table and all its indexes.
    pub(crate) bytes: u64,
    /// The tree that is ordered by the key.
    pub(crate) tree_bytes: u64,
    /// What of that is filled.
    pub(crate) tree_filled: u64,
    /// What the tree is, and how it was measured.
    pub(crate) tree: &'static str,
}

/// Column types and table options, where the databases differ.
pub(crate) struct Types {
    pub(crate) key: &'static str,
    pub(crate) code: &'static str,
    pub(crate) text: &'static str,
    pub(crate) degrees: &'static str,
    pub(crate) options: &'static str,
}

/// Returns the column type of keys, as `#[ordid(sqlx)]` chose it for this database. The four key
/// types have the same.
const fn key_type<DB>() -> &'static str
where
    DB: Backend,
    FlightId: StoredAs<DB, Column: ColumnOn<DB::Dialect>>,
{
    <<FlightId as StoredAs<DB>>::Column as ColumnOn<DB::Dialect>>::TYPE
}

/// Returns the `CREATE TABLE` of each of [`TABLES`].
pub(crate) fn create_tables<DB: Database>() -> [String; 4] {
    let Types {
        key,
        code,
        text,
        degrees,
        options,
    } = DB::TYPES;
    [
        format!(
            "CREATE TABLE airlines (
                id {key} NOT NULL PRIMARY KEY,
                carrier {code} NOT NULL UNIQUE,
                name {text} NOT NULL
            ) {options}"
        ),
        format!(
            "CREATE TABLE airports (
                id {key} NOT NULL PRIMARY KEY,
                faa {code} NOT NULL UNIQUE,
                name {text} NOT NULL,
                lat {degrees} NOT NULL,
                lon {degrees} NOT NULL,
                alt SMALLINT NOT NULL,
                tz SMALLINT NOT NULL,
                dst {text} NOT NULL,
                tzone {text}
            ) {options}"
        ),
        format!(
            "CREATE TABLE planes (
                id {key} NOT NULL PRIMARY KEY,
                tailnum {code} NOT NULL UNIQUE,
                year SMALLINT,
                type {text} NOT NULL,
                manufacturer {text} NOT NULL,
                model {text} NOT NULL,
                engines SMALLINT NOT NULL,
                seats SMALLINT NOT NULL,
                speed SMALLINT,
                engine {text} NOT NULL
            ) {options}"
        ),
        create_flights::<DB>("flights"),
    ]
}

/// Returns the `CREATE TABLE` of the flights under this name.
pub(crate) fn create_flights<DB: Database>(table: &str) -> String {
    let Types {
        key,
        code,
        text,
        options,
        ..
    } = DB::TYPES;
    // MySQL reads `REFERENCES` behind a column and forgets it: foreign keys stand by themselves.
    format!(
        "CREATE TABLE {table} (
            id {key} NOT NULL PRIMARY KEY,
            airline_id {key} NOT NULL,
            plane_id {key},
            origin_id {key},
            dest_id {key},
            year SMALLINT NOT NULL,
            month SMALLINT NOT NULL,
            day SMALLINT NOT NULL,
            dep_time SMALLINT,
            sched_dep_time SMALLINT NOT NULL,
            dep_delay SMALLINT,
            arr_time SMALLINT,
            sched_arr_time SMALLINT NOT NULL,
            arr_delay SMALLINT,
            carrier {code} NOT NULL,
            flight SMALLINT NOT NULL,
            tailnum {code},
            origin {code} NOT NULL,
            dest {code} NOT NULL,
            air_time SMALLINT,
            distance SMALLINT NOT NULL,
            hour SMALLINT NOT NULL,
            minute SMALLINT NOT NULL,
            time_hour {text} NOT NULL,
            FOREIGN KEY (airline_id) REFERENCES airlines (id),
            FOREIGN KEY (plane_id) REFERENCES planes (id),
            FOREIGN KEY (origin_id) REFERENCES airports (id),
            FOREIGN KEY (dest_id) REFERENCES airports (id)
        ) {options}"
    )
}
