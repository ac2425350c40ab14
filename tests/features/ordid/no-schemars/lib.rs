//! Puts a key into a JSON schema without the feature of `ordid`.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

#[derive(schemars::JsonSchema)]
pub struct Order {
    pub id: OrderId,
}
