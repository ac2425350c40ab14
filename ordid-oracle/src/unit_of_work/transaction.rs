//! The transaction of a flush, and where its connection comes from.

use oracle::{Connection, conn::CloseMode, oci_attr::TransactionInProgress};

use ordid_core::unit_of_work::FlushRun;

use crate::{
    error::FlushError,
    failure::{judge, judge_commit},
};

/// Setting a savepoint again moves it, so one name serves every flush of a transaction.
const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
const ROLLBACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";

/// Constraints that were declared `DEFERRABLE` are checked at COMMIT.
pub(super) const DEFER: &str = "SET CONSTRAINTS ALL DEFERRED";

/// Where a flush has its connections from.
pub(super) enum Connections<'a> {
    One(&'a Connection),
    Made {
        connect: &'a mut dyn FnMut() -> Result<Connection, FlushError>,
        open: Option<Connection>,
    },
}

impl Connections<'_> {
    /// Returns the connection, a new one where there is none.
    pub(super) fn get(&mut self) -> Result<&Connection, FlushError> {
        match self {
            Self::One(connection) => Ok(connection),
            Self::Made { connect, open } => match open {
                Some(connection) => Ok(connection),
                None => Ok(open.insert(connect()?)),
            },
        }
    }

    /// The connection is lost.
    pub(super) fn lose(&mut self) {
        if let Self::Made { open, .. } = self
            && let Some(connection) = open.take()
        {
            // Of a pool, which shall not lend it again. Any other refuses this, and is closed as it is
            // dropped.
            let _ = connection.close_with_mode(CloseMode::Drop);
        }
    }
}

/// What a flush is all or nothing in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Transaction,
    Savepoint,
}

impl Scope {
    pub(super) const fn of(run: &FlushRun<oracle::Error>) -> Self {
        match run.is_own() {
            true => Self::Transaction,
            false => Self::Savepoint,
        }
    }
}

fn begin_failed(error: oracle::Error) -> FlushError {
    FlushError::begin(judge(error))
}

/// A transaction or savepoint of this flush, rolled back unless it is committed: also when a value's
/// own code panics while it is bound.
pub(super) struct Open<'c> {
    connection: &'c Connection,
    scope: Scope,
    ends_well: bool,
}

impl<'c> Open<'c> {
    pub(super) fn begin(
        connection: &'c Connection,
        scope: Scope,
        defers: bool,
    ) -> Result<Self, FlushError> {
        if connection.autocommit() {
            return Err(FlushError::state(
                "the connection commits by itself after each statement",
                "call `set_autocommit(false)`",
            ));
        }
        match scope {
            Scope::Transaction => {
                let in_progress = connection.oci_attr::<TransactionInProgress>();
                if in_progress.map_err(begin_failed)? {
                    return Err(FlushError::open_transaction("connection"));
                }
            }
            Scope::Savepoint => {
                connection.execute(SAVEPOINT, &[]).map_err(begin_failed)?;
            }
        }
        let open = Self {
            connection,
            scope,
            ends_well: false,
        };
        if defers {
            connection.execute(DEFER, &[]).map_err(begin_failed)?;
        }
        Ok(open)
    }

    pub(super) fn commit(mut self) -> Result<(), FlushError> {
        if self.scope == Scope::Transaction {
            let committed = self.connection.commit();
            committed.map_err(|error| FlushError::commit(judge_commit(error)))?;
        }
        self.ends_well = true;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if self.ends_well {
            return;
        }
        // Its own failure says no more: the server drops what is not committed.
        let _ = match self.scope {
            Scope::Transaction => self.connection.rollback(),
            Scope::Savepoint => self.connection.execute(ROLLBACK_TO, &[]).map(drop),
        };
    }
}
