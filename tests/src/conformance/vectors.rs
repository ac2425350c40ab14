//! SQL Server's comparison, as Microsoft's own `SqlGuid` answered.

use ordid::{
    storage::{
        Stores,
        column::{UniqueIdentifier, UniqueIdentifierPermuted},
    },
    uuid::Uuid,
};
use serde_json::Value;

/// Holds the sort keys of `uniqueidentifier`'s columns against the vectors, and returns how many
/// pairs there were.
///
/// # Errors
///
/// Says which pair compares otherwise.
pub fn hold() -> Result<usize, String> {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../ordid-core/tests/vectors/sqlserver.json"
    );
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let vectors: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let pairs = vectors["pairs"]
        .as_array()
        .ok_or("no pairs in the vectors")?;
    for pair in pairs {
        let guid = |index: usize| -> Result<Uuid, String> {
            let text = pair[index].as_str().unwrap_or_default();
            text.parse().map_err(|_| format!("no GUID: {pair}"))
        };
        let (left, right) = (guid(0)?, guid(1)?);
        let ours = UniqueIdentifier::sort_key(left).cmp(&UniqueIdentifier::sort_key(right));
        // Taken for stored values, they belong to keys that compare the same.
        let key = |stored: Uuid| {
            UniqueIdentifierPermuted::decode(stored.as_bytes()).map_err(|error| error.to_string())
        };
        let permuted = key(left)?.cmp(&key(right)?);
        let theirs = pair[2]
            .as_i64()
            .ok_or_else(|| format!("no answer: {pair}"))?
            .cmp(&0);
        if ours != theirs || permuted != theirs {
            return Err(format!("{pair}: {ours:?}, permuted {permuted:?}"));
        }
    }
    Ok(pairs.len())
}
