//! A flush that is tried again: after locks, lost connections and lost answers to COMMIT, each row is
//! there once. Network faults are those of a proxy in front of the real server.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey, testing::with_keys_async};
use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::{
    proxy::{At, Fault, Proxy, Traffic},
    servers::{Client, Scratch, Servers},
};
use sqlx::{
    MySql, Pool, Postgres, Sqlite, mysql::MySqlSslMode, pool::PoolOptions, postgres::PgSslMode,
};

use crate::{
    Outcome,
    database::{Executes as _, Keeps, Live, Test, Work, begin, tests},
    keys::Native,
    on_scratch, sqlite,
};

#[derive(OrderedKey, Clone)]
#[ordid(table = "parents")]
pub struct Parent {
    #[ordid(key)]
    pub id: Native,
    pub name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "children")]
pub struct Child {
    #[ordid(key)]
    pub id: Native,
    #[ordid(parent = Parent)]
    pub parent: Native,
    pub number: i32,
}

const ROWS: i64 = 35;

/// A database whose flushes are tried again.
pub trait Retries: Live + Keeps<Parent> + Keeps<Child> {
    /// Returns the same database over connections that do not wait long for a lock.
    async fn impatient(pool: &Pool<Self>) -> Result<Pool<Self>, sqlx::Error>;
}

/// One on a server, which can be lost.
pub trait Remote: Retries {
    /// What counts who waits for a lock.
    const WAITING: &'static str;

    /// What asks for the number of a connection's session.
    const SESSION: &'static str;

    /// Ends a session.
    fn kill(session: i64) -> String;

    /// Returns the server's address.
    fn address(pool: &Pool<Self>) -> (String, u16);

    /// Returns the same database through a proxy, over fresh connections.
    async fn through(pool: &Pool<Self>, proxy: &Proxy) -> Result<Pool<Self>, sqlx::Error>;
}

/// Implements both for a server.
macro_rules! remote {
    (
        $database:ident, $no_tls:expr, impatient: $impatient:literal, waiting: $waiting:literal,
        session: $session:literal, kill: $kill:literal
    ) => {
        impl Retries for $database {
            async fn impatient(pool: &Pool<Self>) -> Result<Pool<Self>, sqlx::Error> {
                let pools = PoolOptions::new()
                    .max_connections(2)
                    .after_connect(|connection, _| {
                        Box::pin(Self::execute_in(connection, $impatient))
                    });
                pools.connect_with((*pool.connect_options()).clone()).await
            }
        }

        impl Remote for $database {
            const WAITING: &'static str = $waiting;
            const SESSION: &'static str = $session;

            fn kill(session: i64) -> String {
                format!($kill, session)
            }

            fn address(pool: &Pool<Self>) -> (String, u16) {
                let options = pool.connect_options();
                (options.get_host().to_owned(), options.get_port())
            }

            async fn through(pool: &Pool<Self>, proxy: &Proxy) -> Result<Pool<Self>, sqlx::Error> {
                let options = Self::over_tcp(&pool.connect_options());
                let options = options
                    .host("127.0.0.1")
                    .port(proxy.port())
                    .ssl_mode($no_tls);
                // Nothing but what the flush itself makes.
                let pools = PoolOptions::new()
                    .max_connections(2)
                    .acquire_timeout(Duration::from_secs(5))
                    .test_before_acquire(false);
                Ok(pools.connect_lazy_with(options))
            }
        }
    };
}

remote!(
    Postgres, PgSslMode::Disable,
    impatient: "SET lock_timeout = '100ms'",
    waiting: "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    session: "SELECT pg_backend_pid()::bigint",
    kill: "SELECT pg_terminate_backend({}, 5000)"
);

