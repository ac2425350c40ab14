//! Puts a key into an OpenAPI schema without the feature of `ordid`.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
pub struct OrderId(Uuid);

#[derive(utoipa::ToSchema)]
pub struct Order {
    pub id: OrderId,
}
