//! A table that a .NET program filled, `Guid.ToByteArray` in `BINARY(16)`: its keys are read, and
//! continued, by key types.

use libtest_mimic::Trial;
use ordid::{
    KeyType, Scheme, StaticScheme,
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    entropy::SeededEntropy,
    generator::{Generator, OrderedGenerator, Policy, ProcessWide, Slotted},
    scheme::{SequentialGuidAsBinary, SequentialGuidAsString},
    uuid::Uuid,
};
use ordid_tests::{
    dotnet::{self, NEWEST, StoredGuid},
    servers::Servers,
};
use sqlx::{Decode, Encode, MySql, Pool, Type, query, query_scalar};

use crate::{Outcome, keys::DotNet, mysql::Columns, on_scratch};

#[derive(KeyType)]
#[ordid(scheme = comb_rt_binary, sqlx(mysql = binary16_dotnet))]
struct RtBinary(Uuid);

/// The same keys in the wrong column.
#[derive(KeyType)]
#[ordid(scheme = comb_rt_binary, sqlx(mysql = unordered(binary16)))]
struct InNetworkOrder(Uuid);

/// As [`InNetworkOrder`], of a scheme that any 128 bits may be of.
#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_binary, sqlx(mysql = unordered(binary16)))]
struct AnyInNetworkOrder(Uuid);

/// What rises as text only, where .NET puts it.
#[derive(KeyType)]
#[ordid(scheme = sequential_guid_as_string, sqlx(mysql = unordered(binary16_dotnet)))]
struct AsString(Uuid);

trait Column:
    KeyType<Raw = Uuid>
    + Type<MySql>
    + for<'q> Encode<'q, MySql>
    + for<'r> Decode<'r, MySql>
    + Unpin
    + Send
{
}

impl<K> Column for K where
    K: KeyType<Raw = Uuid>
        + Type<MySql>
        + for<'q> Encode<'q, MySql>
        + for<'r> Decode<'r, MySql>
        + Unpin
        + Send
{
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["mariadb", "mysql"] {
        macro_rules! add {
            ($name:literal, $test:expr) => {
                let name = concat!("dotnet_tables::", $name);
                on_scratch::<MySql, _, _>(trials, servers, server, name, $test);
            };
        }
        add!(
            "sequential_guid_as_binary_goes_on",
            |pool| goes_on::<DotNet>(pool, "abp_AsBinary")
        );
        add!("rt_comb_binary_goes_on", |pool| goes_on::<RtBinary>(
            pool,
            "rtcomb_unix_Binary"
        ));
        add!("the_process_wide_generator_goes_on", process_wide);
        add!("network_order_is_refused_or_disorder", network_order);
        add!("sequential_guid_as_string_does_not_rise_here", as_string);
    }
}

/// Makes the original's table, and returns its keys.
async fn fill<S: Scheme<Raw = Uuid>>(
    pool: &Pool<MySql>,
    kind: &str,
) -> Result<Vec<StoredGuid>, sqlx::Error> {
    Columns::execute(pool, "CREATE TABLE orders (id BINARY(16) PRIMARY KEY)").await?;
    let stored = dotnet::stored::<S>(kind);
    for key in &stored {
        query("INSERT INTO orders VALUES (?)")
            .bind(key.bytes.to_vec())
            .execute(pool)
            .await?;
    }
    Ok(stored)
}

async fn newest<K: Column>(pool: &Pool<MySql>) -> Result<K, sqlx::Error> {
    query_scalar("SELECT id FROM orders ORDER BY id DESC LIMIT 1")
        .fetch_one(pool)
        .await
}

async fn insert<K: Column>(pool: &Pool<MySql>, keys: &[K]) -> Result<(), sqlx::Error> {
    // Not as they were made.
    for chunk in keys.chunks(500).rev() {
        let mut insert = sqlx::QueryBuilder::<MySql>::new("INSERT INTO orders ");
        insert.push_values(chunk.iter().rev(), |mut row, key| {
            row.push_bind(*key);
        });
        insert.build().execute(pool).await?;
    }
    Ok(())
}

/// The column's own bytes, in the order of the column.
async fn bytes(pool: &Pool<MySql>) -> Result<Vec<Vec<u8>>, sqlx::Error> {
    query_scalar("SELECT id FROM orders ORDER BY id")
        .fetch_all(pool)
        .await
}

/// Five seconds behind the newest key's.
fn behind() -> ManualClock {
    ManualClock::at_unix_millis(NEWEST - 5_000)
}

fn generator<S: Slotted<Node = ()>>(
    clock: &ManualClock,
) -> OrderedGenerator<S, &ManualClock, SeededEntropy> {
    OrderedGenerator::with_node((), clock, SeededEntropy::new(1), Policy::DEFAULT)
}

