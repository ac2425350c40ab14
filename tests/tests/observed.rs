//! What a policy does is told to `tracing` and counted by `metrics`.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use ordid_core::{
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, Overflow, Policy, Rollback},
    scheme::uuid_v7::UuidV7Generator,
};
use tracing::{Event, Level, Subscriber, span};

const START: u64 = 1_645_557_742_000;

/// Keeps counters by name.
#[derive(Default)]
struct Counters(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Recorder for Counters {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let mut counters = self.0.lock().unwrap();
        Counter::from_arc(counters.entry(key.name().to_owned()).or_default().clone())
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// Keeps level and text of events of the target `ordid`.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<(Level, String)>>>);

impl Subscriber for Events {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "ordid"
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(
            &mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
                text += &format!("{field}={value:?} ");
            },
        );
        let level = *event.metadata().level();
        self.0
            .lock()
            .unwrap()
            .push((level, text.trim_end().to_owned()));
    }
}

type Scripted = UuidV7Generator<Arc<ManualClock>, SeededEntropy>;

/// Runs a script on a generator and returns what was counted and told.
fn observed(
    policy: Policy,
    script: impl FnOnce(&Scripted, &ManualClock),
) -> (BTreeMap<String, u64>, Vec<(Level, String)>) {
    let counters = Counters::default();
    let events = Events::default();
    metrics::with_local_recorder(&counters, || {
        tracing::subscriber::with_default(events.clone(), || {
            let clock = Arc::new(ManualClock::at_unix_millis(START));
            let keys = Scripted::new(clock.clone(), SeededEntropy::new(1), policy);
            script(&keys, &clock);
        });
    });
    let counted = counters.0.into_inner().unwrap().into_iter();
    let counted = counted.map(|(name, counter)| (name, counter.load(Ordering::SeqCst)));
    let told = events.0.lock().unwrap().clone();
    (counted.collect(), told)
}

fn counts<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

#[test]
fn a_followed_clock_is_a_warning_that_names_both_times() {
    let (counted, told) = observed(Policy::DEFAULT, |keys, clock| {
        keys.try_generate().unwrap();
        clock.set_unix_millis(START - 60_000);
        keys.try_generate().unwrap();
        keys.try_generate().unwrap();
    });
    assert_eq!(
        counted,
        counts([
            ("ordid_clock_followed_total", 1),
            ("ordid_renewals_total", 2)
        ])
    );
    let warnings: Vec<_> = told
        .iter()
        .filter(|(level, _)| *level == Level::WARN)
        .collect();
    let [(_, text)] = warnings[..] else {
        panic!("{told:?}")
    };
    assert_eq!(
        text,
        "message=the clock stepped back beyond the bound and is followed: one break in the order of \
         keys newest_millis=1645557742000 now_millis=1645557682000"
    );
}

#[test]
fn waits_and_refusals_are_counted_each_under_its_name() {
    let policy = Policy {
        rollback: Rollback::WaitThenError {
            max: Duration::from_millis(20),
        },
        overflow: Overflow::Wait,
    };
    let (counted, told) = observed(policy, |keys, clock| {
        keys.try_fill_with(1 << 20, |_| ()).unwrap();
        // The counter is used up: one pause.
        keys.try_generate().unwrap();
        // Three milliseconds back: three pauses.
        clock.set_unix_millis(START - 2);
        keys.try_generate().unwrap();
        clock.set_unix_millis(START - 60_000);
        keys.try_generate().unwrap_err();
    });
    assert_eq!(
        counted,
        counts([
            ("ordid_clock_refused_total", 1),
            ("ordid_clock_waits_total", 3),
            ("ordid_counter_waits_total", 1),
            ("ordid_renewals_total", 1),
        ])
    );
    let warnings = told.iter().filter(|(level, _)| *level == Level::WARN);
    assert_eq!(warnings.count(), 1);
}

#[test]
fn ordinary_keys_are_not_observed() {
    let (counted, told) = observed(Policy::DEFAULT, |keys, clock| {
        keys.try_generate().unwrap();
        for millis in 0..1_000 {
            clock.set_unix_millis(START + millis);
            keys.try_generate().unwrap();
        }
        // A millisecond: perhaps another processor's clock.
        clock.set_unix_millis(START + 998);
        keys.try_generate().unwrap();
    });
    assert_eq!(
        counted,
        counts([("ordid_renewals_total", 1)]),
        "the first key's secret"
    );
    assert_eq!(told.len(), 1);
}

/// The texts of what was told at this level.
fn texts(told: &[(Level, String)], level: Level) -> Vec<&str> {
    let told = told.iter().filter(|(of, _)| *of == level);
    told.map(|(_, text)| text.as_str()).collect()
}

#[test]
fn a_clock_that_is_held_is_told_once() {
    let (counted, told) = observed(Policy::DEFAULT, |keys, clock| {
        keys.try_generate().unwrap();
        for behind in [5, 4, 7] {
            clock.set_unix_millis(START - behind);
            for _ in 0..1_000 {
                keys.try_generate().unwrap();
            }
        }
        // It catches up, and steps back again: another time.
        clock.set_unix_millis(START + 10);
        keys.try_generate().unwrap();
        clock.set_unix_millis(START + 8);
        keys.try_generate().unwrap();
    });
    assert_eq!(
        counted,
        counts([("ordid_clock_held_total", 2), ("ordid_renewals_total", 1)])
    );
    let text = "message=the clock is behind the newest key: keys keep its time until the clock is \
                there ahead_millis=";
    assert_eq!(
        texts(&told, Level::INFO),
        [format!("{text}5"), format!("{text}2")]
    );
}

#[test]
fn a_counter_that_advances_is_told_once_a_millisecond() {
    let (counted, told) = observed(Policy::DEFAULT, |keys, clock| {
        keys.try_fill_with((2 << 20) + 100, |_| ()).unwrap();
        keys.try_generate().unwrap();
        // Borrowed, not stepped back.
        clock.set_unix_millis(START + 1);
        keys.try_generate().unwrap();
    });
    assert_eq!(
        counted,
        counts([
            ("ordid_counter_advanced_total", 2),
            ("ordid_renewals_total", 1)
        ])
    );
    let text = "message=the counter went on into a millisecond that the clock has not reached \
                ahead_millis=";
    assert_eq!(
        texts(&told, Level::DEBUG)[1..],
        [format!("{text}1"), format!("{text}2")]
    );
}

#[test]
fn a_counter_that_is_used_up_is_a_warning_where_the_policy_is_an_error() {
    let policy = Policy {
        overflow: Overflow::Error,
        ..Policy::DEFAULT
    };
    let (counted, told) = observed(policy, |keys, _| {
        keys.try_fill_with(1 << 20, |_| ()).unwrap();
        assert!(keys.try_generate().unwrap_err().is_overflow());
    });
    assert_eq!(
        counted,
        counts([
            ("ordid_counter_refused_total", 1),
            ("ordid_renewals_total", 1)
        ])
    );
    assert_eq!(
        texts(&told, Level::WARN),
        [
            "message=the counter is used up, and the policy does not wait any longer: no key is \
             made next_millis=1645557742001"
        ]
    );
}
