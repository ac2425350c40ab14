//! The methods, one function each.

use std::{
    num::NonZeroU32,
    pin::Pin,
    str::FromStr as _,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use coordination_tour::{redis_lock::RedisLockIds, zookeeper_lock::ZooKeeperLockIds};
use ordid_core::{
    clock::{SystemClock, Timestamp},
    coordination::{AsyncNodeAllocator, AsyncSegmentSource, CoordinationFailure, LeaseTerms},
    entropy::ThreadEntropy,
    generator::{AtCeiling, Generator, LeaseKeeper, LeaseThread, OrderedGenerator, Policy},
    scheme::{
        Snowflake,
        instagram::{Shard, Shards},
        snowflake::SnowflakeNode,
    },
    uuid::Uuid,
};
use ordid_file::FileLease;
use ordid_redis::{RedisCounter, RedisLease};
use ordid_sqlx::{
    MappingTable, PgSequence, SqlCounter, SqlLease, TicketForm, Tickets64, instagram::create_shards,
};
use ordid_zookeeper::{SequentialNode, Session, ZooKeeperCounter, ZooKeeperLease};
use sqlx::{
    MySql, Pool, Postgres, Sqlite, mysql::MySqlConnectOptions, postgres::PgConnectOptions,
    sqlite::SqliteConnectOptions,
};
use zookeeper_client::Client as ZooKeeper;

use crate::{
    measure::{Calling, Client, Made, Method},
    stores::Stores,
};

/// A method that is being set up.
type Making<'s> = Pin<Box<dyn Future<Output = Result<Method>> + 's>>;

const ONE: NonZeroU32 = NonZeroU32::MIN;
const THOUSAND: NonZeroU32 = NonZeroU32::new(1_000).unwrap();
/// How long a store may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// All of them, of the stores that are there. The first is what the others are compared with.
pub(crate) fn all(stores: &Stores) -> Vec<Making<'_>> {
    let mut all: Vec<Making<'_>> = vec![
        Box::pin(async { local() }),
        Box::pin(async { under_a_lease_of_files(stores) }),
        Box::pin(sqlite(stores, ONE)),
        Box::pin(sqlite(stores, THOUSAND)),
        Box::pin(sqlite_mapping(stores)),
    ];
    if let Some(url) = stores.url("redis") {
        all.push(Box::pin(under_a_lease_of_redis(url.clone())));
        all.push(Box::pin(redis_lock(url.clone())));
        for count in [ONE, THOUSAND] {
            all.push(Box::pin(redis_counter(url.clone(), count)));
        }
    }
    if let Some(url) = stores.url("zookeeper") {
        all.push(Box::pin(under_a_lease_of_zookeeper(url.clone())));
        all.push(Box::pin(zookeeper_lock(url.clone())));
        all.push(Box::pin(zookeeper_sequential(url.clone())));
        for count in [ONE, THOUSAND] {
            all.push(Box::pin(zookeeper_counter(url.clone(), count)));
        }
    }
    if let Some(url) = stores.url("postgres") {
        all.push(Box::pin(under_a_lease_of_postgres(url.clone())));
        for count in [ONE, THOUSAND] {
            all.push(Box::pin(postgres_sequence(url.clone(), count)));
            all.push(Box::pin(postgres_counter(url.clone(), count)));
        }
        all.push(Box::pin(instagram(url.clone())));
        all.push(Box::pin(postgres_mapping(url)));
    }
    if let (Some(first), second) = (stores.url("mariadb"), stores.url("mariadb_2")) {
        for count in [ONE, THOUSAND] {
            all.push(Box::pin(mariadb_counter(first.clone(), count)));
        }
        if let Some(second) = second {
            let servers = [first.clone(), second];
            all.push(Box::pin(tickets(servers.clone(), TicketForm::Replace, ONE)));
            for count in [ONE, THOUSAND] {
                let form = TicketForm::LastInsertId;
                all.push(Box::pin(tickets(servers.clone(), form, count)));
            }
        }
        all.push(Box::pin(mariadb_mapping(first)));
    }
    all
}

/// A thousand keys of a generator in this process: clients share it.
fn generated(name: &str, keys: impl Fn() -> Result<Made> + Clone + Send + 'static) -> Method {
    Method {
        name: name.to_owned(),
        client: Box::new(move || {
            let keys = keys.clone();
            Ok(Box::new(move || -> Calling {
                let keys = keys.clone();
                Box::pin(async move {
                    // Others shall run, too: one of them keeps the lease.
                    tokio::task::yield_now().await;
                    let begun = Instant::now();
                    loop {
                        match keys() {
                            Err(error) if is_expired(&error) && begun.elapsed() < PATIENCE => {
                                tokio::time::sleep(Duration::from_millis(1)).await;
                            }
                            made => return made,
                        }
                    }
                })
            }) as Client)
        }),
    }
}

