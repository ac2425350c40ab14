//! What would be sent, without sending it.

use std::sync::Arc;

use ordid_core::unit_of_work::{Action, Chunk, FlushPlan};

use super::{UnitOfWork, statement::Statement, transaction::DEFER};
use crate::error::Error;

impl UnitOfWork {
    /// Returns what a flush would send: the tables in their order, parents first, and the statements
    /// of each, with their text. No database is asked, and nothing is taken out.
    ///
    /// Inserts come first. Where rows refer to each other in a circle, one of them is inserted with
    /// NULL there, and [`Action::FixUp`] sets it afterwards. Then come updates, and at last deletes,
    /// children first.
    ///
    /// A statement is for one row, and sent once with the values of all of its rows.
    ///
    /// # Errors
    ///
    /// What can be known to fail without a database: a key that was added twice, tables or rows that
    /// refer to each other in a circle that cannot be broken. All [`is_plan`](crate::FlushError::is_plan).
    pub fn plan(&mut self) -> Result<FlushPlan, Error> {
        let plan = self.planned()?;
        let tables = self.batches.tables();
        let mut last: Option<((Action, usize), Arc<str>)> = None;
        let text = |chunk: &Chunk| {
            let turn = (chunk.action, chunk.table);
            match &last {
                Some((of, sql)) if *of == turn => Arc::clone(sql),
                _ => {
                    let sql: Arc<str> =
                        Statement::of(&tables[chunk.table], chunk.action).sql.into();
                    last = Some((turn, Arc::clone(&sql)));
                    sql
                }
            }
        };
        Ok(FlushPlan::new(&plan, &tables, Some(DEFER), |_| false, text))
    }
}

#[cfg(test)]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};

    use super::*;

    #[derive(KeyType)]
    #[ordid(scheme = uuid_v7, oracle)]
    struct NodeId(Uuid);

    #[derive(OrderedKey)]
    #[ordid(table = "NODES")]
    struct Node {
        id: NodeId,
        #[ordid(parent)]
        up: Option<NodeId>,
    }

    fn node(number: u128, up: Option<u128>) -> Node {
        // A version 7.
        let id = |number: u128| {
            let raw = Uuid::from_u128(0x7000_8000_0000_0000_0000 | number << 80);
            NodeId::from_raw(raw).expect("a version 7")
        };
        Node {
            id: id(number),
            up: up.map(id),
        }
    }

    #[test]
    fn a_plan_has_the_text_of_each_statement() {
        let mut work = UnitOfWork::new();
        for number in 1..=1_500 {
            // The first two in a circle.
            let up = if number == 1 { 2 } else { number - 1 };
            work.add(node(number, (number < 3).then_some(up)));
        }
        work.update(node(2_000, None));
        work.delete(&node(3_000, None));
        let plan = work.plan().expect("a circle that can be broken");
        assert_eq!((plan.rows(), plan.defers), (1_500, None));
        assert_eq!(work.len(), 1_502, "nothing is taken out");
        let told: Vec<_> = plan
            .tables
            .iter()
            .flat_map(|table| table.statements.iter().map(|it| (table.action, it)))
            .map(|(action, it)| (action, it.rows.clone(), &*it.sql))
            .collect();
        let insert = r#"INSERT INTO "NODES" ("id", "up") VALUES (:1, :2)"#;
        let update = r#"UPDATE "NODES" SET "up" = :1 WHERE "id" = :2"#;
        let delete = r#"DELETE FROM "NODES" WHERE "id" = :1"#;
        assert_eq!(
            told,
            [
                (Action::Insert, 0..1_000, insert),
                (Action::Insert, 1_000..1_500, insert),
                (Action::FixUp { parent: 0 }, 0..1, update),
                (Action::Update, 0..1, update),
                (Action::Delete, 0..1, delete),
            ]
        );
        let inserts = &plan.tables[0].statements;
        assert!(Arc::ptr_eq(&inserts[0].sql, &inserts[1].sql));
    }

    #[test]
    fn what_cannot_be_sent_is_an_error_without_a_database() {
        let mut work = UnitOfWork::new();
        work.add(node(1, None));
        work.update(node(1, None));
        let error = work.plan().expect_err("one row, inserted and updated");
        assert!(error.is_plan() && error.driver().is_none());
    }
}