remote!(
    MySql, MySqlSslMode::Disabled,
    impatient: "SET innodb_lock_wait_timeout = 1",
    // MySQL's `information_schema` fails on the bytes of keys in the statements of others.
    waiting: "/*M! information_schema.innodb_trx JOIN information_schema.processlist \
              ON id = trx_mysql_thread_id WHERE trx_state = 'LOCK WAIT' AND db = DATABASE() \
              *//*!80000 (SELECT DISTINCT requesting_thread_id FROM performance_schema.data_lock_waits \
              JOIN performance_schema.threads ON thread_id = requesting_thread_id \
              WHERE processlist_db = DATABASE()) AS waits */",
    session: "SELECT CAST(CONNECTION_ID() AS SIGNED)",
    kill: "KILL {}"
);

impl Retries for Sqlite {
    async fn impatient(pool: &Pool<Self>) -> Result<Pool<Self>, sqlx::Error> {
        let options = (*pool.connect_options()).clone();
        Pool::connect_with(options.busy_timeout(Duration::ZERO)).await
    }
}

/// The tests of a database.
fn tests<DB: Retries>() -> [(&'static str, Test<DB>); 3] {
    tests![
        changes_are_recorded,
        a_lock_that_does_not_come_is_waited_for_again,
        a_dropped_flush_is_taken_up_by_the_next,
    ]
}

/// Those of one on a server.
fn remote_tests<DB: Remote>() -> [(&'static str, Test<DB>); 6] {
    tests![
        an_answer_to_commit_that_is_lost_is_found_out,
        a_commit_that_did_not_arrive_is_sent_again,
        a_commit_that_lands_late_is_no_second_copy,
        a_commit_that_nobody_could_ask_for_is_unknown,
        changes_are_found_by_their_record,
        dead_connections_of_the_pool_are_passed_over,
    ]
}

fn on_server<DB: Remote + Scratch>(
    servers: &Servers,
    server: &'static str,
    trials: &mut Vec<Trial>,
) {
    for (name, test) in tests::<DB>().into_iter().chain(remote_tests()) {
        on_scratch(trials, servers, server, &format!("retry::{name}"), test);
    }
}

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    on_server::<Postgres>(servers, "postgres", trials);
    on_server::<MySql>(servers, "mariadb", trials);
    let name = "retry::changes_whose_marker_row_may_have_been_removed_are_not_sent_again";
    on_scratch::<Postgres, _, _>(trials, servers, "postgres", name, removed_markers);
    on_scratch::<MySql, _, _>(trials, servers, "mariadb", name, removed_markers);
    on_scratch::<MySql, _, _>(trials, servers, "mysql", name, removed_markers);
    let name = "retry::marker_rows_have_the_time_of_utc_and_beyond_2038";
    on_scratch(
        trials,
        servers,
        "mariadb",
        name,
        marker_rows_have_the_time_of_utc,
    );
    for (name, test) in tests() {
        sqlite::add(trials, &format!("retry::{name}"), test);
    }
}

/// Short delays: nobody has to wait for a server to start.
fn quick() -> Retry {
    Retry::DEFAULT.with_delays(Duration::from_millis(10), Duration::from_millis(100))
}

/// Five parents with six children each.
pub fn family() -> (Vec<Parent>, Vec<Child>) {
    let parents: Vec<_> = (0..5)
        .map(|name: i32| Parent {
            id: Native::generate(),
            name: name.to_string(),
        })
        .collect();
    let children = parents.iter().flat_map(|parent| {
        (0..6).map(|number| Child {
            id: Native::generate(),
            parent: parent.id,
            number,
        })
    });
    let children = children.collect();
    (parents, children)
}

pub async fn count<DB: Retries>(pool: &Pool<DB>) -> Result<i64, sqlx::Error> {
    let family = "(SELECT id FROM parents UNION ALL SELECT id FROM children) AS family";
    // One statement: a COMMIT may land at any time.
    DB::count(pool, family).await
}

pub async fn create<DB: Retries>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    let (key, options) = (DB::KEY, DB::OPTIONS);
    for sql in [
        format!(
            "CREATE TABLE parents (id {key} NOT NULL PRIMARY KEY, name VARCHAR(20) NOT NULL \
             UNIQUE) {options}"
        ),
        format!(
            "CREATE TABLE children (id {key} NOT NULL PRIMARY KEY, parent {key} NOT NULL, \
             number INTEGER NOT NULL, FOREIGN KEY (parent) REFERENCES parents (id)) {options}"
        ),
    ] {
        DB::script(pool, &sql).await?;
    }
    Ok(())
}

