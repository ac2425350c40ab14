//! Keys for rows that go by Diesel's own `insert_into`.

use ordid_core::{EnsuredKey, OrderedKey};

/// Assigns a key to an entity that has none, and returns it, to be given to `values`.
///
/// Assigning again changes nothing: tried again, the same row carries the same key.
///
/// # Panics
///
/// As [`KeyType::generate`](ordid_core::KeyType::generate), where there was no key.
///
/// # Example
///
/// ```ignore
/// diesel::insert_into(orders::table).values(assign(&mut order)).execute(connection)?;
/// ```
pub fn assign<E: OrderedKey<Field: EnsuredKey>>(entity: &mut E) -> &E {
    entity.ensure_key();
    entity
}

/// Assigns keys to the entities that have none, in order, and returns them, to be given to `values`: the
/// keys rise as the entities follow each other.
///
/// # Panics
///
/// As [`KeyType::generate`](ordid_core::KeyType::generate), where there was no key.
pub fn assign_all<E: OrderedKey<Field: EnsuredKey>>(entities: &mut [E]) -> &[E] {
    for entity in entities.iter_mut() {
        entity.ensure_key();
    }
    entities
}
