//! Leased nodes: each is a row, and is free again when its holder releases it or stops renewing it.

use std::{format, ops::Range, string::String, vec::Vec};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms},
    entropy::{Entropy as _, ThreadEntropy},
};

use super::{
    LeaseDialect, NodeKind, Nodes, Number, Statement, StoreDriver, millis, signed, time, unsigned,
};

/// The most rows that a script makes.
const MAX_NODES: u64 = 1 << 16;
/// Free nodes that are looked at together.
const CANDIDATES: usize = 32;
/// How often a node is tried again because another process was faster.
const ROUNDS: u32 = 64;

/// Leases nodes from a table: a [`NodeAllocator`](ordid_core::coordination::NodeAllocator) where the program has
/// a database anyway.
///
/// The database's clock decides when a silent holder's node is free, and whether a process's clock is too
/// far ahead; no duplicate depends on it. Statements run on connections that nobody else uses, each statement a
/// transaction of its own, outside of the program's transactions. Four connections are kept at most. One that was
/// closed while it was idle is replaced; what lost to another transaction is sent again.
///
/// The ceiling is as durable as a COMMIT is. A database that falls over to a copy that lags, or is restored from
/// one, can grant time a second time, up to the lag and at most the terms'
/// [`max_ahead`](LeaseTerms::max_ahead) ahead of the clock: a holder that renews finds out
/// ([`CeilingRegressed`](CoordinationFailure::CeilingRegressed)), and writes back what it was granted.
///
/// On a member of a Galera cluster or a replication group, each statement waits until the member has what the others
/// committed before. If that takes longer than an answer may take, the call fails with
/// [`Unavailable`](CoordinationFailure::Unavailable).
///
/// The child of a fork may acquire a node of its own of it, over connections of its own; its parent's grant is
/// refused there. Where the library cannot be used on both sides of a fork, all is refused there
/// ([`Unavailable`](CoordinationFailure::Unavailable)): fork first.
pub type SqlLease<S> = Nodes<S, Leased>;

/// Nodes that are [leased](SqlLease).
#[derive(Debug)]
pub struct Leased {
    pub(super) free: Statement,
    pub(super) take: Statement,
    pub(super) count: Statement,
}

impl<D: LeaseDialect> NodeKind<D> for Leased {
    const NAME: &'static str = "SqlLease";
    const TABLE: &'static str = "ordid_nodes";

    fn new(table: &str) -> Self {
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
        }
    }

    fn create_sql(table: &str, terms: &LeaseTerms) -> Result<String, Error> {
        let nodes = terms.nodes();
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
        Ok(D::create_nodes(&D::quote(table), nodes))
    }

    /// Takes a free node; chance says which of those that are free alike.
    async fn acquire<S: StoreDriver<Dialect = D>>(
        nodes: &Nodes<S, Self>,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Grant, Error> {
        let Range { start, end } = nodes.range();
        let range = [Number(start), Number(end)];
        for _ in 0..ROUNDS {
            let mut free = nodes.store.ask(&nodes.kind.free, &range).await?.rows;
            if free.is_empty() {
                return Err(nodes.none_free().await);
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
                // A ceiling without a grant is a floor that somebody has set.
                let stored = (epoch > 0 || ceiling > 0).then(|| time(ceiling));
                let store_now = Some(time(store_now));
                let (floor, next) = nodes.terms.range(stored, now, last, store_now)?;
                let values = [millis(next), nodes.ttl(), node, epoch, ceiling];
                if nodes.change(&nodes.kind.take, &values).await? == 1 {
                    return Grant::new(unsigned(node), unsigned(epoch) + 1, floor, next);
                }
            }
        }
        Err(nodes.error(
            CoordinationFailure::NoFreeNode,
            "has free nodes, but others were faster each time",
        ))
    }
}

impl<S: StoreDriver> SqlLease<S> {
    /// Returns the script that makes the table, and a row for each node of the terms that has none.
    ///
    /// Run it once, as a migration. A table that was lost must not be made anew in silence: then
    /// nobody knows any more which time is used. Never delete rows.
    ///
    /// # Errors
    ///
    /// If the terms name more than 65,536 nodes, for which there is [`SqlDisposableNode`](super::SqlDisposableNode)
    /// on some engines. The error is a [`Mismatch`](CoordinationFailure::Mismatch).
    pub fn create_sql(&self) -> Result<String, Error> {
        <Leased as NodeKind<S::Dialect>>::create_sql(&self.table, &self.terms)
    }

    fn range(&self) -> Range<i64> {
        let nodes = self.terms.nodes();
        signed(nodes.start)..signed(nodes.end)
    }

    /// Why nothing was free.
    async fn none_free(&self) -> Error {
        let Range { start, end } = self.range();
        let range = [Number(start), Number(end)];
        let answer = match self.store.ask(&self.kind.count, &range).await {
            Ok(answer) => answer,
            Err(error) => return error,
        };
        let [rows, next] = answer.row().unwrap_or_default();
        if rows != end - start {
            return self.error(
                CoordinationFailure::StateLost,
                &format!(
                    "has rows for {rows} of the nodes {start}..{end}: make the others with `create`, once it \
                     is known that no process has them"
                ),
            );
        }
        self.error(
            CoordinationFailure::NoFreeNode,
            &match rows {
                1 => format!("has 1 node, which is held; it may be free in {next} ms"),
                _ => format!(
                    "has {rows} nodes, and all are held; the first may be free in {next} ms"
                ),
            },
        )
    }
}
