//! A network that loses what is most wanted, between SeaORM and the real server: a proxy.

use std::time::Duration;

use ordid_seaorm::{Retry, UnitOfWork, flushes_table};
use ordid_tests::{
    faults::Remote as _,
    proxy::{At, Fault, Proxy, Traffic},
    servers::Options,
    trials::Outcome,
};
use sea_orm::{
    ConnectionTrait as _, DatabaseConnection, DbBackend, EntityTrait as _, SqlxMySqlConnector,
    SqlxPostgresConnector,
};
use sqlx::{MySql, Pool, Postgres, pool::PoolOptions};

use crate::{
    Databases, create,
    models::{author, book, count, empty, written},
};

pub fn add(to: &mut Databases<'_>) {
    all!(to.on_servers, "faults::";
        an_answer_to_commit_that_is_lost_is_found_out,
        a_commit_that_did_not_arrive_is_sent_again,
        a_commit_that_nobody_could_ask_for_is_unknown,
        changes_are_found_by_their_record,
        a_recorded_flush_does_not_bring_rows_back,
    );
}

const ROWS: usize = 35;

/// Five authors with six books each.
fn work() -> UnitOfWork {
    let delays = (Duration::from_millis(10), Duration::from_millis(100));
    written(Retry::DEFAULT.with_delays(delays.0, delays.1), 6)
}

async fn proxy(db: &DatabaseConnection) -> Outcome<Proxy> {
    let (host, port) = match db.get_database_backend() {
        DbBackend::Postgres => {
            let options = db.get_postgres_connection_pool().connect_options();
            (options.get_host().to_owned(), options.get_port())
        }
        _ => {
            let options = db.get_mysql_connection_pool().connect_options();
            (options.get_host().to_owned(), options.get_port())
        }
    };
    let mut found = tokio::net::lookup_host((host, port)).await?;
    Ok(Proxy::start(found.next().ok_or("the server has no address")?).await?)
}

fn lazy<DB: sqlx::Database>(options: Options<DB>) -> Pool<DB> {
    let pools = PoolOptions::new()
        .max_connections(2)
        .acquire_timeout(Duration::from_secs(5));
    pools.test_before_acquire(false).connect_lazy_with(options)
}

/// The same database through the proxy, over nothing but the connections that the flush makes.
fn through(db: &DatabaseConnection, proxy: &Proxy) -> DatabaseConnection {
    match db.get_database_backend() {
        DbBackend::Postgres => {
            let options = db.get_postgres_connection_pool().connect_options();
            let options = Postgres::through(&options, proxy.port());
            SqlxPostgresConnector::from_sqlx_postgres_pool(lazy(options))
        }
        _ => {
            let options = db.get_mysql_connection_pool().connect_options();
            let options = MySql::through(&options, proxy.port());
            SqlxMySqlConnector::from_sqlx_mysql_pool(lazy(options))
        }
    }
}

/// Makes the tables, and flushes once without a fault: where its COMMIT is.
async fn learn(db: &DatabaseConnection, proxy: &Proxy) -> Outcome<Traffic> {
    create(db, author::Entity).await?;
    create(db, book::Entity).await?;
    // Only the first flush of a process into a table asks the catalog.
    work().flush(db).await?;
    empty(db).await?;
    let behind = through(db, proxy);
    assert_eq!(work().flush(&behind).await?.retries, 0);
    let traffic = proxy.last_traffic();
    behind.close().await?;
    empty(db).await?;
    Ok(traffic)
}

async fn an_answer_to_commit_that_is_lost_is_found_out(db: DatabaseConnection) -> Outcome {
    let proxy = proxy(&db).await?;
    let (_, down) = learn(&db, &proxy).await?.commit.ok_or("no COMMIT")?;
    let behind = through(&db, &proxy);
    proxy.plan([Fault::Swallow(down)]);
    let mut work = work();
    let flushed = work.flush(&behind).await?;
    // Found, and not sent again.
    assert_eq!((flushed.rows(), flushed.retries), (35, 0));
    assert!(work.is_empty());
    assert_eq!(count(&db).await?, ROWS);
    behind.close().await?;
    Ok(())
}

