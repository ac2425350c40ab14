//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::{
    cell::RefCell,
    fmt::Debug,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use libtest_mimic::Trial;
use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use ordid::KeyType as _;
use ordid_seaorm::{Retry, UnitOfWork};
use ordid_tests::trials::Outcome;
use sea_orm::{
    DatabaseConnection, SqliteTransactionMode, TransactionOptions, TransactionTrait as _,
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{
    create,
    models::{AuthorId, author},
    on_sqlite,
};

thread_local! {
    /// What this thread's flushes told, a line each.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Listens for the whole process, before any test flushes: `tracing` remembers of each place in the code
/// whether anybody listens there, and takes the word of the thread that comes first.
pub fn listen() -> Result<(), tracing::dispatcher::SetGlobalDefaultError> {
    tracing::subscriber::set_global_default(Listener)
}

pub fn trials(trials: &mut Vec<Trial>) {
    on_sqlite(
        trials,
        "observed::a_flush_is_a_span_with_its_retries",
        flush,
    );
}

struct Listener;

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

fn told(line: String) {
    LINES.with_borrow_mut(|lines| lines.push(line));
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "ordid" && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        let mut fields = Fields::default();
        span.record(&mut fields);
        told(format!("{}{}", span.metadata().name(), fields.0));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        let mut fields = Fields::default();
        values.record(&mut fields);
        told(format!("recorded{}", fields.0));
    }

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        told(format!("{}{}", event.metadata().level(), fields.0));
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// The retries of flushes for a busy database, and the rows of those that were committed.
#[derive(Default)]
struct Numbers {
    retries: Arc<AtomicU64>,
    rows: Arc<Rows>,
}

#[derive(Default)]
struct Rows(Mutex<Vec<f64>>);

impl HistogramFn for Rows {
    fn record(&self, value: f64) {
        if let Ok(mut rows) = self.0.lock() {
            rows.push(value);
        }
    }
}

impl metrics::Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let causes: Vec<_> = key.labels().map(|it| (it.key(), it.value())).collect();
        if key.name() != "ordid_flush_retries_total" || causes != [("cause", "transient")] {
            return Counter::noop();
        }
        Counter::from_arc(Arc::clone(&self.retries))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        match key.name() {
            "ordid_flush_rows" => Histogram::from_arc(Arc::clone(&self.rows)),
            _ => Histogram::noop(),
        }
    }
}

async fn flush(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    let pool = db.get_sqlite_connection_pool();
    let options = pool.connect_options().as_ref().clone();
    let options = options.busy_timeout(Duration::ZERO);
    let impatient = sqlx::SqlitePool::connect_with(options).await?;
    let impatient = sea_orm::SqlxSqliteConnector::from_sqlx_sqlite_pool(impatient);

    let delay = Duration::from_millis(7);
    let retry = Retry::DEFAULT
        .with_attempts(3)
        .with_delays(delay, delay)
        .with_jitter(false);
    let numbers = Numbers::default();
    let _listens = metrics::set_default_local_recorder(&numbers);
    let mut work = UnitOfWork::new().with_retry(retry);
    for position in 0..3 {
        work.add(author::Model {
            id: AuthorId::generate(),
            name: position.to_string(),
            position,
            mentor: None,
        });
    }
    // Somebody writes, and goes on writing.
    let writes = TransactionOptions {
        sqlite_transaction_mode: Some(SqliteTransactionMode::Immediate),
        ..TransactionOptions::default()
    };
    let other = db.begin_with_options(writes).await?;
    LINES.take();
    let error = work.flush(&impatient).await.unwrap_err();
    assert_eq!(error.retries(), 2, "{error}");
    let retried = "WARN message=the flush failed and is tried again cause=\"transient\" \
                   delay_millis=7";
    assert_eq!(
        LINES.take(),
        [
            "ordid.flush tables=1 rows=3",
            retried,
            retried,
            "recorded retries=2"
        ]
    );
    assert_eq!(numbers.retries.load(Ordering::SeqCst), 2);
    other.rollback().await?;
    let flushed = work.flush(&impatient).await?;
    assert_eq!(flushed.rows(), 3);
    assert_eq!(
        LINES.take(),
        ["ordid.flush tables=1 rows=3", "recorded retries=0"]
    );
    assert_eq!(numbers.retries.load(Ordering::SeqCst), 2);
    // Of what was committed alone.
    assert_eq!(*numbers.rows.0.lock().map_err(|_| "a panic")?, [3.0]);
    impatient.close().await?;
    Ok(())
}
