//! Nodes that are used once: a number for each start, as in Baidu's UidGenerator.

use std::{format, string::String};

use ordid_core::{
    Error,
    clock::Timestamp,
    coordination::{CoordinationFailure, Grant, LeaseTerms},
};

use super::{
    CounterDialect, NodeKind, Nodes, Number, Statement, StoreDriver, millis, time, unsigned,
};

/// Gives each start a node that nobody had and nobody will have: the next number of a table.
///
/// The database counts from 1, so the range of the terms begins with 0 or 1.
///
/// MySQL and MariaDB count by the server's `auto_increment_increment`, which keeps apart what several servers count. The
/// servers of a Galera cluster and the members of a group of MySQL compare before a COMMIT what they have counted, so they
/// count by one: where two of them give the same number, one is refused, and gives the next. Do not let two such clusters
/// replicate the table to each other: between them nobody compares.
///
/// Nothing waits for a lease to end, and a process that died leaves nothing behind; for that the numbers
/// are used up, one with each start. A layout with 22 bits for the node has 4,194,304, enough for a
/// thousand starts a day over 11 years. When they are used up there is an error
/// ([`NoFreeNode`](CoordinationFailure::NoFreeNode)), no second round.
///
/// A grant ends and is renewed as one of [`SqlLease`](super::SqlLease): so a copy of a running process is
/// found out when it renews. A node that is given back is nobody's: the row stays for ever, as it is what tells
/// that the number is used.
pub type SqlDisposableNode<S> = Nodes<S, Disposable>;

/// Nodes that are [used once](SqlDisposableNode).
#[derive(Debug)]
pub struct Disposable {
    now: Statement,
    pub(super) insert: Statement,
    /// For servers that compare what each has counted.
    insert_by_one: Statement,
}

impl<D: CounterDialect> NodeKind<D> for Disposable {
    const NAME: &'static str = "SqlDisposableNode";
    const TABLE: &'static str = "ordid_disposable_nodes";

    fn new(table: &str) -> Self {
        let insert = |insert: &str| {
            let returning = D::returning("node");
            let values = "(epoch, ceiling, expires) VALUES (1, ?, {now} + ?)";
            Statement::changes::<D>(table, &format!("{insert} INTO {{t}} {values}{returning}"))
        };
        let now = format!("SELECT {{now}}, {}", D::compares_counts());
        Self {
            now: Statement::reads::<D>(table, &now),
            insert: insert("INSERT"),
            insert_by_one: insert(&D::insert_by_one()),
        }
    }

    fn create_sql(table: &str, _terms: &LeaseTerms) -> Result<String, Error> {
        Ok(create_sql::<D>(table))
    }

    async fn acquire<S: StoreDriver<Dialect = D>>(
        nodes: &Nodes<S, Self>,
        now: Timestamp,
        last: Option<Timestamp>,
    ) -> Result<Grant, Error> {
        let range = nodes.terms.nodes();
        let answer = nodes.store.ask(&nodes.kind.now, &[]).await?;
        let (store_now, compares) = match answer.row() {
            Some([now, compares]) => (Some(time(now)), compares > 0),
            None => (None, false),
        };
        let (floor, ceiling) = nodes.terms.range(None, now, last, store_now)?;
        let values = [millis(ceiling), nodes.ttl()].map(Number);
        let insert = match compares {
            true => &nodes.kind.insert_by_one,
            false => &nodes.kind.insert,
        };
        let inserted = nodes.store.ask(insert, &values).await?;
        let node = inserted.returned().map(unsigned).ok_or_else(|| {
            let problem = "has not said which number it gave";
            nodes.error(CoordinationFailure::Unavailable, problem)
        })?;
        if node >= range.end {
            return Err(nodes.error(
                CoordinationFailure::NoFreeNode,
                &format!(
                    "is at number {node}, and the layout ends below {}: all are used up",
                    range.end
                ),
            ));
        }
        if node < range.start {
            return Err(nodes.error(
                CoordinationFailure::Mismatch,
                &format!(
                    "gave number {node}, below the first of {range:?}: begin the range with 0"
                ),
            ));
        }
        Grant::new(node, 1, floor, ceiling)
    }
}

impl<S: StoreDriver<Dialect: CounterDialect>> SqlDisposableNode<S> {
    /// Returns the statement that makes the table. Run it once, as a migration; never delete rows.
    pub fn create_sql(&self) -> String {
        create_sql::<S::Dialect>(&self.table)
    }
}

fn create_sql<D: CounterDialect>(table: &str) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {} (node {}, epoch BIGINT NOT NULL, ceiling BIGINT NOT NULL, \
         expires BIGINT NOT NULL){};",
        D::quote(table),
        D::COUNTED_KEY,
        D::TABLE_OPTIONS,
    )
}
