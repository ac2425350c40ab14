//! The column tests of one engine, written once and expanded for each key type there: `table!` makes
//! types.

use libtest_mimic::Trial;
use ordid::storage::Dialect as _;
use ordid_tests::trials::ignored;

use crate::{Test, async_work, retries, tables::Tables, work};

/// Defines a module with the tests of a key type's column.
macro_rules! column {
    ($module:ident, $key:ident, $sql_type:ty, $connection:ty, $backend:ty, $dialect:ty) => {
        pub mod $module {
            use diesel::{connection::SimpleConnection as _, prelude::*, sql_query};
            use ordid::{
                KeyType as _,
                storage::{ColumnOn, Dialect as _},
                uuid::Uuid,
            };
            use ordid_diesel::StoredAs;

            use crate::{Outcome, keys::{Keys as _, $key}, print_schema::{by_command, sql_type}};

            type Column = <$key as StoredAs<$backend>>::Column;
            type Key = $sql_type;

            diesel::table! {
                use diesel::sql_types::{Integer, Nullable};
                use super::Key;

                keyed (id) {
                    id -> Key,
                    other -> Nullable<Key>,
                    position -> Integer,
                }
            }

            diesel::table! {
                use diesel::sql_types::Integer;
                use super::Key;

                children (position) {
                    position -> Integer,
                    parent -> Key,
                }
            }

            diesel::joinable!(children -> keyed (parent));
            diesel::allow_tables_to_appear_in_same_query!(keyed, children);

            #[derive(
                Debug, Clone, PartialEq, Queryable, Selectable, Insertable, Identifiable, AsChangeset,
            )]
            #[diesel(table_name = keyed, treat_none_as_default_value = false, treat_none_as_null = true)]
            struct Row {
                id: $key,
                other: Option<$key>,
                position: i32,
            }

            #[derive(
                Debug, PartialEq, Queryable, Selectable, Insertable, Identifiable, Associations,
            )]
            #[diesel(table_name = children, primary_key(position), belongs_to(Row, foreign_key = parent))]
            struct Child {
                position: i32,
                parent: $key,
            }

            fn create(connection: &mut $connection) -> QueryResult<()> {
                let key = <Column as ColumnOn<$dialect>>::primary_key("id");
                let ty = <Column as ColumnOn<$dialect>>::TYPE;
                let keyed = <$dialect>::quote("keyed");
                connection.batch_execute(&format!(
                    "CREATE TABLE {keyed} ({key}, other {ty} NULL, position INTEGER NOT NULL)"
                ))?;
                connection.batch_execute(&format!(
                    "CREATE TABLE children (position INTEGER NOT NULL PRIMARY KEY, \
                     parent {ty} NOT NULL REFERENCES {keyed} (id))"
                ))
            }

            /// Through `Insertable`, `Selectable`, `Option`, `find`, `eq_any`, `AsChangeset`,
            /// associations and joins a key comes back as it was, and a script's literal is the same.
            pub fn round_trip(connection: &mut $connection) -> Outcome {
                create(connection)?;
                let keys = $key::rising(4);
                let rows: Vec<Row> = keys
                    .iter()
                    .zip(0..)
                    .map(|(key, position)| Row {
                        id: *key,
                        other: (position > 0).then_some(keys[0]),
                        position,
                    })
                    .collect();
                let inserted = diesel::insert_into(keyed::table)
                    .values(&rows)
                    .execute(connection)?;
                assert_eq!(inserted, 4);
                for row in &rows {
                    let found = keyed::table.find(row.id).select(Row::as_select());
                    assert_eq!(found.first(connection)?, *row);
                    let other = keyed::table.find(&row.id).select(keyed::other);
                    assert_eq!(other.first::<Option<$key>>(connection)?, row.other);
                }
                let some = vec![keys[1], keys[3]];
                let found: Vec<$key> = keyed::table
                    .filter(keyed::id.eq_any(&some))
                    .order(keyed::id)
                    .select(keyed::id)
                    .load(connection)?;
                assert_eq!(found, some);
                let found: i64 = keyed::table
                    .filter(keyed::other.eq(Some(keys[0])))
                    .count()
                    .get_result(connection)?;
                assert_eq!(found, 3);

                let changed = Row {
                    other: None,
                    ..rows[2].clone()
                };
                diesel::update(&changed).set(&changed).execute(connection)?;
                let found: i64 = keyed::table
                    .filter(keyed::other.is_null())
                    .count()
                    .get_result(connection)?;
                assert_eq!(found, 2);

                let child = Child {
                    position: 7,
                    parent: keys[1],
                };
                diesel::insert_into(children::table)
                    .values(&child)
                    .execute(connection)?;
                let of_row: Vec<Child> = Child::belonging_to(&rows[1])
                    .select(Child::as_select())
                    .load(connection)?;
                assert_eq!(of_row, [child]);
                let grouped = Child::belonging_to(&rows)
                    .select(Child::as_select())
                    .load(connection)?
                    .grouped_by(&rows);
                assert!(grouped.iter().map(Vec::len).eq([0, 1, 0, 0]));
                let parents: Vec<($key, Option<$key>)> = keyed::table
                    .left_join(children::table)
                    .order(keyed::id)
                    .select((keyed::id, children::parent.nullable()))
                    .load(connection)?;
                let expected = keys.iter().map(|key| (*key, (*key == keys[1]).then_some(*key)));
                assert!(parents.into_iter().eq(expected));
                let joined: Vec<(Child, Row)> = children::table
                    .inner_join(keyed::table)
                    .select((Child::as_select(), Row::as_select()))
                    .load(connection)?;
                assert_eq!(joined[0].1, rows[1]);

                let mut literals: Vec<$key> = $key::wild(2);
                let extra: Vec<Row> = literals
                    .iter()
                    .zip(10..)
                    .map(|(key, position)| Row {
                        id: *key,
                        other: None,
                        position,
                    })
                    .collect();
                diesel::insert_into(keyed::table)
                    .values(&extra)
                    .execute(connection)?;
                literals.extend(&keys);
                for key in literals {
                    let literal = <Column as ColumnOn<$dialect>>::literal(key.to_raw());
                    let sql = format!(
                        "UPDATE {} SET position = position + 100 WHERE id = {literal}",
                        <$dialect>::quote("keyed")
                    );
                    assert_eq!(sql_query(sql).execute(connection)?, 1, "{literal}");
                    let found: $key = keyed::table
                        .filter(keyed::id.eq(key).and(keyed::position.ge(100)))
                        .select(keyed::id)
                        .first(connection)?;
                    assert_eq!(found, key);
                }
                Ok(())
            }

            /// `diesel print-schema` names the SQL types under which the key type is there, by the types
            /// that the database says the columns have.
            pub fn printed(connection: &mut $connection) -> Outcome {
                create(connection)?;
                for (table, column) in [("keyed", "id"), ("children", "parent")] {
                    let declared = super::declared(connection, table, column)?;
                    let printed = super::printed(&declared);
                    assert_eq!(sql_type(&printed), expected(), "{table}.{column} {declared}");
                }
                Ok(())
            }

            /// And so does the command itself.
            pub fn printed_by_command(connection: &mut $connection, url: &str) -> Outcome {
                create(connection)?;
                for (table, column) in [("keyed", "id"), ("children", "parent")] {
                    let printed = by_command(url, table, column)?;
                    let expected = match (stringify!($key), table) {
                        // A type of the schema's own.
                        ("Maria", "keyed") => "KeyedIdUuid".to_owned(),
                        ("Maria", _) => "ChildrenParentUuid".to_owned(),
                        _ => expected(),
                    };
                    assert_eq!(sql_type(&printed), expected, "{table}.{column}");
                }
                Ok(())
            }

            fn expected() -> String {
                match stringify!($key) {
                    // MySQL's backend of Diesel has no UUID, which has to be replaced in the schema.
                    "Maria" => "Uuid".to_owned(),
                    _ => sql_type(stringify!($sql_type)),
                }
            }

            /// `ORDER BY` is the order of the keys, however they were inserted.
            pub fn order(connection: &mut $connection) -> Outcome {
                create(connection)?;
                let mut keys = $key::rising(20_000);
                assert!(keys.is_sorted_by(|left, right| left < right));
                keys.extend($key::wild(2));
                keys.sort_unstable();
                keys.dedup();
                let mut rows: Vec<Row> = keys
                    .iter()
                    .zip(0..)
                    .map(|(key, position)| Row {
                        id: *key,
                        other: None,
                        position,
                    })
                    .collect();
                rows.sort_by_cached_key(|_| Uuid::new_v4());
                connection.transaction(|connection| {
                    for chunk in rows.chunks(1_000) {
                        diesel::insert_into(keyed::table)
                            .values(chunk)
                            .execute(connection)?;
                    }
                    QueryResult::Ok(())
                })?;
                let found: Vec<($key, i32)> = keyed::table
                    .order(keyed::id)
                    .select((keyed::id, keyed::position))
                    .load(connection)?;
                assert!(found.iter().map(|(key, _)| key).eq(&keys));
                assert!(found.is_sorted_by_key(|(_, position)| *position));
                Ok(())
            }
        }
    };
}

