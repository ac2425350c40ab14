//! Nodes that are used once: a number for each start, as in Baidu's UidGenerator.

use std::{format, string::String};

use super::{Rows, millis, time};
use crate::leases::numbers::{CounterDialect, NumberStore, Statement, checked_name, unsigned};
use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms},
};

/// Nodes that a table counts: the steps of an [`AsyncNodeAllocator`](ordid_core::coordination::AsyncNodeAllocator), and
/// the statements that they take.
#[derive(Debug)]
pub struct DisposableNodes<D> {
    rows: Rows<D>,
    now: Statement,
    pub(super) insert: Statement,
}

impl<D: CounterDialect> DisposableNodes<D> {
    /// The name of the table unless said otherwise.
    pub const TABLE: &'static str = "ordid_disposable_nodes";

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
        let insert = "INSERT INTO {t} (epoch, ceiling, expires) VALUES (1, ?, {now} + ?)";
        let insert = format!("{insert}{}", D::returning("node"));
        Self {
            now: Statement::reads::<D>(table, "SELECT {now}"),
            insert: Statement::changes::<D>(table, &insert),
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

    /// Returns the statement that makes the table.
    pub fn create_sql(&self) -> String {
        format!(
            "CREATE TABLE IF NOT EXISTS {} (node {}, epoch BIGINT NOT NULL, ceiling BIGINT NOT NULL, \
             expires BIGINT NOT NULL){};",
            D::quote(&self.rows.table),
            D::COUNTED_KEY,
            D::TABLE_OPTIONS,
        )
    }

    /// Takes the next node.
    ///
    /// # Errors
    ///
    /// As [`NodeAllocator::acquire`](ordid_core::coordination::NodeAllocator::acquire).
    pub async fn acquire(
        &self,
        store: &impl NumberStore,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Grant, Error> {
        let nodes = self.rows.terms.nodes();
        let answer = store.ask(&self.now, &[]).await?;
        let store_now = answer.row().map(|[now]| time(now));
        let (floor, ceiling) = self.rows.terms.range(None, now, last, store_now)?;
        let values = [millis(ceiling), self.rows.ttl()];
        let inserted = store.ask(&self.insert, &values).await?;
        let node = inserted.returned().map(unsigned).ok_or_else(|| {
            let problem = "has not said which number it gave";
            self.rows.error(CoordinationFailure::Unavailable, problem)
        })?;
        if node >= nodes.end {
            return Err(self.rows.error(
                CoordinationFailure::NoFreeNode,
                &format!(
                    "is at number {node}, and the layout ends below {}: all are used up",
                    nodes.end
                ),
            ));
        }
        if node < nodes.start {
            return Err(self.rows.error(
                CoordinationFailure::Mismatch,
                &format!(
                    "gave number {node}, below the first of {nodes:?}: begin the range with 0"
                ),
            ));
        }
        Grant::new(node, 1, floor, ceiling)
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

    /// Gives a node back, which nobody will have.
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
