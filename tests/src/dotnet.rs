//! Keys as .NET programs stored them, of `ordid-core/tests/vectors/sqlserver.json`.

use ordid::{Scheme, uuid::Uuid};
use serde_json::Value;

/// The newest that [`stored`] returns: 2026-11-21, in Unix milliseconds.
pub const NEWEST: u64 = 1_795_222_923_456;

const TICKS_AT_1970: u64 = 621_355_968_000_000_000;

/// A key in a table.
#[derive(Debug, Clone, Copy)]
pub struct StoredGuid {
    /// What `Guid.ToByteArray` gives.
    pub bytes: [u8; 16],
    /// When it was made.
    pub unix_millis: u64,
}

impl StoredGuid {
    /// Returns the value that the bytes stand for.
    pub fn guid(&self) -> Uuid {
        Uuid::from_bytes_le(self.bytes)
    }
}

fn vectors() -> Value {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../ordid-core/tests/vectors/sqlserver.json"
    );
    let text = std::fs::read_to_string(file).expect("the vectors");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the keys that an original made from 1970 to [`NEWEST`], in no order.
///
/// Their random bytes are a random stream's. Where the original takes them from `Guid.NewGuid`, they
/// get its version and variant, as the scheme's `coerce` gives them.
///
/// # Panics
///
/// If there are no such keys.
pub fn stored<S: Scheme<Raw = Uuid>>(kind: &str) -> Vec<StoredGuid> {
    let vectors = vectors();
    let keys = vectors["keys"].as_array().expect("keys");
    let mut stored: Vec<StoredGuid> = keys
        .iter()
        .filter(|key| key["kind"] == kind)
        .filter_map(|key| {
            let ticks = key["utc_ticks"].as_u64().expect("ticks");
            let unix_millis = ticks.checked_sub(TICKS_AT_1970)? / 10_000;
            let wire: Uuid = key["wire"].as_str()?.parse().expect("16 bytes");
            let guid = S::coerce(Uuid::from_bytes_le(wire.into_bytes()));
            assert!(S::check(&guid), "{key}");
            Some(StoredGuid {
                bytes: guid.to_bytes_le(),
                unix_millis,
            })
        })
        .filter(|key| key.unix_millis <= NEWEST)
        .collect();
    assert!(stored.len() >= 10, "{kind}");
    assert!(stored.iter().any(|key| key.unix_millis == NEWEST));
    stored.reverse();
    stored
}

/// Sorts GUIDs, as `Guid.ToByteArray` gives them, in the order of the bytes that SQL Server's `SqlGuid`
/// compares, which the vectors name.
///
/// # Panics
///
/// If the vectors are not there.
pub fn sort_as_sql_guid(guids: &mut [[u8; 16]]) {
    let vectors = vectors();
    let order = vectors["compare_order_wire_index"]
        .as_array()
        .expect("order");
    let order: Vec<usize> = order
        .iter()
        .map(|index| index.as_u64().and_then(|index| index.try_into().ok()))
        .collect::<Option<_>>()
        .expect("indices");
    assert_eq!(order.len(), 16);
    guids.sort_by_key(|guid| order.iter().map(|i| guid[*i]).collect::<Vec<_>>());
}
