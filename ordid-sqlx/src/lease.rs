//! Nodes leased from a table.
//!
//! ```text
//! ordid_nodes   node | epoch | ceiling | expires
//!               of the grant ^   ^        ^ when another may have it: ms of the database's clock
//!                                first ms of embedded time that the grant has no right to
//! ```
//!
//! Each step that changes a row is one `UPDATE` by primary key that names the epoch and the ceiling that
//! were read: it moves both or nothing, under any isolation, without a lock that outlives it. So it does
//! not matter how late it comes, nor whether its answer is heard: what nobody heard of is time that
//! nobody uses.

use std::{fmt, ops::Range};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
    entropy::{Entropy as _, ThreadEntropy},
    storage::Dialect as _,
};
use sqlx::SqlStr;

use crate::{
    backend::Backend,
    numbers::{ConnectOptions, Store, Value, signed, statement, unsigned},
};

/// What the kinds of nodes in a table have in common: where that is. Each makes its statements of the rows, `of`.
macro_rules! in_a_table {
    ($nodes:ident, $table:literal) => {
        impl<DB: $crate::backend::Backend> $nodes<DB> {
            /// The name of the table unless said otherwise.
            pub const TABLE: &'static str = $table;

            /// Takes the database and the terms. It connects when it is first asked for something.
            pub fn new(options: $crate::numbers::ConnectOptions<DB>, terms: LeaseTerms) -> Self {
                Self::of(Rows::new(options, terms, Self::TABLE.to_owned()))
            }

            /// Takes a table of another name: each group of processes that share nodes has one.
            ///
            /// # Errors
            ///
            /// If it has other characters than letters, digits and underscores, or more than 63. The error
            /// is a [`Mismatch`](CoordinationFailure::Mismatch).
            pub fn with_table(self, table: &str) -> Result<Self, Error> {
                let table = $crate::numbers::checked_name(table)?.to_owned();
                Ok(Self::of(self.rows.with_table(table)))
            }

            /// Says how long the database may take for an answer, connecting included: 5 s otherwise.
            #[must_use]
            pub fn with_timeout(mut self, timeout: std::time::Duration) -> Self {
                self.rows.store.set_timeout(timeout);
                self
            }
        }

        impl<DB: $crate::backend::Backend> std::fmt::Debug for $nodes<DB> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.rows.debug(stringify!($nodes), f)
            }
        }
    };
}

mod disposable;

pub use disposable::SqlDisposableNode;

/// The most rows that a script makes.
const MAX_NODES: u64 = 1 << 16;
/// Free nodes that are looked at together.
const CANDIDATES: usize = 32;
/// How often others may be faster.
const ROUNDS: u32 = 64;

/// Leases nodes from a table of PostgreSQL, MySQL, MariaDB or SQLite: a
/// [`NodeAllocator`](ordid_core::coordination::NodeAllocator) where the program has a database anyway.
///
/// The database's clock decides when a silent holder's node is free, and whether a process's clock is too
/// far ahead; no duplicate depends on it. Statements run on a connection of its own, each for itself,
/// outside of the program's transactions.
///
/// The ceiling is as durable as a COMMIT is: PostgreSQL's `synchronous_commit`, InnoDB's
/// `innodb_flush_log_at_trx_commit` and SQLite's `PRAGMA synchronous` have to be at their defaults or above
/// (SQLite in WAL mode: `FULL`, SQLx's default). A database that falls over to a copy that lags, or is restored from
/// one, can grant time a second time, up to the lag and at most the terms'
/// [`max_ahead`](LeaseTerms::max_ahead) ahead of the clock: a holder that renews finds out
/// ([`CeilingRegressed`](CoordinationFailure::CeilingRegressed)), and writes back what it was granted.
///
/// The child of a fork may acquire a node of its own of it, over connections of its own; its parent's grant is
/// refused there. Not on SQLite, which cannot be used on both sides of a fork: there all is refused.
///
/// # Example
///
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ordid_core::{clock::{Clock, SystemClock}, coordination::{AsyncNodeAllocator, LeaseTerms}};
/// use ordid_sqlx::SqlLease;
/// use sqlx::{Sqlite, sqlite::SqliteConnectOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("shop.sqlite");
/// let options = SqliteConnectOptions::new().filename(path).create_if_missing(true);
/// let leases = SqlLease::<Sqlite>::new(options, LeaseTerms::new(0..1_024)?);
/// leases.create().await?; // once, as a migration
///
/// let grant = leases.acquire(SystemClock.now(), None).await?;
/// let grant = leases.renew(&grant, SystemClock.now()).await?;
/// leases.release(&grant, None).await?;
/// # Ok(())
/// # }
/// ```
pub struct SqlLease<DB: Backend> {
    rows: Rows<DB>,
    free: SqlStr,
    take: SqlStr,
    count: SqlStr,
}

in_a_table!(SqlLease, "ordid_nodes");