pub async fn empty<DB: Retries>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    DB::script(pool, "DELETE FROM children").await?;
    DB::script(pool, "DELETE FROM parents").await
}

fn work<DB: Retries>() -> Work<UnitOfWork<DB>> {
    inserts(&family())
}

pub fn inserts<DB: Retries>(
    (parents, children): &(Vec<Parent>, Vec<Child>),
) -> Work<UnitOfWork<DB>> {
    let mut work = begin::<DB>().with_retry(quick());
    for child in children.iter().cloned() {
        work.add(child);
    }
    for parent in parents.iter().cloned() {
        work.add(parent);
    }
    work
}

/// All parents are renamed, three children go.
pub fn changes<DB: Retries>(
    (parents, children): &(Vec<Parent>, Vec<Child>),
) -> Work<UnitOfWork<DB>> {
    let mut work = begin::<DB>().with_retry(quick());
    for parent in parents {
        let name = format!("{}x", parent.name);
        work.update(Parent { name, ..*parent });
    }
    for child in &children[..3] {
        work.delete(child);
    }
    work
}

/// How many parents were renamed, how many children are left, and how many flushes were
/// recorded.
pub async fn changed<DB: Retries>(pool: &Pool<DB>) -> Result<[i64; 3], sqlx::Error> {
    Ok([
        DB::count(pool, "parents WHERE name LIKE '%x'").await?,
        DB::count(pool, "children").await?,
        DB::count(pool, "ordid_flushes").await?,
    ])
}

/// Waits until the changes are committed.
async fn until_changed<DB: Retries>(pool: &Pool<DB>) -> Outcome {
    for _ in 0..1_000 {
        if DB::count(pool, "ordid_flushes").await? == 1 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err("the COMMIT that was forwarded has not landed within 10 seconds".into())
}

/// Updates and deletes ask for the table of flushes, before anything else is sent.
async fn changes_are_recorded<DB: Retries>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let family = family();
    inserts(&family).flush(&pool).await?;
    let mut work = changes(&family);
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    work.observe(move |progress| _ = told.send(progress));
    let error = work.flush(&pool).await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with(
            "cannot record the flush, nothing was written: the table `ordid_flushes` is missing, which updates, \
             upserts, deletes and `with_record` need; create it once, by a migration or the program, with the statement that \
             `ordid_sqlx::flushes_table` returns: CREATE TABLE "
        ),
        "{text}"
    );
    assert!(error.is_flushes_table_missing(), "{text}");
    assert!(hears.try_recv().is_err(), "nothing was sent");
    assert!(!error.is_commit_unknown() && error.retries() == 0);
    // In the user's transaction nobody looks for it.
    let mut transaction = pool.begin().await?;
    work.flush_in(&mut transaction).await?;
    transaction.rollback().await?;

    for _ in 0..2 {
        DB::script(&pool, ordid_sqlx::flushes_table::<DB>()).await?;
    }
    let flushed = work.flush(&pool).await?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (0, 5, 3)
    );
    assert_eq!(changed(&pool).await?, [5, 27, 1]);
    let now = match DB::PROFILE.name {
        "MySQL" => "UTC_TIMESTAMP(3)",
        _ => "CURRENT_TIMESTAMP",
    };
    let old = format!("DELETE FROM ordid_flushes WHERE flushed_at <= {now}");
    DB::script(&pool, &old).await?;
    assert_eq!(changed(&pool).await?, [5, 27, 0]);
    Ok(())
}

