//! Versions that a key does not have, or that a mask would change.

use ordid::{KeyType, scheme::UuidMask, uuid::Uuid};

static MASK: UuidMask = UuidMask::new(1, 2);

#[derive(KeyType)]
#[ordid(accept = version_4)]
struct OneVersion(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, accept = any_version)]
struct Integer(i64);

#[derive(KeyType)]
#[ordid(accept = any_version, mask = MASK)]
struct Masked(Uuid);

fn main() {
    let _ = Masked::generate().to_string();
}
