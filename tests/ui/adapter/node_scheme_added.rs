//! A unit of work makes keys that are missing, but not of schemes whose generators have nodes: those
//! are given to it.

use ordid::{KeyType, OrderedKey};
use ordid_sqlx::UnitOfWork;

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx)]
struct OrderId(i64);

/// Its key may be missing.
#[derive(OrderedKey)]
struct Order {
    id: Option<OrderId>,
    total: i64,
}

/// Its key is always there.
#[derive(OrderedKey)]
struct Line {
    #[ordid(key)]
    order: OrderId,
    total: i64,
}

fn add(work: &mut UnitOfWork<sqlx::Sqlite>, order: Order, line: Line) {
    work.add(line);
    work.add(order);
}

fn main() {}
