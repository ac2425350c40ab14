//! The driver of [`ordid_sql::leases`] for Oracle's client library.

use std::{fmt, thread, time::Duration};

use oracle::{Connection, conn::CloseMode, oci_attr::TransactionInProgress, sql_type::ToSql};
use ordid_core::{
    Error,
    coordination::CoordinationFailure,
    storage::{Dialect as _, dialect},
};
use ordid_sql::leases::{
    self, Remedy, StoreDriver, Unanswered,
    numbers::{Answer, Statement, Value},
};

use crate::classify::{classify, has_one_of};

/// ORA-00942: table or view does not exist.
const NO_SUCH_TABLE: i64 = 942;

/// Leases nodes from a table of Oracle: a [`NodeAllocator`](ordid_core::coordination::NodeAllocator).
/// [`leases::SqlLease`] says what it promises.
///
/// Statements run on connections that [`Connect`] makes, or a pool lends. A change is committed by the call that makes
/// it, so no lock outlives that. A new connection that has a transaction open is refused
/// ([`Mismatch`](CoordinationFailure::Mismatch)).
///
/// The ceiling is only as durable as a commit. With `COMMIT_WRITE` or `COMMIT_WAIT` at `NOWAIT`, Oracle confirms a
/// commit before the log is on the disk, so the ceiling is not durable then. A standby that lags counts as a restored
/// copy.
///
/// Oracle's client library cannot be used on both sides of a fork: in the child all is refused
/// ([`Unavailable`](CoordinationFailure::Unavailable)). Fork first.
///
/// The client library has to be 18.1 or later, since older ones cannot end a call that takes too long. The connect
/// string limits the time to connect: `//host/service?connect_timeout=5`.
///
/// # Example
///
/// ```no_run
/// use ordid_core::{
///     clock::SystemClock, coordination::LeaseTerms, entropy::ThreadEntropy,
///     generator::{AtCeiling, Generator, LeaseKeeper, Policy}, scheme::Snowflake,
/// };
/// use ordid_oracle::{Connect, SqlLease};
///
/// let connect = Connect::new(|| ordid_oracle::connect("scott", "tiger", "//localhost/FREEPDB1"));
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
pub type SqlLease = leases::blocking::SqlLease<OracleDriver>;

/// How to connect to Oracle.
pub struct Connect(Box<dyn Fn() -> Result<Connection, crate::Error> + Send + Sync>);

impl Connect {
    /// Takes what connects.
    pub fn new<E: Into<crate::Error>>(
        connect: impl Fn() -> Result<Connection, E> + Send + Sync + 'static,
    ) -> Self {
        Self(Box::new(move || connect().map_err(Into::into)))
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connect").finish_non_exhaustive()
    }
}

/// Oracle's client library, as [`ordid_sql`] has it: leases and followers are over it.
#[derive(Debug)]
pub struct OracleDriver(());

impl StoreDriver for OracleDriver {
    type Dialect = dialect::Oracle;
    type Options = Connect;
    type Connection = Connection;

    const SURVIVES_FORKS: bool = false;

    async fn connect(connect: &Connect, timeout: Duration) -> Result<Connection, Error> {
        let connection = (connect.0)().map_err(|error| {
            Error::coordination(CoordinationFailure::Unavailable, format!("Oracle: {error}"))
        })?;
        let in_progress = connection.oci_attr::<TransactionInProgress>();
        if in_progress.map_err(|error| said(&error))? {
            return Err(mismatch(
                "a transaction is open on the new connection, which the first grant would commit: connect \
                 without one",
            ));
        }
        let timed = connection.set_call_timeout(Some(timeout));
        timed.map_err(|error| {
            mismatch(&format!(
                "no time for an answer can be set, for which the client library has to be of 18.1 or later: \
                 {error}"
            ))
        })?;
        Ok(connection)
    }

    async fn ask(
        connection: &mut Connection,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<Answer, Unanswered> {
        let asked = asked(connection, statement, values);
        asked.map_err(|error| {
            let told = said(&error);
            let mut remedy = classify(error).failure.into();
            // A serializable session reads newer rows only after the end of its transaction.
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

    async fn run(connection: &mut Connection, script: String) -> Result<(), Error> {
        let done = connection.execute(&script, &[]);
        done.map(drop).map_err(|error| said(&error))
    }

    /// On the caller's thread, as the calls themselves.
    async fn pause(pause: Duration) {
        thread::sleep(pause);
    }
}

fn said(error: &oracle::Error) -> Error {
    let failure = if has_one_of(error, &[NO_SUCH_TABLE]) {
        CoordinationFailure::StateLost
    } else {
        CoordinationFailure::Unavailable
    };
    Error::coordination(failure, format!("{}: {error}", dialect::Oracle::NAME))
}

fn mismatch(problem: &str) -> Error {
    Error::coordination(
        CoordinationFailure::Mismatch,
        format!("{}: {problem}", dialect::Oracle::NAME),
    )
}

fn asked(
    connection: &mut Connection,
    statement: &Statement,
    values: &[Value<'_>],
) -> oracle::Result<Answer> {
    // A change is committed by the call that makes it. With a separate COMMIT, the process could stop between the two
    // calls, and others would have to wait for the row.
    connection.set_autocommit(statement.is_change());
    let values = values.iter().map(|value| match value {
        Value::Number(number) => number as &dyn ToSql,
        Value::Text(text) => text,
    });
    let values: Vec<&dyn ToSql> = values.collect();
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
