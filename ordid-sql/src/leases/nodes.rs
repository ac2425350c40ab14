//! A table of nodes: the statements for leases, and their order.
//!
//! ```text
//! ordid_nodes   node | epoch | ceiling | expires
//!               of the grant ^   ^        ^ when another may have it: ms of the database's clock
//!                                first ms of embedded time that the grant has no right to
//! ```
//!
//! Each step that changes a row is one `UPDATE` by primary key that names the epoch and the ceiling that
//! were read. It changes both or nothing, at any isolation level, and holds no lock afterwards. So it does
//! not matter how late it arrives, nor whether its answer does: a grant whose answer was lost is time
//! that nobody uses.

use std::{fmt, format, string::String, time::Duration, vec::Vec};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator, CoordinationFailure, Grant, LeaseTerms},
    storage::Dialect as _,
};

use super::{
    StoreDriver,
    numbers::{
        CounterDialect, LeaseDialect, Statement, Value::Number, checked_name, signed, unsigned,
    },
    store::Store,
};

mod disposable;
mod leased;

pub use disposable::{Disposable, SqlDisposableNode};
pub use leased::{Leased, SqlLease};

/// Nodes in a table. `S` is the library and the engine, and the kind `K` decides how a node is taken.
pub struct Nodes<S: StoreDriver, K> {
    store: Store<S>,
    terms: LeaseTerms,
    table: String,
    kind: K,
    read: Statement,
    renew: Statement,
    release: Statement,
    write_back: Statement,
}

/// How nodes of a kind are taken.
#[doc(hidden)]
pub trait NodeKind<D: LeaseDialect>: Sized + Send + Sync {
    /// The name of the type, for `Debug`.
    const NAME: &'static str;
    /// The name of the table unless said otherwise.
    const TABLE: &'static str;

    /// Writes the statements for a table.
    fn new(table: &str) -> Self;

    /// Returns the script that makes the table.
    fn create_sql(table: &str, terms: &LeaseTerms) -> Result<String, Error>;

    fn acquire<S: StoreDriver<Dialect = D>>(
        nodes: &Nodes<S, Self>,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> impl Future<Output = Result<Grant, Error>> + Send;
}

impl<S: StoreDriver, K: NodeKind<S::Dialect>> Nodes<S, K> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = K::TABLE;

    /// Takes the database, or what connects to it, and the terms. It connects when it is first asked for
    /// something.
    pub fn new(database: S::Options, terms: LeaseTerms) -> Self {
        Self::of(Store::new(database), terms, K::TABLE)
    }

    fn of(mut store: Store<S>, terms: LeaseTerms, table: &str) -> Self {
        // A member of a cluster that is behind would find an older row than was granted, and change none.
        store.wait_for_others();
        Self {
            store,
            terms,
            kind: K::new(table),
            read: Statement::reads::<S::Dialect>(
                table,
                "SELECT epoch, ceiling, {now} FROM {t} WHERE node = ?",
            ),
            renew: Statement::changes::<S::Dialect>(
                table,
                "UPDATE {t} SET ceiling = ?, expires = {now} + ? \
                 WHERE node = ? AND epoch = ? AND ceiling = ?",
            ),
            release: Statement::changes::<S::Dialect>(
                table,
                "UPDATE {t} SET ceiling = ?, expires = 0 WHERE node = ? AND epoch = ? AND ceiling = ?",
            ),
            // To raise twice is to raise once.
            write_back: Statement::changes::<S::Dialect>(
                table,
                "UPDATE {t} SET epoch = CASE WHEN epoch < ? THEN ? ELSE epoch END, \
                 ceiling = CASE WHEN ceiling < ? THEN ? ELSE ceiling END WHERE node = ?",
            )
            .repeatable(),
            table: table.into(),
        }
    }

    /// Takes a table of another name, which is quoted: each group of processes that share nodes has one.
    ///
    /// # Errors
    ///
    /// If it has other characters than letters, digits and underscores, or more than 63. The error is a
    /// [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        Ok(Self::of(self.store, self.terms, checked_name(table)?))
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

    /// Makes the table: as `create_sql`.
    ///
    /// # Errors
    ///
    /// As `create_sql`, and what the database says.
    pub async fn create(&self) -> Result<(), Error> {
        let script = K::create_sql(&self.table, &self.terms)?;
        self.store.run(script).await
    }