impl<DB: Backend> SqlLease<DB> {
    fn of(rows: Rows<DB>) -> Self {
        let table = &rows.table;
        Self {
            free: statement::<DB>(
                table,
                &format!(
                    "SELECT node, epoch, ceiling, {{now}} FROM {{t}} WHERE node >= ? AND node < ? AND \
                     expires <= {{now}} ORDER BY ceiling, node LIMIT {CANDIDATES}"
                ),
            ),
            take: statement::<DB>(
                table,
                "UPDATE {t} SET epoch = epoch + 1, ceiling = ?, expires = {now} + ? \
                 WHERE node = ? AND epoch = ? AND ceiling = ? AND expires <= {now}",
            ),
            count: statement::<DB>(
                table,
                "SELECT COUNT(*), COALESCE(MIN(expires), 0) - {now} FROM {t} WHERE node >= ? AND node < ?",
            ),
            rows,
        }
    }

    /// Returns the statements that make the table, and a row for each node of the terms that has none.
    ///
    /// Run them once, as a migration. A table that was lost must not be made anew in silence: then
    /// nobody knows any more which time is used. Never delete rows.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes, for which there is [`SqlDisposableNode`]. The error is a
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn create_sql(&self) -> Result<String, Error> {
        let nodes = self.rows.terms.nodes();
        let number = nodes.end - nodes.start;
        if number > MAX_NODES {
            return Err(Error::coordination(
                CoordinationFailure::Mismatch,
                format!(
                    "a table of {number} nodes has more than {MAX_NODES} rows: choose fewer, or take \
                     SqlDisposableNode"
                ),
            ));
        }
        let table = DB::Dialect::quote(&self.rows.table);
        let rows: Vec<String> = nodes.map(|node| format!("({node}, 0, 0, 0)")).collect();
        Ok(format!(
            "CREATE TABLE IF NOT EXISTS {table} (node BIGINT NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, \
             ceiling BIGINT NOT NULL, expires BIGINT NOT NULL){};\n\
             INSERT INTO {table} (node, epoch, ceiling, expires) VALUES {}{};",
            DB::TEXTS.table_options,
            rows.join(", "),
            (DB::TEXTS.keep)("node"),
        ))
    }

    /// Makes the table, and a row for each node of the terms that has none: as
    /// [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// As [`create_sql`](Self::create_sql), and what the database says.
    pub async fn create(&self) -> Result<(), Error> {
        self.rows.run(self.create_sql()?).await
    }

    /// Why nothing was free.
    async fn none_free(&self) -> Result<Grant, Error> {
        let Range { start, end } = self.rows.nodes();
        let values = [Value::Number(start), Value::Number(end)];
        let answer = self.rows.store.ask(&self.count, &values).await?;
        let [rows, next] = answer.row().unwrap_or_default();
        if rows != end - start {
            return Err(self.rows.error(
                CoordinationFailure::StateLost,
                &format!(
                    "has rows for {rows} of the nodes {start}..{end}: make the others with `create`, once it \
                     is known that no process has them"
                ),
            ));
        }
        Err(self.rows.error(
            CoordinationFailure::NoFreeNode,
            &format!("has {rows} nodes, and all are held; the first may be free in {next} ms"),
        ))
    }
}

impl<DB: Backend> AsyncNodeAllocator for SqlLease<DB> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        let terms = &self.rows.terms;
        let Range { start, end } = self.rows.nodes();
        let range = [Value::Number(start), Value::Number(end)];
        for _ in 0..ROUNDS {
            let mut free = self.rows.store.ask(&self.free, &range).await?.rows;
            if free.is_empty() {
                return self.none_free().await;
            }
            // Many that start together would otherwise all ask for the first one.
            let is_past = |row: &Vec<i64>| row.get(2) <= row.get(3);
            let past = free.iter().take_while(|row| is_past(row)).count();
            if past > 1 {
                let first = ThreadEntropy.next_u32()?;
                let by = usize::try_from(first).unwrap_or(0) % past;
                free[..past].rotate_left(by);
            }
            for row in free {
                let Ok([node, epoch, ceiling, store_now]) = <[i64; 4]>::try_from(row) else {
                    continue;
                };
                let stored = (epoch > 0).then(|| time(ceiling));
                let (floor, next) = terms.range(stored, now, last, Some(time(store_now)))?;
                let values = [
                    signed(next.as_unix_millis()),
                    self.rows.ttl(),
                    node,
                    epoch,
                    ceiling,
                ];
                let answer = self
                    .rows
                    .store
                    .ask_once(&self.take, &values.map(Value::Number))
                    .await?;
                if answer.changed == 1 {
                    return Grant::new(unsigned(node), unsigned(epoch) + 1, floor, next);
                }
            }
        }
        Err(self.rows.error(
            CoordinationFailure::NoFreeNode,
            "has free nodes, but others were faster each time",
        ))
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        self.rows.renew(grant, now).await
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        self.rows.release(grant, last).await
    }

    fn terms(&self) -> &LeaseTerms {
        &self.rows.terms
    }
}