/// Whether the grant has to be renewed before there are more keys.
fn is_expired(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<ordid_core::Error>();
    error.and_then(ordid_core::Error::coordination_failure) == Some(CoordinationFailure::Expired)
}

/// Keys one after another, among which others are made.
fn thousand(keys: &impl Generator<Scheme = Snowflake>) -> Result<Made> {
    let first = keys.try_generate()?.into_raw();
    let mut last = first;
    for _ in 1..THOUSAND.get() {
        last = keys.try_generate()?.into_raw();
    }
    anyhow::ensure!(last > first, "keys do not rise");
    Ok(Made::among_others(first, THOUSAND.get()))
}

/// A Snowflake generator with a node that somebody wrote into a configuration.
fn local() -> Result<Method> {
    let keys = Arc::new(OrderedGenerator::<Snowflake, _, _>::with_node(
        SnowflakeNode::new(7)?,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
    ));
    Ok(generated("local Snowflake, node configured", move || {
        thousand(&keys)
    }))
}

/// As long as it needs to be renewed, by a thread of its own.
const WAIT: AtCeiling = AtCeiling::Wait { max: PATIENCE };

fn under_a_lease_of_files(stores: &Stores) -> Result<Method> {
    let lease = FileLease::open(stores.folder().join("leases"), LeaseTerms::new(0..1_024)?)?;
    let keeper =
        LeaseKeeper::acquire_sync(&lease, SystemClock, ThreadEntropy, Policy::DEFAULT, WAIT)?;
    let thread: Arc<LeaseThread<Snowflake, _, _>> = Arc::new(keeper.start(lease)?);
    let keys = thread.generator();
    Ok(generated("Snowflake, node leased from a file", move || {
        // It renews as long as anybody makes keys.
        let _kept = &thread;
        thousand(&keys)
    }))
}

async fn under_a_lease<A>(name: &str, lease: A) -> Result<Method>
where
    A: AsyncNodeAllocator + 'static,
{
    let keeper = LeaseKeeper::<Snowflake, _, _>::acquire(
        &lease,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
        // A thread of the runtime must not wait: the renewal may need it.
        AtCeiling::Error,
    )
    .await?;
    let keys = keeper.generator();
    tokio::spawn(keeper.run(Arc::new(lease), tokio::time::sleep));
    Ok(generated(name, move || thousand(&keys)))
}

async fn under_a_lease_of_redis(url: String) -> Result<Method> {
    let connection = redis_connection(&url)?;
    let lease = RedisLease::new(connection, "tour:nodes", LeaseTerms::new(0..1_024)?);
    lease.create(Timestamp::MIN)?;
    let keeper =
        LeaseKeeper::acquire_sync(&lease, SystemClock, ThreadEntropy, Policy::DEFAULT, WAIT)?;
    let thread: Arc<LeaseThread<Snowflake, _, _>> = Arc::new(keeper.start(lease)?);
    let keys = thread.generator();
    Ok(generated("Snowflake, node leased from Redis", move || {
        let _kept = &thread;
        thousand(&keys)
    }))
}

async fn under_a_lease_of_zookeeper(url: String) -> Result<Method> {
    let session = Session::new(ZooKeeper::connector(), url);
    let lease = ZooKeeperLease::new(session, "/tour-nodes", LeaseTerms::new(0..1_024)?)?;
    lease.create(Timestamp::MIN).await?;
    under_a_lease("Snowflake, node leased from ZooKeeper", lease).await
}

async fn under_a_lease_of_postgres(url: String) -> Result<Method> {
    let lease = SqlLease::<Postgres>::new(url.parse()?, LeaseTerms::new(0..1_024)?);
    lease.create().await?;
    under_a_lease("Snowflake, node leased from PostgreSQL", lease).await
}

/// A source of numbers, of which each client has one of its own.
fn reserved<S: AsyncSegmentSource + 'static>(
    name: &str,
    count: NonZeroU32,
    source: impl Fn() -> Result<S> + Send + 'static,
) -> Method {
    Method {
        name: match count.get() {
            1 => name.to_owned(),
            count => format!("{name}, {count} at a time"),
        },
        client: Box::new(move || {
            let source = Arc::new(source()?);
            Ok(Box::new(move || -> Calling {
                let source = Arc::clone(&source);
                Box::pin(async move {
                    let segment = source.reserve(count).await?;
                    let first = segment.first().unwrap_or_default();
                    Ok(Made::run(first, segment.stride(), segment.len()))
                })
            }) as Client)
        }),
    }
}

