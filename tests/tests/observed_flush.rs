//! What a flush does is told to `tracing` and counted by `metrics`; keys are not among it.

use std::time::Duration;

use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_recorders::tds::{Answer, Recorder as TdsRecorder};
use ordid_sqlx::{ChunkLimits, EngineProfile, Flushed, Retry, flushes_table};
use ordid_tests::told;
use sqlx::{AssertSqlSafe, Pool, Sqlite, raw_sql, sqlite::SqliteConnectOptions};
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};

type Tcp = Client<Compat<TcpStream>>;

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    id: Uuid,
    name: String,
}

/// What was told of a flush.
struct Observed<T> {
    outcome: T,
    /// The recorded metrics.
    numbers: Vec<String>,
    told: Vec<String>,
}

fn observed<T>(flush: impl AsyncFnOnce() -> T) -> Observed<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    told::listen();
    told::take_lines();
    let numbers = told::Numbers::default();
    let outcome = metrics::with_local_recorder(&numbers, || runtime.block_on(flush()));
    Observed {
        outcome,
        numbers: numbers.take(),
        told: told::take_lines(),
    }
}

/// Three attempts, with 7 ms in between.
fn retry() -> Retry {
    let delay = Duration::from_millis(7);
    Retry::DEFAULT
        .with_attempts(3)
        .with_delays(delay, delay)
        .with_jitter(false)
}

/// What is told of a retry for this cause.
fn retried(cause: &str) -> String {
    format!("WARN message=the flush failed and is tried again cause=\"{cause}\" delay_millis=7")
}

/// Flushes three rows into SQLite, perhaps while another connection writes, so that each attempt finds
/// the database busy.
async fn sqlite(is_busy: bool) -> Result<Flushed, ordid_sqlx::Error> {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("test.sqlite"))
        .create_if_missing(true)
        .busy_timeout(Duration::ZERO);
    let pool: Pool<Sqlite> = Pool::connect_with(options).await.unwrap();
    let table = "CREATE TABLE cities (id BLOB PRIMARY KEY, name TEXT) WITHOUT ROWID";
    raw_sql(table).execute(&pool).await.unwrap();
    let mut other = pool.begin().await.unwrap();
    if is_busy {
        let writes = "INSERT INTO cities VALUES (x'00', 'other')";
        raw_sql(writes).execute(&mut *other).await.unwrap();
    }
    let mut work = ordid_sqlx::UnitOfWork::new().with_retry(retry());
    for name in ["Aarhus", "Bergen", "Cork"] {
        work.add(City {
            id: Uuid::generate(),
            name: name.to_owned(),
        });
    }
    work.flush(&pool).await
}

#[test]
fn a_flush_is_a_span_with_its_rows() {
    let observed = observed(async || sqlite(false).await);
    assert_eq!(observed.outcome.unwrap().rows(), 3);
    assert_eq!(
        observed.numbers,
        ["ordid_flush_rows 3", "ordid_flush_seconds"]
    );
    assert_eq!(
        observed.told,
        [
            "INFO ordid.flush tables=1 rows=3",
            "recorded retries=0 outcome=\"ok\""
        ]
    );
}

#[derive(OrderedKey)]
#[ordid(table = "events")]
struct Event {
    id: Uuid,
}

/// Keys of version 7 are told of once, on an engine that splits tables by their keys.
#[test]
fn keys_that_rise_are_told_of_where_they_make_a_hot_spot() {
    let mut engine = EngineProfile::SQLITE;
    engine.splits_by_key = true;
    let flush = async |engine| {
        let pool = Pool::connect("sqlite::memory:").await.unwrap();
        let table = "CREATE TABLE events (id BLOB PRIMARY KEY)";
        raw_sql(table).execute(&pool).await.unwrap();
        let mut work = ordid_sqlx::UnitOfWork::<Sqlite>::new().with_engine(engine);
        let id = Uuid::generate();
        work.add(Event { id });
        work.flush(&pool).await.unwrap()
    };
    let begins = "INFO ordid.flush tables=1 rows=1".to_owned();
    let ends = "recorded retries=0 outcome=\"ok\"".to_owned();
    let warning = "WARN message=keys that rise put all inserts on one range: take a spread key table=\"events\" \
                   engine=\"SQLite\" guide=\"https://github.com/ordid/ordid/blob/main/docs/src/engines/sqlite.md\"";
    // A table of the same name on another engine.
    let mut other = engine;
    other.name = "CockroachDB";
    let of_other = warning.replace("SQLite", other.name);
    for (engine, warnings) in [
        (EngineProfile::SQLITE, vec![]),
        (engine, vec![warning.to_owned()]),
        (engine, vec![]),
        (other, vec![of_other]),
    ] {
        let told = observed(async || flush(engine).await).told;
        let expected = [vec![begins.clone()], warnings, vec![ends.clone()]].concat();
        assert_eq!(told, expected);
    }
}