/// The time does not depend on the session's time zone. A `TIMESTAMP` would end in 2038.
async fn marker_rows_have_the_time_of_utc(pool: Pool<MySql>) -> Outcome {
    MySql::script(&pool, ordid_sqlx::flushes_table::<MySql>()).await?;
    let mut connection = pool.acquire().await?;
    sqlx::raw_sql(
        "SET time_zone = '+05:30'; INSERT INTO ordid_flushes (id) VALUES (REPEAT('a', 16)); \
         INSERT INTO ordid_flushes VALUES (REPEAT('b', 16), '2100-01-01 00:00:00.123'), \
         (REPEAT('c', 16), '1970-01-01')",
    )
    .execute(&mut *connection)
    .await?;
    let ages =
        "SELECT TIMESTAMPDIFF(SECOND, flushed_at, UTC_TIMESTAMP()) FROM ordid_flushes ORDER BY id";
    let ages: Vec<i64> = sqlx::query_scalar(ages).fetch_all(&mut *connection).await?;
    connection.close().await?;
    assert!(ages[0].abs() < 60, "{ages:?}");
    assert!(ages[1] < 0 && ages[2] > 0, "{ages:?}");
    Ok(())
}

/// Cut off at each poll, and flushed again: all rows are there, once.
async fn a_dropped_flush_is_taken_up_by_the_next<DB: Retries>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let (mut sent, mut found) = (0, 0);
    // At each poll; and then, until each was seen, at the first one, and as soon as all rows were
    // sent, which is while the answer to COMMIT is waited for. A database that answers before
    // it is polled shows neither.
    let mut polls = 0;
    let mut at_each = true;
    while at_each || (sent == 0 || found == 0) && polls < 500 {
        polls += 1;
        let mut work = work::<DB>();
        let all_sent = Arc::new(AtomicBool::new(false));
        let tells = Arc::clone(&all_sent);
        work.observe(move |progress| {
            tells.store(progress.done == progress.total, Ordering::Relaxed);
        });
        let over = {
            let mut flush = pin!(work.flush(&pool));
            let mut left = polls;
            poll_fn(|context| match flush.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| true)),
                Poll::Pending if at_each && left > 1 => {
                    left -= 1;
                    Poll::Pending
                }
                Poll::Pending if at_each || sent == 0 || all_sent.load(Ordering::Relaxed) => {
                    Poll::Ready(Ok(false))
                }
                Poll::Pending => Poll::Pending,
            })
            .await?
        };
        if over {
            at_each = false;
        } else {
            assert_eq!(i64::try_from(work.len())?, ROWS, "nothing is lost");
            // One that was cut off at COMMIT lands when it lands.
            let rows = count(&pool).await?;
            assert!([0, ROWS].contains(&rows), "{rows} rows after {polls} polls");
            let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
            work.observe(move |progress| _ = told.send(progress));
            let flushed = work.flush(&pool).await?;
            assert_eq!(i64::try_from(flushed.rows())?, ROWS);
            match hears.try_recv() {
                Ok(_) => sent += 1,
                Err(_) => found += 1,
            }
        }
        assert!(work.is_empty());
        assert_eq!(count(&pool).await?, ROWS, "after {polls} polls");
        empty(&pool).await?;
    }
    assert!(
        sent > 0 && found > 0,
        "sent anew {sent} times, found {found} times"
    );
    Ok(())
}

