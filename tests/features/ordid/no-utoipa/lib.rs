//! A key in an OpenAPI schema, and `ordid` does not have the feature.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

#[derive(utoipa::ToSchema)]
pub struct Order {
    pub id: OrderId,
}
