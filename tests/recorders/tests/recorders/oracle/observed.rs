//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::{
    cell::RefCell,
    fmt::Debug,
    sync::{
        Arc, Mutex, Once,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, SharedString, Unit};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};

use super::*;

thread_local! {
    /// What this thread's flushes told, a line each.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

fn told(line: String) {
    LINES.with_borrow_mut(|lines| lines.push(line));
}

/// Listens for the whole process, before any test flushes: `tracing` remembers of each place in
/// the code whether anybody listens there, and takes the word of the thread that comes first. A
/// listener of one test alone would hear nothing where another test came first.
pub(super) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Listener).expect("the only one"));
}

struct Listener;

#[derive(Default)]
struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
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
    fn enter(&self, _: &span::Id) {
        told("entered".to_owned());
    }
    fn exit(&self, _: &span::Id) {
        told("left".to_owned());
    }
}

/// The retries of flushes, and their rows as they were recorded last.
#[derive(Default)]
struct Numbers {
    retries: Arc<AtomicU64>,
    rows: Arc<Rows>,
}

#[derive(Default)]
struct Rows(Mutex<Vec<f64>>);

impl HistogramFn for Rows {
    fn record(&self, value: f64) {
        self.0.lock().expect("no panic").push(value);
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
        assert_eq!(key.name(), "ordid_flush_rows");
        Histogram::from_arc(Arc::clone(&self.rows))
    }
}

#[test]
fn a_flush_is_a_span_with_its_retries() {
    let recorder = Recorder::new("execute 60 1\n");
    let delay = Duration::from_millis(7);
    let retry = Retry::DEFAULT.with_delays(delay, delay).with_jitter(false);
    let numbers = Numbers::default();
    metrics::with_local_recorder(&numbers, || {
        let mut work = UnitOfWork::new().with_retry(retry);
        work.add(customer(None, 0));
        work.add(customer(None, 1));
        work.flush(&recorder.connection).expect("flushed");
    });
    assert_eq!(
        LINES.take(),
        [
            "ordid.flush tables=1 rows=2",
            "entered",
            "WARN message=the flush failed and is tried again cause=\"transient\" delay_millis=7",
            "recorded retries=1",
            "left"
        ]
    );
    assert_eq!(numbers.retries.load(Ordering::SeqCst), 1);
    assert_eq!(*numbers.rows.0.lock().expect("no panic"), [2.0]);
}
