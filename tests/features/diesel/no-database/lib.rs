//! Uses `ordid-diesel` without a feature.

use diesel::sqlite::Sqlite;

include!("../order.rs");

pub fn add(order: Order) -> UnitOfWork<Sqlite> {
    let mut work = UnitOfWork::new();
    work.add(order);
    work
}
