//! A key in a JSON schema, and `ordid` does not have the feature.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

#[derive(schemars::JsonSchema)]
pub struct Order {
    pub id: OrderId,
}
