//! A scope with keys from a seed, and `ordid` does not have the feature.

use ordid::{KeyType, testing::with_keys, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

pub fn key() -> OrderId {
    with_keys(1, OrderId::generate)
}
