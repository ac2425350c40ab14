//! What keys that are made of names do not have, and keys of others that are not.

use ordid::{KeyType, clock::Timestamp, uuid::Uuid};

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sha256, sqlx(sqlite = unordered(blob)))]
struct NamedId(Uuid);

#[derive(KeyType)]
struct OrderId(Uuid);

fn main() {
    let _ = NamedId::generate();
    let _ = NamedId::range(Timestamp::MIN..Timestamp::MAX);
    let _ = OrderId::named(Uuid::NAMESPACE_OID, ["4711"]);
}
