//! Nodes leased from a table. The statements and their order are core's
//! ([`nodes`](ordid_sql::leases::nodes)).

use std::{fmt, thread, time::Duration};

use oracle::{Connection, conn::CloseMode, oci_attr::TransactionInProgress, sql_type::ToSql};
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms, NodeAllocator},
    entropy::ThreadEntropy,
    storage::{Dialect as _, dialect::Oracle},
};
use ordid_sql::{
    leases::{
        connections::{Connections, Exchange, Remedy, Unanswered},
        nodes::LeasedNodes,
        numbers::{Answer, NumberStore, Statement},
    },
    spi::blocking,
};

use crate::classify::{classify, has_one_of};

/// ORA-00942: table or view does not exist.
const NO_SUCH_TABLE: i64 = 942;

/// Leases nodes from a table of Oracle: a [`NodeAllocator`] where the program has a database anyway.
///
/// The database's clock decides when a silent holder's node is free, and whether a process's clock is too
/// far ahead; no duplicate depends on it. Statements run on connections that `connect` makes, or a pool lends,
/// and that nobody else uses. A change is committed by the call that makes it, so no lock outlives that. One that
/// has a transaction open is refused ([`Mismatch`](CoordinationFailure::Mismatch)). Four connections are kept at
/// most; one that was closed while it was idle is replaced; what lost to another transaction is sent again.
///
/// The ceiling is as durable as a commit is: not with `COMMIT_WRITE` or `COMMIT_WAIT` at `NOWAIT`, which answers
/// before the log is on the disk. A database that falls over to a standby that lags, or is restored from a copy,
/// can grant time a second time, up to what was lost and at most the terms' [`max_ahead`](LeaseTerms::max_ahead)
/// ahead of the clock: a holder that renews finds out
/// ([`CeilingRegressed`](CoordinationFailure::CeilingRegressed)), and writes back what it was granted.
///
/// Oracle's client library cannot be used on both sides of a fork: in the child all is refused
/// ([`Unavailable`](CoordinationFailure::Unavailable)). Fork first.
///
/// The client library is of 18.1 or later, which can end a call that takes too long.
///
/// # Example
///
/// ```no_run
/// use ordid_core::{
///     clock::SystemClock, coordination::LeaseTerms, entropy::ThreadEntropy,
///     generator::{AtCeiling, Generator, LeaseKeeper, Policy}, scheme::Snowflake,
/// };
/// use ordid_oracle::SqlLease;
///
/// let connect = || ordid_oracle::connect("scott", "tiger", "//localhost/FREEPDB1");
/// let leases = SqlLease::new(connect, LeaseTerms::new(0..1_024)?);
/// leases.create()?; // once, as a migration
///
/// let keeper = LeaseKeeper::<Snowflake, _, _>::acquire_sync(
///     &leases, SystemClock, ThreadEntropy, Policy::DEFAULT, AtCeiling::Error,
/// )?;
/// let kept = keeper.start(leases)?; // renews on a thread, until it is dropped
/// let key = kept.generator().try_generate()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SqlLease {
    store: Store,
    nodes: LeasedNodes<Oracle>,
}

impl SqlLease {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = LeasedNodes::<Oracle>::TABLE;

    /// Takes what connects, and the terms. It connects when it is first asked for something.
    pub fn new<E: Into<crate::Error>>(
        connect: impl Fn() -> Result<Connection, E> + Send + Sync + 'static,
        terms: LeaseTerms,
    ) -> Self {
        Self {
            store: Store {
                connect: Box::new(move || connect().map_err(Into::into)),
                connections: Connections::new(),
            },
            nodes: LeasedNodes::new(terms),
        }
    }

    /// Takes a table of another name, which is quoted: each group of processes that share nodes has one.
    ///
    /// # Errors
    ///
    /// If it has other characters than letters, digits and underscores, or more than 63. The error is a
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        Ok(Self {
            nodes: self.nodes.with_table(table)?,
            ..self
        })
    }

    /// Says how long the database may take for each answer: 5 s otherwise. How long it may take to connect,
    /// the connect string says: `//host/service?connect_timeout=5`.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.store.connections.set_timeout(timeout);
        self
    }

    /// Returns the PL/SQL block that makes the table, and a row for each node of the terms that has none.
    ///
    /// Run it once, as a migration. A table that was lost must not be made anew in silence: then nobody
    /// knows any more which time is used. Never delete rows.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes. The error is a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn create_sql(&self) -> Result<String, Error> {
        self.nodes.create_sql()
    }

    /// Makes the table, and a row for each node of the terms that has none: as
    /// [`create_sql`](Self::create_sql).
    ///
    /// # Errors
    ///
    /// As [`create_sql`](Self::create_sql), and what the database says.
    pub fn create(&self) -> Result<(), Error> {
        self.store.run(&self.create_sql()?)
    }
}

