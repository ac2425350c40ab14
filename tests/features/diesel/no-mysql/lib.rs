//! Rows for MySQL, and `ordid-diesel` has the feature of SQLite.

use diesel::mysql::Mysql;

include!("../order.rs");

pub fn add(order: Order) -> UnitOfWork<Mysql> {
    let mut work = UnitOfWork::new();
    work.add(order);
    work
}
