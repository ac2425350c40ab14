//! Makes keys of names without the feature of `ordid`.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sha256)]
pub struct OrderId(Uuid);

pub fn of(request: &str) -> OrderId {
    OrderId::named(Uuid::nil(), [request])
}
