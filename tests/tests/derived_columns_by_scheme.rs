//! Columns in which schemes keep their order, or say that they need not.

use ordid::{
    KeyType,
    key::{Key192, ObjectId, PushId},
    uuid::Uuid,
};

#[derive(KeyType)]
#[ordid(scheme = comb_nhibernate, sqlx(mysql = mariadb_uuid))]
struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = ulid, sqlx)]
struct OrderId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v6, sqlx(postgres = text, mysql = mariadb_uuid))]
struct LineId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v1, sqlx(mysql = binary16_swapped))]
struct SwappedId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, sqlx(mysql = binary16_dotnet))]
struct DotNetId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx)]
struct NumberId(i64);

#[derive(KeyType)]
#[ordid(scheme = uuid_short, sqlx)]
struct UnsignedId(u64);

#[derive(KeyType)]
#[ordid(scheme = object_id, sqlx)]
struct DocumentId(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = push_id, sqlx)]
struct MessageId(PushId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32, sqlx)]
struct LongId(Key192);

#[derive(KeyType)]
#[ordid(
    scheme = uuid_v4,
    sqlx(postgres = unordered(uuid), mysql = unordered(mariadb_uuid), sqlite = unordered(blob))
)]
struct RandomId(Uuid);

#[test]
fn it_compiles_and_runs() {
    assert!(CustomerId::generate() < CustomerId::generate());
    assert!(OrderId::generate() < OrderId::generate());
    assert!(LineId::generate() < LineId::generate());
    assert!(SwappedId::generate() < SwappedId::generate());
    assert!(DotNetId::generate() < DotNetId::generate());
    assert!("1".parse::<NumberId>().unwrap() < "2".parse::<NumberId>().unwrap());
    assert!("1".parse::<UnsignedId>().unwrap() < "2".parse::<UnsignedId>().unwrap());
    assert!(DocumentId::generate() < DocumentId::generate());
    assert!(MessageId::generate() < MessageId::generate());
    assert!(LongId::generate() < LongId::generate());
    assert_ne!(RandomId::generate(), RandomId::generate());
}
