//! A sequence of PostgreSQL whose increment is a block.

use std::{fmt, num::NonZeroU32, time::Duration};

use ordid_core::{
    Error,
    coordination::{AsyncSegmentSource, CoordinationFailure, Ordered, Segment},
    storage::{Dialect as _, dialect::Postgres},
};

use super::{Seen, went_back};
use crate::leases::{
    StoreDriver,
    numbers::{Statement, Value::Number, checked_name},
    store::Store,
};

/// A sequence of PostgreSQL with `INCREMENT BY n`: each `nextval` reserves the `n` numbers that begin with
/// it.
///
/// The increment is compared with what the sequence has at each call, in the same statement: a sequence
/// that somebody has altered is refused, and so is one that has `CYCLE` or a `CACHE` (whose numbers do not
/// rise over sessions), or that is `UNLOGGED` (which begins anew after a crash).
///
/// **Only raise the increment.** If it is lowered, `nextval` continues within the last block, and gives its numbers
/// a second time: after the block 1 to 1,000, `INCREMENT BY 10` gives 11 to 20. Nothing in the sequence shows this. To
/// lower the increment, restart the sequence behind the last block in the same statement: `ALTER SEQUENCE .. INCREMENT
/// BY 10 RESTART WITH n`, where `n` is at least `last_value` plus the old increment. Stop the processes that reserve
/// numbers first, so that `last_value` does not change in between.
///
/// The role needs `USAGE` on the sequence. A reservation is as durable as a COMMIT, also if a synchronous standby is promoted.
/// For that it writes an empty message with the prefix `ordid` to the log, which consumers of logical replication may see.
///
/// A reservation is of one block, all of it or the beginning: ask for as many numbers as the increment.
#[doc(alias = "nextval")]
pub struct PgSequence<S: StoreDriver> {
    store: Store<S>,
    name: String,
    increment: NonZeroU32,
    next: Statement,
    seen: Seen,
}

impl<S: StoreDriver<Dialect = Postgres>> PgSequence<S> {
    /// Takes the database, the sequence's name, and its increment. It connects when it is first asked for
    /// something.
    ///
    /// # Errors
    ///
    /// If the name has other characters than letters, digits and underscores, or more than 63. The error is
    /// a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn new(database: S::Options, name: &str, increment: NonZeroU32) -> Result<Self, Error> {
        let name = checked_name(name)?.to_owned();
        // A sequence that has gone back is not moved on. It is NULL where it has given nothing yet.
        //
        // `nextval` waits for an open ALTER SEQUENCE. The snapshot of the statement is older than that, so the table
        // `pg_sequence` would still have the old increment; this function reads the new one. It is called after
        // `nextval`, because its argument depends on the number.
        //
        // `nextval` writes to the log once for 32 numbers. A statement in between writes nothing, so its COMMIT would wait
        // neither for the disk nor for a synchronous standby: a crash could give its numbers again. The message, which only a
        // logical decoder reads, is behind what `nextval` has written, and COMMIT waits for it.
        let next = "SELECT number, now.increment, now.cache_size, CAST(CAST(now.cycle_option AS int) AS bigint), \
                    (SELECT CAST(CAST(relpersistence <> 'p' AS int) AS bigint) FROM pg_catalog.pg_class \
                    WHERE oid = '{t}'::regclass) FROM (SELECT nextval('{t}'::regclass) AS number \
                    WHERE COALESCE(pg_catalog.pg_sequence_last_value('{t}'::regclass) >= ?, true) OFFSET 0) AS reserved, \
                    LATERAL pg_catalog.pg_sequence_parameters(\
                    CASE WHEN number IS NULL OR pg_catalog.pg_logical_emit_message(true, 'ordid', '') IS NULL \
                    THEN NULL ELSE '{t}'::regclass END) AS now";
        Ok(Self {
            // Twice: the first numbers are then nobody's.
            next: Statement::changes::<Postgres>(&name, next).repeatable(),
            store: Store::new(database),
            name,
            increment,
            seen: Seen::default(),
        })
    }

    /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.store.set_timeout(timeout);
        self
    }

    /// Gives the profile of the engine. Only whether it [prepares](crate::EngineProfile::prepares) statements by name
    /// matters: behind PgBouncer's mode `transaction`, give
    /// [`PGBOUNCER`](crate::EngineProfile::PGBOUNCER). Then each statement has a transaction of its own.
    #[must_use]
    pub fn with_engine(mut self, engine: crate::EngineProfile) -> Self {
        self.store.set_engine(engine);
        self
    }

    /// Returns the statement that makes the sequence, if there is none of its name: it begins with 1.
    pub fn create_sql(&self) -> String {
        format!(
            "CREATE SEQUENCE IF NOT EXISTS {} AS bigint INCREMENT BY {} MINVALUE 1 START WITH 1 CACHE 1 \
             NO CYCLE",
            Postgres::quote(&self.name),
            self.increment
        )
    }

    /// Makes the sequence: as [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// What the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.store.run(self.create_sql()).await
    }

    fn error(&self, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(failure, format!("the sequence {} {problem}", self.name))
    }
}

impl<S: StoreDriver<Dialect = Postgres>> AsyncSegmentSource for PgSequence<S> {
    type Order = Ordered;

    async fn reserve(&self, count: NonZeroU32) -> Result<Segment, Error> {
        let increment = i64::from(self.increment.get());
        if count > self.increment {
            return Err(self.error(
                CoordinationFailure::Mismatch,
                &format!("gives {increment} numbers at once, and not {count}: raise its increment"),
            ));
        }
        let before = self.seen.before();
        let what = format!("the sequence {}", self.name);
        // The sequence itself has the first number of the last block.
        let answer = self
            .store
            .ask(&self.next, &[Number(before - increment + 1)])
            .await?;
        let Some([first, found, cache, cycles, is_unlogged]) = answer.row() else {
            return Err(went_back(&what, before));
        };
        if is_unlogged != 0 {
            return Err(self.error(
                CoordinationFailure::Mismatch,
                "is unlogged or temporary, so it begins anew after a crash: ALTER SEQUENCE .. SET LOGGED",
            ));
        }
        if (found, cache, cycles) != (increment, 1, 0) {
            return Err(self.error(
                CoordinationFailure::Mismatch,
                &format!(
                    "has INCREMENT BY {found} CACHE {cache}{}, expected INCREMENT BY {increment} CACHE 1 NO \
                     CYCLE",
                    if cycles == 0 { "" } else { " CYCLE" }
                ),
            ));
        }
        let segment = Segment::new(first, count.get(), 1)?;
        self.seen
            .check(before, first, first.saturating_add(increment - 1), &what)?;
        Ok(segment)
    }

    /// The sequence's increment.
    fn most(&self) -> Option<NonZeroU32> {
        Some(self.increment)
    }
}

impl<S: StoreDriver> fmt::Debug for PgSequence<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PgSequence")
            .field("store", &self.store)
            .field("name", &self.name)
            .field("increment", &self.increment)
            .finish_non_exhaustive()
    }
}
