use ordid::{Assigned, KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use sqlx::Sqlite;

#[derive(KeyType)]
#[ordid(sqlx)]
struct OrderId(Uuid);

struct Number(i64);

#[derive(OrderedKey)]
struct Order {
    id: OrderId,
    #[ordid(returning)]
    number: Assigned<Number>,
}

fn add(work: &mut UnitOfWork<Sqlite>, order: Order) {
    work.add(order);
}

fn main() {}
