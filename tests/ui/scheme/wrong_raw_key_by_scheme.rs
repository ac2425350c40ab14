//! The raw key of another scheme, or of none.

use ordid::{
    KeyType,
    key::{Key192, ObjectId, PushId},
    uuid::{self, Uuid},
};

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = instagram)]
struct CustomerId(u64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short)]
struct ProductId(i64);

#[derive(KeyType)]
#[ordid(scheme = object_id)]
struct LineId([u8; 12]);

#[derive(KeyType)]
#[ordid(scheme = object_id)]
struct ItemId(uuid::Uuid);

#[derive(KeyType)]
#[ordid(scheme = push_id)]
struct PostId(String);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32)]
struct NoteId(PushId);

#[derive(KeyType)]
#[ordid(scheme = ulid)]
struct CartId(Key192);

#[derive(KeyType)]
struct ShopId(ObjectId);

// The scheme is the mistake: nothing can be said of its raw key.
#[derive(KeyType)]
#[ordid(scheme = snowflak)]
struct CityId(i64);

fn main() {}