/// Another transaction has a name, and gives it back in the end; or does not.
async fn a_lock_that_does_not_come_is_waited_for_again<DB: Retries>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let impatient = DB::impatient(&pool).await?;
    let id = DB::literal(Native::generate().to_raw());
    let takes = format!("INSERT INTO parents (id, name) VALUES ({id}, '3')");
    let mut other = pool.begin().await?;
    DB::execute_in(&mut other, &takes).await?;
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    let mut patient = work::<DB>().with_retry(quick().with_attempts(1_000));
    patient.observe(move |progress| told.send(progress).unwrap());
    // Longer than the second of InnoDB's timeout, also where it takes long to come to the row.
    let gives_back = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        other.rollback().await
    };
    let (flushed, given) = tokio::join!(patient.flush(&impatient), gives_back);
    given?;
    let flushed = flushed?;
    assert!(flushed.retries >= 1);
    assert_eq!(count(&pool).await?, ROWS);
    // What was sent in vain is not among it.
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (35, 1));
    let mut progress = Vec::new();
    while let Ok(of) = hears.try_recv() {
        progress.push((of.table, of.rows, of.done, of.total));
    }
    assert_eq!(progress, [("parents", 5, 5, 35), ("children", 30, 35, 35)]);

    empty(&pool).await?;
    let mut other = pool.begin().await?;
    DB::execute_in(&mut other, &takes).await?;
    let mut work = work::<DB>().with_retry(quick().with_attempts(2));
    let error = work.flush(&impatient).await.unwrap_err();
    assert!(
        error.is_transient() && !error.is_connection_lost(),
        "{error}"
    );
    assert_eq!((error.retries(), work.len()), (1, 35));
    assert!(error.to_string().ends_with(" (tried 2 times)"), "{error}");
    other.rollback().await?;
    impatient.close().await;
    assert_eq!(count(&pool).await?, 0);
    Ok(())
}
/// Between looks at who waits. InnoDB does not write `innodb_trx` anew for those who read it more often
/// than each 100 ms, and another test reads it, too.
pub const PAUSE: Duration = Duration::from_millis(250);

pub async fn proxy<DB: Remote>(
    pool: &Pool<DB>,
) -> Result<Proxy, Box<dyn std::error::Error + Send + Sync>> {
    let (host, port) = DB::address(pool);
    let mut found = tokio::net::lookup_host((host, port)).await?;
    let address = found.next().ok_or("the server has no address")?;
    Ok(Proxy::start(address).await?)
}

/// The marker row has a key of 2024.
async fn removed_markers<DB: Remote>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    DB::script(&pool, ordid_sqlx::flushes_table::<DB>()).await?;
    let proxy = proxy(&pool).await?;
    let is_mysql = DB::PROFILE.name == "MySQL";
    for lands in [true, false] {
        empty(&pool).await?;
        DB::script(&pool, "DELETE FROM ordid_flushes").await?;
        let family = family();
        inserts(&family).flush(&pool).await?;
        let mut work = changes(&family).with_retry(Retry::NONE);
        let behind = DB::through(&pool, &proxy).await?;
        // As long as the packet of a COMMIT is, or nothing of it.
        let packet = if is_mysql { 11 } else { 12 };
        proxy.plan([Fault::Cut(At::Commit(if lands { packet } else { 0 }))]);
        let mut only = behind.acquire().await?.detach();
        let lost = with_keys_async(3, work.flush_on(&mut only)).await;
        let lost = lost.expect_err("the answer to COMMIT is lost");
        assert!(lost.is_commit_unknown(), "{lost}");
        drop(only);
        behind.close().await;
        if lands {
            // The server may not have read it yet, and this flush does not wait for it.
            until_changed(&pool).await?;
        }
        let outcome = work.flush(&pool).await;
        if lands {
            assert_eq!(outcome?.updated(), 5);
            assert_eq!(changed(&pool).await?, [5, 27, 1]);
            continue;
        }
        let error = outcome.expect_err("nobody knows");
        let text = error.to_string();
        assert!(error.is_commit_unknown(), "{text}");
        assert!(
            text.contains("so old that it may have been removed"),
            "{text}"
        );
        assert_eq!(changed(&pool).await?, [0, 30, 0]);
    }
    Ok(())
}

