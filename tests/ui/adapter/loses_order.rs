//! The order law at compile time: a scheme that rises under no comparison, in two columns.

use ordid::{KeyType, Scheme, clock::Timestamp, layout::Orders, uuid::Uuid};

#[derive(KeyType)]
struct OrderId(Uuid);

enum Scattered {}

impl Scheme for Scattered {
    type Raw = Uuid;

    const NAME: &'static str = "scattered";
    const ORDERS: Orders = Orders::NONE;
    const EXPECTED: &'static str = "anything";

    fn check(_: &Uuid) -> bool {
        true
    }

    fn timestamp(_: &Uuid) -> Option<Timestamp> {
        None
    }
}

ordid_sqlx::engine! { mysql: OrderId, Scattered, ordid_sqlx::engine::mysql::binary16 }
ordid_sqlx::engine! { sqlite: OrderId, Scattered, ordid_sqlx::engine::sqlite::blob }

fn main() {}
