//! The two byte orders of a GUID and SQL Server's comparison, against what .NET's own `SqlGuid` and
//! `Guid` answered; `tests/vectors/sqlserver.json` says how.

#![allow(clippy::unwrap_used, reason = "a test's helpers")]

use std::cmp::Ordering;

use ordid_core::{
    layout::guid::{from_sql_server_sort_key, sql_server_sort_key, swap},
    storage::{
        Stores,
        column::{Binary16DotNet, Raw16DotNet, UniqueIdentifier, UniqueIdentifierPermuted},
    },
};
use serde_json::Value;
use uuid::Uuid;

fn vectors() -> Value {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/sqlserver.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

fn rows<'v>(vectors: &'v Value, name: &str, count: usize) -> &'v [Value] {
    let rows = vectors[name].as_array().unwrap();
    assert_eq!(rows.len(), count, "{name}");
    rows
}

fn guid(value: &Value) -> [u8; 16] {
    value
        .as_str()
        .unwrap()
        .parse::<Uuid>()
        .unwrap()
        .into_bytes()
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

fn compare(left: &[u8; 16], right: &[u8; 16]) -> i64 {
    let [left, right] = [left, right].map(|it| Uuid::from_bytes(*it));
    let order = UniqueIdentifier::sort_key(left).cmp(&UniqueIdentifier::sort_key(right));
    match order {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }
}

#[test]
fn two_thousand_pairs_compare_as_sql_guid_compares_them() {
    for pair in rows(&vectors(), "pairs", 2_000) {
        let [left, right] = [0, 1].map(|i| guid(&pair[i]));
        let expected = pair[2].as_i64().unwrap();
        assert_eq!(compare(&left, &right), expected, "{pair}");
        assert_eq!(compare(&right, &left), -expected, "{pair}");
        // Taken for stored values, they are those of keys whose bytes compare so.
        let [left, right] = [left, right].map(|it| {
            let key = UniqueIdentifierPermuted::decode(&it).unwrap();
            assert_eq!(UniqueIdentifierPermuted::encode(key), it);
            key
        });
        assert_eq!(left.cmp(&right) as i64, expected, "{pair}");
    }
}

#[test]
fn each_byte_has_the_weight_of_the_published_table() {
    let vectors = vectors();
    let singles = rows(&vectors, "single_byte", 16);
    for row in singles {
        let bytes = guid(&row["guid"]);
        let display = index(&row["display_pos"]) - 1;
        assert!(bytes[display] != 0);
        assert!(swap(&bytes)[index(&row["wire_pos"])] != 0);
        let key = sql_server_sort_key(&bytes);
        assert!(key[index(&row["weight"]) - 1] != 0, "{row}");
    }
    let matrix = rows(&vectors, "single_byte_cmp_matrix", 16);
    for (left, row) in singles.iter().zip(matrix) {
        for (right, expected) in singles.iter().zip(row.as_array().unwrap()) {
            let found = compare(&guid(&left["guid"]), &guid(&right["guid"]));
            assert_eq!(found, expected.as_i64().unwrap(), "{left} {right}");
        }
    }
}

#[test]
fn the_byte_order_is_that_of_the_published_table() {
    let vectors = vectors();
    let counting: [u8; 16] = core::array::from_fn(|i| u8::try_from(i).unwrap());
    let wire = swap(&counting);
    let key = sql_server_sort_key(&counting);
    let by_wire = rows(&vectors, "compare_order_wire_index", 16);
    let by_display = rows(&vectors, "compare_order_display_pos", 16);
    for ((key, by_wire), by_display) in key.iter().zip(by_wire).zip(by_display) {
        assert_eq!(*key, wire[index(by_wire)]);
        assert_eq!(*key, counting[index(by_display) - 1]);
    }
}

#[test]
fn published_orders_ascend() {
    let vectors = vectors();
    for order in rows(&vectors, "documented_ascending", 2) {
        let guids: Vec<_> = order.as_array().unwrap().iter().map(guid).collect();
        assert!(guids.len() > 1);
        for pair in guids.windows(2) {
            assert_eq!(compare(&pair[0], &pair[1]), -1, "{order}");
        }
    }
    // Sixteen rows as SQL Server itself returned them.
    let mut seeds = rows(&vectors, "seed_table", 16).to_vec();
    seeds.sort_by_key(|row| sql_server_sort_key(&guid(&row["guid"])));
    for (rank, row) in seeds.iter().enumerate() {
        assert_eq!(index(&row["rank"]), rank);
        assert_eq!(index(&row["seed_id"]), 16 - rank);
    }
}

#[test]
fn both_byte_orders_match_dotnet() {
    let hex = |value: &Value| {
        Uuid::parse_str(value.as_str().unwrap())
            .unwrap()
            .into_bytes()
    };
    for row in rows(&vectors(), "codec", 50) {
        let bytes = guid(&row["guid"]);
        assert_eq!(hex(&row["display"]), bytes);
        assert_eq!(hex(&row["wire"]), swap(&bytes), "{row}");
        assert_eq!(swap(&hex(&row["wire"])), bytes);
        assert_eq!(
            from_sql_server_sort_key(&sql_server_sort_key(&bytes)),
            bytes
        );
        let value = Uuid::from_bytes(bytes);
        assert_eq!(Raw16DotNet::encode(value), hex(&row["wire"]));
        assert_eq!(Binary16DotNet::encode(value), hex(&row["wire"]));
        assert_eq!(Raw16DotNet::sort_key(value), hex(&row["wire"]));
    }
}
