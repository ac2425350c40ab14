//! A counter in a row.

use std::{fmt, num::NonZeroU32, time::Duration};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
    storage::Dialect as _,
};

use super::{Seen, went_back};
use crate::leases::{
    StoreDriver,
    numbers::{
        CounterDialect, Statement,
        Value::{Number, Text},
        checked_name,
    },
    store::Store,
};

/// A counter in a row of a table; a table has as many of them as there are names.
///
/// `UPDATE .. RETURNING`, or MySQL's `LAST_INSERT_ID(value + n)`: one statement that a lock of the row
/// makes rise. On a connection of its own, each for itself: no transaction of the program holds that lock.
#[doc(alias("sequence", "autoincrement", "hilo"))]
pub struct SqlCounter<S: StoreDriver> {
    store: Store<S>,
    name: String,
    table: String,
    reserve: Statement,
    read: Statement,
    seen: Seen,
    /// Whether a column may name its collation.
    collations: bool,
}

impl<S: StoreDriver<Dialect: CounterDialect>> SqlCounter<S> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = "ordid_counters";

    /// Takes the database and the counter's name. It connects when it is first asked for something.
    ///
    /// # Errors
    ///
    /// If the name has other characters than letters, digits and underscores, or more than 63. The error is
    /// a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn new(database: S::Options, name: &str) -> Result<Self, Error> {
        let (name, table) = (checked_name(name)?.to_owned(), Self::TABLE.to_owned());
        Ok(Self::of(Store::new(database), name, table))
    }

    fn of(store: Store<S>, name: String, table: String) -> Self {
        let reserve = format!(
            "UPDATE {{t}} SET value = {} WHERE name = ? AND value BETWEEN ? AND ?{}",
            S::Dialect::ADDED,
            S::Dialect::returning("value")
        );
        Self {
            // Twice: the first numbers are then nobody's.
            reserve: Statement::changes::<S::Dialect>(&table, &reserve).repeatable(),
            read: Statement::reads::<S::Dialect>(&table, "SELECT value FROM {t} WHERE name = ?"),
            store,
            name,
            table,
            seen: Seen::default(),
            collations: true,
        }
    }

    /// Takes a table of another name.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        let table = checked_name(table)?.to_owned();
        Ok(Self {
            collations: self.collations,
            ..Self::of(self.store, self.name, table)
        })
    }

    /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.store.set_timeout(timeout);
        self
    }

    /// Gives the profile of the engine. Two of its fields matter. One is whether it
    /// [prepares](crate::EngineProfile::prepares) statements by name: behind PgBouncer's mode `transaction`, give
    /// [`PGBOUNCER`](crate::EngineProfile::PGBOUNCER). Then each statement has a transaction of its own. The other is
    /// whether the table may name a [collation](crate::EngineProfile::collations): on Aurora DSQL it may not.
    #[must_use]
    pub fn with_engine(mut self, engine: crate::EngineProfile) -> Self {
        self.store.set_engine(engine);
        self.collations = engine.collations;
        self
    }

    /// Returns the statements that make the table, and the counter if there is none of its name: its first
    /// number is `first`, or 1 if that is smaller.
    ///
    /// Run them once, as a migration. A counter that was lost must not be made anew in silence: it has to
    /// begin above all numbers that were used.
    pub fn create_sql(&self, first: i64) -> String {
        self.statements(first).join("\n")
    }

    fn statements(&self, first: i64) -> [String; 2] {
        let table = S::Dialect::quote(&self.table);
        let collation = match self.collations {
            true => S::Dialect::NAME_COLLATION,
            false => "",
        };
        let create = format!(
            "CREATE TABLE IF NOT EXISTS {table} (name {}{collation} NOT NULL PRIMARY KEY, value BIGINT NOT NULL){};",
            S::Dialect::NAME_TYPE,
            S::Dialect::TABLE_OPTIONS,
        );
        let insert = format!(
            "INSERT INTO {table} (name, value) VALUES ('{}', {}){};",
            self.name,
            first.saturating_sub(1).max(0),
            S::Dialect::keep("value"),
        );
        [create, insert]
    }

    /// Makes the table and the counter: as [`create_sql`](Self::create_sql), in a transaction for each statement, as some
    /// engines ask for.
    ///
    /// # Errors
    ///
    /// Returns the database's error, and a [`Mismatch`](CoordinationFailure::Mismatch) if `first` is below 1.
    pub async fn create(&self, first: i64) -> Result<(), Error> {
        if first < 1 {
            let problem = format!("begins with 1 or more, and not with {first}");
            return Err(self.error(CoordinationFailure::Mismatch, &problem));
        }
        for statement in self.statements(first) {
            self.store.run(statement).await?;
        }
        Ok(())
    }

    /// Why nothing was reserved.
    async fn refused(&self, before: i64, count: NonZeroU32) -> Error {
        let read = self.store.ask(&self.read, &[Text(&self.name)]).await;
        match read.map(|answer| answer.row()) {
            Err(error) => error,
            Ok(None) => self.error(
                CoordinationFailure::StateLost,
                "is missing: make it once with `create`, above all numbers that were used",
            ),
            Ok(Some([value])) if value < before => went_back(&self.to_string(), before),
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

impl<S: StoreDriver<Dialect: CounterDialect>> AsyncSegmentSource for SqlCounter<S> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let number = i64::from(count.get());
        let before = self.seen.before();
        let values = [
            Number(number),
            Text(&self.name),
            Number(before),
            Number(i64::MAX - number),
        ];
        let answer = self.store.ask(&self.reserve, &values).await?;
        let Some(last) = answer.returned() else {
            return Err(self.refused(before, count).await);
        };
        let first = last - (number - 1);
        self.seen.check(before, first, last, &self.to_string())?;
        Segment::new(first, count.get(), 1)
    }
}

/// Where it is, for messages.
impl<S: StoreDriver<Dialect: CounterDialect>> fmt::Display for SqlCounter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "counter {} in table {} of {}",
            self.name,
            self.table,
            S::Dialect::NAME
        )
    }
}

impl<S: StoreDriver<Dialect: CounterDialect>> fmt::Debug for SqlCounter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlCounter")
            .field("store", &self.store)
            .field("table", &self.table)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
