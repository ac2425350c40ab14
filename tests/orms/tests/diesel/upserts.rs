//! Rows with keys of their own through Diesel's statements that insert or update, written once and
//! expanded for each engine.

/// Defines the tables of a key type's column.
macro_rules! tags {
    ($key:ident, $sql_type:ty, $connection:ty, $backend:ty, $dialect:ty) => {
        use diesel::{connection::SimpleConnection as _, prelude::*};
        use ordid::{OrderedKey, storage::ColumnOn};
        use ordid_diesel::{StoredAs, assign};

        use crate::{
            Outcome,
            keys::{$key, Keys as _},
        };

        type Column = <$key as StoredAs<$backend>>::Column;
        type Key = $sql_type;

        diesel::table! {
            use diesel::sql_types::{Integer, Nullable, Text};
            use super::Key;

            tags (id) {
                id -> Key,
                name -> Text,
                uses -> Integer,
                parent -> Nullable<Key>,
            }
        }

        #[derive(
            Debug, Clone, PartialEq, Queryable, Selectable, Insertable, Identifiable, AsChangeset,
        )]
        #[diesel(table_name = tags, treat_none_as_default_value = false, treat_none_as_null = true)]
        struct Tag {
            id: $key,
            name: String,
            uses: i32,
            parent: Option<$key>,
        }

        #[derive(OrderedKey, Insertable)]
        #[diesel(table_name = tags)]
        struct NewTag {
            id: Option<$key>,
            name: &'static str,
            uses: i32,
        }

        fn create(connection: &mut $connection) -> QueryResult<()> {
            let key = <Column as ColumnOn<$dialect>>::primary_key("id");
            let ty = <Column as ColumnOn<$dialect>>::TYPE;
            connection.batch_execute(&format!(
                "CREATE TABLE tags ({key}, name VARCHAR(100) NOT NULL UNIQUE, uses INTEGER NOT NULL, \
                 parent {ty} NULL REFERENCES tags (id))"
            ))
        }

        fn new(uses: i32) -> NewTag {
            let name = "ada";
            NewTag { id: None, name, uses }
        }

        /// Rows of which each but the first is below the one before.
        fn chain(length: i32) -> Vec<Tag> {
            let keys = $key::rising(usize::try_from(length).unwrap());
            let parents = [None].into_iter().chain(keys.iter().copied().map(Some));
            let rows = keys.iter().zip(parents).zip(0..);
            rows.map(|((id, parent), uses)| Tag {
                id: *id,
                name: format!("tag {uses}"),
                uses,
                parent,
            })
            .collect()
        }

        fn all(connection: &mut $connection) -> QueryResult<Vec<Tag>> {
            tags::table
                .order(tags::id)
                .select(Tag::as_select())
                .load(connection)
        }
    };
}

/// Defines the tests of an engine with `ON CONFLICT` and `RETURNING`.
macro_rules! on_conflict {
    ($connection:ty, $backend:ty, $dialect:ty; $($module:ident: $key:ident, $sql_type:ty;)+) => {
        $(pub mod $module {
            use diesel::upsert::excluded;

            crate::upserts::tags! { $key, $sql_type, $connection, $backend, $dialect }

            /// An upsert of one row and of many updates the row that has the key, and leaves the key of
            /// the row that has another unique value; `RETURNING` has typed keys.
            pub fn upserts(connection: &mut $connection) -> Outcome {
                create(connection)?;
                let mut ada = new(1);
                let inserted = diesel::insert_into(tags::table)
                    .values(assign(&mut ada))
                    .returning(Tag::as_returning())
                    .get_result(connection)?;
                assert_eq!((Some(inserted.id), inserted.parent), (ada.id, None));

                ada.uses = 5;
                let updated: ($key, i32) = diesel::insert_into(tags::table)
                    .values(assign(&mut ada))
                    .on_conflict(tags::id)
                    .do_update()
                    .set(tags::uses.eq(excluded(tags::uses)))
                    .returning((tags::id, tags::uses))
                    .get_result(connection)?;
                assert_eq!(updated, (inserted.id, 5));

                let mut twin = new(7);
                let kept: $key = diesel::insert_into(tags::table)
                    .values(assign(&mut twin))
                    .on_conflict(tags::name)
                    .do_update()
                    .set(tags::uses.eq(excluded(tags::uses)))
                    .returning(tags::id)
                    .get_result(connection)?;
                assert_eq!(kept, inserted.id);
                assert_ne!(twin.id, Some(kept));
                diesel::delete(tags::table.find(kept)).execute(connection)?;

                let mut rows = chain(4);
                diesel::insert_into(tags::table)
                    .values(&rows[..2])
                    .execute(connection)?;
                for row in &mut rows {
                    row.uses += 10;
                }
                rows[1].parent = None;
                let sent = diesel::insert_into(tags::table)
                    .values(&rows)
                    .on_conflict(tags::id)
                    .do_update()
                    .set((
                        tags::uses.eq(excluded(tags::uses)),
                        tags::parent.eq(excluded(tags::parent)),
                    ))
                    .execute(connection)?;
                assert_eq!(sent, 4);
                assert_eq!(all(connection)?, rows);
                let sent = diesel::insert_into(tags::table)
                    .values(&rows)
                    .on_conflict_do_nothing()
                    .execute(connection)?;
                assert_eq!(sent, 0);
                Ok(())
            }

            /// What is updated and deleted comes back with typed keys.
            pub fn returning(connection: &mut $connection) -> Outcome {
                create(connection)?;
                let mut rows = chain(3);
                let inserted: Vec<$key> = diesel::insert_into(tags::table)
                    .values(&rows)
                    .returning(tags::id)
                    .get_results(connection)?;
                assert!(inserted.iter().eq(rows.iter().map(|row| &row.id)));
                rows[2].parent = Some(rows[0].id);
                let parent: Option<$key> = diesel::update(&rows[2])
                    .set(&rows[2])
                    .returning(tags::parent)
                    .get_result(connection)?;
                assert_eq!(parent, Some(rows[0].id));
                let below: Vec<$key> = diesel::delete(tags::table)
                    .filter(tags::parent.eq_any([rows[0].id, rows[1].id]))
                    .returning(tags::id)
                    .get_results(connection)?;
                assert_eq!(below, [rows[1].id, rows[2].id]);
                assert_eq!(all(connection)?, rows[..1]);
                Ok(())
            }
        })+

        fn upserts(tests: &mut crate::engine::Tests) {
            let mut add = |name: &str, test: crate::Test| tests.push((name.to_owned(), Ok(test)));
            $(
                add(concat!(stringify!($module), "_are_inserted_or_updated"), |url| {
                    $module::upserts(&mut crate::establish(url)?)
                });
                add(concat!(stringify!($module), "_come_back_from_updates_and_deletes"), |url| {
                    $module::returning(&mut crate::establish(url)?)
                });
            )+
        }
    };
}

