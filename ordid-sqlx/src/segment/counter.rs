//! A counter in a row.

use std::{fmt, num::NonZeroU32, time::Duration};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
    storage::Dialect as _,
};
use ordid_sql::leases::numbers::{CounterDialect as _, checked_name};
use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::Seen;
use crate::{
    backend::Backend,
    numbers::{ConnectOptions, Store, Value, statement},
};

/// A counter in a row of a table of PostgreSQL, MySQL, MariaDB or SQLite; a table has as many of them as
/// there are names.
///
/// `UPDATE .. RETURNING`, or MySQL's `LAST_INSERT_ID(value + n)`: one statement that a lock of the row
/// makes rise. On a connection of its own, each for itself: no transaction of the program holds that lock.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::num::NonZeroU32;
/// use ordid_core::coordination::AsyncSegmentSource;
/// use ordid_sqlx::SqlCounter;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let orders = SqlCounter::<Sqlite>::new(options, "orders")?;
/// orders.create(1_000).await?; // once, as a migration
///
/// let segment = orders.reserve(NonZeroU32::new(3).unwrap()).await?;
/// assert!(segment.values().eq(1_000..1_003));
/// # Ok(())
/// # }
/// ```
pub struct SqlCounter<DB: Backend> {
    store: Store<DB>,
    name: String,
    table: String,
    reserve: SqlStr,
    read: SqlStr,
    seen: Seen,
}

impl<DB: Backend> SqlCounter<DB> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = "ordid_counters";

    /// Takes the database and the counter's name. It connects when it is first asked for something.
    ///
    /// # Errors
    ///
    /// If the name has other characters than letters, digits and underscores, or more than 63. The error is
    /// a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn new(options: ConnectOptions<DB>, name: &str) -> Result<Self, Error> {
        let name = checked_name(name)?.to_owned();
        Ok(Self::of(Store::new(options), name, Self::TABLE.to_owned()))
    }

    fn of(store: Store<DB>, name: String, table: String) -> Self {
        let texts = DB::TEXTS;
        let reserve = format!(
            "UPDATE {{t}} SET value = {} WHERE name = ? AND value <= ?{}",
            texts.added,
            DB::Dialect::returning("value")
        );
        Self {
            reserve: statement::<DB>(&table, &reserve),
            read: statement::<DB>(&table, "SELECT value FROM {t} WHERE name = ?"),
            store,
            name,
            table,
            seen: Seen::default(),
        }
    }

    /// Takes a table of another name.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        let table = checked_name(table)?.to_owned();
        Ok(Self::of(self.store, self.name, table))
    }

    /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.store.set_timeout(timeout);
        self
    }

    /// Returns the statements that make the table, and the counter if there is none of its name: its first
    /// number is `first`.
    ///
    /// Run them once, as a migration. A counter that was lost must not be made anew in silence: it has to
    /// begin above all numbers that were used.
    pub fn create_sql(&self, first: i64) -> String {
        let table = DB::Dialect::quote(&self.table);
        let texts = DB::TEXTS;
        format!(
            "CREATE TABLE IF NOT EXISTS {table} (name {} NOT NULL PRIMARY KEY, value BIGINT NOT NULL){};\n\
             INSERT INTO {table} (name, value) VALUES ('{}', {}){};",
            texts.name_type,
            DB::Dialect::TABLE_OPTIONS,
            self.name,
            first.saturating_sub(1).max(0),
            DB::Dialect::keep("value"),
        )
    }

    /// Makes the table and the counter: as [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create(&self, first: i64) -> Result<(), Error> {
        // Of checked names and numbers.
        let script = AssertSqlSafe(self.create_sql(first)).into_sql_str();
        self.store.run(&script).await
    }

    /// Why nothing was reserved.
    async fn refused(&self, count: NonZeroU32) -> Error {
        let read = self.store.ask(&self.read, &[Value::Text(&self.name)]).await;
        match read.map(|answer| answer.row()) {
            Err(error) => error,
            Ok(None) => self.error(
                CoordinationFailure::StateLost,
                "is missing: make it once with `create`, above all numbers that were used",
            ),
            Ok(Some([value])) => self.error(
                CoordinationFailure::CounterExhausted,
                &format!("is at {value}: {count} more are above {}", i64::MAX),
            ),
        }
    }

    fn error(&self, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(failure, format!("{self} {problem}"))
    }
}

impl<DB: Backend> AsyncSegmentSource for SqlCounter<DB> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let number = i64::from(count.get());
        let values = [
            Value::Number(number),
            Value::Text(&self.name),
            Value::Number(i64::MAX - number),
        ];
        let before = self.seen.before();
        let answer = self.store.ask(&self.reserve, &values).await?;
        let Some(last) = answer.returned() else {
            return Err(self.refused(count).await);
        };
        let first = last - (number - 1);
        self.seen.check(before, first, last, &self.to_string())?;
        Segment::new(first, count.get(), 1)
    }
}

/// Where it is, for messages.
impl<DB: Backend> fmt::Display for SqlCounter<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "counter {} in table {} of {}",
            self.name,
            self.table,
            DB::Dialect::NAME
        )
    }
}

impl<DB: Backend> fmt::Debug for SqlCounter<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlCounter")
            .field("store", &self.store)
            .field("table", &self.table)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
