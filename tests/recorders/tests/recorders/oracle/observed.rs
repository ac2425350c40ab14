//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::time::Duration;

use ordid_tests::told::{Numbers, take_lines};

use super::*;

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
        take_lines(),
        [
            "INFO ordid.flush tables=1 rows=2",
            "entered",
            "WARN message=the flush failed and is tried again cause=\"transient\" delay_millis=7",
            "left",
            "recorded retries=1 outcome=\"ok\"",
        ]
    );
    let retries = "ordid_flush_retries_total cause=transient 1";
    assert_eq!(
        numbers.take(),
        [retries, "ordid_flush_rows 2", "ordid_flush_seconds"]
    );
}