/// Flushes once without a fault: where its COMMIT is.
async fn learn<DB: Remote>(
    pool: &Pool<DB>,
    proxy: &Proxy,
) -> Result<Traffic, Box<dyn std::error::Error + Send + Sync>> {
    create(pool).await?;
    // The first flush of a process asks the catalog, which the one that is to be faulted does not.
    work::<DB>().flush(pool).await?;
    empty(pool).await?;
    let behind = DB::through(pool, proxy).await?;
    let flushed = work::<DB>().flush(&behind).await?;
    assert_eq!(flushed.retries, 0);
    let traffic = proxy.last_traffic();
    behind.close().await;
    empty(pool).await?;
    assert!(traffic.commit.is_some());
    Ok(traffic)
}

async fn an_answer_to_commit_that_is_lost_is_found_out<DB: Remote>(pool: Pool<DB>) -> Outcome {
    let proxy = proxy(&pool).await?;
    let (_, down) = learn(&pool, &proxy).await?.commit.unwrap();
    let behind = DB::through(&pool, &proxy).await?;
    let before = proxy.traffic().len();
    proxy.plan([Fault::Swallow(down)]);
    let mut work = work::<DB>();
    let flushed = work.flush(&behind).await?;
    assert_eq!(
        (flushed.rows(), flushed.retries),
        (35, 0),
        "found, not sent again"
    );
    let connections = &proxy.traffic()[before..];
    assert!(connections[0].commits, "the fault came before the COMMIT");
    assert_eq!(connections.len(), 2, "the second one is asked");
    assert_eq!(flushed.tables.len(), 2);
    assert!(work.is_empty());
    assert_eq!(count(&pool).await?, ROWS);
    behind.close().await;
    Ok(())
}

async fn a_commit_that_did_not_arrive_is_sent_again<DB: Remote>(pool: Pool<DB>) -> Outcome {
    let proxy = proxy(&pool).await?;
    let (up, _) = learn(&pool, &proxy).await?.commit.unwrap();
    for at in [up, up / 2, 10] {
        let behind = DB::through(&pool, &proxy).await?;
        proxy.plan([Fault::Cut(At::Up(at))]);
        let connections = proxy.traffic().len();
        let mut work = work::<DB>();
        let flushed = work.flush(&behind).await?;
        // Where it is cut off in the handshake, the pool may try again by itself.
        assert!(proxy.traffic().len() > connections + 1);
        assert_eq!(flushed.rows(), 35);
        assert!(
            at == 10 || flushed.retries == 1,
            "{} at {at}",
            flushed.retries
        );
        assert_eq!(count(&pool).await?, ROWS);
        empty(&pool).await?;
        behind.close().await;
    }
    Ok(())
}

/// Lets what the proxy holds go on once somebody waits for it.
pub async fn land<DB: Remote>(pool: &Pool<DB>, proxy: &Proxy) -> Result<(), sqlx::Error> {
    while DB::count(pool, DB::WAITING).await? == 0 {
        tokio::time::sleep(PAUSE).await;
    }
    proxy.release();
    Ok(())
}

/// It is not there when it is looked for, and then it lands while the rows are sent again.
async fn a_commit_that_lands_late_is_no_second_copy<DB: Remote>(pool: Pool<DB>) -> Outcome {
    let proxy = proxy(&pool).await?;
    let (up, _) = learn(&pool, &proxy).await?.commit.unwrap();
    let behind = DB::through(&pool, &proxy).await?;
    proxy.plan([Fault::Hold(up)]);
    let mut work = work::<DB>();
    let (flushed, landed) = tokio::join!(work.flush(&behind), land(&pool, &proxy));
    landed?;
    let flushed = flushed?;
    assert_eq!((flushed.rows(), flushed.retries), (35, 1));
    assert!(work.is_empty());
    assert_eq!(count(&pool).await?, ROWS);
    behind.close().await;
    Ok(())
}

