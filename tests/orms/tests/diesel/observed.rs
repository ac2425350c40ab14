//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::{
    cell::RefCell,
    fmt::Debug,
    mem,
    sync::{Arc, Mutex},
    time::Duration,
};

use diesel::{connection::SimpleConnection as _, prelude::*};
use diesel_async::{AsyncConnection as _, sync_connection_wrapper::SyncConnectionWrapper};
use libtest_mimic::Trial;
use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use ordid::OrderedKey;
use ordid_diesel::{Flushed, Retry, UnitOfWork};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{Outcome, keys::Native, scratch::in_file};

thread_local! {
    /// What this thread's flushes told, a line each.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Listens for the whole process, before any test flushes: `tracing` remembers of each place in the code
/// whether anybody listens there, and takes the word of the thread that comes first.
pub fn listen() {
    tracing::subscriber::set_global_default(Listener).expect("the only one");
}

struct Listener;

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

fn told(what: &str, record: impl FnOnce(&mut Fields)) {
    let mut fields = Fields::default();
    record(&mut fields);
    LINES.with_borrow_mut(|lines| lines.push(format!("{what}{}", fields.0)));
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "ordid" && *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        told(span.metadata().name(), |fields| span.record(fields));
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        told("recorded", |fields| values.record(fields));
    }

    fn event(&self, event: &Event<'_>) {
        told(event.metadata().level().as_str(), |fields| {
            event.record(fields)
        });
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

/// What was counted, a line each.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<Vec<String>>>);

struct Number(String, Numbers);

impl Number {
    fn of(key: &Key, numbers: &Numbers) -> Arc<Self> {
        let labels = key.labels().map(|it| format!(" {}", it.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Arc::new(Self(name, numbers.clone()))
    }

    fn note(&self, value: impl ToString) {
        // Making the keys is counted, too.
        if self.0.starts_with("ordid_flush") {
            let line = format!("{} {}", self.0, value.to_string());
            self.1.0.lock().unwrap().push(line);
        }
    }
}

impl CounterFn for Number {
    fn increment(&self, value: u64) {
        self.note(value);
    }

    fn absolute(&self, value: u64) {
        self.note(value);
    }
}

impl HistogramFn for Number {
    fn record(&self, value: f64) {
        self.note(value);
    }
}

impl Recorder for Numbers {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Number::of(key, self))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Number::of(key, self))
    }
}

diesel::table! {
    cities (id) { id -> Binary, name -> Text, }
}

#[derive(OrderedKey)]
#[diesel(table_name = cities)]
#[ordid(diesel)]
struct City {
    id: Option<Native>,
    name: &'static str,
}

type Work = UnitOfWork<diesel::sqlite::Sqlite>;

/// A flush that is tried twice, as somebody holds the database: what it tells.
fn observed(url: &str, flush: impl FnOnce(&mut Work, &mut (dyn FnMut() + Send))) -> Outcome {
    let mut holder = SqliteConnection::establish(url)?;
    holder.batch_execute(
        "CREATE TABLE IF NOT EXISTS cities (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL); \
         BEGIN IMMEDIATE",
    )?;
    let delay = Duration::from_millis(7);
    let retry = Retry::DEFAULT.with_delays(delay, delay).with_jitter(false);
    let mut work = UnitOfWork::new().with_retry(retry);
    for name in ["Bergen", "Turku"] {
        work.add(City { id: None, name });
    }
    let numbers = Numbers::default();
    LINES.take();
    let mut calls = 0;
    let mut release = || {
        calls += 1;
        if calls == 2 {
            holder.batch_execute("ROLLBACK").unwrap();
        }
    };
    metrics::with_local_recorder(&numbers, || flush(&mut work, &mut release));
    assert_eq!(
        LINES.take(),
        [
            "ordid.flush tables=1 rows=2",
            "WARN message=the flush failed and is tried again cause=\"transient\" delay_millis=7",
            "recorded retries=1",
        ]
    );
    let numbers = mem::take(&mut *numbers.0.lock().unwrap());
    let expected = [
        "ordid_flush_retries_total transient 1",
        "ordid_flush_rows 2",
    ];
    assert_eq!(numbers, expected);
    Ok(())
}

fn is_expected(flushed: Result<Flushed, ordid_diesel::Error>) {
    let flushed = flushed.unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
}

fn sync(url: &str) -> Outcome {
    observed(url, |work, release| {
        is_expected(work.flush_with(|| {
            release();
            SqliteConnection::establish(url)
        }));
    })
}

fn asynchronous(url: &str) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    observed(url, |work, release| {
        is_expected(runtime.block_on(work.flush_with_async(|| {
            release();
            SyncConnectionWrapper::<SqliteConnection>::establish(url)
        })));
    })
}

pub fn trials(trials: &mut Vec<Trial>) {
    in_file(trials, "observed::a_flush_is_a_span_with_its_retries", sync);
    in_file(trials, "observed::an_async_flush_is_one_too", asynchronous);
}
