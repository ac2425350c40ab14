//! Derived key types have the shard that others compute for their bytes, and ranges in the order of
//! their scheme.

use ordid::{
    KeyType, RawKey,
    key::{Key192, ObjectId},
    uuid::Uuid,
};
use ordid_sql::Sharding;
use serde_json::Value;

#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_string)]
struct Wide(Uuid);

#[derive(KeyType)]
#[ordid(scheme = snowflake)]
struct Number(i64);

#[derive(KeyType)]
#[ordid(scheme = object_id)]
struct Object(ObjectId);

#[derive(KeyType)]
#[ordid(scheme = ordered_text_32)]
struct Widest(Key192);

/// Rises from its last six bytes.
#[derive(KeyType)]
#[ordid(scheme = comb_rt_sql)]
struct Comb(Uuid);

/// Compares the shard of each key of a form with the vectors; returns how many there were.
fn compare<K: KeyType>(vectors: &Value, form: &str) -> usize {
    let keys = vectors["keys"].as_array().unwrap().iter();
    let mut compared = 0;
    for vector in keys.filter(|key| key["raw"] == form) {
        let hex = vector["bytes"].as_str().unwrap();
        let mut bytes = <K::Raw as RawKey>::Bytes::default();
        for (at, byte) in bytes.as_mut().iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap();
        }
        // Not all bits are a key of the scheme.
        let Ok(key) = K::from_raw(K::Raw::from_bytes(bytes)) else {
            continue;
        };
        let counts = vectors["counts"].as_array().unwrap().iter();
        for (count, shard) in counts.zip(vector["shards"].as_array().unwrap()) {
            let count = usize::try_from(count.as_u64().unwrap()).unwrap();
            let found = Sharding::by_hash(count).unwrap().shard(key).unwrap();
            assert_eq!(found as u64, shard.as_u64().unwrap(), "{key} of {count}");
        }
        compared += 1;
    }
    compared
}

#[test]
fn a_key_of_each_form_has_its_shard_everywhere() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../ordid-sql/tests/vectors/sharding.json"
    );
    let vectors = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(compare::<Wide>(&vectors, "uuid"), 11);
    assert_eq!(compare::<Number>(&vectors, "i64"), 5, "none is negative");
    assert_eq!(compare::<Object>(&vectors, "object_id"), 3);
    assert_eq!(compare::<Widest>(&vectors, "key192"), 3);
}

#[test]
fn ranges_are_in_the_order_of_the_scheme() {
    let keys: Vec<Comb> = (0..9).map(|_| Comb::generate()).collect();
    let sharding = Sharding::by_ranges([keys[3], keys[6]]).unwrap();
    let shards: Vec<_> = keys
        .iter()
        .map(|key| sharding.shard(*key).unwrap())
        .collect();
    assert_eq!(shards, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
    let error = sharding.shard(Wide::generate()).unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        "rows are spread by ranges of `Comb`, not of `Wide`: give those that have another key a \
         route to a `Comb`"
    );
}
