//! Followers of tables.

use std::time::{Duration, SystemTime};

use ordid::{
    KeyType, OrderedKey,
    clock::Timestamp,
    storage::dialect::{Babelfish, SqlServer},
    uuid::Uuid,
};
use ordid_tiberius::{Follower, Position, UnitOfWork};
use tiberius::{Row, error::Error};

use super::{CustomerId, Outcome, Scratch, batch, rows};

const MINUTE: Duration = Duration::from_secs(60);
const TABLE: &str = "CREATE TABLE events (id uniqueidentifier NOT NULL PRIMARY KEY CLUSTERED, number bigint NOT NULL)";

/// An event of SQL Server.
#[derive(OrderedKey, Debug)]
#[ordid(table = "events")]
struct Event {
    id: CustomerId,
    number: i64,
}

/// An event of Babelfish, where a bare UUID is a key.
#[derive(OrderedKey, Debug)]
#[ordid(table = "events")]
struct PlainEvent {
    id: Uuid,
    number: i64,
}

fn value<T: for<'a> tiberius::FromSql<'a>>(row: &Row, column: &str) -> tiberius::Result<T> {
    let null = || Error::Conversion("NULL".into());
    row.try_get(column)?.ok_or_else(null)
}

impl TryFrom<&Row> for Event {
    type Error = Error;

    fn try_from(row: &Row) -> tiberius::Result<Self> {
        let (id, number) = (value(row, "id")?, value(row, "number")?);
        Ok(Self { id, number })
    }
}

impl TryFrom<&Row> for PlainEvent {
    type Error = Error;

    fn try_from(row: &Row) -> tiberius::Result<Self> {
        let (id, number) = (value(row, "id")?, value(row, "number")?);
        Ok(Self { id, number })
    }
}

fn minutes_ago(minutes: u32) -> Result<Timestamp, ordid::Error> {
    Timestamp::try_from(SystemTime::now() - MINUTE * minutes)
}

fn event(minutes: u32, number: i64) -> Result<Event, ordid::Error> {
    let id = CustomerId::generate_at(minutes_ago(minutes)?)?;
    Ok(Event { id, number })
}

fn plain(minutes: u32, number: i64) -> Result<PlainEvent, ordid::Error> {
    let id = Uuid::generate_at(minutes_ago(minutes)?)?;
    Ok(PlainEvent { id, number })
}

/// A macro, as the source of a call is a concrete type.
macro_rules! delivered_once {
    ($client:expr, $work:expr, $event:ident: $type:ty, $flavour:ty) => {{
        let mut work = $work;
        for (minutes, number) in [(1, 4), (4, 1), (2, 3), (5, 0), (3, 2)] {
            work.add($event(minutes, number)?);
        }
        work.flush($client).await?;
        let numbers = |rows: &[$type]| rows.iter().map(|it| it.number).collect::<Vec<_>>();
        let old = Follower::<$type, $flavour>::settled_after(MINUTE * 5 / 2);
        let mut position = Position::START;
        for expected in [&[0, 1][..], &[2], &[]] {
            let batch = old.next(&mut *$client, &position, 2).await?;
            assert_eq!(numbers(&batch.rows), expected);
            assert_eq!(batch.is_complete, expected.len() < 2);
            position = batch.position.to_string().parse()?;
        }
        let now = old.now(&mut *$client).await?;
        let all = Follower::<$type, $flavour>::settled_after(MINUTE / 2);
        for begin in [position, now] {
            let batch = all.next(&mut *$client, &begin, 9).await?;
            assert_eq!(numbers(&batch.rows), [3, 4]);
        }
    }};
}

/// Rows that are older than the bound are delivered in the order of their keys, each once.
pub(crate) async fn settled(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    batch(&mut client, TABLE).await?;
    let error = if database.is_babelfish() {
        delivered_once!(&mut client, UnitOfWork::for_babelfish(), plain: PlainEvent, Babelfish);
        let other = Follower::<Event>::settled_after(MINUTE);
        other.next(&mut client, &Position::START, 1).await.err()
    } else {
        delivered_once!(&mut client, UnitOfWork::new(), event: Event, SqlServer);
        let other = Follower::<PlainEvent, Babelfish>::settled_after(MINUTE);
        other.next(&mut client, &Position::START, 1).await.err()
    };
    let error = error.ok_or("a follower of the other flavour")?.to_string();
    assert!(error.contains("and the server is `"), "{error}");
    Ok(())
}

/// Whatever the session and the database are set to, a row that is not committed is neither read nor passed over.
pub(crate) async fn waits(scratch: Scratch) -> Outcome {
    let Scratch {
        mut client,
        database,
    } = scratch;
    batch(&mut client, TABLE).await?;
    batch(&mut client, "CREATE TABLE others (number int NOT NULL)").await?;
    batch(
        &mut client,
        "ALTER DATABASE CURRENT SET ALLOW_SNAPSHOT_ISOLATION ON",
    )
    .await?;
    let follower = Follower::<Event>::settled_after(MINUTE / 2);
    for versions in ["OFF", "ON"] {
        let sql = format!(
            "ALTER DATABASE CURRENT SET READ_COMMITTED_SNAPSHOT {versions} WITH ROLLBACK IMMEDIATE"
        );
        batch(&mut client, &sql).await?;
        let mut writer = database.connect().await?;
        let mut reader = database.connect().await?;
        for level in [
            "READ UNCOMMITTED",
            "READ COMMITTED",
            "REPEATABLE READ",
            "SNAPSHOT",
            "SERIALIZABLE",
        ] {
            for end in ["COMMIT", "ROLLBACK"] {
                let case = format!("{level}, {versions}, {end}");
                batch(&mut client, "DELETE FROM events").await?;
                batch(&mut writer, "BEGIN TRANSACTION").await?;
                let mut work = UnitOfWork::new();
                work.add(event(2, 0)?);
                work.flush_in(&mut writer).await?;
                let mut work = UnitOfWork::new();
                work.add(event(1, 1)?);
                work.flush(&mut client).await?;

                let begin = format!(
                    "SET LOCK_TIMEOUT 100; SET TRANSACTION ISOLATION LEVEL {level}; BEGIN TRANSACTION"
                );
                batch(&mut reader, &begin).await?;
                // A snapshot is of the first read.
                rows(&mut reader, "SELECT number FROM others").await?;
                let error = follower.next(&mut reader, &Position::START, 9).await;
                let error = error.err().ok_or_else(|| format!("{case}: no wait"))?;
                assert!(error.is_transient(), "{case}: {error}");
                batch(&mut writer, end).await?;
                let batch_of = follower.next(&mut reader, &Position::START, 9).await?;
                let numbers = batch_of.rows.iter().map(|it| it.number);
                let expected: &[i64] = if end == "COMMIT" { &[0, 1] } else { &[1] };
                assert_eq!(numbers.collect::<Vec<_>>(), expected, "{case}");
                batch(&mut reader, "COMMIT").await?;
            }
        }
    }
    Ok(())
}