impl NodeAllocator for SqlLease {
    fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        blocking(self.nodes.acquire(&self.store, &ThreadEntropy, now, last))
    }

    fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        blocking(self.nodes.renew(&self.store, grant, now))
    }

    fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        blocking(self.nodes.release(&self.store, grant, last))
    }

    fn terms(&self) -> &LeaseTerms {
        self.nodes.terms()
    }
}

impl fmt::Debug for SqlLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlLease")
            .field("connections", &self.store.connections)
            .field("table", &self.nodes.table())
            .field("terms", self.nodes.terms())
            .finish_non_exhaustive()
    }
}

/// A database, and the connections to it that are not used by anybody else.
struct Store {
    connect: Box<dyn Fn() -> Result<Connection, crate::Error> + Send + Sync>,
    connections: Connections<Connection>,
}

impl Store {
    fn connect(&self) -> Result<Connection, Error> {
        let connected = (self.connect)();
        let connection = connected.map_err(|error| {
            Error::coordination(CoordinationFailure::Unavailable, format!("Oracle: {error}"))
        })?;
        let in_progress = connection.oci_attr::<TransactionInProgress>();
        if in_progress.map_err(|error| said(&error))? {
            return Err(mismatch(
                "a transaction is open on the new connection, which the first grant would commit: connect \
                 without one",
            ));
        }
        let timed = connection.set_call_timeout(Some(self.connections.timeout()));
        timed.map_err(|error| {
            mismatch(&format!(
                "no time for an answer can be set, for which the client library has to be of 18.1 or later: \
                 {error}"
            ))
        })?;
        Ok(connection)
    }

    /// Runs a block.
    fn run(&self, script: &str) -> Result<(), Error> {
        self.connections.refuse_forks(Oracle::NAME)?;
        let connection = self.connect()?;
        let done = connection.execute(script, &[]);
        done.map(drop).map_err(|error| said(&error))
    }
}

fn said(error: &oracle::Error) -> Error {
    let failure = if has_one_of(error, &[NO_SUCH_TABLE]) {
        CoordinationFailure::StateLost
    } else {
        CoordinationFailure::Unavailable
    };
    Error::coordination(failure, format!("{}: {error}", Oracle::NAME))
}

fn mismatch(problem: &str) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!("{}: {problem}", Oracle::NAME),
    )
}

impl NumberStore for Store {
    async fn ask(&self, statement: &Statement, values: &[i64]) -> Result<Answer, Error> {
        self.connections.refuse_forks(Oracle::NAME)?;
        let question = Question {
            store: self,
            statement,
            values,
        };
        let exchange = self.connections.exchange(&question, statement.may_repeat());
        exchange.await
    }
}

/// A statement, and the database that it is for.
struct Question<'q> {
    store: &'q Store,
    statement: &'q Statement,
    values: &'q [i64],
}

impl Exchange for Question<'_> {
    type Connection = Connection;
    type Answer = Answer;

    async fn connect(&self) -> Result<Connection, Error> {
        self.store.connect()
    }

    async fn ask(&self, connection: &mut Connection) -> Result<Answer, Unanswered> {
        let asked = asked(connection, self.statement, self.values);
        asked.map_err(|error| {
            let told = said(&error);
            let mut remedy = classify(error).failure.into();
            // Of a serializable session what it has read is over with its transaction.
            if remedy == Remedy::Repeat && connection.rollback().is_err() {
                remedy = Remedy::Replace;
            }
            if remedy == Remedy::Replace {
                // Of a pool, which shall not lend it again. Any other refuses this, and is closed as it is
                // dropped.
                let _ = connection.close_with_mode(CloseMode::Drop);
            }
            Unanswered {
                error: told,
                remedy,
            }
        })
    }

    /// On the caller's thread, as the calls themselves.
    async fn pause(&self, pause: Duration) {
        thread::sleep(pause);
    }
}

fn asked(
    connection: &mut Connection,
    statement: &Statement,
    values: &[i64],
) -> oracle::Result<Answer> {
    // A change by the call that makes it: between that and a COMMIT of its own the process could stop, and leave
    // others to wait for the row.
    connection.set_autocommit(statement.is_change());
    let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
    if statement.is_change() {
        let done = connection.execute(statement.sql(), &values)?;
        return Ok(Answer {
            changed: done.row_count()?,
            ..Answer::default()
        });
    }
    let mut rows = Vec::new();
    for row in connection.query(statement.sql(), &values)? {
        let row = row?;
        let numbers = row.sql_values().iter().map(|value| value.get());
        rows.push(numbers.collect::<oracle::Result<_>>()?);
    }
    // In a serializable session the next question would otherwise see what this one saw.
    connection.rollback()?;
    Ok(Answer {
        rows,
        ..Answer::default()
    })
}
