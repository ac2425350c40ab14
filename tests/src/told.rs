//! Collects what a flush reports to `tracing` and `metrics`.

use std::{
    cell::RefCell,
    fmt::Debug,
    mem,
    sync::{Arc, Mutex, Once},
};

use metrics::{
    Counter, CounterFn, Gauge, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span,
};

thread_local! {
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Listens for the whole process, and has to be called before any test flushes. `tracing` remembers for each place in
/// the code whether anybody listens there, and asks only the thread that comes first. So a listener of one test would
/// hear nothing if another test came first.
pub fn listen() {
    start(Listener { entries: false });
}

/// Does the same as [`listen`], and also hears when a span is entered and left. An async span is entered and left at
/// each poll.
pub fn listen_to_entries() {
    start(Listener { entries: true });
}

fn start(listener: Listener) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(listener).expect("the only one");
    });
}

/// Returns what this thread's flushes have reported since the last call, one line each.
pub fn take_lines() -> Vec<String> {
    LINES.take()
}

struct Listener {
    entries: bool,
}

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
        let metadata = span.metadata();
        let what = format!("{} {}", metadata.level(), metadata.name());
        told(&what, |fields| span.record(fields));
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

    fn enter(&self, _: &span::Id) {
        if self.entries {
            told("entered", |_| ());
        }
    }

    fn exit(&self, _: &span::Id) {
        if self.entries {
            told("left", |_| ());
        }
    }
}

/// The metrics of flushes that were recorded since they were last taken, one line each.
#[derive(Clone, Default)]
pub struct Numbers(Arc<Mutex<Vec<String>>>);

impl Numbers {
    pub fn take(&self) -> Vec<String> {
        mem::take(&mut self.0.lock().expect("no panic"))
    }
}

struct Number(String, Numbers);

impl Number {
    fn of(key: &Key, numbers: &Numbers) -> Arc<Self> {
        let labels = key
            .labels()
            .map(|it| format!(" {}={}", it.key(), it.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Arc::new(Self(name, numbers.clone()))
    }

    fn note(&self, value: impl ToString) {
        // Generators record metrics, too, which do not belong here.
        if self.0.starts_with("ordid_flush") {
            // How long it took is not the same each time.
            let line = match self.0.ends_with("_seconds") {
                true => self.0.clone(),
                false => format!("{} {}", self.0, value.to_string()),
            };
            self.1.0.lock().expect("no panic").push(line);
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
