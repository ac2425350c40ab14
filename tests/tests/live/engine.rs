//! The column tests of one engine, written once and expanded per engine: SQLx's executor bounds
//! hold for concrete connections only.

/// Defines `round_trip`, `order`, `lookup`, generic over key types, for a database.
macro_rules! engine {
    ($database:ident, $dialect:ty) => {
        use std::fmt::Debug;

        use ordid::{
            KeyType,
            scheme::UuidV7,
            storage::{ColumnOn, Dialect, Stores},
            uuid::Uuid,
        };
        use ordid_sqlx::{Backend, StoredAs};
        use sqlx::{
            AssertSqlSafe, Decode, Encode, Pool, QueryBuilder, Row, Type, query, query_scalar,
            raw_sql, $database,
        };

        use crate::Outcome;

        /// A key type with a column here.
        pub trait Key:
            KeyType<Raw = Uuid, Scheme = UuidV7>
            + StoredAs<$database, Column: ColumnOn<$dialect>>
            + Type<$database>
            + for<'q> Encode<'q, $database>
            + for<'r> Decode<'r, $database>
            + Unpin
            + Debug
        {
        }

        impl<K> Key for K where
            K: KeyType<Raw = Uuid, Scheme = UuidV7>
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
            <$database as Backend>::push_placeholder(&mut sql, number);
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
            let column = <K::Column as ColumnOn<$dialect>>::TYPE;
            let table = <$dialect as Dialect>::quote(table);
            let sql = format!(
                "CREATE TABLE {table} (id {column} NOT NULL PRIMARY KEY, other {column} NULL, \
                 position INTEGER NOT NULL)"
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
        /// the unprepared protocol; `NULL` is `None`; and the database's own text of the value is
        /// what the column encodes. `own` is an SQL expression over `id` that gives it.
        pub async fn round_trip<K: Key>(pool: Pool<$database>, own: &'static str) -> Outcome {
            let table = format!("round_trip_{}", K::NAME).to_lowercase();
            create::<K>(&pool, &table).await?;
            let [first, second] = [K::generate(), K::generate()];
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

            let select = format!("SELECT id, other FROM {table} ORDER BY id");
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

            for key in [first, second] {
                let sql = format!("SELECT {own} FROM {table} WHERE id = {}", parameter(1));
                let text: String = query_scalar(AssertSqlSafe(sql))
                    .bind(key)
                    .fetch_one(&pool)
                    .await?;
                let stored = K::Column::encode(key.to_raw());
                let expected = match std::str::from_utf8(stored.as_ref()) {
                    Ok(ascii) if stored.as_ref().len() != 16 => ascii.to_owned(),
                    _ => key.to_raw().to_string(),
                };
                assert_eq!(text.to_lowercase(), expected.to_lowercase());
                assert!(
                    own != "id" || text == expected,
                    "text is stored to the letter"
                );
            }
            Ok(())
        }

        /// `ORDER BY` of 100,000 keys is the order in which they were generated, however they were
        /// inserted.
        pub async fn order<K: Key>(pool: Pool<$database>) -> Outcome {
            let table = format!("order_{}", K::NAME).to_lowercase();
            create::<K>(&pool, &table).await?;
            let mut rows: Vec<(usize, K)> = (0..100_000)
                .map(|position| (position, K::generate()))
                .collect();
            shuffle(&mut rows);
            insert(&pool, &table, &rows).await?;
            let sql = format!("SELECT id, position FROM {table} ORDER BY id");
            let read = query(AssertSqlSafe(sql)).fetch_all(&pool).await?;
            assert_eq!(read.len(), rows.len());
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

pub(crate) use engine;
