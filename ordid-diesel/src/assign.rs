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
#[cfg_attr(feature = "sqlite", doc = "```")]
#[cfg_attr(not(feature = "sqlite"), doc = "```ignore")]
/// # use libsqlite3_sys as _;
/// use diesel::{connection::SimpleConnection, prelude::*};
/// use ordid::{KeyType, OrderedKey};
/// use ordid_diesel::{assign, assign_all};
/// use ordid::uuid::Uuid;
///
/// #[derive(KeyType)]
/// #[ordid(scheme = uuid_v7, diesel)]
/// struct CityId(Uuid);
///
/// diesel::table! {
///     cities (id) { id -> Binary, name -> Text, }
/// }
///
/// #[derive(OrderedKey, Insertable)]
/// #[diesel(table_name = cities)]
/// struct City { id: Option<CityId>, name: String }
///
/// let mut connection = SqliteConnection::establish(":memory:")?;
/// connection.batch_execute("CREATE TABLE cities (id BLOB NOT NULL PRIMARY KEY, name TEXT)")?;
/// let mut bergen = City { id: None, name: "Bergen".into() };
/// diesel::insert_into(cities::table).values(assign(&mut bergen)).execute(&mut connection)?;
/// let mut others = ["Aarhus", "Turku"].map(|name| City { id: None, name: name.into() });
/// diesel::insert_into(cities::table).values(assign_all(&mut others)).execute(&mut connection)?;
///
/// let ids: Vec<CityId> = cities::table.order(cities::id).select(cities::id).load(&mut connection)?;
/// assert_eq!(ids.len(), 3);
/// assert_eq!((Some(ids[0]), Some(ids[2])), (bergen.id, others[1].id));
/// # Ok::<(), Box<dyn std::error::Error>>(())
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
