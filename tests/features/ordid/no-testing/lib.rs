//! Makes keys from a seed without the feature of `ordid`.

use ordid::{KeyType, testing::with_keys, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

pub fn key() -> OrderId {
    with_keys(1, OrderId::generate)
}
