//! The rows: orders of a thousand customers, six columns, one of them a foreign key.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel, mysql_async, rusqlite, sea_orm, tokio_postgres)]
pub struct OrderId(Uuid);

/// An order, of no library yet.
#[derive(Clone)]
pub(crate) struct Line {
    pub(crate) id: OrderId,
    pub(crate) customer_id: CustomerId,
    pub(crate) product: String,
    pub(crate) quantity: i32,
    pub(crate) total: i64,
    pub(crate) note: Option<String>,
}

pub(crate) struct Orders {
    pub(crate) customers: Vec<Uuid>,
    pub(crate) lines: Vec<Line>,
}

impl Orders {
    /// Computes this many orders, in the order of their keys: the same ones but for the keys.
    pub(crate) fn new(count: usize) -> Self {
        let customers: Vec<_> = (0..1_000).map(|_| CustomerId::generate()).collect();
        let lines = (0..count).map(|number| {
            // Knuth's multiplicative hash: arbitrary, always the same.
            let random = |end: usize, salt: usize| {
                let hash = (number * 8 + salt).wrapping_mul(11_400_714_819_323_198_485);
                (hash >> 32) % end
            };
            let small = |end, salt| i32::try_from(random(end, salt)).expect("ends are small");
            Line {
                id: OrderId::generate(),
                customer_id: customers[random(1_000, 0)],
                product: format!("P{:05}", random(50_000, 1)),
                quantity: 1 + small(10, 2),
                total: 100 * i64::from(1 + small(1_000, 3)),
                note: (random(10, 4) == 0).then(|| "leave at the door".to_owned()),
            }
        });
        Self {
            lines: lines.collect(),
            customers: customers.iter().map(|id| id.to_raw()).collect(),
        }
    }

    /// As [`Place::summary`](crate::place::Place::summary).
    pub(crate) fn summary(&self) -> [i64; 4] {
        let count = |test: fn(&Line) -> bool| {
            let lines = self.lines.iter().filter(|line| test(line));
            i64::try_from(lines.count()).expect("few")
        };
        [
            count(|_| true),
            count(|line| line.note.is_some()),
            count(|line| line.quantity > 5),
            count(|line| line.total > 50_000),
        ]
    }
}