/// `ORDER BY` gives the original's keys, then the generated ones in the order they were made.
async fn goes_on<K>(pool: Pool<MySql>, kind: &str) -> Outcome
where
    K: Column<Scheme: Slotted<Node = ()>>,
{
    let mut stored = fill::<K::Scheme>(&pool, kind).await?;
    stored.sort_by_key(|key| key.bytes);
    let newest: K = newest(&pool).await?;
    let last = stored.iter().find(|key| key.unix_millis == NEWEST);
    assert_eq!(Some(newest.to_raw()), last.map(StoredGuid::guid));
    let clock = behind();
    let careless: K = generator::<K::Scheme>(&clock).try_generate_key()?;
    assert!(careless < newest, "the clock alone is below");

    let generator = generator::<K::Scheme>(&clock);
    generator.start_above(&newest.to_raw())?;
    let mut generated: Vec<K> = Vec::new();
    for time in [NEWEST - 5_000, NEWEST, NEWEST + 60_000] {
        clock.set_unix_millis(time);
        for _ in 0..2_000 {
            generated.push(generator.try_generate_key()?);
        }
    }
    insert(&pool, &generated).await?;

    let read: Vec<K> = query_scalar("SELECT id FROM orders ORDER BY id")
        .fetch_all(&pool)
        .await?;
    let old = stored.iter().map(StoredGuid::guid);
    let all: Vec<Uuid> = old
        .chain(generated.iter().map(|key| key.to_raw()))
        .collect();
    let read: Vec<Uuid> = read.iter().map(|key| key.to_raw()).collect();
    assert!(read == all);
    // And .NET reads them: the value's bytes are `Guid.ToByteArray`'s.
    let expected: Vec<_> = all.iter().map(|guid| guid.to_bytes_le().to_vec()).collect();
    assert!(bytes(&pool).await? == expected);
    Ok(())
}

/// `K::generate()` goes on above a key of a machine whose clock is nine seconds ahead. What it would
/// make otherwise is below for as long, which is why nothing is said of that here.
async fn process_wide(pool: Pool<MySql>) -> Outcome {
    Columns::execute(&pool, "CREATE TABLE orders (id BINARY(16) PRIMARY KEY)").await?;
    let ahead = SystemClock.now().as_unix_millis() + 9_000;
    let ahead = Timestamp::from_unix_millis(ahead)?;
    let elsewhere = SequentialGuidAsBinary::generate_at(ahead)?.into_raw();
    query("INSERT INTO orders VALUES (?)")
        .bind(elsewhere.to_bytes_le().to_vec())
        .execute(&pool)
        .await?;

    let newest: DotNet = newest(&pool).await?;
    assert_eq!(newest.to_raw(), elsewhere);
    SequentialGuidAsBinary::process_wide().start_above(&newest.to_raw())?;
    let generated: Vec<DotNet> = (0..100).map(|_| DotNet::generate()).collect();
    insert(&pool, &generated).await?;
    let read: Vec<DotNet> = query_scalar("SELECT id FROM orders ORDER BY id")
        .fetch_all(&pool)
        .await?;
    assert_eq!(read, [&[newest], &generated[..]].concat());
    Ok(())
}

/// Read as if in network order, the keys are no keys of the scheme; where any 128 bits are, they
/// are other values, whose time the generator does not go on from.
async fn network_order(pool: Pool<MySql>) -> Outcome {
    let stored = fill::<<RtBinary as KeyType>::Scheme>(&pool, "rtcomb_unix_Binary").await?;
    let read = newest::<InNetworkOrder>(&pool).await;
    let error = read.unwrap_err().to_string();
    assert!(error.contains("version 4"), "{error}");
    let right: RtBinary = newest(&pool).await?;
    assert!(stored.iter().any(|key| key.guid() == right.to_raw()));

    Columns::execute(&pool, "DROP TABLE orders").await?;
    fill::<SequentialGuidAsBinary>(&pool, "abp_AsBinary").await?;
    let [right, wrong] = [
        newest::<DotNet>(&pool).await?.to_raw(),
        newest::<AnyInNetworkOrder>(&pool).await?.to_raw(),
    ];
    assert_eq!(wrong.into_bytes(), right.to_bytes_le());
    let clock = behind();
    let generator = generator::<SequentialGuidAsBinary>(&clock);
    let error = generator.start_above(&wrong).unwrap_err();
    assert!(error.is_clock(), "{error}");

    // Who goes on all the same has a table in disorder: a minute's bits come first.
    generator.start_above(&right)?;
    let mut generated: Vec<AnyInNetworkOrder> = Vec::new();
    for minute in 0..200 {
        clock.set_unix_millis(NEWEST + minute * 60_000);
        generated.push(generator.try_generate_key()?);
    }
    insert(&pool, &generated).await?;
    let rows = bytes(&pool).await?;
    let mut positions = Vec::new();
    for key in &generated {
        let stored = key.to_raw().into_bytes();
        positions.push(rows.iter().position(|row| *row == stored));
    }
    assert!(positions.iter().all(Option::is_some));
    assert!(!positions.is_sorted());
    let newest_of_old = rows.iter().position(|row| *row == right.to_bytes_le());
    assert!(positions.iter().any(|position| *position < newest_of_old));
    Ok(())
}

/// The order is the text's: in the bytes the first groups are reversed.
async fn as_string(pool: Pool<MySql>) -> Outcome {
    let stored = fill::<SequentialGuidAsString>(&pool, "abp_AsString").await?;
    let last = stored.iter().find(|key| key.unix_millis == NEWEST);
    let newest = newest::<AsString>(&pool).await?;
    assert_ne!(Some(newest.to_raw()), last.map(StoredGuid::guid));
    assert!(stored.iter().any(|key| key.guid() == newest.to_raw()));
    Ok(())
}
