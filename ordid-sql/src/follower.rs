//! Readers that follow a table and deliver each of its rows once. This module has the decisions and the statements; an
//! adapter implements [`FollowerDriver`] and re-exports [`Follower`] under its own name.
//!
//! A key is made before its row is committed, so rows do not appear in the order of their keys. If a transaction takes
//! longer than others, a reader that asks only for rows above the highest key that it has seen never sees its rows.
//! There are two ways to read such rows, too:
//!
//! | | [`by_transaction`](Follower::by_transaction) | [`settled_after`](Follower::settled_after) |
//! |---|---|---|
//! | databases | PostgreSQL 13 or later, the primary | all |
//! | the table needs | a column with the transaction that inserted the row | nothing |
//! | a row is delivered | at the first call after its COMMIT | when its key is older than the bound |
//! | is missed | no row that is inserted | a row that is committed later than the bound, or whose key has no time |
//! | keys may be made | at any time | shortly before the COMMIT |
//!
//! # Why not by PostgreSQL's `xmin`?
//!
//! The system column `xmin` has the transaction that wrote the *version* of a row. An update changes it, so a row that
//! was delivered would look new. Within a savepoint it is the number of the subtransaction, which no snapshot lists. It
//! has only 32 bits, so its numbers wrap around.
//!
//! # Why not by InnoDB's list of open transactions?
//!
//! `information_schema.innodb_trx` is a copy that is at least a tenth of a second old, and it is older if others read
//! it more often than that. It does not list the transactions of the other servers of a cluster. It says when a
//! transaction began, but the keys of its rows may be older. A transaction that is not listed may still be open.
//!
//! # Why not by SQL Server's `MIN_ACTIVE_ROWVERSION()`?
//!
//! It needs a `rowversion` column, which an update changes, so a row that was delivered would look new. Change tracking
//! knows the order of COMMITs, but it has to be turned on for the database, and it forgets changes after some days. The
//! views of open transactions need the right to see the whole server. As on InnoDB, they say when a transaction began,
//! but the keys of its rows may be older.
//!
//! If a row is inserted, but not yet committed, the query of a follower waits for its transaction
//! ([`FollowDialect::HINT`]).
//!
//! # Why not by Oracle's SCN?
//!
//! The pseudocolumn `ORA_ROWSCN` has the last change of a row or of its block, and not the insert. A flashback query for
//! the versions of rows finds the SCN of an insert, but only for as long as the undo is kept. `V$TRANSACTION` needs a
//! privilege. As on InnoDB, it says when a transaction began, but the keys of its rows may be older.

use std::{fmt, marker::PhantomData, time::Duration};

use ordid_core::{
    Error, KeyOf, KeyType, OrderedKey, Scheme as _,
    clock::{Clock as _, SystemClock, Timestamp},
    key::{Generated, KeyField},
    scheme::TimeOrdered,
    spi::nearest_time,
    storage::dialect::Postgres,
};

mod driver;
mod error;
mod position;
mod text;

pub use driver::{FollowDialect, FollowNames, FollowerDriver};
pub use error::FollowError;
pub use position::{Position, Snapshot};

use crate::{
    EngineProfile,
    table_driver::{Answer, Kind as _},
};
use error::Kind;
use position::State;

/// The name of the column that has the transaction which inserted a row, for [`Follower::by_transaction`].
const COLUMN: &str = "inserted_in";

/// Reads the rows of an entity's table that were inserted since the last call, each once.
///
/// A follower has no state: each call takes the [`Position`] that the last one returned. Store the position, as text,
/// in the transaction that processes the rows. Then a program that crashes continues where it was, and each row is
/// processed exactly once. Two readers with the same position get the same rows, so lock the row that stores the
/// position.
///
/// A follower delivers rows that are inserted. If a row is updated, before or after it was delivered, it is not
/// delivered again. A row that is deleted before it was read is not delivered.
///
/// `D` is the library and the database; adapters have an alias for it.
pub struct Follower<D, E: OrderedKey> {
    rule: Rule<KeyOf<E>>,
    /// Whether statements may be prepared by name.
    prepares: bool,
    _types: PhantomData<fn(E) -> (D, E)>,
}

/// How a follower knows what is new.
#[derive(Clone)]
enum Rule<K> {
    Transactions {
        /// Unquoted.
        column: String,
    },
    Settled {
        longest: Duration,
        /// Returns the keys that are older than a time.
        older_than: fn(Timestamp) -> Result<Older<K>, Error>,
        /// Returns the highest key that is older than a time; `None` if no key is.
        highest_before: fn(Timestamp) -> Result<Option<K>, Error>,
    },
}

