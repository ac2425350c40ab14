//! Writes rows to MySQL, but `ordid-diesel` has only the feature of SQLite.

use diesel::mysql::Mysql;

include!("../order.rs");

pub fn add(order: Order) -> UnitOfWork<Mysql> {
    let mut work = UnitOfWork::new();
    work.add(order);
    work
}
