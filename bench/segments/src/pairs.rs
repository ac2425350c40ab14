//! A source and the bare client of each store.

use std::num::NonZeroU32;

use ordid_core::coordination::AsyncSegmentSource;
use ordid_harness::Access;
use ordid_redis::RedisCounter;
use ordid_sqlx::{PgSequence, SqlCounter, TicketForm, Tickets64};
use ordid_zookeeper::{Session, ZooKeeperCounter};
use redis::AsyncCommands as _;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, MySql, PgConnection, Postgres,
    SqlSafeStr as _, SqlStr, Sqlite, mysql::MySqlConnectOptions, postgres::PgConnectOptions, query,
    query_scalar, raw_sql, sqlite::SqliteConnectOptions,
};
use zookeeper_client::Client as ZooKeeper;

use crate::{Result, Rounds};

/// The numbers of a segment.
pub(crate) const COUNT: NonZeroU32 = NonZeroU32::new(1_000).unwrap();

/// What a store counts by: a sequence, a row's name, a key.
const NAME: &str = "ordid_bench_segments";
/// The table of rows: a server that is not ours may have one of the usual name.
const ROWS: &str = "ordid_bench_counters";
/// The table of tickets.
const TICKETS: &str = "ordid_bench_tickets";

/// Measures each store that is asked for and that runs here.
pub(crate) async fn all(rounds: &mut Rounds<'_>) -> Result<()> {
    if rounds.want("sqlite") {
        sqlite(rounds).await?;
    }
    for name in ["postgres", "mariadb", "redis", "zookeeper"] {
        if !rounds.want(name) {
            continue;
        }
        let access = ordid_harness::access(name)?;
        if let Access::Skip(reason) = &access {
            println!("{name}: skipped: {reason}");
            continue;
        }
        let url = access.url().ok_or("a server without an address")?;
        match name {
            "postgres" => postgres(rounds, &url).await,
            "mariadb" => mariadb(rounds, &url).await,
            "redis" => redis(rounds, &url).await,
            _ => zookeeper(rounds, &url).await,
        }?;
    }
    Ok(())
}

/// Returns the last number that a source reserves.
async fn reserve(source: &impl AsyncSegmentSource) -> Result<i64> {
    let segment = source.reserve(COUNT).await?;
    let first = segment.first().ok_or("a segment without numbers")?;
    Ok(first + i64::from(segment.len() - 1) * i64::from(segment.stride()))
}

/// A statement of names that are constants.
fn safe(sql: String) -> SqlStr {
    AssertSqlSafe(sql).into_sql_str()
}

async fn sqlite(rounds: &mut Rounds<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("counters.sqlite"))
        .create_if_missing(true);
    let counter = SqlCounter::<Sqlite>::new(options.clone(), NAME)?;
    counter.create(1).await?;
    let mut client = options.connect().await?;
    let bare = "UPDATE ordid_counters SET value = value + ? WHERE name = ? RETURNING value";
    rounds
        .pair(
            "sqlite, a row",
            async || reserve(&counter).await,
            async || {
                let last = query_scalar(bare).bind(i64::from(COUNT.get())).bind(NAME);
                Ok(last.fetch_one(&mut client).await?)
            },
        )
        .await?;
    Ok(client.close().await?)
}

async fn postgres(rounds: &mut Rounds<'_>, url: &str) -> Result<()> {
    let options: PgConnectOptions = url.parse()?;
    let mut client = options.connect().await?;
    remove_from_postgres(&mut client).await?;

    let sequence = PgSequence::new(options.clone(), NAME, COUNT)?;
    sequence.create().await?;
    let bare = safe(format!("SELECT nextval('{NAME}')"));
    rounds
        .pair(
            "postgres, a sequence",
            async || reserve(&sequence).await,
            async || {
                let first: i64 = query_scalar(bare.clone()).fetch_one(&mut client).await?;
                Ok(first + i64::from(COUNT.get()) - 1)
            },
        )
        .await?;

    let counter = SqlCounter::<Postgres>::new(options, NAME)?.with_table(ROWS)?;
    counter.create(1).await?;
    let bare = safe(format!(
        "UPDATE {ROWS} SET value = value + $1 WHERE name = $2 RETURNING value"
    ));
    rounds
        .pair(
            "postgres, a row",
            async || reserve(&counter).await,
            async || {
                let last = query_scalar(bare.clone())
                    .bind(i64::from(COUNT.get()))
                    .bind(NAME);
                Ok(last.fetch_one(&mut client).await?)
            },
        )
        .await?;
    remove_from_postgres(&mut client).await?;
    Ok(client.close().await?)
}

