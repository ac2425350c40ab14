//! Keys of names, and `ordid` does not have the feature.

use ordid::{KeyType, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sha256)]
pub struct OrderId(Uuid);

pub fn of(request: &str) -> OrderId {
    OrderId::named(Uuid::nil(), [request])
}
