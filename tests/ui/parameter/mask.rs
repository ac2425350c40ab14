//! Masks of keys that have none, and what is no mask.

use ordid::{KeyType, scheme::UuidMask, scheme::masked::MaskedKey, uuid::Uuid};

static MASK: UuidMask = UuidMask::new(1, 2);

#[derive(KeyType)]
#[ordid(scheme = uuid_v4, mask = MASK)]
struct Version4(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, mask = MASK)]
struct Integer(i64);

#[derive(KeyType)]
#[ordid(mask = "secret")]
struct Text(Uuid);

#[derive(KeyType)]
#[ordid(mask = SECRET)]
struct Misspelt(Uuid);

fn main() {
    let _ = Misspelt::generate().masked();
}