    fn ttl(&self) -> i64 {
        i64::try_from(self.terms.ttl().as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// Returns how many rows a statement changed.
    async fn change(&self, statement: &Statement, values: &[i64]) -> Result<u64, Error> {
        let values: Vec<_> = values.iter().copied().map(Number).collect();
        let answer = self.store.ask(statement, &values).await?;
        Ok(answer.changed::<S::Dialect>())
    }

    /// What the database keeps of a grant's node: epoch, ceiling, and its time.
    async fn read(&self, grant: &Grant) -> Result<(u64, Timestamp, Timestamp), Error> {
        let node = signed(grant.node());
        let answer = self.store.ask(&self.read, &[Number(node)]).await?;
        let Some([epoch, ceiling, now]) = answer.row() else {
            return Err(self.error(
                CoordinationFailure::StateLost,
                &format!("has lost the row of node {node}"),
            ));
        };
        Ok((unsigned(epoch), time(ceiling), time(now)))
    }

    /// Moves the ceiling of a node on, if it still has this epoch and ceiling.
    async fn move_ceiling(
        &self,
        grant: &Grant,
        epoch: u64,
        stored: Timestamp,
        ceiling: Timestamp,
    ) -> Result<Option<Grant>, Error> {
        let values = [
            millis(ceiling),
            self.ttl(),
            signed(grant.node()),
            signed(epoch),
            millis(stored),
        ];
        let renewed = || Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling);
        match self.change(&self.renew, &values).await? {
            1 => renewed().map(Some),
            _ => Ok(None),
        }
    }

    /// The database has forgotten what it granted: writes it back, so that nobody gets it a second time. To raise a ceiling
    /// is always safe. Returns the error.
    async fn written_back(&self, grant: &Grant, error: Error) -> Error {
        let epoch = signed(grant.epoch());
        let ceiling = millis(grant.ceiling());
        let values = [epoch, epoch, ceiling, ceiling, signed(grant.node())];
        // Whether it worked or not, the holder has to stop.
        let _ = self.change(&self.write_back, &values).await;
        error
    }

    fn error(&self, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(
            failure,
            format!("table {} of {} {problem}", self.table, S::Dialect::NAME),
        )
    }
}

impl<S: StoreDriver, K: NodeKind<S::Dialect>> AsyncNodeAllocator for Nodes<S, K> {
    async fn acquire(&self, now: Timestamp, last: Option<Timestamp>) -> Result<Grant, Error> {
        K::acquire(self, now, last).await
    }

    async fn renew(&self, grant: &Grant, now: Timestamp) -> Result<Grant, Error> {
        // The second time it is read to say why the first has changed nothing.
        let mut changed = true;
        loop {
            let (epoch, stored, store_now) = self.read(grant).await?;
            let renewed = self
                .terms
                .renewed(grant, epoch, stored, now, Some(store_now));
            let ceiling = match renewed {
                Ok(ceiling) => ceiling,
                Err(error) if went_back(&error) => {
                    // As if the row was read as it was granted.
                    let (epoch, stored) = (grant.epoch(), grant.ceiling());
                    let ceiling = self
                        .terms
                        .renewed(grant, epoch, stored, now, Some(store_now))?;
                    let renewed = self.move_ceiling(grant, epoch, stored, ceiling).await?;
                    return match renewed {
                        Some(renewed) => Ok(renewed),
                        None => Err(self.written_back(grant, error).await),
                    };
                }
                Err(error) => return Err(error),
            };
            if !changed {
                return Err(self.error(
                    CoordinationFailure::Fenced,
                    &format!("was changed by others while {grant} was renewed"),
                ));
            }
            let renewed = self.move_ceiling(grant, epoch, stored, ceiling).await?;
            match renewed {
                Some(renewed) => return Ok(renewed),
                None => changed = false,
            }
        }
    }

    async fn release(&self, grant: &Grant, last: Option<Timestamp>) -> Result<(), Error> {
        let (mut epoch, mut stored, _) = self.read(grant).await?;
        let mut released = self.terms.released(grant, epoch, stored, last);
        let regressed = released.clone().err().filter(went_back);
        if regressed.is_some() {
            (epoch, stored) = (grant.epoch(), grant.ceiling());
            released = self.terms.released(grant, epoch, stored, last);
        }
        let values = [
            millis(released?),
            signed(grant.node()),
            signed(epoch),
            millis(stored),
        ];
        if self.change(&self.release, &values).await? == 1 {
            return Ok(());
        }
        Err(match regressed {
            Some(error) => self.written_back(grant, error).await,
            None => self.error(
                CoordinationFailure::Fenced,
                &format!("was changed by others while {grant} was given back"),
            ),
        })
    }

    fn terms(&self) -> &LeaseTerms {
        &self.terms
    }
}

impl<S: StoreDriver, K: NodeKind<S::Dialect>> fmt::Debug for Nodes<S, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(K::NAME)
            .field("store", &self.store)
            .field("table", &self.table)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

/// Returns whether the row that was read is older than the grant. It may be that of a server that is behind, such as the standby
/// to which a router sends what only reads. The change goes to the primary, and so decides. Where each member of a cluster
/// takes changes, it is made on the same member, which [waits](LeaseDialect::wait_for_others) for the others.
fn went_back(error: &Error) -> bool {
    error.coordination_failure() == Some(CoordinationFailure::CeilingRegressed)
}

fn time(millis: i64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(unsigned(millis))
}

fn millis(time: Timestamp) -> i64 {
    signed(time.as_unix_millis())
}

#[cfg(test)]
mod tests;
