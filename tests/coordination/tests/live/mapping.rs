//! The table that maps UUIDs to integers, on each engine.

mod damage;
mod original;
mod together;

use std::{future::Future, time::Duration};

use libtest_mimic::Trial;
use ordid::{KeyType, uuid::Uuid};
use ordid_sqlx::{Backend, Mapping, MappingTable, Over, Retry};
use ordid_tests::{
    servers::{Options, Servers},
    trials::{Outcome, on_scratch, over_sqlite, run, sqlite_file},
};
use sqlx::{AssertSqlSafe, Connection, MySql, Pool, Postgres, Sqlite, pool::PoolOptions, raw_sql};

/// What SQLx can do with concrete databases only.
pub trait Engine: Backend<Connection: Connection<Database = Self, Options: Clone + Sync>> {
    /// A schema that is there already.
    const SCHEMA: &'static str;
    /// What is tried again where calls insert the same UUIDs: nothing, but for what InnoDB ends as a deadlock.
    const RETRY: Retry;

    fn run(pool: &Pool<Self>, sql: &str) -> impl Future<Output = Result<(), sqlx::Error>> + Send;

    /// Returns one number.
    fn number(
        pool: &Pool<Self>,
        sql: &str,
    ) -> impl Future<Output = Result<i64, sqlx::Error>> + Send;

    fn over(connection: &mut Self::Connection) -> impl Over<'_, Self>;

    /// Writes a UUID in SQL.
    fn literal(uuid: Uuid) -> String;
}

macro_rules! engine {
    ($database:ident, $schema:literal, $retry:ident, $literal:expr) => {
        impl Engine for $database {
            const SCHEMA: &'static str = $schema;
            const RETRY: Retry = Retry::$retry;

            async fn run(pool: &Pool<Self>, sql: &str) -> Result<(), sqlx::Error> {
                raw_sql(AssertSqlSafe(sql)).execute(pool).await.map(drop)
            }

            async fn number(pool: &Pool<Self>, sql: &str) -> Result<i64, sqlx::Error> {
                sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(pool).await
            }

            fn over(connection: &mut Self::Connection) -> impl Over<'_, Self> {
                connection
            }

            fn literal(uuid: Uuid) -> String {
                $literal(uuid)
            }
        }
    };
}

engine!(Postgres, "public", NONE, |uuid| format!("'{uuid}'::uuid"));
engine!(MySql, "mapped", DEFAULT, |uuid: Uuid| format!(
    "x'{}'",
    uuid.simple()
));
engine!(Sqlite, "main", NONE, |uuid: Uuid| format!(
    "x'{}'",
    uuid.simple()
));

/// A pool of as many connections as run at once.
async fn pool_of<E: Engine>(pool: &Pool<E>, connections: u32) -> Result<Pool<E>, sqlx::Error> {
    let options: Options<E> = (*pool.connect_options()).clone();
    let wait = std::time::Duration::from_mins(5);
    PoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(wait)
        .connect_with(options)
        .await
}

/// A file of its own.
async fn in_file<F: Future<Output = Outcome>>(test: impl FnOnce(Pool<Sqlite>) -> F) -> Outcome {
    let (_folder, options) = sqlite_file()?;
    over_sqlite(options.busy_timeout(Duration::from_mins(1)), 4, test).await
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! on_all {
        ($($test:path),+ $(,)?) => {$(
            let name = format!("mapping_{}", stringify!($test).replace("::", "_"));
            on_scratch::<Postgres, _, _>(trials, servers, "postgres", &name, $test);
            on_scratch::<MySql, _, _>(trials, servers, "mariadb", &name, $test);
            on_scratch::<MySql, _, _>(trials, servers, "mysql", &name, $test);
            trials.push(Trial::test(format!("sqlite::{name}"), || {
                run(async || in_file($test).await)
            }));
        )+};
    }
    on_all!(
        each_uuid_has_one_id,
        a_hundred_thousand_at_once,
        keys_of_a_type_come_back_as_it,
        uuids_of_one_hash_have_rows_of_their_own,
        together::eight_connections_agree,
        damage::what_no_mapping_table_has_is_told,
        damage::our_table_refuses_it,
        damage::used_up_ids_are_an_error,
    );
    together::trials(servers, trials);
    original::trials(servers, trials);
}

