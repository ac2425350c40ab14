//! Key types as users write them: one per column form.

use ordid::{
    KeyType,
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Policy},
    key::{Key192, ObjectId, PushId},
    scheme::uuid_v7::UuidV7Generator,
    uuid::Uuid,
};
pub use ordid_tests::keys::Keys;
use ordid_tests::keys::{snowflakes, uuid_shorts};

ordid_tests::process_wide!(
    Native, Long, Short, Maria, Base32, InBytes, DotNet, Swapped, Comb, NoOrder, Object,
    ObjectText, Push, PushText, PushBytes, Wide, WideText, WideChar
);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct Native(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx(postgres = text, mysql = char36, sqlite = text))]
pub struct Long(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "short", sqlx(postgres = char22, mysql = char22, sqlite = char22))]
pub struct Short(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx(mysql = mariadb_uuid))]
pub struct Maria(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, sqlx(postgres = char26, mysql = char26, sqlite = char26))]
pub struct Base32(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6, sqlx(postgres = bytea))]
pub struct InBytes(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, sqlx(mysql = binary16_dotnet))]
pub struct DotNet(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = binary16_swapped))]
pub struct Swapped(Uuid);

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sqlx(mysql = mariadb_uuid))]
pub struct Comb(Uuid);

#[derive(KeyType)]
#[ordid(
    scheme = uuid_v4,
    sqlx(postgres = unordered(uuid), mysql = unordered(binary16), sqlite = unordered(blob))
)]
pub struct NoOrder(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx)]
pub struct Number(i64);

impl Keys for Number {
    fn rising(count: usize) -> Vec<Self> {
        snowflakes(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = uuid_short, sqlx)]
pub struct Unsigned(u64);

impl Keys for Unsigned {
    fn rising(count: usize) -> Vec<Self> {
        uuid_shorts(count)
    }
}

#[derive(KeyType)]
#[ordid(scheme = object_id, sqlx)]
pub struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = object_id, sqlx(postgres = text, sqlite = text))]
pub struct ObjectText(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = push_id, sqlx)]
pub struct Push(PushId);

#[derive(KeyType)]
#[ordid(scheme = push_id, sqlx(postgres = text, sqlite = text))]
pub struct PushText(PushId);

#[derive(KeyType)]
#[ordid(scheme = push_id, sqlx(postgres = bytea, sqlite = blob))]
pub struct PushBytes(PushId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, sqlx)]
pub struct Wide(Key192);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, sqlx(postgres = text, sqlite = text))]
pub struct WideText(Key192);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, sqlx(postgres = char32, mysql = char32, sqlite = char32))]
pub struct WideChar(Key192);

/// Microseconds from one key to the next: all in a millisecond, 50 and one in each, one in 6 ms, one
/// in 1.2 s. Between them they let characters all over a key's text go through the alphabet.
pub const PACES: [u64; 5] = [0, 20, 1_000, 6_000, 1_200_000];

/// Keys of version 7 that rise, made at a given pace: the same on any machine.
pub fn at_pace(count: usize, micros: u64) -> Vec<Uuid> {
    const START: u64 = 1_700_000_000_000;
    let clock = ManualClock::at_unix_millis(START);
    let keys = UuidV7Generator::new(&clock, SeededEntropy::new(1), Policy::DEFAULT);
    (0..)
        .take(count)
        .map(|number| {
            clock.set_unix_millis(START + number * micros / 1_000);
            keys.try_generate().unwrap().into_raw()
        })
        .collect()
}

/// The ordered text of 2,000 such keys.
pub fn short_texts(micros: u64) -> Vec<String> {
    use ordid::storage::{Stores, column::Char22};
    at_pace(2_000, micros)
        .into_iter()
        .map(|key| String::from_utf8(Char22::encode(key).to_vec()).unwrap())
        .collect()
}