async fn sqlite(stores: &Stores, count: NonZeroU32) -> Result<Method> {
    let file = stores.folder().join("counters.sqlite");
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    let name = format!("tour_{count}");
    SqlCounter::<Sqlite>::new(options.clone(), &name)?
        .create(1)
        .await?;
    Ok(reserved("SQLite, a row", count, move || {
        Ok(SqlCounter::<Sqlite>::new(options.clone(), &name)?)
    }))
}

/// For threads and tasks alike: it blocks for the time of an answer.
fn redis_connection(url: &str) -> Result<ordid_redis::Blocking> {
    let client = redis::Client::open(url)?;
    Ok(ordid_redis::Blocking::new(client, PATIENCE))
}

/// A multiplexed connection, made when it is first used.
async fn multiplexed(url: &str) -> Result<redis::aio::MultiplexedConnection> {
    Ok(redis::Client::open(url)?
        .get_multiplexed_async_connection()
        .await?)
}

async fn redis_lock(url: String) -> Result<Method> {
    let connection = multiplexed(&url).await?;
    RedisLockIds::new(connection.clone(), "tour:lock")
        .counter()
        .create(1)
        .await?;
    Ok(reserved("Redis, a lock for each id", ONE, move || {
        Ok(RedisLockIds::new(connection.clone(), "tour:lock"))
    }))
}

async fn redis_counter(url: String, count: NonZeroU32) -> Result<Method> {
    let connection = multiplexed(&url).await?;
    let key = format!("tour:counter:{count}");
    RedisCounter::new(connection.clone(), &*key)
        .create(1)
        .await?;
    Ok(reserved("Redis, INCRBY", count, move || {
        Ok(RedisCounter::new(connection.clone(), &*key))
    }))
}

async fn zookeeper_lock(url: String) -> Result<Method> {
    let session = || Session::new(ZooKeeper::connector(), &*url);
    ZooKeeperLockIds::new(session(), "/tour-lock")
        .counter()?
        .create(1)
        .await?;
    let url = url.clone();
    Ok(reserved("ZooKeeper, a lock for each id", ONE, move || {
        let session = Session::new(ZooKeeper::connector(), &*url);
        Ok(ZooKeeperLockIds::new(session, "/tour-lock"))
    }))
}

async fn zookeeper_counter(url: String, count: NonZeroU32) -> Result<Method> {
    let path = format!("/tour-counter-{count}");
    let session = Session::new(ZooKeeper::connector(), &*url);
    ZooKeeperCounter::new(session, &*path)?.create(1).await?;
    Ok(reserved("ZooKeeper, a versioned node", count, move || {
        let session = Session::new(ZooKeeper::connector(), &*url);
        Ok(ZooKeeperCounter::new(session, &*path)?)
    }))
}

async fn zookeeper_sequential(url: String) -> Result<Method> {
    let session = Session::new(ZooKeeper::connector(), &*url);
    SequentialNode::new(session, "/tour-sequential")?
        .create(1)
        .await?;
    Ok(one_by_one(
        "ZooKeeper, a sequential node for each id",
        move || {
            let session = Session::new(ZooKeeper::connector(), &*url);
            let ids = Arc::new(SequentialNode::new(session, "/tour-sequential")?);
            Ok(move || {
                let ids = Arc::clone(&ids);
                async move { Ok(ids.next_id().await?) }
            })
        },
    ))
}