async fn remove_from_postgres(client: &mut PgConnection) -> Result<()> {
    for sql in [
        format!("DROP SEQUENCE IF EXISTS {NAME}"),
        format!("DROP TABLE IF EXISTS {ROWS}"),
    ] {
        raw_sql(safe(sql)).execute(&mut *client).await?;
    }
    Ok(())
}

async fn mariadb(rounds: &mut Rounds<'_>, url: &str) -> Result<()> {
    let options: MySqlConnectOptions = url.parse()?;
    let mut client = options.connect().await?;
    let remove = format!("DROP TABLE IF EXISTS {ROWS}, {TICKETS}");
    let remove = || raw_sql(safe(remove.clone()));
    remove().execute(&mut client).await?;

    let counter = SqlCounter::<MySql>::new(options.clone(), NAME)?.with_table(ROWS)?;
    counter.create(1).await?;
    let bare = safe(format!(
        "UPDATE {ROWS} SET value = LAST_INSERT_ID(value + ?) WHERE name = ?"
    ));
    rounds
        .pair(
            "mariadb, a row",
            async || reserve(&counter).await,
            async || {
                let sent = query(bare.clone()).bind(COUNT.get()).bind(NAME);
                let done = sent.execute(&mut client).await?;
                Ok(i64::try_from(done.last_insert_id())?)
            },
        )
        .await?;

    let tickets = Tickets64::new([options], TicketForm::LastInsertId, 1)?.with_table(TICKETS)?;
    tickets.create().await?;
    let bare = safe(format!(
        "UPDATE {TICKETS} SET id = LAST_INSERT_ID(id + ?) WHERE stub = 'a'"
    ));
    rounds
        .pair(
            "mariadb, tickets",
            async || reserve(&tickets).await,
            async || {
                let sent = query(bare.clone()).bind(COUNT.get());
                let done = sent.execute(&mut client).await?;
                Ok(i64::try_from(done.last_insert_id())?)
            },
        )
        .await?;
    remove().execute(&mut client).await?;
    Ok(client.close().await?)
}

async fn redis(rounds: &mut Rounds<'_>, url: &str) -> Result<()> {
    let server = redis::Client::open(url)?;
    let mut client = server.get_multiplexed_async_connection().await?;
    let connection = server.get_multiplexed_async_connection().await?;
    let counter = RedisCounter::new(connection, NAME);
    counter.create(1).await?;
    let mut other = client.clone();
    rounds
        .pair(
            "redis, INCRBY",
            async || reserve(&counter).await,
            async || {
                let next: i64 = other.incr(NAME, COUNT.get()).await?;
                Ok(next - 1)
            },
        )
        .await?;
    let _: i64 = client.del(NAME).await?;
    Ok(())
}

async fn zookeeper(rounds: &mut Rounds<'_>, url: &str) -> Result<()> {
    let path = format!("/{NAME}");
    let counter = ZooKeeperCounter::new(Session::new(ZooKeeper::connector(), url), &*path)?;
    counter.create(1).await?;
    let client = ZooKeeper::connect(url).await?;
    rounds
        .pair(
            "zookeeper, a versioned node",
            async || reserve(&counter).await,
            async || {
                let (data, stat) = client.get_data(&path).await?;
                let first: i64 = std::str::from_utf8(&data)?.parse()?;
                let next = first + i64::from(COUNT.get());
                let data = next.to_string();
                client
                    .set_data(&path, data.as_bytes(), Some(stat.version))
                    .await?;
                Ok(next - 1)
            },
        )
        .await?;
    Ok(client.delete(&path, None).await?)
}
