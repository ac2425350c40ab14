//! rusqlite. Its own inserts are statements that are prepared once, by hand.

use std::time::{Duration, Instant};

use ordid::OrderedKey;
use ordid_rusqlite::UnitOfWork;
use rusqlite::{Connection, ToSql};

use crate::{
    Result,
    library::{Case, Library, cases},
    orders::{CustomerId, Line, OrderId},
    place::{Engine, Place},
};

#[derive(OrderedKey)]
#[ordid(table = "orders")]
struct Order {
    #[ordid(key)]
    id: OrderId,
    // Its table is filled without a unit of work.
    customer_id: CustomerId,
    product: String,
    quantity: i32,
    total: i64,
    note: Option<String>,
}

impl From<Line> for Order {
    fn from(line: Line) -> Self {
        Self {
            id: line.id,
            customer_id: line.customer_id,
            product: line.product,
            quantity: line.quantity,
            total: line.total,
            note: line.note,
        }
    }
}

impl Order {
    fn values(&self) -> [&dyn ToSql; 6] {
        [
            &self.id,
            &self.customer_id,
            &self.product,
            &self.quantity,
            &self.total,
            &self.note,
        ]
    }
}

/// Writes the statement for so many rows.
fn insert(rows: usize) -> String {
    let values = vec!["(?, ?, ?, ?, ?, ?)"; rows].join(", ");
    format!("INSERT INTO orders (id, customer_id, product, quantity, total, note) VALUES {values}")
}

pub(super) struct OnRusqlite;

impl Library for OnRusqlite {
    fn name(&self) -> &'static str {
        "rusqlite"
    }

    fn cases(&self) -> Vec<Case> {
        cases(Engine::Sqlite)
    }

    fn title(&self, case: Case) -> String {
        match case {
            Case::Flush => "ordid flush".to_owned(),
            Case::Many(rows) => format!("prepared by hand, {rows} rows"),
            Case::Copy => unreachable!("SQLite has no COPY"),
            Case::One => "prepared by hand, one row".to_owned(),
        }
    }

    fn run(&self, place: &Place, lines: &[Line], case: Case) -> Result<Duration> {
        let mut connection = Connection::open(place.url())?;
        connection.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
        )?;
        let rows: Vec<Order> = lines.iter().cloned().map(Order::from).collect();
        let many = match case {
            Case::Flush => {
                let mut work = UnitOfWork::new();
                work.reserve::<Order>(rows.len());
                for row in rows {
                    work.try_add(row)?;
                }
                let started = Instant::now();
                work.flush(&mut connection)?;
                return Ok(started.elapsed());
            }
            Case::Many(rows) => rows,
            Case::One => 1,
            Case::Copy => unreachable!("SQLite has no COPY"),
        };
        let started = Instant::now();
        let transaction = connection.transaction()?;
        let mut statement = transaction.prepare(&insert(many.min(rows.len())))?;
        for rows in rows.chunks(many) {
            if rows.len() < many {
                statement = transaction.prepare(&insert(rows.len()))?;
            }
            let values = rows.iter().flat_map(Order::values);
            for (number, value) in (1..).zip(values) {
                statement.raw_bind_parameter::<usize, _>(number, value)?;
            }
            statement.raw_execute()?;
        }
        drop(statement);
        transaction.commit()?;
        Ok(started.elapsed())
    }
}
