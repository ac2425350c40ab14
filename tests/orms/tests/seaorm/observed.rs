//! What a flush tells `tracing` and `metrics`, whose words are `ordid-core`'s.

use std::time::Duration;

use ordid::KeyType as _;
use ordid_seaorm::{Retry, UnitOfWork};
use ordid_tests::{
    told::{Numbers, take_lines},
    trials::Outcome,
};
use sea_orm::{
    DatabaseConnection, SqliteTransactionMode, TransactionOptions, TransactionTrait as _,
};

use crate::{
    Databases, create,
    models::{AuthorId, author},
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_sqlite, "observed::"; a_flush_is_a_span_with_its_retries);
}

async fn a_flush_is_a_span_with_its_retries(db: DatabaseConnection) -> Outcome {
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
    take_lines();
    let error = work.flush(&impatient).await.unwrap_err();
    assert_eq!(error.retries(), 2, "{error}");
    let retried = "WARN message=the flush failed and is tried again cause=\"transient\" \
                   delay_millis=7";
    assert_eq!(
        take_lines(),
        [
            "INFO ordid.flush tables=1 rows=3",
            retried,
            retried,
            "recorded retries=2 outcome=\"nothing\""
        ]
    );
    let retried = "ordid_flush_retries_total cause=transient 1";
    let failed = "ordid_flush_failures_total wrote=nothing 1";
    assert_eq!(numbers.take(), [retried, retried, failed]);
    other.rollback().await?;
    let flushed = work.flush(&impatient).await?;
    assert_eq!(flushed.rows(), 3);
    assert_eq!(
        take_lines(),
        [
            "INFO ordid.flush tables=1 rows=3",
            "recorded retries=0 outcome=\"ok\""
        ]
    );
    // Of what was committed alone.
    assert_eq!(
        numbers.take(),
        ["ordid_flush_rows 3", "ordid_flush_seconds"]
    );
    impatient.close().await?;
    Ok(())
}
