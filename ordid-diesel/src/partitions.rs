//! The partitions of [`ordid_sql::partitions`], by the time in the key, over connections of Diesel to PostgreSQL.

use diesel::{
    deserialize::{self, QueryableByName},
    pg::Pg,
    result::Error as DieselError,
    row::NamedRow,
};
use ordid_core::{
    KeyField, KeyOf, OrderedKey,
    storage::{ColumnOn, dialect::Postgres},
};
use ordid_sql::{
    partitions::{self, PartitionDriver, PartitionNames},
    table_driver::Kind,
};

pub use ordid_sql::partitions::{Partition, Period};

#[cfg(feature = "async")]
use crate::connection::Awaited;
use crate::{
    connection::Blocking,
    entity::{Entity, text},
    follower::{Diesel, key_column},
    stored::StoredAs,
};

/// Lists the partitions of an entity's table, creates the next ones, and says which are old. A call takes `&mut` a
/// connection of Diesel's, in a transaction or not, and blocks. [`partitions::Partitions`] says which locks the calls take.
/// The names are those of the entity's `table!`.
///
/// # Example
///
/// ```
/// use ordid::{KeyType, OrderedKey, uuid::Uuid};
/// use ordid_diesel::partitions::{Partitions, Period};
///
/// #[derive(KeyType)]
/// #[ordid(diesel)]
/// struct EventId(Uuid);
///
/// diesel::table! {
///     events (id) { id -> Uuid, text -> Text, }
/// }
///
/// #[derive(OrderedKey)]
/// #[diesel(table_name = events)]
/// #[ordid(diesel)]
/// struct Event { id: EventId, text: String }
///
/// let events = Partitions::<Event>::new(Period::Day);
/// assert_eq!(events.partition_by_sql(), r#"PARTITION BY RANGE ("id")"#);
/// let time = std::time::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
/// let sql = events.create_sql(time.try_into()?)?;
/// assert!(sql.contains(r#"CREATE TABLE "events_20270115""#), "{sql}");
/// # Ok::<(), ordid::Error>(())
/// ```
pub type Partitions<E> = partitions::Partitions<Diesel<Pg, NoRow, Blocking>, E>;

/// As [`Partitions`], over connections of diesel-async: its calls return futures.
#[cfg(feature = "async")]
pub type AsyncPartitions<E> = partitions::Partitions<Diesel<Pg, NoRow, Awaited>, E>;

/// The error of [`Partitions`]. Its [`driver`](PartitionError::driver) is Diesel's error.
pub type PartitionError = partitions::PartitionError<DieselError>;

/// No rows of the table are read.
#[doc(hidden)]
#[derive(Debug)]
pub enum NoRow {}

impl QueryableByName<Pg> for NoRow {
    fn build<'a>(_: &impl NamedRow<'a, Pg>) -> deserialize::Result<Self> {
        Err("no rows are read".into())
    }
}

impl<E, K> PartitionDriver<E> for Diesel<Pg, NoRow, K>
where
    E: Entity<Pg> + OrderedKey<Field: KeyField<Key: StoredAs<Pg, Column: ColumnOn<Postgres>>>>,
    K: Kind,
{
    type Column = <KeyOf<E> as StoredAs<Pg>>::Column;

    /// Diesel's own, which a `table!` may give other names than the entity has.
    fn names() -> PartitionNames {
        let (schema, table) = unquoted(&text::<Pg>(E::table));
        PartitionNames {
            schema,
            table,
            key: E::NAMES[key_column::<E>()].to_owned(),
        }
    }
}

/// Returns the schema and the table that Diesel writes as `"schema"."table"`.
fn unquoted(written: &str) -> (Option<String>, String) {
    let mut names = vec![String::new()];
    let mut characters = written.chars().peekable();
    let mut is_inside = false;
    while let Some(character) = characters.next() {
        match character {
            // A quote in a name is doubled.
            '"' if !(is_inside && characters.next_if_eq(&'"').is_some()) => {
                is_inside = !is_inside;
            }
            '.' if !is_inside => names.push(String::new()),
            _ => {
                if let Some(name) = names.last_mut() {
                    name.push(character);
                }
            }
        }
    }
    let table = names.pop().unwrap_or_default();
    (names.pop(), table)
}

#[cfg(all(test, feature = "mysql", feature = "sqlite"))]
mod tests {
    use ordid::{KeyType, OrderedKey, uuid::Uuid};

    use super::*;

    #[derive(KeyType)]
    #[ordid(diesel)]
    struct EventId(Uuid);

    diesel::table! {
        #[sql_name = "Web \"events\" 1.0"]
        shop.events (id) {
            #[sql_name = "event.id"]
            id -> Uuid,
        }
    }

    #[derive(OrderedKey)]
    #[diesel(table_name = events)]
    #[ordid(diesel)]
    struct Event {
        id: EventId,
    }

    diesel::table! {
        plain (id) {
            id -> Uuid,
        }
    }

    #[derive(OrderedKey)]
    #[diesel(table_name = plain)]
    #[ordid(diesel)]
    struct Plain {
        id: EventId,
    }

    #[test]
    fn partitions_have_the_names_of_the_table_macro() {
        let events = Partitions::<Event>::new(Period::Day);
        assert_eq!(
            events.partition_by_sql(),
            r#"PARTITION BY RANGE ("event.id")"#
        );
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_hours(500_000);
        let time = time.try_into().expect("a time");
        let sql = events.create_sql(time).expect("it fits");
        for part in [
            r#"LOCK TABLE ONLY "shop"."Web ""events"" 1.0" IN"#,
            r#"CREATE TABLE "shop"."Web ""events"" 1.0_20270115""#,
        ] {
            assert!(sql.contains(part), "{sql}");
        }
        let sql = Partitions::<Plain>::new(Period::Day).create_sql(time);
        let sql = sql.expect("it fits");
        assert!(sql.contains(r#"CREATE TABLE "plain_20270115""#), "{sql}");
    }
}