/// The keys that are older than a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Older<K> {
    /// The scheme's layout begins later.
    None,
    /// The keys below this one.
    Below(K),
    /// The scheme's layout has ended before.
    All,
}

/// Rows in the order of their keys, and the position after them.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Batch<E: OrderedKey, R = E> {
    /// The rows: entities, or what the library reads in their place, as SeaORM does a `Model`.
    pub rows: Vec<R>,
    /// The position for the next call. It need not be stored if there are no rows.
    pub position: Position<KeyOf<E>>,
    /// Whether these are all rows that could be delivered when the call began. If not, call again at once.
    pub is_complete: bool,
}

impl<D, E> Follower<D, E>
where
    D: FollowerDriver<E, Dialect = Postgres>,
    E: OrderedKey<Field: KeyField<Leading = KeyOf<E>>>,
{
    /// Follows a table of PostgreSQL 13 or later by the transactions that inserted its rows, in the column `inserted_in`
    /// ([`create_sql`](Self::create_sql) adds it).
    ///
    /// A call asks which transactions are open (`pg_current_snapshot()`), and delivers the rows of those that have
    /// ended since the last call. So it misses no inserted row and delivers none twice, whatever the rows' keys are and
    /// however long a transaction takes. An open transaction does not delay the rows of others. A savepoint counts as
    /// part of its transaction, and a prepared transaction is open until `COMMIT PREPARED`. Rows that the caller's own
    /// transaction has inserted are delivered after its COMMIT.
    ///
    /// **`ATTACH PARTITION` and `INHERIT` insert no rows.** Rows that come by them count as inserted when they were
    /// inserted into their own table, so a follower that has passed that time misses them. Set their transaction to that
    /// of the `ATTACH`, and they are delivered once:
    ///
    /// ```sql
    /// BEGIN;
    /// ALTER TABLE orders ATTACH PARTITION orders_2026 FOR VALUES FROM ('..') TO ('..');
    /// UPDATE orders_2026 SET inserted_in = pg_current_xact_id();
    /// COMMIT;
    /// ```
    ///
    /// Read from the primary: a standby does not show which transactions are open, so a call on one fails. Transaction
    /// numbers belong to one cluster, and survive `pg_upgrade`. In a copy that was made by `pg_dump` or by logical
    /// replication, the column has the numbers of another cluster: reset it (`UPDATE orders SET inserted_in =
    /// DEFAULT`), and begin at [`now`](Self::now). After a failover to a standby that had not yet received the last
    /// transactions, the position may name transactions that do not exist there. As long as its numbers are higher than
    /// the new primary's, a call returns [an error](FollowError::is_position_ahead).
    ///
    /// After a crash of the primary itself, PostgreSQL may use a transaction number again if nothing of that transaction
    /// was flushed to the disk: it was rolled back, or `synchronous_commit` was off. A position that counts the first
    /// transaction as ended passes over the rows of the second one without an error. This cannot happen to a position
    /// that is stored in the same database, in the transaction that processes the rows and with `synchronous_commit` on.
    /// If you store the position elsewhere, continue after a crash of the primary from a position that is older than the
    /// crash, and ignore the rows that you have already processed.
    ///
    /// On YugabyteDB, and for a table that Citus distributes, each node has transaction numbers of its own, so a call fails.
    pub fn by_transaction() -> Self {
        Self::new(Rule::Transactions {
            column: COLUMN.to_owned(),
        })
    }

    /// Sets the name of the column that has the transaction, unquoted.
    #[must_use]
    pub fn in_column(mut self, column: &str) -> Self {
        if let Rule::Transactions { column: name } = &mut self.rule {
            column.clone_into(name);
        }
        self
    }

    /// Returns the statements that add the column and its index, for migrations. The first is an `ALTER TABLE`, which
    /// takes an ACCESS EXCLUSIVE lock for a moment and does not rewrite the rows. The second is a `CREATE INDEX
    /// CONCURRENTLY`, which has to be run outside of a transaction; leave `CONCURRENTLY` out if the table is partitioned,
    /// since PostgreSQL refuses it there. Existing rows count as inserted by the transaction
    /// of the `ALTER TABLE`.
    ///
    /// A follower by [`settled_after`](Self::settled_after) needs no statements, so the list is empty.
    pub fn create_sql(&self) -> Vec<String> {
        match &self.rule {
            Rule::Transactions { column } => text::create::<E>(&D::names(), column),
            Rule::Settled { .. } => Vec::new(),
        }
    }
}