/// Defines the tests of an engine with `ON DUPLICATE KEY UPDATE` and `REPLACE`.
macro_rules! on_duplicate_key {
    ($connection:ty, $backend:ty, $dialect:ty; $($module:ident: $key:ident, $sql_type:ty;)+) => {
        $(pub mod $module {
            use diesel::dsl::DuplicatedKeys;

            crate::upserts::tags! { $key, $sql_type, $connection, $backend, $dialect }

            /// An upsert updates the row that has the key, and leaves the key of the row that has
            /// another unique value; a replacement puts its own key there.
            pub fn upserts(connection: &mut $connection) -> Outcome {
                create(connection)?;
                let mut ada = new(1);
                for uses in [5, 6] {
                    diesel::insert_into(tags::table)
                        .values(assign(&mut ada))
                        .on_conflict(DuplicatedKeys)
                        .do_update()
                        .set(tags::uses.eq(uses))
                        .execute(connection)?;
                }
                let found = all(connection)?;
                assert_eq!((Some(found[0].id), found[0].uses, found.len()), (ada.id, 6, 1));

                let mut twin = new(7);
                diesel::insert_into(tags::table)
                    .values(assign(&mut twin))
                    .on_conflict(DuplicatedKeys)
                    .do_update()
                    .set(tags::uses.eq(7))
                    .execute(connection)?;
                let found = all(connection)?;
                assert_eq!((Some(found[0].id), found[0].uses, found.len()), (ada.id, 7, 1));
                diesel::replace_into(tags::table)
                    .values(assign(&mut twin))
                    .execute(connection)?;
                let found = all(connection)?;
                assert_eq!((Some(found[0].id), found.len()), (twin.id, 1));
                diesel::delete(tags::table).execute(connection)?;

                let mut rows = chain(4);
                diesel::insert_into(tags::table)
                    .values(&rows[..2])
                    .execute(connection)?;
                diesel::insert_into(tags::table)
                    .values(&rows)
                    .on_conflict(DuplicatedKeys)
                    .do_update()
                    .set(tags::uses.eq(10))
                    .execute(connection)?;
                rows[0].uses = 10;
                rows[1].uses = 10;
                assert_eq!(all(connection)?, rows);
                let again = diesel::insert_or_ignore_into(tags::table)
                    .values(&rows)
                    .execute(connection)?;
                assert_eq!(again, 0);
                Ok(())
            }
        })+

        fn upserts(tests: &mut crate::engine::Tests) {
            let mut add = |name: &str, test: crate::Test| tests.push((name.to_owned(), Ok(test)));
            $(
                add(concat!(stringify!($module), "_are_inserted_or_updated"), |url| {
                    $module::upserts(&mut crate::establish(url)?)
                });
            )+
        }
    };
}

pub(crate) use {on_conflict, on_duplicate_key, tags};
