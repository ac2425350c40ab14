//! The statements that deal with prepared transactions, for each way to prepare one. An id has no character that would
//! have to be quoted.
//!
//! ```text
//! PREPARE TRANSACTION   BEGIN ..     PREPARE TRANSACTION 'id'      COMMIT PREPARED 'id'   ROLLBACK PREPARED 'id'
//! XA                    XA START 'id' .. XA END 'id'; XA PREPARE 'id'   XA COMMIT 'id'         XA ROLLBACK 'id'
//! ```
//!
//! # References
//!
//! - [`PREPARE TRANSACTION`](https://www.postgresql.org/docs/current/sql-prepare-transaction.html)
//! - [XA in MySQL](https://dev.mysql.com/doc/refman/9.7/en/xa-statements.html), its
//!   [states](https://dev.mysql.com/doc/refman/9.7/en/xa-states.html)
//! - [XA in MariaDB](https://mariadb.com/docs/server/reference/sql-statements/transactions/xa-transactions)

use super::PREFIX;

/// How an engine prepares a transaction, so that it outlives its connection and can still be committed or rolled back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TwoPhase {
    /// It does not, or not in a way that a flush uses.
    None,
    /// By `PREPARE TRANSACTION`, as PostgreSQL.
    PrepareTransaction,
    /// By the statements of XA, as MySQL and MariaDB. The library has to begin a transaction by the statement that it is
    /// given ([`RowBinder::BEGINS_XA`](crate::spi::RowBinder::BEGINS_XA)).
    Xa,
}

impl TwoPhase {
    /// Returns the statement that begins a transaction which will be prepared, if the engine needs another one for it.
    pub(crate) fn begin(self, gid: &str) -> Option<String> {
        (self == Self::Xa).then(|| format!("XA START '{gid}'"))
    }

    /// Returns the statements that prepare the transaction which is open. The last one does it.
    pub(crate) fn prepare(self, gid: &str) -> Vec<String> {
        match self {
            Self::Xa => vec![format!("XA END '{gid}'"), format!("XA PREPARE '{gid}'")],
            _ => vec![format!("PREPARE TRANSACTION '{gid}'")],
        }
    }

    /// Returns the statements that roll back what [`begin`](Self::begin) has begun, if `ROLLBACK` does not. The first one
    /// may fail: the transaction may have ended its work already, or the server has.
    pub(crate) fn abandon(self, gid: &str) -> Option<[String; 2]> {
        (self == Self::Xa).then(|| [format!("XA END '{gid}'"), format!("XA ROLLBACK '{gid}'")])
    }

    /// Returns the statement that ends a prepared transaction.
    pub(crate) fn end(self, gid: &str, commits: bool) -> String {
        let verb = if commits { "COMMIT" } else { "ROLLBACK" };
        match self {
            Self::Xa => format!("XA {verb} '{gid}'"),
            _ => format!("{verb} PREPARED '{gid}'"),
        }
    }

    /// Returns a query whose rows end with the ids of prepared transactions: of this one, if it is prepared, and perhaps of
    /// others.
    pub(crate) fn find(self, gid: &str) -> String {
        match self {
            Self::Xa => XA_RECOVER.to_owned(),
            _ => format!(
                "SELECT gid FROM pg_catalog.pg_prepared_xacts WHERE gid = '{gid}' \
                 AND database = pg_catalog.current_database()"
            ),
        }
    }

    /// As [`find`](Self::find), of all transactions that are prepared under a name.
    pub(crate) fn list(self, name: &str) -> String {
        match self {
            Self::Xa => XA_RECOVER.to_owned(),
            _ => format!(
                "SELECT gid FROM pg_catalog.pg_prepared_xacts \
                 WHERE pg_catalog.starts_with(gid, '{PREFIX}:{name}:') \
                 AND database = pg_catalog.current_database() ORDER BY gid"
            ),
        }
    }

    /// Returns the statement that lets the COMMIT of a marker row that decides wait until it is on the disk, if the engine
    /// would not. What follows from the decision always waits, and would survive a crash that the decision does not. A
    /// setting that waits for more stays as it is. InnoDB's settings are those of the whole server.
    pub(crate) const fn durable(self) -> Option<&'static str> {
        match self {
            Self::None | Self::Xa => None,
            Self::PrepareTransaction => Some(
                "SELECT pg_catalog.set_config('synchronous_commit', 'on', true) \
                 WHERE pg_catalog.current_setting('synchronous_commit') = 'off'",
            ),
        }
    }

    /// Returns queries that show whether transactions can be prepared here, and found again: one of them fails, or its first
    /// row is [`NONE`](Self::NONE), if they cannot.
    pub(crate) const fn abilities(self) -> &'static [&'static str] {
        match self {
            Self::Xa => &[KEEPS_PREPARED, XA_RECOVER],
            _ => &["SELECT pg_catalog.current_setting('max_prepared_transactions')"],
        }
    }

    /// The answer to one of the [`abilities`](Self::abilities) of a server that prepares no transactions.
    pub(crate) const NONE: &str = "0";

    /// Returns what a user needs to list prepared transactions, if not everybody may.
    pub(crate) const fn privilege(self) -> Option<&'static str> {
        match self {
            Self::Xa => Some("XA_RECOVER_ADMIN"),
            _ => None,
        }
    }

    /// Returns whether a prepared transaction may be ended by no other session until the server has noticed that the one
    /// which has prepared it is closed.
    pub(crate) const fn is_bound(self) -> bool {
        matches!(self, Self::Xa)
    }
}

/// MariaDB before 10.5.2 rolls back what is prepared when the connection that has prepared it is closed (MDEV-742). MySQL
/// executes none of the comments, and such a MariaDB only the first.
const KEEPS_PREPARED: &str = "SELECT CONCAT(1 /*M! - 1 *//*M!100502 + 1 */)";

/// Its columns are the number of a format, the lengths of two parts of the id, and the id. It takes no condition.
const XA_RECOVER: &str = "XA RECOVER";