impl<D, E> Follower<D, E>
where
    D: FollowerDriver<E>,
    E: OrderedKey<Field: KeyField<Leading = KeyOf<E>>>,
{
    /// Follows a table by the time in its keys, and delivers a row when its key is older than `longest`.
    ///
    /// `longest` has to cover the longest time between the moment when a key is made and the moment when its row can be
    /// read. This includes the rest of the longest transaction, the retries of a flush, the time that rows wait in a
    /// unit of work, and the difference by which a writer's clock is behind the reader's. A journal that is resumed, a
    /// prepared transaction that is recovered and a long flush in chunks commit rows whose keys may be hours old. **A row
    /// that takes longer is missed without an error.** In a transaction that keeps a snapshot, it also has to cover the time since the
    /// snapshot: make the call the first query of such a transaction. Its isolation level is REPEATABLE READ, which is
    /// the default of MySQL and MariaDB, or on Oracle SERIALIZABLE. On a replica `longest` has to cover the lag.
    ///
    /// **Rows whose key does not have the time at which it was made are not delivered reliably, also without an error:**
    ///
    /// - A key of another version, in a table with `#[ordid(accept = any_version)]` or with a plain `Uuid` as its key. A
    ///   random key of version 4 is above the bound for thousands of years in nearly all cases, so its row is not
    ///   delivered. Rows with new keys of the scheme are delivered.
    /// - A key that EF Core has made, in a table of `comb_efcore`. EF Core reads the clock when its program starts and
    ///   then counts one for each key, so its keys may be days behind the clock. `longest` would have to cover this, too.
    ///
    /// On PostgreSQL, follow such a table by [`by_transaction`](Follower::by_transaction). On other databases, do not
    /// follow it: mark the rows that you have processed in a column.
    ///
    /// YugabyteDB and tables that Citus distributes can only be followed by this rule.
    ///
    /// While the bound is before the beginning of the scheme's layout, no row is delivered. When it is behind the
    /// layout's end, all rows are delivered.
    ///
    /// This compiles only if the keys' scheme is ordered by time, and their column keeps the order.
    pub fn settled_after(longest: Duration) -> Self
    where
        KeyOf<E>: KeyType<Scheme: TimeOrdered>,
    {
        const {
            assert!(
                D::KEEPS_ORDER,
                "the key's column is `unordered`: rows can be followed by time only in a column that keeps the order"
            );
        }
        Self::new(Rule::Settled {
            longest,
            older_than: older_than::<KeyOf<E>>,
            highest_before: highest_before::<KeyOf<E>>,
        })
    }

    fn new(rule: Rule<KeyOf<E>>) -> Self {
        Self {
            rule,
            prepares: true,
            _types: PhantomData,
        }
    }

    /// Sets the profile of the engine. A follower only uses whether it [prepares](EngineProfile::prepares) statements
    /// by name: behind PgBouncer's mode `transaction`, pass [`PGBOUNCER`](EngineProfile::PGBOUNCER).
    #[must_use]
    pub fn with_engine(mut self, engine: EngineProfile) -> Self {
        self.prepares = engine.prepares;
        self
    }

    /// Returns the position after all rows that could be delivered now, for a reader that does not want existing rows.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`next`](Self::next).
    pub fn now<'a>(
        &'a self,
        over: impl Into<D::Source<'a>>,
    ) -> Answer<'a, D, Position<KeyOf<E>>, FollowError<D::Error>> {
        let mut source = self.open(over);
        D::Kind::answer(async move {
            let position = match &self.rule {
                Rule::Transactions { .. } => Self::snapshot(&mut source).await.map(Position::seen),
                Rule::Settled {
                    longest,
                    highest_before,
                    ..
                } => match highest_before(bound(*longest)) {
                    Ok(key) => Ok(key.map_or(Position::START, Position::above)),
                    Err(error) => Err(error.into()),
                },
            };
            self.close(source, position)
        })
    }

    /// Returns at most `most` of the next rows, in the order of their keys. If `most` is 0, it counts as 1.
    ///
    /// The rows of one call are in order. The rows of the next call may have lower keys, since they were committed
    /// later.
    ///
    /// This only reads, so the same call may be made again after any error.
    ///
    /// # Errors
    ///
    /// Returns an error if the database refuses the query, for example because the column does not exist; if the
    /// position [is ahead](FollowError::is_position_ahead) of the database, or was returned by [another kind of
    /// follower](FollowError::is_other_position); if the database is a [standby](FollowError::is_standby); if a follower
    /// [by transaction](Self::by_transaction) meets a table on many nodes; or if a session of MySQL or MariaDB is at READ
    /// UNCOMMITTED.
    pub fn next<'a>(
        &'a self,
        over: impl Into<D::Source<'a>>,
        position: &'a Position<KeyOf<E>>,
        most: u32,
    ) -> Answer<'a, D, Batch<E, D::Row>, FollowError<D::Error>> {
        let most = most.max(1);
        let mut source = self.open(over);
        D::Kind::answer(async move {
            let batch = match &self.rule {
                Rule::Transactions { column } => {
                    Self::next_committed(&mut source, column, position, most).await
                }
                Rule::Settled {
                    longest,
                    older_than,
                    ..
                } => match older_than(bound(*longest)) {
                    Ok(settled) => Self::next_settled(&mut source, settled, position, most).await,
                    Err(error) => Err(error.into()),
                },
            };
            self.close(source, batch)
        })
    }

    async fn next_committed(
        source: &mut D::Source<'_>,
        column: &str,
        position: &Position<KeyOf<E>>,
        most: u32,
    ) -> Result<Batch<E, D::Row>, Kind<D::Error>> {
        let (seen, window) = match &position.0 {
            State::Start => (Snapshot::NOTHING, None),
            State::Seen { seen, window } => (seen.clone(), window.clone()),
            State::Above(_) => return Err(Kind::OtherPosition { wants: "seen .." }),
        };
        let now = Self::snapshot(source).await?;
        // A snapshot that is older than the window would not show all of its rows, but the window would be closed.
        let newest = window.as_ref().map_or(&seen, |window| &window.until);
        if !now.covers(newest) {
            return Err(Kind::Ahead {
                position: newest.to_string(),
                database: now.to_string(),
            });
        }
        let is_new = window.is_none();
        let (until, above) = window.map_or((now, None), |it| (it.until, it.above));
        if until == seen {
            return Ok(Batch {
                rows: Vec::new(),
                position: position.clone(),
                is_complete: true,
            });
        }
        let sql = text::committed(&D::names(), column, &seen, &until, above.is_some(), most);
        let rows = D::rows(source, sql, above.into_iter().collect())
            .await
            .map_err(Kind::of_rows)?;
        let is_full = is_full(&rows, most);
        let position = match rows.last().and_then(D::key) {
            _ if !is_full => Position::seen(until),
            Some(key) => Position::within(seen, until, Some(key)),
            None if rows.is_empty() => Position::within(seen, until, above),
            None => return Err(Kind::NoKey),
        };
        Ok(Batch {
            rows,
            position,
            is_complete: is_new && !is_full,
        })
    }

    async fn next_settled(
        source: &mut D::Source<'_>,
        settled: Older<KeyOf<E>>,
        position: &Position<KeyOf<E>>,
        most: u32,
    ) -> Result<Batch<E, D::Row>, Kind<D::Error>> {
        let above = match &position.0 {
            State::Start => None,
            State::Above(key) => Some(*key),
            State::Seen { .. } => return Err(Kind::OtherPosition { wants: "above .." }),
        };
        let below = match settled {
            Older::None => {
                return Ok(Batch {
                    rows: Vec::new(),
                    position: position.clone(),
                    is_complete: true,
                });
            }
            Older::Below(key) => Some(key),
            Older::All => None,
        };
        let bounds = above.map(|_| '>').into_iter().chain(below.map(|_| '<'));
        let sql = text::settled::<D::Dialect>(&D::names(), bounds, most);
        let rows = D::rows(source, sql, above.into_iter().chain(below).collect())
            .await
            .map_err(Kind::of_rows)?;
        let is_complete = !is_full(&rows, most);
        // The position is not moved up to `below`, so that a row which is committed too late is still delivered if no
        // row above it was.
        let position = match rows.last().and_then(D::key) {
            Some(key) => Position::above(key),
            None if rows.is_empty() => position.clone(),
            None => return Err(Kind::NoKey),
        };
        Ok(Batch {
            rows,
            position,
            is_complete,
        })
    }

    /// Asks which transactions are open; the caller's own one is among them.
    async fn snapshot(source: &mut D::Source<'_>) -> Result<Snapshot, Kind<D::Error>> {
        let rows = D::texts(source, text::SNAPSHOT.to_owned()).await?;
        let answer = rows.into_iter().next().unwrap_or_default();
        let mut words = answer.split(' ');
        let (snapshot, own, server) = (words.next(), words.next(), words.next());
        match server {
            Some(text::STANDBY_SERVER) => return Err(Kind::Standby),
            Some(text::YUGABYTEDB) => return Err(Kind::ManyNodes { on: "YugabyteDB" }),
            Some(text::WITH_CITUS) => {
                let distributed = D::texts(source, text::is_distributed(&D::names())).await?;
                if !distributed.is_empty() {
                    return Err(Kind::ManyNodes { on: "Citus" });
                }
            }
            _ => {}
        }
        let snapshot: Snapshot = snapshot.unwrap_or_default().parse()?;
        Ok(match own.unwrap_or_default().parse() {
            Ok(own) => snapshot.with_open(own),
            // The transaction has no number yet. If it gets one, that is above all numbers in the snapshot.
            Err(_) => snapshot,
        })
    }

    fn open<'c>(&self, over: impl Into<D::Source<'c>>) -> D::Source<'c> {
        let mut source = over.into();
        if !self.prepares {
            D::isolate(&mut source);
        }
        source
    }

    fn close<T>(
        &self,
        mut source: D::Source<'_>,
        outcome: Result<T, Kind<D::Error>>,
    ) -> Result<T, FollowError<D::Error>> {
        let is_lost = outcome.as_ref().is_err_and(Kind::is_lost);
        D::release(&mut source, is_lost);
        outcome.map_err(|kind| {
            let column = match &self.rule {
                Rule::Transactions { column } => Some(column.clone()),
                Rule::Settled { .. } => None,
            };
            FollowError::new(D::names().table, column, kind)
        })
    }
}

