//! A table of nodes: the statements for leases, and their order. Adapters send them.
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

use core::{marker::PhantomData, ops::Range};
use std::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};

use super::numbers::{
    Answer, LeaseDialect, NumberStore, Statement, checked_name, signed, unsigned,
};
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms},
    entropy::Entropy,
};

mod disposable;

pub use disposable::DisposableNodes;

/// The most rows that a script makes.
const MAX_NODES: u64 = 1 << 16;
/// Free nodes that are looked at together.
const CANDIDATES: usize = 32;
/// How often others may be faster.
const ROUNDS: u32 = 64;

/// Nodes leased from a table: the steps of an [`AsyncNodeAllocator`](ordid_core::coordination::AsyncNodeAllocator), and
/// the statements that they take.
#[derive(Debug)]
pub struct LeasedNodes<D> {
    rows: Rows<D>,
    free: Statement,
    take: Statement,
    count: Statement,
}

impl<D: LeaseDialect> LeasedNodes<D> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = "ordid_nodes";

    /// Takes the terms.
    pub fn new(terms: LeaseTerms) -> Self {
        Self::of(terms, Self::TABLE)
    }

    /// Takes a table of another name.
    ///
    /// # Errors
    ///
    /// As [`checked_name`].
    pub fn with_table(self, table: &str) -> Result<Self, Error> {
        Ok(Self::of(self.rows.terms, checked_name(table)?))
    }

    fn of(terms: LeaseTerms, table: &str) -> Self {
        Self {
            free: Statement::reads_first::<D>(
                table,
                CANDIDATES,
                "node, epoch, ceiling, {now} FROM {t} WHERE node >= ? AND node < ? AND \
                 expires <= {now} ORDER BY ceiling, node",
            ),
            take: Statement::changes::<D>(
                table,
                "UPDATE {t} SET epoch = epoch + 1, ceiling = ?, expires = {now} + ? \
                 WHERE node = ? AND epoch = ? AND ceiling = ? AND expires <= {now}",
            ),
            count: Statement::reads::<D>(
                table,
                "SELECT COUNT(*), COALESCE(MIN(expires), 0) - {now} FROM {t} WHERE node >= ? AND node < ?",
            ),
            rows: Rows::of(terms, table),
        }
    }

    /// Returns the table's name.
    pub fn table(&self) -> &str {
        &self.rows.table
    }

    /// Returns the terms.
    pub fn terms(&self) -> &LeaseTerms {
        &self.rows.terms
    }

    /// Returns the script that makes the table, and a row for each node of the terms that has none.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes. The error is a [`Mismatch`](CoordinationFailure::Mismatch).
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
        Ok(D::create_nodes(&D::quote(&self.rows.table), nodes))
    }

    /// Takes a free node; `entropy` says which of those that are free alike.
    ///
    /// # Errors
    ///
    /// As [`NodeAllocator::acquire`](ordid_core::coordination::NodeAllocator::acquire).
    pub async fn acquire(
        &self,
        store: &impl NumberStore,
        entropy: &impl Entropy,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Grant, Error> {
        let terms = &self.rows.terms;
        let Range { start, end } = self.rows.nodes();
        for _ in 0..ROUNDS {
            let mut free = store.ask(&self.free, &[start, end]).await?.rows;
            if free.is_empty() {
                return Err(self.none_free(store).await);
            }
            // Many that start together would otherwise all ask for the first one.
            let is_past = |row: &Vec<i64>| row.get(2) <= row.get(3);
            let past = free.iter().take_while(|row| is_past(row)).count();
            if past > 1 {
                let first = entropy.next_u32()?;
                let by = usize::try_from(first).unwrap_or(0) % past;
                free[..past].rotate_left(by);
            }
            for row in free {
                let Ok([node, epoch, ceiling, store_now]) = <[i64; 4]>::try_from(row) else {
                    continue;
                };
                let stored = (epoch > 0).then(|| time(ceiling));
                let (floor, next) = terms.range(stored, now, last, Some(time(store_now)))?;
                let values = [millis(next), self.rows.ttl(), node, epoch, ceiling];
                let answer = store.ask(&self.take, &values).await?;
                if answer.changed::<D>() == 1 {
                    return Grant::new(unsigned(node), unsigned(epoch) + 1, floor, next);
                }
            }
        }
        Err(self.rows.error(
            CoordinationFailure::NoFreeNode,
            "has free nodes, but others were faster each time",
        ))
    }

    /// Why nothing was free.
    async fn none_free(&self, store: &impl NumberStore) -> Error {
        let Range { start, end } = self.rows.nodes();
        let answer = match store.ask(&self.count, &[start, end]).await {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        let [rows, next] = answer.row().unwrap_or_default();
        if rows != end - start {
            return self.rows.error(
                CoordinationFailure::StateLost,
                &format!(
                    "has rows for {rows} of the nodes {start}..{end}: make the others with `create`, once it \
                     is known that no process has them"
                ),
            );
        }
        self.rows.error(
            CoordinationFailure::NoFreeNode,
            &format!("has {rows} nodes, and all are held; the first may be free in {next} ms"),
        )
    }

    /// Moves the ceiling of a grant on.
    ///
    /// # Errors
    ///
    /// As [`NodeAllocator::renew`](ordid_core::coordination::NodeAllocator::renew).
    pub async fn renew(
        &self,
        store: &impl NumberStore,
        grant: &Grant,
        now: Timestamp,
    ) -> Result<Grant, Error> {
        self.rows.renew(store, grant, now).await
    }

    /// Gives a node back.
    ///
    /// # Errors
    ///
    /// As [`NodeAllocator::release`](ordid_core::coordination::NodeAllocator::release).
    pub async fn release(
        &self,
        store: &impl NumberStore,
        grant: &Grant,
        last: Option<Timestamp>,
    ) -> Result<(), Error> {
        self.rows.release(store, grant, last).await
    }
}

/// The rows of nodes, and what their holders do.
#[derive(Debug)]
struct Rows<D> {
    terms: LeaseTerms,
    table: String,
    read: Statement,
    renew: Statement,
    release: Statement,
    write_back: Statement,
    dialect: PhantomData<fn() -> D>,
}

impl<D: LeaseDialect> Rows<D> {
    fn of(terms: LeaseTerms, table: &str) -> Self {
        Self {
            terms,
            table: table.to_string(),
            read: Statement::reads::<D>(
                table,
                "SELECT epoch, ceiling, {now} FROM {t} WHERE node = ?",
            ),
            renew: Statement::changes::<D>(
                table,
                "UPDATE {t} SET ceiling = ?, expires = {now} + ? \
                 WHERE node = ? AND epoch = ? AND ceiling = ?",
            ),
            release: Statement::changes::<D>(
                table,
                "UPDATE {t} SET ceiling = ?, expires = 0 WHERE node = ? AND epoch = ? AND ceiling = ?",
            ),
            // To raise twice is to raise once.
            write_back: Statement::changes::<D>(
                table,
                "UPDATE {t} SET epoch = CASE WHEN epoch < ? THEN ? ELSE epoch END, \
                 ceiling = CASE WHEN ceiling < ? THEN ? ELSE ceiling END WHERE node = ?",
            )
            .repeatable(),
            dialect: PhantomData,
        }
    }

    fn nodes(&self) -> Range<i64> {
        let nodes = self.terms.nodes();
        signed(nodes.start)..signed(nodes.end)
    }

    fn ttl(&self) -> i64 {
        i64::try_from(self.terms.ttl().as_millis()).unwrap_or(i64::MAX / 2)
    }

    /// What the database keeps of a grant's node: epoch, ceiling, and its time.
    async fn read(
        &self,
        store: &impl NumberStore,
        grant: &Grant,
    ) -> Result<(u64, Timestamp, Timestamp), Error> {
        let node = signed(grant.node());
        let answer: Answer = store.ask(&self.read, &[node]).await?;
        let Some([epoch, ceiling, now]) = answer.row() else {
            return Err(self.error(
                CoordinationFailure::StateLost,
                &format!("has lost the row of node {node}"),
            ));
        };
        Ok((unsigned(epoch), time(ceiling), time(now)))
    }

    async fn renew(
        &self,
        store: &impl NumberStore,
        grant: &Grant,
        now: Timestamp,
    ) -> Result<Grant, Error> {
        // The second time it is read to say why the first has changed nothing.
        let mut changed = true;
        loop {
            let (epoch, stored, store_now) = self.read(store, grant).await?;
            let ceiling = match self
                .terms
                .renewed(grant, epoch, stored, now, Some(store_now))
            {
                Ok(ceiling) => ceiling,
                Err(error) => return Err(self.written_back(store, grant, error).await),
            };
            if !changed {
                return Err(self.error(
                    CoordinationFailure::Fenced,
                    &format!("was changed by others while {grant} was renewed"),
                ));
            }
            let values = [
                millis(ceiling),
                self.ttl(),
                signed(grant.node()),
                signed(epoch),
                millis(stored),
            ];
            let answer = store.ask(&self.renew, &values).await?;
            if answer.changed::<D>() == 1 {
                return Grant::new(grant.node(), grant.epoch(), grant.floor(), ceiling);
            }
            changed = false;
        }
    }

    async fn release(
        &self,
        store: &impl NumberStore,
        grant: &Grant,
        last: Option<Timestamp>,
    ) -> Result<(), Error> {
        let (epoch, stored, _) = self.read(store, grant).await?;
        let ceiling = match self.terms.released(grant, epoch, stored, last) {
            Ok(ceiling) => ceiling,
            Err(error) => return Err(self.written_back(store, grant, error).await),
        };
        let values = [
            millis(ceiling),
            signed(grant.node()),
            signed(epoch),
            millis(stored),
        ];
        let answer = store.ask(&self.release, &values).await?;
        if answer.changed::<D>() == 1 {
            return Ok(());
        }
        Err(self.error(
            CoordinationFailure::Fenced,
            &format!("was changed by others while {grant} was given back"),
        ))
    }

    /// Writes a grant back if the database has lost it, so that nobody else is granted the same: raising
    /// a ceiling is always safe. Returns the error.
    async fn written_back(&self, store: &impl NumberStore, grant: &Grant, error: Error) -> Error {
        if error.coordination_failure() == Some(CoordinationFailure::CeilingRegressed) {
            let epoch = signed(grant.epoch());
            let ceiling = millis(grant.ceiling());
            let values = [epoch, epoch, ceiling, ceiling, signed(grant.node())];
            // The holder has to stop, whether this worked or not.
            let _ = store.ask(&self.write_back, &values).await;
        }
        error
    }

    fn error(&self, failure: CoordinationFailure, problem: &str) -> Error {
        Error::coordination(
            failure,
            format!("table {} of {} {problem}", self.table, D::NAME),
        )
    }
}

fn time(millis: i64) -> Timestamp {
    Timestamp::saturating_from_unix_millis(unsigned(millis))
}

fn millis(time: Timestamp) -> i64 {
    signed(time.as_unix_millis())
}

#[cfg(test)]
mod tests;
