//! Instagram's keys, made by PostgreSQL.
//!
//! The functions are those of ordid-core's [`create_rising_function_sql`], whose keys rise strictly over
//! all sessions and never repeat. A generator on the client with the same shard would repeat them.
//!
//! [`create_rising_function_sql`]: ordid_core::scheme::instagram::create_rising_function_sql
//!
//! # Example
//!
//! ```no_run
//! # async fn run(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
//! use ordid::{KeyType, scheme::instagram::{Shard, Shards}};
//! use ordid_sqlx::instagram::{create_shards, next_id};
//!
//! #[derive(KeyType)]
//! #[ordid(scheme = instagram, sqlx(postgres = bigint))]
//! struct PhotoId(i64);
//!
//! // A migration: run it as often as you like.
//! let shards = Shards::new("insta", 0..=15)?;
//! create_shards(&pool, &shards).await?;
//! sqlx::query("CREATE TABLE insta5.photos (id bigint PRIMARY KEY DEFAULT insta5.next_id())")
//!     .execute(&pool)
//!     .await?;
//!
//! let id: PhotoId = next_id(&pool, &shards, Shard::new(5)?).await?;
//! # Ok(())
//! # }
//! ```

use ordid_core::{
    KeyType,
    scheme::{
        Instagram,
        instagram::{Shard, Shards},
    },
};
use sqlx::{AssertSqlSafe, Postgres, query_scalar, raw_sql};

use crate::over::Over;

/// Creates the schemas, sequences and functions of shards, in one transaction. What is there stays, and
/// the sequences with it: run it again at any time, and with more shards.
///
/// # Errors
///
/// What PostgreSQL says, as that the role may not create schemas.
pub async fn create_shards(
    over: impl Over<'_, Postgres>,
    shards: &Shards,
) -> Result<(), sqlx::Error> {
    let mut source = over.into();
    let connection = source.connection().await?;
    // Without parameters all of it is sent at once, and is one transaction.
    let created = raw_sql(AssertSqlSafe(shards.create_sql())).execute(connection);
    created.await.map(drop)
}

/// Makes a shard's next key.
///
/// # Errors
///
/// As [`next_ids`].
pub async fn next_id<K: KeyType<Raw = i64, Scheme = Instagram>>(
    over: impl Over<'_, Postgres>,
    shards: &Shards,
    shard: Shard,
) -> Result<K, sqlx::Error> {
    let ids = next_ids(over, shards, shard, 1).await?;
    ids.into_iter().next().ok_or(sqlx::Error::RowNotFound)
}

/// Makes a shard's next keys, rising, in one round trip. Others may get keys in between.
///
/// # Errors
///
/// Returns PostgreSQL's errors, for example if the function does not exist or the time is beyond the layout. An
/// unknown shard is an [`Encode`](sqlx::Error::Encode) error, and a key that is not of the scheme a
/// [`Decode`](sqlx::Error::Decode) error.
pub async fn next_ids<K: KeyType<Raw = i64, Scheme = Instagram>>(
    over: impl Over<'_, Postgres>,
    shards: &Shards,
    shard: Shard,
    count: u32,
) -> Result<Vec<K>, sqlx::Error> {
    let refused = |error: ordid_core::Error| sqlx::Error::Encode(error.into());
    let next_id = shards.next_id_sql(shard).map_err(refused)?;
    let sql = format!("SELECT {next_id} FROM generate_series(1, $1)");
    let mut source = over.into();
    let ids: Vec<i64> = query_scalar(AssertSqlSafe(sql))
        .bind(i64::from(count))
        .fetch_all(source.connection().await?)
        .await?;
    let keys = ids.into_iter().map(K::from_raw);
    let keys: Result<_, _> = keys.collect();
    keys.map_err(|error: ordid_core::Error| sqlx::Error::Decode(error.into()))
}
