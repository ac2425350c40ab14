//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::time::Duration;

use diesel::{connection::SimpleConnection as _, prelude::*};
use diesel_async::{AsyncConnection as _, sync_connection_wrapper::SyncConnectionWrapper};
use libtest_mimic::Trial;
use ordid::OrderedKey;
use ordid_diesel::{Flushed, Retry, UnitOfWork};
use ordid_tests::told::{Numbers, take_lines};

use crate::{Outcome, keys::Native, scratch::in_file};

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
    take_lines();
    let mut calls = 0;
    let mut release = || {
        calls += 1;
        if calls == 2 {
            holder.batch_execute("ROLLBACK").unwrap();
        }
    };
    metrics::with_local_recorder(&numbers, || flush(&mut work, &mut release));
    assert_eq!(
        take_lines(),
        [
            "INFO ordid.flush tables=1 rows=2",
            "WARN message=the flush failed and is tried again cause=\"transient\" delay_millis=7",
            "recorded retries=1 outcome=\"ok\"",
        ]
    );
    let expected = [
        "ordid_flush_retries_total cause=transient 1",
        "ordid_flush_rows 2",
        "ordid_flush_seconds",
    ];
    assert_eq!(numbers.take(), expected);
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
