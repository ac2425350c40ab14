//! Key types as users write them: one per column form.

use ordid::{
    KeyType,
    key::{Key192, ObjectId, PushId},
    uuid::Uuid,
};
pub use ordid_tests::keys::Keys;
use ordid_tests::keys::{snowflakes, uuid_shorts};

ordid_tests::process_wide!(
    Native, Long, Short, Base32, InBytes, Maria, Swapped, Object, Push, Wide, WideText
);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel)]
pub struct Native(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel(postgres = text, mysql = char36, sqlite = text))]
pub struct Long(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel(postgres = char22, mysql = char22, sqlite = char22))]
pub struct Short(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, diesel(postgres = char26, mysql = char26, sqlite = char26))]
pub struct Base32(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6, diesel(postgres = bytea))]
pub struct InBytes(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel(mysql = mariadb_uuid))]
pub struct Maria(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, diesel(mysql = binary16_swapped))]
pub struct Swapped(Uuid);

#[derive(KeyType)]
#[ordid(
    scheme = uuid_v4,
    diesel(postgres = unordered(uuid), mysql = unordered(binary16), sqlite = unordered(blob))
)]
pub struct NoOrder(Uuid);

impl Keys for NoOrder {
    fn rising(count: usize) -> Vec<Self> {
        let mut keys: Vec<Self> = (0..count).map(|_| Self::generate()).collect();
        keys.sort_unstable();
        keys
    }
}

#[derive(KeyType)]
#[ordid(scheme = snowflake, diesel)]
pub struct Number(i64);

impl Keys for Number {
    fn rising(count: usize) -> Vec<Self> {
        snowflakes(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = uuid_short, diesel)]
pub struct Unsigned(u64);

impl Keys for Unsigned {
    fn rising(count: usize) -> Vec<Self> {
        uuid_shorts(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = object_id, diesel)]
pub struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = push_id, diesel)]
pub struct Push(PushId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, diesel)]
pub struct Wide(Key192);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, diesel(postgres = char32, mysql = char32, sqlite = char32))]
pub struct WideText(Key192);
