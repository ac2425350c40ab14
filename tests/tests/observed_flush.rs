//! What a flush does is told to `tracing` and counted by `metrics`; keys are not among it.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{
    Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_recorders::tds::{Answer, Recorder as TdsRecorder};
use ordid_sqlx::{Flushed, Retry};
use sqlx::{Pool, Sqlite, raw_sql, sqlite::SqliteConnectOptions};
use tiberius::{AuthMethod, Client, Config, EncryptionLevel};
use tokio::net::TcpStream;
use tokio_util::compat::{Compat, TokioAsyncWriteCompatExt as _};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};

type Tcp = Client<Compat<TcpStream>>;

#[derive(OrderedKey)]
#[ordid(table = "cities")]
struct City {
    id: Uuid,
    name: String,
}

/// Keeps counters and histograms by name and labels.
#[derive(Default)]
struct Numbers {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    histograms: Mutex<BTreeMap<String, Arc<Values>>>,
}

#[derive(Default)]
struct Values(Mutex<Vec<f64>>);

impl HistogramFn for Values {
    fn record(&self, value: f64) {
        self.0.lock().unwrap().push(value);
    }
}

fn name(key: &Key) -> String {
    let labels = key
        .labels()
        .map(|it| format!(" {}={}", it.key(), it.value()));
    key.name().to_owned() + &labels.collect::<String>()
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.counters.lock().unwrap();
        Counter::from_arc(counters.entry(name(key)).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        let mut histograms = self.histograms.lock().unwrap();
        Histogram::from_arc(histograms.entry(name(key)).or_default().clone())
    }
}

/// Keeps spans and events of the target `ordid`, a line each; what is recorded later, too.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "ordid"
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        let metadata = span.metadata();
        let line = format!("{} {}{}", metadata.level(), metadata.name(), fields.0);
        self.0.lock().unwrap().push(line);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.0.lock().unwrap().push(format!("recorded{}", fields.0));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = format!("{}{}", event.metadata().level(), fields.0);
        self.0.lock().unwrap().push(line);
    }

    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// What was told of a flush.
struct Observed<T> {
    outcome: T,
    /// The counters of flushes.
    counters: BTreeMap<String, u64>,
    rows: Vec<f64>,
    /// What was told, without `DEBUG`.
    told: Vec<String>,
}

fn observed<T>(flush: impl AsyncFnOnce() -> T) -> Observed<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let numbers = Numbers::default();
    let lines = Lines::default();
    let outcome = metrics::with_local_recorder(&numbers, || {
        tracing::subscriber::with_default(lines.clone(), || runtime.block_on(flush()))
    });
    let counters = numbers.counters.into_inner().unwrap().into_iter();
    // Making the keys is counted, too.
    let counters = counters.filter(|(name, _)| name.starts_with("ordid_flush"));
    let counters = counters.map(|(name, counter)| (name, counter.load(Ordering::SeqCst)));
    let histograms = numbers.histograms.into_inner().unwrap();
    let rows = histograms.get("ordid_flush_rows");
    let rows = rows.map(|rows| rows.0.lock().unwrap().clone());
    let mut told = lines.0.lock().unwrap().clone();
    told.retain(|line| !line.starts_with("DEBUG"));
    Observed {
        outcome,
        counters: counters.collect(),
        rows: rows.unwrap_or_default(),
        told,
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
    assert_eq!(observed.counters, BTreeMap::new());
    assert_eq!(observed.rows, [3.0]);
    assert_eq!(
        observed.told,
        ["INFO ordid.flush tables=1 rows=3", "recorded retries=0"]
    );
}

#[test]
fn retries_are_counted_by_their_cause() {
    let observed = observed(async || sqlite(true).await);
    assert_eq!(observed.outcome.unwrap_err().retries(), 2);
    let expected = ("ordid_flush_retries_total cause=transient".to_owned(), 2);
    assert_eq!(observed.counters, BTreeMap::from([expected]));
    assert_eq!(observed.rows, [0.0; 0], "nothing was written");
    assert_eq!(
        observed.told,
        [
            "INFO ordid.flush tables=1 rows=3".to_owned(),
            retried("transient"),
            retried("transient"),
            "recorded retries=2".to_owned()
        ]
    );
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
    let counter = |cause| (format!("ordid_flush_retries_total cause={cause}"), 1);
    let expected = [counter("lost"), counter("transient")];
    assert_eq!(observed.counters, BTreeMap::from(expected));
    assert_eq!(observed.rows, [3.0]);
    assert_eq!(
        observed.told,
        [
            "INFO ordid.flush tables=1 rows=3".to_owned(),
            retried("transient"),
            retried("lost"),
            "recorded retries=2".to_owned()
        ]
    );
}