/// One id a call.
fn one_by_one<M, F>(name: &str, make: impl Fn() -> Result<M> + Send + 'static) -> Method
where
    M: Fn() -> F + Send + 'static,
    F: Future<Output = Result<i64>> + Send + 'static,
{
    Method {
        name: name.to_owned(),
        client: Box::new(move || {
            let next = make()?;
            Ok(Box::new(move || -> Calling {
                let next = next();
                Box::pin(async { Ok(Made::run(next.await?, 1, 1)) })
            }) as Client)
        }),
    }
}

async fn postgres_sequence(url: String, count: NonZeroU32) -> Result<Method> {
    let options = PgConnectOptions::from_str(&url)?;
    let name = format!("tour_sequence_{count}");
    PgSequence::new(options.clone(), &name, count)?
        .create()
        .await?;
    Ok(reserved("PostgreSQL, a sequence", count, move || {
        Ok(PgSequence::new(options.clone(), &name, count)?)
    }))
}

async fn postgres_counter(url: String, count: NonZeroU32) -> Result<Method> {
    let options = PgConnectOptions::from_str(&url)?;
    let name = format!("tour_{count}");
    SqlCounter::<Postgres>::new(options.clone(), &name)?
        .create(1)
        .await?;
    Ok(reserved("PostgreSQL, a row", count, move || {
        Ok(SqlCounter::<Postgres>::new(options.clone(), &name)?)
    }))
}

async fn mariadb_counter(url: String, count: NonZeroU32) -> Result<Method> {
    let options = MySqlConnectOptions::from_str(&url)?;
    let name = format!("tour_{count}");
    SqlCounter::<MySql>::new(options.clone(), &name)?
        .create(1)
        .await?;
    Ok(reserved("MariaDB, a row", count, move || {
        Ok(SqlCounter::<MySql>::new(options.clone(), &name)?)
    }))
}

/// Flickr's: odd numbers of one server, even ones of the other.
async fn tickets(urls: [String; 2], form: TicketForm, count: NonZeroU32) -> Result<Method> {
    let servers: Vec<MySqlConnectOptions> = urls
        .iter()
        .map(|url| MySqlConnectOptions::from_str(url))
        .collect::<Result<_, _>>()?;
    let table = match form {
        TicketForm::Replace => "tour_replace".to_owned(),
        _ => format!("tour_fast_{count}"),
    };
    let name = match form {
        TicketForm::Replace => "MariaDB, Tickets64 on two servers, REPLACE",
        _ => "MariaDB, Tickets64 on two servers, LAST_INSERT_ID",
    };
    let make = move || Ok(Tickets64::new(servers.clone(), form, 2)?.with_table(&table)?);
    make()?.create().await?;
    Ok(reserved(name, count, make))
}

async fn instagram(url: String) -> Result<Method> {
    let pool = Pool::<Postgres>::connect(&url).await?;
    let shards = Shards::new("tour", 5..=5)?;
    create_shards(&pool, &shards).await?;
    let shard = Shard::new(5)?;
    Ok(one_by_one("PostgreSQL, Instagram's function", move || {
        let (pool, shards) = (pool.clone(), shards.clone());
        Ok(move || {
            let (pool, shards) = (pool.clone(), shards.clone());
            async move {
                let ids = ordid_sqlx::instagram::next_ids::<InstagramId>(&pool, &shards, shard, 1);
                Ok(ids.await?.first().map_or(0, |id| id.0))
            }
        })
    }))
}

#[derive(ordid::KeyType)]
#[ordid(scheme = instagram)]
struct InstagramId(i64);

/// A thousand new UUIDs a call, of which each gets an integer.
macro_rules! mapping {
    ($name:literal, $database:ty, $pool:expr) => {{
        let pool: Pool<$database> = $pool;
        let table = MappingTable::<$database>::new("tour_mapping")?;
        table.create(&pool).await?;
        let table = Arc::new(table);
        Ok(Method {
            name: $name.to_owned(),
            client: Box::new(move || {
                let (pool, table) = (pool.clone(), Arc::clone(&table));
                Ok(Box::new(move || -> Calling {
                    let (pool, table) = (pool.clone(), Arc::clone(&table));
                    Box::pin(async move {
                        let uuids: Vec<Uuid> = fresh_uuids()?;
                        let mut ids = table.insert_or_get_many(&pool, &uuids).await?;
                        ids.sort_unstable();
                        anyhow::ensure!(
                            ids.is_sorted_by(|left, right| left < right),
                            "one integer for two UUIDs"
                        );
                        Ok(Made::among_others(ids[0], u32::try_from(ids.len())?))
                    })
                }) as Client)
            }),
        })
    }};
}

/// UUIDs of version 7.
fn fresh_uuids() -> Result<Vec<Uuid>> {
    use ordid_core::{StaticScheme as _, scheme::UuidV7};
    let mut uuids = Vec::new();
    for _ in 0..THOUSAND.get() {
        uuids.push(UuidV7::generate().into_raw());
    }
    Ok(uuids)
}

async fn sqlite_mapping(stores: &Stores) -> Result<Method> {
    let file = stores.folder().join("mapping.sqlite");
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true);
    mapping!(
        "SQLite, UUIDs mapped, 1000 at a time",
        Sqlite,
        Pool::connect_with(options).await?
    )
}

async fn postgres_mapping(url: String) -> Result<Method> {
    mapping!(
        "PostgreSQL, UUIDs mapped, 1000 at a time",
        Postgres,
        Pool::connect(&url).await?
    )
}

async fn mariadb_mapping(url: String) -> Result<Method> {
    mapping!(
        "MariaDB, UUIDs mapped, 1000 at a time",
        MySql,
        Pool::connect(&url).await?
    )
}