/// Rows without a new key are known by the row of their flush: whatever becomes of COMMIT, they are
/// changed once.
async fn changes_are_found_by_their_record<DB: Remote>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    DB::script(&pool, ordid_sqlx::flushes_table::<DB>()).await?;
    let mut flushes = 0;
    let mut traffic = Traffic::default();
    for way in 0..4 {
        let proxy = proxy(&pool).await?;
        let family = family();
        inserts(&family).flush(&pool).await?;
        let (up, down) = traffic.commit.unwrap_or_default();
        let (fault, retries) = [
            (Fault::None, 0),
            (Fault::Swallow(down), 0),
            (Fault::Cut(At::Up(up)), 1),
            (Fault::Hold(up), 1),
        ][way];
        proxy.plan([fault]);
        let behind = DB::through(&pool, &proxy).await?;
        let mut work = changes(&family);
        let landing = async {
            if fault == Fault::Hold(up) {
                land(&pool, &proxy).await?;
            }
            Ok::<(), sqlx::Error>(())
        };
        let (flushed, landed) = tokio::join!(work.flush(&behind), landing);
        landed?;
        let flushed = flushed?;
        flushes += 1;
        assert_eq!((flushed.updated(), flushed.deleted()), (5, 3), "{fault:?}");
        assert_eq!(flushed.retries, retries, "{fault:?}");
        assert_eq!(changed(&pool).await?, [5, 27, flushes], "{fault:?}");
        if fault == Fault::None {
            traffic = proxy.last_traffic();
        }
        behind.close().await;
        empty(&pool).await?;
    }
    Ok(())
}

/// Neither could the database be asked; but the next flush asks it.
async fn a_commit_that_nobody_could_ask_for_is_unknown<DB: Remote>(pool: Pool<DB>) -> Outcome {
    let proxy = proxy(&pool).await?;
    let (_, down) = learn(&pool, &proxy).await?.commit.unwrap();
    let cut = Fault::Cut(At::Up(1));
    for added in [false, true] {
        let behind = DB::through(&pool, &proxy).await?;
        proxy.plan([Fault::Swallow(down)].into_iter().chain([cut; 50]));
        let mut work = work::<DB>().with_retry(Retry::NONE);
        let error = work.flush(&behind).await.unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(count(&pool).await?, ROWS);
        proxy.plan([]);
        if added {
            // The rows that may be there cannot be told from this one.
            let parent = Parent {
                id: Native::generate(),
                name: "another".into(),
            };
            work.add(parent);
            let error = work.flush(&behind).await.unwrap_err();
            assert!(error.is_plan() && work.len() == 36, "{error}");
        } else {
            assert_eq!(work.flush(&behind).await?.rows(), 35);
            assert!(work.is_empty());
        }
        assert_eq!(count(&pool).await?, ROWS);
        empty(&pool).await?;
        behind.close().await;
    }
    Ok(())
}

/// The server ends all connections of a pool that does not ask them first.
async fn dead_connections_of_the_pool_are_passed_over<DB: Remote>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let pools = PoolOptions::new()
        .max_connections(3)
        .test_before_acquire(false);
    let tired = pools
        .connect_with((*pool.connect_options()).clone())
        .await?;
    let mut all = Vec::new();
    for _ in 0..3 {
        let mut connection = tired.acquire().await?;
        let id = DB::number_in(&mut connection, DB::SESSION).await?;
        all.push((connection, id));
    }
    let (connections, ids): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    drop(connections);
    // They are given back by tasks, which would find that they are dead.
    while tired.num_idle() < 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for id in ids {
        DB::script(&pool, &DB::kill(id)).await?;
    }
    let mut work = work::<DB>().with_retry(quick().with_attempts(2));
    let flushed = work.flush(&tired).await?;
    assert_eq!((flushed.rows(), flushed.retries), (35, 1));
    assert_eq!(count(&pool).await?, ROWS);
    tired.close().await;
    Ok(())
}