async fn a_commit_that_did_not_arrive_is_sent_again(db: DatabaseConnection) -> Outcome {
    let proxy = proxy(&db).await?;
    let (up, _) = learn(&db, &proxy).await?.commit.ok_or("no COMMIT")?;
    // The COMMIT itself, and a statement before it.
    for at in [up, up * 3 / 4] {
        let behind = through(&db, &proxy);
        proxy.plan([Fault::Cut(At::Up(at))]);
        let flushed = work().flush(&behind).await?;
        assert_eq!((flushed.rows(), flushed.retries), (35, 1), "cut at {at}");
        assert_eq!(count(&db).await?, ROWS);
        empty(&db).await?;
        behind.close().await?;
    }
    Ok(())
}

/// Flushes while the server answers neither COMMIT nor any statement after it.
async fn unknown(
    mut work: UnitOfWork,
    db: &DatabaseConnection,
    proxy: &Proxy,
    down: u64,
) -> Outcome<UnitOfWork> {
    let behind = through(db, proxy);
    let cut = Fault::Cut(At::Up(1));
    proxy.plan([Fault::Swallow(down)].into_iter().chain([cut; 50]));
    let error = work.flush(&behind).await.unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    behind.close().await?;
    Ok(work)
}

async fn a_commit_that_nobody_could_ask_for_is_unknown(db: DatabaseConnection) -> Outcome {
    let proxy = proxy(&db).await?;
    let (_, down) = learn(&db, &proxy).await?.commit.ok_or("no COMMIT")?;
    let mut work = unknown(work(), &db, &proxy, down).await?;
    assert_eq!(work.len(), 35);
    // The next one asks first.
    let flushed = work.flush(&db).await?;
    assert_eq!((flushed.rows(), flushed.retries), (35, 0));
    assert_eq!(count(&db).await?, ROWS);
    Ok(())
}

/// Rows without a new key are known by the row of their flush: they are changed once.
async fn changes_are_found_by_their_record(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    db.execute(&flushes_table()).await?;
    let mut commit = (0, 0);
    for (way, retries) in [(0, 0), (1, 0), (2, 1)] {
        let proxy = proxy(&db).await?;
        work().flush(&db).await?;
        proxy.plan([match way {
            0 => Fault::None,
            1 => Fault::Swallow(commit.1),
            _ => Fault::Cut(At::Up(commit.0)),
        }]);
        let behind = through(&db, &proxy);
        let mut changes = work();
        changes.clear();
        for author in author::Entity::find().all(&db).await? {
            let position = author.position + 10;
            changes.update(author::Model { position, ..author });
        }
        for book in book::Entity::find().all(&db).await? {
            changes.delete(book);
        }
        let flushed = changes.flush(&behind).await?;
        assert_eq!((flushed.updated(), flushed.deleted()), (5, 30), "{way}");
        assert_eq!(flushed.retries, retries, "{way}");
        assert_eq!(count(&db).await?, 5);
        let authors = author::Entity::find().all(&db).await?;
        // Once.
        assert!(authors.iter().all(|it| (10..15).contains(&it.position)));
        if way == 0 {
            commit = proxy.last_traffic().commit.ok_or("no COMMIT")?;
        }
        behind.close().await?;
        empty(&db).await?;
    }
    Ok(())
}

/// Others delete the rows before it is asked what became of them: a flush that only inserts looks for one
/// of them, unless it was recorded.
async fn a_recorded_flush_does_not_bring_rows_back(db: DatabaseConnection) -> Outcome {
    create(&db, author::Entity).await?;
    create(&db, book::Entity).await?;
    db.execute(&flushes_table()).await?;
    let proxy = proxy(&db).await?;
    for (records, left) in [(false, ROWS), (true, 0)] {
        let work = || match records {
            true => work().with_record(),
            false => work(),
        };
        let behind = through(&db, &proxy);
        work().flush(&behind).await?;
        let (_, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
        behind.close().await?;
        empty(&db).await?;

        let mut work = unknown(work(), &db, &proxy, down).await?;
        proxy.plan([]);
        assert_eq!(count(&db).await?, ROWS);
        empty(&db).await?;
        assert_eq!(work.flush(&db).await?.rows(), 35);
        assert_eq!(count(&db).await?, left, "recorded: {records}");
        empty(&db).await?;
    }
    Ok(())
}