/// The rows of nodes, and what their holders do.
struct Rows<DB: Backend> {
    store: Store<DB>,
    terms: LeaseTerms,
    table: String,
    read: SqlStr,
    renew: SqlStr,
    release: SqlStr,
    write_back: SqlStr,
}

impl<DB: Backend> Rows<DB> {
    fn new(options: ConnectOptions<DB>, terms: LeaseTerms, table: String) -> Self {
        Self::of(Store::new(options), terms, table)
    }

    fn with_table(self, table: String) -> Self {
        Self::of(self.store, self.terms, table)
    }

    fn of(store: Store<DB>, terms: LeaseTerms, table: String) -> Self {
        let sql = |text| statement::<DB>(&table, text);
        Self {
            read: sql("SELECT epoch, ceiling, {now} FROM {t} WHERE node = ?"),
            renew: sql("UPDATE {t} SET ceiling = ?, expires = {now} + ? \
                 WHERE node = ? AND epoch = ? AND ceiling = ?"),
            release: sql(
                "UPDATE {t} SET ceiling = ?, expires = 0 WHERE node = ? AND epoch = ? AND ceiling = ?",
            ),
            write_back: sql(
                "UPDATE {t} SET epoch = CASE WHEN epoch < ? THEN ? ELSE epoch END, \
                 ceiling = CASE WHEN ceiling < ? THEN ? ELSE ceiling END WHERE node = ?",
            ),
            store,
            terms,
            table,
        }
    }

    async fn run(&self, script: String) -> Result<(), Error> {
        use sqlx::SqlSafeStr as _;

        // Of checked names and numbers.
        let script = sqlx::AssertSqlSafe(script).into_sql_str();
        self.store.run(&script).await
    }

    fn nodes(&self) -> Range<i64> {
        let nodes = self.terms.nodes();
        signed(nodes.start)..signed(nodes.end)
    }

    fn ttl(&self) -> i64 {
        i64::try_from(self.terms.ttl().as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// What the database keeps of a grant's node: epoch, ceiling, and its time.
    async fn read(&self, grant: &Grant) -> Result<(u64, Timestamp, Timestamp), Error> {
        let node = signed(grant.node());
        let answer = self.store.ask(&self.read, &[Value::Number(node)]).await?;
        let Some([epoch, ceiling, now]) = answer.row() else {
            return Err(self.error(
                CoordinationFailure::StateLost,
                &format!("has lost the row of node {node}"),
            ));
        };
        Ok((unsigned(epoch), time(ceiling), time(now)))
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        // The second time it is read to say why the first has changed nothing.
        let mut changed = true;
        loop {
            let (epoch, stored, store_now) = self.read(grant).await?;
            let ceiling = match self
                .terms
                .renewed(grant, epoch, stored, now, Some(store_now))
            {
                Ok(ceiling) => ceiling,
                Err(error) => return Err(self.written_back(grant, error).await),
            };
            if !changed {
                return Err(self.error(
                    CoordinationFailure::Fenced,
                    &format!("was changed by others while {grant} was renewed"),
                ));
            }
            let values = [
                signed(ceiling.as_unix_millis()),
                self.ttl(),
                signed(grant.node()),
                signed(epoch),
                signed(stored.as_unix_millis()),
            ];
            let answer = self
                .store
                .ask_once(&self.renew, &values.map(Value::Number))
                .await?;
            if answer.changed == 1 {
                return Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling);
            }
            changed = false;
        }
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let (epoch, stored, _) = self.read(grant).await?;
        let ceiling = match self.terms.released(grant, epoch, stored, last) {
            Ok(ceiling) => ceiling,
            Err(error) => return Err(self.written_back(grant, error).await),
        };
        let values = [
            signed(ceiling.as_unix_millis()),
            signed(grant.node()),
            signed(epoch),
            signed(stored.as_unix_millis()),
        ];
        let answer = self
            .store
            .ask_once(&self.release, &values.map(Value::Number))
            .await?;
        if answer.changed == 1 {
            return Ok(());
        }
        Err(self.error(
            CoordinationFailure::Fenced,
            &format!("was changed by others while {grant} was given back"),
        ))
    }

    /// Where the database has forgotten what it granted, writes it back, so that nobody gets it a second
    /// time: to raise a ceiling is always safe. Returns the error.
    async fn written_back(&self, grant: &Grant, error: Error) -> Error {
        if error.coordination_failure() == Some(CoordinationFailure::CeilingRegressed) {
            let epoch = signed(grant.epoch());
            let ceiling = signed(grant.ceiling().as_unix_millis());
            let values = [epoch, epoch, ceiling, ceiling, signed(grant.node())];
            // Whether it worked or not, the holder has to stop.
            let _ = self
                .store
                .ask(&self.write_back, &values.map(Value::Number))
                .await;
        }
        error
    }

    fn error(&self, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(
            failure,
            format!("table {} of {} {problem}", self.table, DB::Dialect::NAME),
        )
    }

    fn debug(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("store", &self.store)
            .field("table", &self.table)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

fn time(millis: i64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(unsigned(millis))
}