/// Defines these modules for a backend, and how their tests are added.
macro_rules! columns {
    ($connection:ty, $backend:ty, $dialect:ty; $($module:ident: $key:ident, $sql_type:ty;)+) => {
        $(crate::engine::column!($module, $key, $sql_type, $connection, $backend, $dialect);)+

        fn columns(tests: &mut crate::engine::Tests) {
            // Ignored, with the reason, where the command `diesel` is not installed.
            let found = crate::print_schema::command();
            $(
                let mut add = |name: &str, test: Result<crate::Test, String>| {
                    tests.push((format!("{}_{name}", stringify!($module)), test));
                };
                add("come_back", Ok(|url| $module::round_trip(&mut crate::establish(url)?)));
                add(
                    "are_printed_as_they_are",
                    Ok(|url| $module::printed(&mut crate::establish(url)?)),
                );
                add("keep_their_order", Ok(|url| $module::order(&mut crate::establish(url)?)));
                let test: crate::Test =
                    |url| $module::printed_by_command(&mut crate::establish(url)?, url);
                add("are_printed_so_by_the_command", found.clone().map(|()| test));
            )+
        }
    };
}

/// Defines the tests of a backend whose native key column has this type: of columns that every backend has and of
/// its own, of statements that insert or update, of migrations, and of the unit of work.
macro_rules! engine {
    (
        $connection:ty, $backend:ty, $dialect:ty, $native:ty, $upserts:ident, $index:literal;
        $($module:ident: $key:ident, $sql_type:ty;)*
    ) => {
        crate::engine::columns! {
            $connection, $backend, $dialect;
            native: Native, $native;
            no_order: NoOrder, $native;
            long: Long, diesel::sql_types::Text;
            short: Short, diesel::sql_types::Text;
            base32: Base32, diesel::sql_types::Text;
            number: Number, diesel::sql_types::BigInt;
            object: Object, diesel::sql_types::Binary;
            push: Push, diesel::sql_types::Text;
            wide: Wide, diesel::sql_types::Binary;
            wide_text: WideText, diesel::sql_types::Text;
            $($module: $key, $sql_type;)*
        }

        crate::upserts::$upserts! {
            $connection, $backend, $dialect;
            native_tags: Native, $native;
            short_tags: Short, diesel::sql_types::Text;
        }

        crate::migrations::migrations!($connection, $backend, $dialect, plan, $index);

        /// What the database says of a column's type.
        fn declared(
            connection: &mut $connection,
            table: &str,
            column: &str,
        ) -> diesel::QueryResult<String> {
            use diesel::{RunQueryDsl as _, sql_types::Text};

            let declared = diesel::sql_query(DECLARED)
                .bind::<Text, _>(table)
                .bind::<Text, _>(column)
                .get_result::<crate::print_schema::Declared>(connection)?;
            Ok(declared.declared)
        }

        fn tests() -> crate::engine::Tests {
            let mut tests = crate::engine::of_work::<$backend>();
            columns(&mut tests);
            upserts(&mut tests);
            let migrated = "migrations_have_the_columns_of_keys".to_owned();
            tests.push((migrated, Ok(migrations)));
            tests
        }
    };
}

pub(crate) use {column, columns, engine};

/// Tests by their names, or why they cannot run.
pub type Tests = Vec<(String, Result<Test, String>)>;

/// The tests of the unit of work, over both kinds of connections.
pub fn of_work<DB: Tables>() -> Tests {
    let mut tests = Vec::from(work::tests::<DB>());
    if DB::Dialect::DEFERS {
        tests.push(("circles_are_checked_at_commit", work::deferred::<DB>));
    }
    tests.extend(retries::tests::<DB>());
    tests.extend(async_work::tests::<DB>());
    let named = |(name, test): (&str, Test)| (name.to_owned(), Ok(test));
    tests.into_iter().map(named).collect()
}

/// Adds the tests of a server or of files.
pub fn add_all(
    trials: &mut Vec<Trial>,
    server: &str,
    tests: Tests,
    add: impl Fn(&mut Vec<Trial>, &str, Test),
) {
    for (name, test) in tests {
        match test {
            Ok(test) => add(trials, &name, test),
            Err(reason) => trials.push(ignored(format!("{server}::{name}"), reason)),
        }
    }
}