#[test]
fn retries_are_counted_by_their_cause() {
    let observed = observed(async || sqlite(true).await);
    assert_eq!(observed.outcome.unwrap_err().retries(), 2);
    // Nothing was written, so no rows are counted.
    let retry = "ordid_flush_retries_total cause=transient 1";
    let failed = "ordid_flush_failures_total wrote=nothing 1";
    assert_eq!(observed.numbers, [retry, retry, failed]);
    assert_eq!(
        observed.told,
        [
            "INFO ordid.flush tables=1 rows=3".to_owned(),
            retried("transient"),
            retried("transient"),
            "recorded retries=2 outcome=\"nothing\"".to_owned()
        ]
    );
}

/// Of a flush in chunks those before stay.
#[test]
fn a_chunk_that_fails_behind_others_is_counted_as_such() {
    let observed = observed(async || {
        let pool: Pool<Sqlite> = Pool::connect("sqlite::memory:").await.unwrap();
        let table = format!(
            "CREATE TABLE cities (id BLOB PRIMARY KEY, name TEXT CHECK (name <> 'Cork')); {}",
            flushes_table::<Sqlite>()
        );
        let script = raw_sql(AssertSqlSafe(table));
        script.execute(&pool).await.unwrap();
        let mut work = ordid_sqlx::UnitOfWork::new().in_chunks(ChunkLimits::rows(2));
        for name in ["Aarhus", "Bergen", "Cork"] {
            work.add(City {
                id: Uuid::generate(),
                name: name.to_owned(),
            });
        }
        work.flush(&pool).await
    });
    assert_eq!(observed.outcome.unwrap_err().committed_chunks(), 1);
    let failed = "ordid_flush_failures_total wrote=some_chunks 1";
    assert_eq!(observed.numbers.last().unwrap(), failed);
}

#[derive(KeyType)]
#[ordid(scheme = uuid_v8_sql_server, tiberius)]
struct TownId(Uuid);

#[derive(OrderedKey)]
#[ordid(table = "towns")]
struct Town {
    #[ordid(key)]
    id: TownId,
}

async fn connect(recorder: &TdsRecorder) -> tiberius::Result<Tcp> {
    let mut config = Config::new();
    config.authentication(AuthMethod::sql_server("ada", "secret"));
    config.encryption(EncryptionLevel::NotSupported);
    let stream = TcpStream::connect(recorder.address()).await?;
    Client::connect(config, stream.compat_write()).await
}

/// Inserts two rows and deletes one, by SQL Server's protocol, to a recorder of it that is first busy
/// and then hangs up.
async fn tds() -> Result<Flushed, ordid_tiberius::Error> {
    let recorder = TdsRecorder::start().unwrap();
    recorder.once("INSERT", Answer::failure(1222, "Lock request time out"));
    recorder.once("DELETE", Answer::HangUp);
    recorder.always("DELETE", Answer::Done(1));
    let mut work = ordid_tiberius::UnitOfWork::new().with_retry(retry());
    for _ in 0..2 {
        work.add(Town {
            id: TownId::generate(),
        });
    }
    work.delete(&Town {
        id: TownId::generate(),
    });
    let mut client = connect(&recorder).await.unwrap();
    work.flush_with(&mut client, || connect(&recorder)).await
}

#[test]
fn a_flush_through_tiberius_is_told_in_the_same_words() {
    let observed = observed(async || tds().await);
    let flushed = observed.outcome.unwrap();
    assert_eq!((flushed.rows(), flushed.deleted()), (2, 1));
    assert_eq!(
        observed.numbers,
        [
            "ordid_flush_retries_total cause=transient 1",
            "ordid_flush_retries_total cause=lost 1",
            "ordid_flush_rows 3",
            "ordid_flush_seconds"
        ]
    );
    assert_eq!(
        observed.told,
        [
            "INFO ordid.flush tables=1 rows=3".to_owned(),
            retried("transient"),
            retried("lost"),
            "recorded retries=2 outcome=\"ok\"".to_owned()
        ]
    );
}

#[test]
fn a_commit_that_stays_unknown_is_counted_and_told() {
    let observed = observed(async || {
        let recorder = TdsRecorder::start().unwrap();
        recorder.once("COMMIT", Answer::HangUp);
        let mut client = connect(&recorder).await.unwrap();
        let mut work = ordid_tiberius::UnitOfWork::new().with_retry(Retry::NONE);
        work.add(Town {
            id: TownId::generate(),
        });
        work.flush(&mut client).await
    });
    assert!(observed.outcome.unwrap_err().is_commit_unknown());
    let failed = "ordid_flush_failures_total wrote=unknown 1";
    assert_eq!(observed.numbers, [failed]);
    let told = "WARN message=the answer to COMMIT was lost, and the database could not be asked";
    let told = [
        "INFO ordid.flush tables=1 rows=1",
        told,
        "recorded retries=0 outcome=\"unknown\"",
    ];
    assert_eq!(observed.told.len(), 3, "{:?}", observed.told);
    assert!(
        told.iter()
            .all(|line| observed.told.iter().any(|it| it == line)),
        "{:?}",
        observed.told
    );
}
