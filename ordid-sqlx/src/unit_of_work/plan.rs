//! What would be sent, without sending it.

use std::{ops::Range, sync::Arc};

use super::{UnitOfWork, statement::Statements};
use crate::{backend::Backend, error::Error};

/// What a flush would send: see [`UnitOfWork::plan`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlushPlan {
    /// The tables that have rows, in the order in which they are written.
    pub tables: Vec<PlannedTable>,
}

/// What a flush would send for one table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedTable {
    /// The table's name.
    pub table: &'static str,
    /// How many rows it gets.
    pub rows: usize,
    /// The statements, in order.
    pub statements: Vec<PlannedStatement>,
}

/// One statement of a flush.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedStatement {
    /// Which rows of the table, counted from 0 in the order in which they are sent: as in
    /// [`Error::rows`].
    pub rows: Range<usize>,
    /// The text, with a placeholder for each value. Statements of as many rows share it.
    pub sql: Arc<str>,
}

impl FlushPlan {
    /// Returns the number of rows, over all tables.
    pub fn rows(&self) -> usize {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

impl<DB: Backend> UnitOfWork<DB> {
    /// Returns what a flush would send: the tables in their order, parents first, and the statements
    /// of each, with their text. No database is asked, and nothing is taken out.
    ///
    /// Where PostgreSQL takes a table's rows by `COPY`, [`flush`](Self::flush) sends that in the
    /// place of the statements: only the database can tell.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a database: a key that was added twice, tables or rows that
    /// refer to each other in a circle, a row with more columns than a statement takes. All
    /// [`is_plan`](Error::is_plan).
    pub fn plan(&mut self) -> Result<FlushPlan, Error> {
        let plan = self.planned()?;
        let mut statements = Statements::new(&self.batches);
        let mut tables = Vec::<PlannedTable>::new();
        let mut current = None;
        for chunk in plan.chunks() {
            if current.replace(chunk.table) != Some(chunk.table) {
                let table = self.batches.table(chunk.table);
                tables.push(PlannedTable {
                    table: table.name(),
                    rows: table.rows(),
                    statements: Vec::new(),
                });
            }
            if let Some(table) = tables.last_mut() {
                table.statements.push(PlannedStatement {
                    sql: statements.text::<DB>(&chunk),
                    rows: chunk.rows,
                });
            }
        }
        Ok(FlushPlan { tables })
    }
}

#[cfg(all(test, feature = "sqlite", feature = "postgres"))]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};
    use sqlx::{Postgres, Sqlite};

    use super::*;

    #[derive(OrderedKey)]
    #[ordid(table = "customers", schema = "shop")]
    struct Customer {
        id: Uuid,
        name: String,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "orders")]
    struct Order {
        id: Option<Uuid>,
        #[ordid(parent = Customer)]
        customer: Uuid,
        total: i64,
    }

    /// Orders of a customer, who is added after them.
    fn work<DB: Backend>(orders: usize) -> UnitOfWork<DB>
    where
        Customer: crate::Entity<DB>,
        Order: crate::Entity<DB>,
    {
        let mut work = UnitOfWork::new();
        let customer = Uuid::generate();
        for total in [1250].into_iter().cycle().take(orders) {
            work.add(Order {
                id: None,
                customer,
                total,
            });
        }
        work.add(Customer {
            id: customer,
            name: "Ada".into(),
        });
        work
    }

    fn told(plan: &FlushPlan) -> Vec<(&str, Range<usize>, &str)> {
        let statements = |table: &PlannedTable| table.statements.clone();
        for table in &plan.tables {
            let rows: usize = statements(table).iter().map(|it| it.rows.len()).sum();
            assert_eq!(rows, table.rows);
        }
        plan.tables
            .iter()
            .flat_map(|table| table.statements.iter().map(|it| (table.table, it)))
            .map(|(table, it)| (table, it.rows.clone(), &*it.sql))
            .collect()
    }

    #[test]
    fn a_plan_has_the_text_of_each_statement_parents_first() {
        let mut sqlite = work::<Sqlite>(2);
        assert_eq!(
            told(&sqlite.plan().unwrap()),
            [
                (
                    "customers",
                    0..1,
                    r#"INSERT INTO "shop"."customers" ("id", "name") VALUES (?, ?)"#
                ),
                (
                    "orders",
                    0..2,
                    r#"INSERT INTO "orders" ("id", "customer", "total") VALUES (?, ?, ?), (?, ?, ?)"#
                ),
            ]
        );
        assert_eq!(sqlite.len(), 3, "nothing is taken out");
        let plan = work::<Postgres>(1).plan().unwrap();
        assert_eq!(
            told(&plan)[1].2,
            r#"INSERT INTO "orders" ("id", "customer", "total") VALUES ($1, $2, $3)"#
        );
        assert_eq!(plan.rows(), 2);
        assert_eq!(
            UnitOfWork::<Sqlite>::new().plan().unwrap(),
            FlushPlan::default()
        );
    }

    #[test]
    fn chunks_of_as_many_rows_share_their_text() {
        let plan = work::<Sqlite>(2_001).plan().unwrap();
        let orders = &plan.tables[1];
        let rows: Vec<_> = orders.statements.iter().map(|it| it.rows.clone()).collect();
        assert_eq!(rows, [0..1_000, 1_000..2_000, 2_000..2_001]);
        let texts: Vec<_> = orders.statements.iter().map(|it| &it.sql).collect();
        assert!(Arc::ptr_eq(texts[0], texts[1]));
        assert_eq!(texts[0].matches('?').count(), 3_000);
        assert_eq!(texts[2].matches('?').count(), 3);
    }

    #[test]
    fn what_cannot_be_sent_is_an_error_without_a_database() {
        let mut work = work::<Sqlite>(0);
        let id = work.get::<Customer>()[0].id;
        work.add(Customer {
            id,
            name: "Ada again".into(),
        });
        let error = work.plan().unwrap_err();
        assert!(error.is_plan());
        assert_eq!(
            error.to_string(),
            format!(
                "cannot plan the flush, nothing was sent: two rows of customers have the key {id}; \
                 was an entity added twice?"
            )
        );
    }
}