/// UUIDs of any bits, all different.
fn uuids(from: u128, count: u128) -> Vec<Uuid> {
    let odd = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835_u128;
    let numbers = from..from + count;
    numbers
        .map(|number| Uuid::from_u128(number.wrapping_mul(odd)))
        .collect()
}

/// Returns which ids the rows have: the lowest, the highest, how many.
async fn ids<E: Engine>(pool: &Pool<E>, table: &str) -> Result<(i64, i64, i64), sqlx::Error> {
    let ask = |what: &str| format!("SELECT {what} FROM {table}");
    Ok((
        E::number(pool, &ask("MIN(id)")).await?,
        E::number(pool, &ask("MAX(id)")).await?,
        E::number(pool, &ask("COUNT(*)")).await?,
    ))
}

async fn each_uuid_has_one_id<E: Engine>(pool: Pool<E>) -> Outcome {
    let table = MappingTable::<E>::new("Ids of `x`; \"--")?;
    table.create(&pool).await?;
    table.create(&pool).await?;
    let [a, b, c, d] = [Uuid::nil(), Uuid::max(), Uuid::generate(), Uuid::generate()];
    assert_eq!(table.get(&pool, a).await?, None);
    assert_eq!(table.key(&pool, 1).await?, None);

    let first = table.insert_or_get(&pool, a).await?;
    assert_eq!(table.insert_or_get(&pool, a).await?, first);
    assert_eq!(table.get(&pool, a).await?, Some(first));
    let second = table.insert(&pool, b).await?;
    assert!(second.is_new && second.id > first);
    let again = table.insert(&pool, b).await?;
    assert!(!again.is_new && again.id == second.id);

    let found = table.get_many(&pool, &[c, b, a, b]).await?;
    assert_eq!(found, [None, Some(second.id), Some(first), Some(second.id)]);
    let mapped = table.insert_many(&pool, &[d, a, c, d]).await?;
    let flags: Vec<_> = mapped.iter().map(|Mapping { is_new, .. }| is_new).collect();
    assert_eq!(flags, [&true, &false, &true, &false]);
    assert_eq!((mapped[0].id, mapped[1].id), (mapped[3].id, first));
    let keys = table.keys(&pool, &[mapped[2].id, -7, first]).await?;
    assert_eq!(keys, [Some(c), None, Some(a)]);
    assert!(table.insert_or_get_many(&pool, &[]).await?.is_empty());
    assert!(table.keys(&pool, &[]).await?.is_empty());

    // The same over a connection, and in a transaction, whose end it shares.
    let mut connection = pool.acquire().await?;
    assert_eq!(
        table.get(E::over(&mut connection), c).await?,
        Some(mapped[2].id)
    );
    let mut transaction = E::Connection::begin(&mut *connection).await?;
    let [e] = uuids(77, 1)[..] else {
        unreachable!()
    };
    let id = table.insert_or_get(&mut transaction, e).await?;
    assert_eq!(table.key(&mut transaction, id).await?, Some(e));
    transaction.rollback().await?;
    assert_eq!(table.get(&mut connection, e).await?, None);
    Ok(())
}

