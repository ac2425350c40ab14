//! The column tests of one engine, written once and expanded per engine: SQLx's executor bounds
//! hold for concrete connections only.

/// Defines `round_trip`, `order`, `lookup`, generic over key types, for a database.
macro_rules! engine {
    ($database:ident, $dialect:ty) => {
        use std::fmt::Debug;

        use ordid::{
            storage::{ColumnOn, Dialect},
            uuid::Uuid,
        };
        use ordid_sql::leases::numbers::LeaseDialect as _;
        use ordid_sqlx::{Backend, StoredAs};
        use sqlx::{
            AssertSqlSafe, Decode, Encode, Pool, QueryBuilder, Row, Type, query, query_scalar,
            raw_sql, $database,
        };

        use crate::{Outcome, keys::Keys};

        /// A key type with a column here.
        pub trait Key:
            Keys
            + StoredAs<$database, Column: ColumnOn<$dialect>>
            + Type<$database>
            + for<'q> Encode<'q, $database>
            + for<'r> Decode<'r, $database>
            + Unpin
            + Debug
        {
        }

        impl<K> Key for K where
            K: Keys
                + StoredAs<$database, Column: ColumnOn<$dialect>>
                + Type<$database>
                + for<'q> Encode<'q, $database>
                + for<'r> Decode<'r, $database>
                + Unpin
                + Debug
        {
        }

        pub fn parameter(number: usize) -> String {
            let mut sql = String::new();
            <$database as Backend>::Dialect::push_placeholder(&mut sql, number);
            sql
        }

        pub async fn execute(pool: &Pool<$database>, sql: &str) -> Result<(), sqlx::Error> {
            raw_sql(AssertSqlSafe(sql)).execute(pool).await.map(drop)
        }

        /// Makes a table whose key has the column type that the key type declares.
        pub async fn create<K: Key>(
            pool: &Pool<$database>,
            table: &str,
        ) -> Result<(), sqlx::Error> {
            let key = <K::Column as ColumnOn<$dialect>>::primary_key("id");
            let column = <K::Column as ColumnOn<$dialect>>::TYPE;
            let table = <$dialect as Dialect>::quote(table);
            let sql = format!(
                "CREATE TABLE {table} ({key}, other {column} NULL, position INTEGER NOT NULL)"
            );
            execute(pool, &sql).await
        }

        pub async fn insert<K: Key>(
            pool: &Pool<$database>,
            table: &str,
            rows: &[(usize, K)],
        ) -> Result<(), sqlx::Error> {
            for chunk in rows.chunks(5_000) {
                let mut builder = QueryBuilder::<$database>::new(format!(
                    "INSERT INTO {} (id, position) ",
                    <$dialect as Dialect>::quote(table)
                ));
                builder.push_values(chunk, |mut row, (position, key)| {
                    row.push_bind(*key)
                        .push_bind(i32::try_from(*position).unwrap());
                });
                builder.build().execute(pool).await?;
            }
            Ok(())
        }

        /// What is bound comes back: through prepared statements, kept and not kept, and through
        /// the unprepared protocol; `NULL` is `None`; a key is found by its literal, and the
        /// database's own text of it is the literal's inside. `own` is an SQL expression over `id`
        /// that gives it.
        pub async fn round_trip<K: Key>(pool: Pool<$database>, own: &'static str) -> Outcome {
            let table = format!("round_trip_{}", K::NAME).to_lowercase();
            create::<K>(&pool, &table).await?;
            // Of one generator: two of a node would repeat each other.
            let rising = K::rising(3);
            let (first, second, third) = (rising[0], rising[1], rising[2]);
            let sql = format!(
                "INSERT INTO {table} (id, other, position) VALUES ({}, {}, 0), ({}, {}, 1)",
                parameter(1),
                parameter(2),
                parameter(3),
                parameter(4)
            );
            query(AssertSqlSafe(sql))
                .bind(first)
                .bind(None::<K>)
                .bind(second)
                .bind(Some(first))
                .execute(&pool)
                .await?;

            let select = format!("SELECT id, other FROM {table} ORDER BY position");
            let mut answers = Vec::new();
            for persistent in [true, false] {
                let select = query(AssertSqlSafe(select.clone()));
                answers.push(select.persistent(persistent).fetch_all(&pool).await?);
            }
            answers.push(raw_sql(AssertSqlSafe(select)).fetch_all(&pool).await?);
            for rows in answers {
                let read: Vec<(K, Option<K>)> = rows
                    .iter()
                    .map(|row| Ok((row.try_get("id")?, row.try_get("other")?)))
                    .collect::<Result<_, sqlx::Error>>()?;
                assert_eq!(read, [(first, None), (second, Some(first))]);
                // As `query!` reads: without a look at the column's type.
                assert_eq!(rows[1].try_get_unchecked::<K, _>("other")?, first);
            }

            let wild: Vec<(usize, K)> = K::wild(50).into_iter().enumerate().collect();
            insert(&pool, &table, &wild).await?;
            for key in wild.into_iter().map(|(_, key)| key).chain([first, second]) {
                let literal = <K::Column as ColumnOn<$dialect>>::literal(key.to_raw());
                let by_parameter =
                    format!("SELECT {own}, id FROM {table} WHERE id = {}", parameter(1));
                let found = query(AssertSqlSafe(by_parameter))
                    .bind(key)
                    .fetch_one(&pool)
                    .await?;
                let by_literal = format!("SELECT {own}, id FROM {table} WHERE id = {literal}");
                let rows = raw_sql(AssertSqlSafe(by_literal)).fetch_all(&pool).await?;
                assert_eq!(rows.len(), 1, "{literal}");
                let form = <K::Column as ColumnOn<$dialect>>::LITERAL;
                for row in [found, rows.into_iter().next().unwrap()] {
                    assert_eq!(row.try_get::<K, _>(1)?, key);
                    let text: String = row.try_get(0)?;
                    assert_eq!(format!("{}{text}{}", form.before, form.after), literal);
                }
            }
            // And a script can write it.
            let literal = <K::Column as ColumnOn<$dialect>>::literal(third.to_raw());
            let script = format!("INSERT INTO {table} (id, position) VALUES ({literal}, 2)");
            execute(&pool, &script).await?;
            let sql = format!("SELECT id FROM {table} WHERE id = {}", parameter(1));
            let read: K = query_scalar(AssertSqlSafe(sql))
                .bind(third)
                .fetch_one(&pool)
                .await?;
            assert_eq!(read, third);
            Ok(())
        }

        /// `ORDER BY` of 100,000 keys is the order in which they were generated, however they were
        /// inserted, and of others it is the order of the keys.
        pub async fn order<K: Key>(pool: Pool<$database>) -> Outcome {
            let table = format!("order_{}", K::NAME).to_lowercase();
            create::<K>(&pool, &table).await?;
            let rising = K::rising(100_000);
            assert!(rising.is_sorted_by(|left, right| left < right));
            let mut keys = rising;
            keys.extend(K::wild(1_000));
            keys.sort_unstable();
            keys.dedup();
            let mut rows: Vec<(usize, K)> = keys.into_iter().enumerate().collect();
            shuffle(&mut rows);
            insert(&pool, &table, &rows).await?;
            let sql = format!("SELECT id, position FROM {table} ORDER BY id");
            let read = query(AssertSqlSafe(sql)).fetch_all(&pool).await?;
            assert_eq!(read.len(), rows.len());
            assert!(rows.len() > 100_400);
            rows.sort_by_key(|(position, _)| *position);
            for (read, (position, key)) in read.iter().zip(&rows) {
                assert_eq!(
                    read.try_get::<i32, _>("position")?,
                    i32::try_from(*position).unwrap()
                );
                assert_eq!(read.try_get::<K, _>("id")?, *key);
            }
            Ok(())
        }

        /// Numbers that are no keys, but that a column of `i64` may hold: by their literals, and in
        /// order.
        #[allow(dead_code, reason = "MySQL's test runs on MariaDB too")]
        pub async fn signed_order(pool: Pool<$database>) -> Outcome {
            use crate::keys::Number;
            type Column = <Number as StoredAs<$database>>::Column;
            create::<Number>(&pool, "signed").await?;
            let rising = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX];
            for (position, integer) in rising.iter().enumerate().rev() {
                let literal = <Column as ColumnOn<$dialect>>::literal(*integer);
                let sql =
                    format!("INSERT INTO signed (id, position) VALUES ({literal}, {position})");
                execute(&pool, &sql).await?;
                let sql = format!("SELECT position FROM signed WHERE id = {literal}");
                let found: Vec<i32> = query_scalar(AssertSqlSafe(sql)).fetch_all(&pool).await?;
                assert_eq!(found, [i32::try_from(position).unwrap()], "{literal}");
            }
            let read: Vec<i64> = query_scalar("SELECT id FROM signed ORDER BY id")
                .fetch_all(&pool)
                .await?;
            assert_eq!(read, rising);
            Ok(())
        }

        /// Counts adjacent pairs out of order when 2,000 generated keys are sorted by the column
        /// type; an error where the database takes two keys for one.
        #[allow(dead_code, reason = "MySQL's trap is shown on MariaDB")]
        pub async fn inversions(
            pool: &Pool<$database>,
            table: &str,
            column: &str,
            keys: &[String],
        ) -> Result<usize, sqlx::Error> {
            execute(
                pool,
                &format!("CREATE TABLE {table} (id {column} NOT NULL, position INTEGER)"),
            )
            .await?;
            let mut builder =
                QueryBuilder::<$database>::new(format!("INSERT INTO {table} (id, position) "));
            builder.push_values(keys.iter().enumerate(), |mut row, (position, key)| {
                row.push_bind(key)
                    .push_bind(i32::try_from(position).unwrap());
            });
            builder.build().execute(pool).await?;
            let sql = format!("SELECT position FROM {table} ORDER BY id");
            let positions: Vec<i32> = query_scalar(AssertSqlSafe(sql)).fetch_all(pool).await?;
            Ok(positions
                .windows(2)
                .filter(|pair| pair[0] > pair[1])
                .count())
        }

        fn shuffle<T>(rows: &mut [T]) {
            // Fisher and Yates, by random keys: no generator is wanted for the tests alone.
            for last in (1..rows.len()).rev() {
                let random = Uuid::new_v4().as_u128() % (last as u128 + 1);
                rows.swap(last, usize::try_from(random).unwrap());
            }
        }
    };
}

/// Adds the tests of columns by their key types: what is bound comes back, and `ORDER BY` is the keys' order.
macro_rules! columns {
    ($add:ident; $($key:ident = $name:literal, $own:literal;)+) => {$(
        $add!(concat!($name, "_comes_back"), |pool| round_trip::<$key>(pool, $own));
        $add!(concat!($name, "_keeps_order"), order::<$key>);
    )+};
}

/// Adds the tests of rows that are found by keys of these types.
macro_rules! finds {
    ($add:ident; $($key:ident),+ $(,)?) => {$(
        $add!(concat!("changes_find_keys_of_", stringify!($key)), |pool| {
            keys_find_their_rows::<_, $key>(pool, create::<$key>)
        });
    )+};
}

pub(crate) use {columns, engine, finds};
