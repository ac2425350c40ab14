//! What would be sent, without sending it.

use ordid_core::unit_of_work::FlushPlan;

use super::{
    UnitOfWork,
    statement::{Statements, is_for_each_row},
};
use crate::{Error, backend::Backend};

impl<DB: Backend> UnitOfWork<DB> {
    /// Returns what a flush would send: the tables in their order, parents first, and the statements
    /// of each, with their text. No database is asked, and nothing is taken out.
    ///
    /// Inserts come first. Where rows refer to each other in a circle, one of them is inserted with
    /// NULL there, and [`Action::FixUp`](ordid_core::unit_of_work::Action::FixUp) sets it afterwards.
    /// Then come updates, and at last deletes, children first.
    ///
    /// Where PostgreSQL takes a table's rows by `COPY`, [`flush`](Self::flush) sends that in the
    /// place of the statements: only the database can tell.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a database: a key that was added twice, tables or rows that
    /// refer to each other in a circle that cannot be broken, a row with more columns than a statement
    /// takes. All [`is_plan`](Error::is_plan).
    pub fn plan(&mut self) -> Result<FlushPlan, Error> {
        let plan = self.planned()?;
        let mut statements = Statements::new(&self.batches);
        Ok(FlushPlan::new(
            &plan,
            &self.batches.tables(),
            DB::DEFER,
            is_for_each_row::<DB>,
            |chunk| statements.text::<DB>(chunk),
        ))
    }
}

#[cfg(all(test, feature = "sqlite", feature = "postgres", feature = "mysql"))]
mod tests {
    use std::{ops::Range, sync::Arc};

    use ordid::{KeyType, OrderedKey, uuid::Uuid};
    use ordid_core::unit_of_work::{Action, PlannedTable};
    use sqlx::{MySql, Postgres, Sqlite};

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

    /// Employees whose boss is one of them, or who are their own assistants.
    #[derive(OrderedKey)]
    #[ordid(table = "staff")]
    struct Employee {
        name: &'static str,
        #[ordid(parent = Employee)]
        boss: Option<Uuid>,
        #[ordid(key)]
        id: Uuid,
    }

    #[derive(OrderedKey)]
    #[ordid(table = "tags", schema = "shop")]
    struct Tag {
        id: Uuid,
    }

    /// All that can be done with rows.
    fn changes<DB: Backend>() -> FlushPlan
    where
        Employee: crate::Entity<DB>,
        Tag: crate::Entity<DB>,
    {
        let mut work = UnitOfWork::<DB>::new();
        let employee = |id, boss| Employee {
            id: Uuid::from_u128(id),
            name: "Ada",
            boss: Some(Uuid::from_u128(boss)),
        };
        work.add(employee(1, 2));
        work.add(employee(2, 1));
        work.update(employee(3, 9));
        work.update(employee(4, 9));
        work.delete(&employee(5, 6));
        work.delete(&employee(6, 5));
        work.update(Tag {
            id: Uuid::from_u128(7),
        });
        work.plan().expect("circles that can be broken")
    }

    #[test]
    fn updates_and_deletes_of_postgres() {
        let plan = changes::<Postgres>();
        assert_eq!(
            told(&plan),
            [
                (
                    "staff",
                    0..2,
                    r#"INSERT INTO "staff" ("name", "boss", "id") VALUES ($1, $2, $3), ($4, $5, $6)"#
                ),
                (
                    "staff",
                    0..1,
                    r#"UPDATE "staff" AS "staff" SET "boss" = ordid_rows."boss" FROM (VALUES ($1, $2)) AS ordid_rows ("boss", "id") WHERE "staff"."id" = ordid_rows."id""#
                ),
                (
                    "staff",
                    0..2,
                    r#"UPDATE "staff" AS "staff" SET "name" = ordid_rows."name", "boss" = ordid_rows."boss" FROM (VALUES ($1, $2, $3), ($4, $5, $6)) AS ordid_rows ("name", "boss", "id") WHERE "staff"."id" = ordid_rows."id""#
                ),
                (
                    "tags",
                    0..1,
                    r#"UPDATE "shop"."tags" AS "tags" SET "id" = "tags"."id" FROM (VALUES ($1)) AS ordid_rows ("id") WHERE "tags"."id" = ordid_rows."id""#
                ),
                (
                    "staff",
                    0..1,
                    r#"UPDATE "staff" SET "boss" = NULL WHERE "id" IN ($1)"#
                ),
                ("staff", 0..1, r#"DELETE FROM "staff" WHERE "id" IN ($1)"#),
                ("staff", 1..2, r#"DELETE FROM "staff" WHERE "id" IN ($1)"#),
            ]
        );
        assert_eq!(plan.rows(), 2, "that are new");
        assert_eq!(plan.defers, None);
    }

    #[test]
    fn updates_of_sqlite_and_mysql() {
        let updates = |plan: &FlushPlan| {
            let updates = plan.tables.iter().filter(|it| it.action == Action::Update);
            updates
                .flat_map(|table| table.statements.clone())
                .map(|statement| (statement.rows, statement.sql.to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            updates(&changes::<Sqlite>()),
            [
                (
                    0..2,
                    r#"WITH ordid_rows ("name", "boss", "id") AS (VALUES (?, ?, ?), (?, ?, ?)) UPDATE "staff" AS "staff" SET "name" = ordid_rows."name", "boss" = ordid_rows."boss" FROM ordid_rows WHERE "staff"."id" = ordid_rows."id""#.to_owned()
                ),
                (
                    0..1,
                    r#"WITH ordid_rows ("id") AS (VALUES (?)) UPDATE "shop"."tags" AS "tags" SET "id" = "tags"."id" FROM ordid_rows WHERE "tags"."id" = ordid_rows."id""#.to_owned()
                ),
            ]
        );
        let of_staff = "UPDATE `staff` SET `name` = ?, `boss` = ? WHERE `id` = ?".to_owned();
        let of_tags = "UPDATE `shop`.`tags` SET `id` = `tags`.`id` WHERE `id` = ?".to_owned();
        assert_eq!(
            updates(&changes::<MySql>()),
            [(0..1, of_staff.clone()), (1..2, of_staff), (0..1, of_tags)]
        );
    }

    #[test]
    fn what_is_declared_deferrable_is_not_fixed_up() {
        fn plan<DB: Backend>() -> FlushPlan
        where
            Deferred: crate::Entity<DB>,
        {
            let mut work = UnitOfWork::<DB>::new();
            for (id, other) in [(1, 2), (2, 1)] {
                work.add(Deferred {
                    id: Uuid::from_u128(id),
                    other: Some(Uuid::from_u128(other)),
                });
            }
            work.plan().unwrap()
        }
        #[derive(OrderedKey)]
        #[ordid(table = "deferred")]
        struct Deferred {
            id: Uuid,
            #[ordid(parent = Deferred, deferrable)]
            other: Option<Uuid>,
        }

        let postgres = plan::<Postgres>();
        assert_eq!(postgres.defers, Some("SET CONSTRAINTS ALL DEFERRED"));
        assert_eq!(postgres.tables.len(), 1);
        let sqlite = plan::<Sqlite>();
        assert_eq!(sqlite.defers, Some("PRAGMA defer_foreign_keys = ON"));
        assert_eq!(sqlite.tables.len(), 1);
        let mysql = plan::<MySql>();
        assert_eq!(mysql.defers, None);
        let actions: Vec<_> = mysql.tables.iter().map(|it| it.action).collect();
        assert_eq!(actions, [Action::Insert, Action::FixUp { parent: 0 }]);
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