async fn a_hundred_thousand_at_once<E: Engine>(pool: Pool<E>) -> Outcome {
    let table = MappingTable::<E>::new("many")?;
    table.create(&pool).await?;
    let mut given = uuids(1, 100_000);
    // Some were there, some come twice.
    let old = table.insert_or_get_many(&pool, &given[500..600]).await?;
    given.extend_from_within(99_000..);
    let ids_of = table.insert_or_get_many(&pool, &given).await?;
    assert_eq!(ids_of.len(), 101_000);
    assert_eq!(ids_of[500..600], old);
    assert_eq!(ids_of[99_000..100_000], ids_of[100_000..]);
    let mut distinct = ids_of.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 100_000);
    // No id was lost, by the rows that were there neither.
    assert_eq!(ids(&pool, "many").await?, (1, 100_000, 100_000));

    assert_eq!(table.insert_or_get_many(&pool, &given).await?, ids_of);
    let again = table.insert_many(&pool, &given).await?;
    assert!(again.iter().all(|mapping| !mapping.is_new));
    let found = table.get_many(&pool, &given).await?;
    assert!(
        found
            .iter()
            .zip(&ids_of)
            .all(|(found, id)| *found == Some(*id))
    );
    let keys = table.keys(&pool, &ids_of).await?;
    assert!(
        keys.iter()
            .zip(&given)
            .all(|(key, uuid)| *key == Some(*uuid))
    );
    let next = table.insert_or_get(&pool, Uuid::generate()).await?;
    assert_eq!(next, 100_001, "looking for rows costs no id");

    let new = table.insert_many(&pool, &uuids(200_000, 20_000)).await?;
    assert!(new.iter().all(|mapping| mapping.is_new));
    assert_eq!(ids(&pool, "many").await?, (1, 120_001, 120_001));
    Ok(())
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "ord")]
struct OrderId(Uuid);

async fn keys_of_a_type_come_back_as_it<E: Engine>(pool: Pool<E>) -> Outcome {
    let table = MappingTable::<E, OrderId>::new("typed")?;
    table.create(&pool).await?;
    let order = OrderId::generate();
    let id = table.insert_or_get(&pool, order).await?;
    assert_eq!(table.key(&pool, id).await?, Some(order));
    // What else is in the table is not taken for an order.
    let other = Uuid::max();
    let stranger = MappingTable::<E>::new("typed")?;
    let stranger = stranger.insert_or_get(&pool, other).await?;
    let error = table
        .key(&pool, stranger)
        .await
        .expect_err("another scheme");
    assert!(error.is_unexpected_row(), "{error}");
    assert!(
        error.to_string().contains("scheme uuid_v7 expects"),
        "{error}"
    );

    // In a schema, by its name.
    let schema = E::SCHEMA;
    if schema == "mapped" {
        let name = format!("mapped_{}", std::process::id());
        E::run(&pool, &format!("CREATE DATABASE {name}")).await?;
        let table = MappingTable::<E>::in_schema(&name, "elsewhere")?;
        table.create(&pool).await?;
        let id = table.insert_or_get(&pool, other).await;
        E::run(&pool, &format!("DROP DATABASE {name}")).await?;
        assert_eq!(id?, 1);
    } else {
        let table = MappingTable::<E>::in_schema(schema, "elsewhere")?;
        table.create(&pool).await?;
        assert_eq!(table.insert_or_get(&pool, other).await?, 1);
    }
    Ok(())
}

async fn uuids_of_one_hash_have_rows_of_their_own<E: Engine>(pool: Pool<E>) -> Outcome {
    use ordid_sql::mapping::uuid_hash;

    // The polynomial of CRC-32 in the order of its bits: added to a message, it leaves the sum as it is.
    const POLYNOMIAL: u128 = 0x41_06_71_db_01;
    let table = MappingTable::<E>::new("colliding")?;
    table.create(&pool).await?;
    let mut all = Vec::new();
    for base in uuids(9, 500) {
        let others = (0..12).map(|byte| Uuid::from_u128(base.as_u128() ^ POLYNOMIAL << (8 * byte)));
        all.push(base);
        all.extend(others.inspect(|other| assert_eq!(uuid_hash(*other), uuid_hash(base))));
    }
    // One by one and together.
    let singly = table.insert_or_get(&pool, all[5]).await?;
    let ids_of = table.insert_or_get_many(&pool, &all).await?;
    assert_eq!(ids_of[5], singly);
    assert_eq!(ids(&pool, "colliding").await?, (1, 6_500, 6_500));
    let hashes = "SELECT COUNT(DISTINCT uuid_hash) FROM colliding";
    assert_eq!(E::number(&pool, hashes).await?, 500);
    assert!(!table.insert(&pool, all[6]).await?.is_new);
    assert_eq!(table.get(&pool, all[6]).await?, Some(ids_of[6]));
    let keys = table.keys(&pool, &ids_of).await?;
    assert!(keys.iter().zip(&all).all(|(key, uuid)| *key == Some(*uuid)));
    Ok(())
}