/// Returns the keys that are older than a time, whatever the time is: the clock may be before the layout or after it.
fn older_than<K: KeyType<Scheme: TimeOrdered>>(time: Timestamp) -> Result<Older<K>, Error> {
    match K::range(time..time) {
        Ok(keys) => Ok(Older::Below(keys.start)),
        Err(error) => match nearest_time(&error) {
            Some(begin) if time < begin => Ok(Older::None),
            Some(_) => Ok(Older::All),
            None => Err(error),
        },
    }
}

/// Returns the highest key that is lower than all keys of a time. A row with the lowest key of that time is not among
/// those that could be delivered before it.
fn highest_before<K: KeyType<Scheme: TimeOrdered>>(time: Timestamp) -> Result<Option<K>, Error> {
    let key = |raw| Some(K::from_generated(Generated::new(raw)));
    let lowest = match K::Scheme::bounds_at(time) {
        Ok((lowest, _)) => lowest,
        Err(error) => {
            return match nearest_time(&error) {
                Some(begin) if time < begin => Ok(None),
                Some(last) => Ok(key(K::Scheme::bounds_at(last)?.1)),
                None => Err(error),
            };
        }
    };
    // A step of a scheme may last longer than a millisecond: the key has the time at which it begins.
    let begin = K::Scheme::timestamp(&lowest).unwrap_or(time);
    let earlier = begin.as_unix_millis().saturating_sub(1);
    let earlier = K::Scheme::bounds_at(Timestamp::saturating_from_unix_millis(earlier));
    Ok(match earlier {
        Ok((_, highest)) if K::Scheme::cmp(&highest, &lowest).is_lt() => key(highest),
        Ok(_) => key(lowest),
        // The layout begins at that time.
        Err(_) => None,
    })
}

/// Returns the time before which keys are settled.
fn bound(longest: Duration) -> Timestamp {
    let longest = u64::try_from(longest.as_millis()).unwrap_or(u64::MAX);
    let now = SystemClock.now().as_unix_millis();
    Timestamp::saturating_from_unix_millis(now.saturating_sub(longest))
}

fn is_full<R>(rows: &[R], most: u32) -> bool {
    u32::try_from(rows.len()).map_or(true, |rows| rows >= most)
}

impl<D, E: OrderedKey> Clone for Follower<D, E> {
    fn clone(&self) -> Self {
        Self {
            rule: self.rule.clone(),
            prepares: self.prepares,
            _types: PhantomData,
        }
    }
}

impl<D, E: OrderedKey> fmt::Debug for Follower<D, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Follower");
        debug.field("table", &E::TABLE);
        match &self.rule {
            Rule::Transactions { column } => debug.field("by_transaction", column),
            Rule::Settled { longest, .. } => debug.field("settled_after", longest),
        };
        debug.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
