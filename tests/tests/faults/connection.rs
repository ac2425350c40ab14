//! A flush over one connection: what it does in a transaction that is open, when it is dropped, and when the
//! connection is lost.

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
use ordid_sqlx::{Error, Flushed, Retry, UnitOfWork};
use ordid_tests::{
    faults::{
        Engine, Found, Graph, Remote, Shape, Site,
        cut::{Conversation, EAGER, through},
        on_file, on_server,
    },
    proxy::{At, Fault, Proxy},
    servers::{Scratch, Servers},
    trials::Outcome,
};
use sqlx::{Connection, MySql, Pool, Postgres, Sqlite, pool::PoolOptions};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($($name:literal: $test:expr),+ $(,)?) => {$(
            on_server::<UnitOfWork<Postgres>, _, _>(trials, servers, "postgres", $name, $test);
            on_server::<UnitOfWork<MySql>, _, _>(trials, servers, "mariadb", $name, $test);
            on_file::<UnitOfWork<Sqlite>, _, _>(trials, $name, $test);
        )+};
    }
    add!(
        "connection::a_flush_over_a_connection_is_a_transaction_of_its_own": own,
        "connection::an_open_transaction_is_not_touched": open,
        "connection::a_flush_that_is_dropped_leaves_no_transaction_on_a_connection": dropped,
        "connection::a_flush_that_is_dropped_leaves_no_transaction_in_a_pool": dropped_in_a_pool,
        "connection::a_flush_that_is_dropped_in_a_transaction_goes_with_it": dropped_inside,
    );
    const LOCKED: &str = "connection::a_lock_is_waited_for_again_over_the_same_connection";
    on_server::<UnitOfWork<Postgres>, _, _>(trials, servers, "postgres", LOCKED, |site| {
        locked(site, "BEGIN", "SET lock_timeout = '100ms'")
    });
    on_server::<UnitOfWork<MySql>, _, _>(trials, servers, "mariadb", LOCKED, |site| {
        locked(site, "BEGIN", "SET innodb_lock_wait_timeout = 1")
    });
    on_file::<UnitOfWork<Sqlite>, _, _>(trials, LOCKED, |site| {
        locked(site, "BEGIN IMMEDIATE", "PRAGMA busy_timeout = 0")
    });
    macro_rules! remote {
        ($($name:literal: $test:expr),+ $(,)?) => {$(
            on_server::<UnitOfWork<Postgres>, _, _>(trials, servers, "postgres", $name, $test);
            on_server::<UnitOfWork<MySql>, _, _>(trials, servers, "mariadb", $name, $test);
        )+};
    }
    remote!(
        "connection::a_connection_that_is_lost_is_told_and_another_goes_on": lost,
        "connection::rows_deleted_before_the_question_come_back_unless_recorded": deleted,
        "connection::a_recorded_flush_over_a_pool_does_not_bring_rows_back": deleted_in_a_pool,
        "connection::flushes_that_are_dropped_in_silence_leave_the_pool_its_connections": silent,
    );
    on_server::<UnitOfWork<Postgres>, _, _>(
        trials,
        servers,
        "postgres",
        "connection::a_transaction_that_failed_is_not_touched",
        async |site| {
            let mut connection = connect(&site).await?;
            Postgres::execute_sql(&mut connection, "BEGIN").await?;
            let failed = Postgres::execute_sql(&mut connection, "SELECT 1 / 0").await;
            assert!(failed.is_err());
            refused(&site, &mut connection).await?;
            let still = Postgres::execute_sql(&mut connection, "SELECT 1").await;
            assert!(still.is_err(), "it is as it was");
            Ok(())
        },
    );
    for server in ["mariadb", "mysql"] {
        on_server::<UnitOfWork<MySql>, _, _>(
            trials,
            servers,
            server,
            "connection::a_deadlock_in_the_users_transaction_says_that_it_is_over",
            over,
        );
    }
    on_server::<UnitOfWork<MySql>, _, _>(
        trials,
        servers,
        "mariadb",
        "connection::without_autocommit_a_transaction_is_taken_to_be_open",
        async |site| {
            let mut connection = connect(&site).await?;
            MySql::execute_sql(&mut connection, "SET autocommit = 0").await?;
            refused(&site, &mut connection).await
        },
    );
}

/// The network goes silent at COMMIT, and the caller gives up as often as the pool has connections.
async fn silent<DB: Remote + Scratch>(site: Site<DB>) -> Outcome {
    const CONNECTIONS: u32 = 4;
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    proxy.always(Fault::SilenceAtCommit);
    let pool = PoolOptions::<DB>::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(Duration::from_secs(60))
        .connect_lazy_with(through(&site, &proxy).options().clone());
    let started = std::time::Instant::now();
    for number in 0..CONNECTIONS {
        let graph = Graph::new(number, Shape::SMALL);
        let mut work = site.work(&graph, Retry::NONE);
        let is_silent = async {
            let commits = || {
                proxy
                    .traffic()
                    .iter()
                    .filter(|it| it.commit.is_some())
                    .count()
            };
            while commits() <= number as usize {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        tokio::select! {
            outcome = work.flush(&pool) => panic!("nobody answered: {outcome:?}"),
            () = is_silent => {}
        }
    }
    let traffic = proxy.traffic();
    assert_eq!(traffic.len(), 4, "each over a connection of its own");
    assert!(traffic.iter().all(|it| it.commit.is_some() && !it.commits));
    proxy.always(Fault::None);
    let graph = Graph::new(CONNECTIONS, Shape::SMALL);
    let mut work = site.work(&graph, Retry::NONE);
    let flushed = tokio::time::timeout(Duration::from_secs(30), work.flush(&pool)).await;
    let after = started.elapsed();
    assert!(
        flushed.is_ok(),
        "the pool had no connection after {after:?}"
    );
    flushed??;
    assert_eq!(site.look(&graph).await?, Found::All);
    pool.close().await;
    Ok(())
}

/// The server ends the transaction that has changed fewer rows, and with it the savepoint of the flush.
async fn over(site: Site<MySql>) -> Outcome {
    site.execute("CREATE TABLE marks (n BIGINT NOT NULL PRIMARY KEY) ENGINE=InnoDB")
        .await?;
    site.execute("INSERT INTO marks VALUES (1)").await?;
    let graph = Graph::new(0, Shape::SMALL);
    let mut own = connect(&site).await?;
    site.work(&graph, Retry::NONE).flush_on(&mut own).await?;
    let mut transaction = own.begin().await?;
    MySql::execute_sql(&mut transaction, "UPDATE marks SET n = 2").await?;
    let mut other = connect(&site).await?;
    MySql::execute_sql(&mut other, "BEGIN").await?;
    MySql::execute_sql(&mut other, "UPDATE customers SET bucket = bucket + 1").await?;
    let waiting =
        tokio::spawn(async move { MySql::execute_sql(&mut other, "UPDATE marks SET n = 3").await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut work = UnitOfWork::new();
    MySql::change(&mut work, &graph);
    let error = work
        .flush_in(&mut transaction)
        .await
        .expect_err("a deadlock");
    assert!(
        error.is_transaction_over() && error.is_transient(),
        "{error}"
    );
    assert!(
        error.to_string().contains("your transaction is over"),
        "{error}"
    );
    waiting.await??;
    drop(transaction);
    own.close().await?;
    site.settle().await?;
    assert_eq!(site.numbers("SELECT n FROM marks").await?, [1]);
    Ok(())
}

async fn connect<DB: Engine>(site: &Site<DB>) -> Result<DB::Connection, sqlx::Error> {
    DB::Connection::connect_with(site.options()).await
}

/// A mark that is seen by others: nothing is open on the connection that sets it.
async fn check_nothing_is_open<DB: Engine>(
    site: &Site<DB>,
    connection: &mut DB::Connection,
) -> Outcome {
    DB::execute_sql(connection, "INSERT INTO marks VALUES (1)").await?;
    let marks = site.numbers("SELECT n FROM marks").await?;
    assert_eq!(marks, [1], "others do not see what was written");
    DB::execute_sql(connection, "DELETE FROM marks").await?;
    Ok(())
}

async fn create_marks<DB: Engine>(site: &Site<DB>) -> Result<(), sqlx::Error> {
    // As PostgreSQL's, SQLx reads MariaDB's BIGINT as `i64`.
    site.execute("CREATE TABLE marks (n BIGINT NOT NULL)").await
}

async fn clear<DB: Engine>(site: &Site<DB>) -> Result<(), sqlx::Error> {
    for table in ["items", "orders", "customers"] {
        site.execute(&format!("DELETE FROM {table}")).await?;
    }
    Ok(())
}

async fn own<DB: Engine>(site: Site<DB>) -> Outcome {
    create_marks(&site).await?;
    let mut connection = connect(&site).await?;
    let graph = Graph::new(0, Shape::CHUNKS);
    let mut work = site.work(&graph, Retry::DEFAULT);
    let outcome = work.flush_on(&mut connection).await;
    assert_eq!(site.look(&graph).await?, Found::All);
    let flushed = outcome?;
    assert_eq!((flushed.rows(), flushed.retries), (graph.len(), 0));
    assert!(flushed.tables.iter().all(|table| table.bulk == 0));
    assert!(work.is_empty());
    check_nothing_is_open(&site, &mut connection).await?;
    assert_eq!(work.flush_on(&mut connection).await?.rows(), 0);

    // A row that is refused is found over the same connection, which can be used on.
    let mut taken = Graph::new(1, Shape::SMALL);
    taken.orders[7].label.clone_from(&graph.orders[3].label);
    let mut work = site.work(&taken, Retry::DEFAULT);
    let error = work.flush_on(&mut connection).await.expect_err("taken");
    assert!(error.is_unique_violation(), "{error}");
    assert_eq!(error.table(), Some("orders"));
    assert!(error.key().is_some(), "{error}");
    assert_eq!((site.look(&taken).await?, work.len()), (Found::None, 120));
    check_nothing_is_open(&site, &mut connection).await?;
    site.execute("UPDATE orders SET label = 'free' WHERE unit = 0 AND position = 3")
        .await?;
    work.flush_on(&mut connection).await?;
    assert_eq!(site.look(&taken).await?, Found::All);
    connection.close().await?;

    // Of a pool, with updates and deletes.
    let pool = site.pool();
    let mut lent = pool.acquire().await?;
    let new = Graph::new(2, Shape::SMALL);
    let mut work = site.work(&new, Retry::DEFAULT);
    DB::change(&mut work, &taken);
    let flushed = work.flush_on(&mut *lent).await?;
    assert_eq!((flushed.updated(), flushed.deleted()), (20, 40));
    assert_eq!(site.look_for_changes(&new, &taken).await?, Found::All);
    check_nothing_is_open(&site, &mut lent).await?;
    drop(lent);
    pool.close().await;
    Ok(())
}

/// A flush over a connection with a transaction open is refused, and is done once it is over.
async fn refused<DB: Engine>(site: &Site<DB>, connection: &mut DB::Connection) -> Outcome {
    let graph = Graph::new(0, Shape::SMALL);
    let mut work = site.work(&graph, Retry::DEFAULT);
    let error = work
        .flush_on(connection)
        .await
        .expect_err("a transaction is open");
    assert!(error.is_connection_state(), "{error}");
    assert!(
        !error.is_transient() && !error.is_connection_lost() && !error.is_commit_unknown(),
        "{error}"
    );
    let text = error.to_string();
    let own = "a transaction is open on this connection, nothing was sent: flush inside it with \
               `flush_in`, or end it first";
    assert!(
        text == own || text.ends_with("cannot start a transaction within a transaction"),
        "{text}"
    );
    assert_eq!(work.len(), graph.len());
    Ok(())
}

async fn open<DB: Engine>(site: Site<DB>) -> Outcome {
    create_marks(&site).await?;
    let graph = Graph::new(0, Shape::SMALL);
    for (end, left) in [("ROLLBACK", 0), ("COMMIT", 1)] {
        // Begun behind SQLx's back, before and after it has written anything.
        let mut connection = connect(&site).await?;
        DB::execute_sql(&mut connection, "BEGIN").await?;
        refused(&site, &mut connection).await?;
        DB::execute_sql(&mut connection, "INSERT INTO marks VALUES (1)").await?;
        refused(&site, &mut connection).await?;
        assert_eq!(site.numbers("SELECT n FROM marks").await?, [0_i64; 0]);
        DB::execute_sql(&mut connection, end).await?;
        let marks = site.numbers("SELECT n FROM marks").await?;
        assert_eq!(marks.len(), left, "after {end}");
        let mut work = site.work(&graph, Retry::DEFAULT);
        work.flush_on(&mut connection).await?;
        assert_eq!(site.look(&graph).await?, Found::All);
        connection.close().await?;
        clear(&site).await?;
        site.execute("DELETE FROM marks").await?;
    }

    // SQLx's own.
    let mut connection = connect(&site).await?;
    let mut transaction = connection.begin().await?;
    DB::execute_sql(&mut transaction, "INSERT INTO marks VALUES (1)").await?;
    refused(&site, &mut transaction).await?;
    let mut work = site.work(&graph, Retry::DEFAULT);
    work.flush_in(&mut transaction).await?;
    assert_eq!(site.numbers("SELECT n FROM marks").await?, [0_i64; 0]);
    transaction.commit().await?;
    assert_eq!(site.numbers("SELECT n FROM marks").await?, [1]);
    assert_eq!(site.look(&graph).await?, Found::All);
    connection.close().await?;
    Ok(())
}

/// Polls a flush so many times, or until all rows were sent, which is while the answer to COMMIT is waited
/// for, and drops it. Returns what it came to if it was over.
async fn cut_off<F: Future<Output = Result<Flushed, Error>>>(
    flush: F,
    polls: Option<usize>,
    all_sent: &AtomicBool,
) -> Option<Result<Flushed, Error>> {
    let mut flush = pin!(flush);
    let mut left = polls;
    poll_fn(|context| match flush.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => match &mut left {
            Some(left) if *left > 1 => {
                *left -= 1;
                Poll::Pending
            }
            Some(_) => Poll::Ready(None),
            None if all_sent.load(Ordering::Relaxed) => Poll::Ready(None),
            None => Poll::Pending,
        },
    })
    .await
}

/// Says when all rows of a unit of work were sent.
fn tell_when_sent<DB: Engine>(work: &mut UnitOfWork<DB>) -> Arc<AtomicBool> {
    let all_sent = Arc::new(AtomicBool::new(false));
    let tells = Arc::clone(&all_sent);
    work.observe(move |progress| {
        tells.store(progress.done == progress.total, Ordering::Relaxed);
    });
    all_sent
}

/// How many polls a flush is given: each number until it comes to its end, and then as many as it takes to
/// send all rows, some times.
#[derive(Default)]
struct Cuts {
    polls: usize,
    at_commit: usize,
}

impl Cuts {
    fn next(&mut self, was_over: bool) -> Option<Option<usize>> {
        if was_over || self.at_commit > 0 {
            self.at_commit += 1;
            return (self.at_commit <= 10).then_some(None);
        }
        self.polls += 1;
        Some(Some(self.polls))
    }
}

/// Each poll is the last of a flush. SQLite's connection can be used on then; the others are closed.
async fn dropped<DB: Engine>(site: Site<DB>) -> Outcome {
    create_marks(&site).await?;
    let graph = Graph::new(0, Shape::SMALL);
    let mut connection = connect(&site).await?;
    let (mut was_over, mut nothing, mut all) = (false, 0, 0);
    let mut cuts = Cuts::default();
    let mut rounds = 1;
    loop {
        let Some(polls) = cuts.next(was_over) else {
            // On a busy machine SQLite's thread is done before anybody looks, and a flush has hardly a poll.
            if nothing > 1 || rounds == 50 {
                break;
            }
            (rounds, was_over, cuts) = (rounds + 1, false, Cuts::default());
            continue;
        };
        let mut work = site.work(&graph, Retry::NONE);
        let all_sent = tell_when_sent(&mut work);
        let outcome = cut_off(work.flush_on(&mut connection), polls, &all_sent).await;
        was_over = outcome.is_some();
        match outcome {
            Some(outcome) => assert_eq!(outcome?.rows(), graph.len()),
            None => {
                assert_eq!(work.len(), graph.len(), "nothing is lost");
                if !DB::SURVIVES_DROPS {
                    drop(std::mem::replace(&mut connection, connect(&site).await?));
                }
                check_nothing_is_open(&site, &mut connection).await?;
                match site.look(&graph).await? {
                    Found::None => nothing += 1,
                    Found::All => all += 1,
                }
                // With the same keys; it asks first where it may have been committed.
                let flushed = work.flush_on(&mut connection).await?;
                assert_eq!(flushed.rows(), graph.len());
            }
        }
        assert_eq!(site.look(&graph).await?, Found::All);
        clear(&site).await?;
    }
    eprintln!(
        "{} dropped at {} polls: nothing was written {nothing} times, all {all} times",
        std::any::type_name::<DB>(),
        cuts.polls
    );
    assert!(nothing > 1, "{nothing}");
    Ok(())
}

/// Others get the connections that a flush leaves behind.
async fn dropped_in_a_pool<DB: Engine>(site: Site<DB>) -> Outcome {
    create_marks(&site).await?;
    let graph = Graph::new(0, Shape::SMALL);
    let pools = PoolOptions::new().max_connections(1);
    let pool: Pool<DB> = pools.connect_with(site.options().clone()).await?;
    let mut cuts = Cuts::default();
    let mut was_over = false;
    while let Some(polls) = cuts.next(was_over) {
        let mut work = site.work(&graph, Retry::NONE);
        let all_sent = tell_when_sent(&mut work);
        let outcome = cut_off(work.flush(&pool), polls, &all_sent).await;
        was_over = outcome.is_some();
        let mut connection = pool.acquire().await?;
        check_nothing_is_open(&site, &mut connection).await?;
        drop(connection);
        if outcome.is_none() {
            assert_eq!(work.flush(&pool).await?.rows(), graph.len());
        }
        assert_eq!(site.look(&graph).await?, Found::All);
        clear(&site).await?;
    }
    pool.close().await;
    Ok(())
}

/// Cut off at each poll inside the user's transaction, which is dropped then, and its connection: nothing
/// of it is left, and nothing of the flush.
async fn dropped_inside<DB: Engine>(site: Site<DB>) -> Outcome {
    create_marks(&site).await?;
    let mut most = 0;
    // The thread of SQLite may have answered before it is asked: then there are few polls to cut off.
    for _ in 0..20 {
        most = most.max(dropped_at_each_poll(&site).await?);
        if most > 2 {
            return Ok(());
        }
    }
    Err(format!("a flush had {most} polls at most").into())
}

/// Returns at how many polls the flush was over.
async fn dropped_at_each_poll<DB: Engine>(site: &Site<DB>) -> Outcome<usize> {
    let graph = Graph::new(0, Shape::SMALL);
    let mut connection = connect(site).await?;
    let mut work = site.work(&graph, Retry::NONE);
    let not_told = AtomicBool::new(false);
    for polls in 1.. {
        let mut transaction = connection.begin().await?;
        DB::execute_sql(&mut transaction, "INSERT INTO marks VALUES (2)").await?;
        let flush = work.flush_in(&mut transaction);
        let outcome = cut_off(flush, Some(polls), &not_told).await;
        drop(transaction);
        drop(std::mem::replace(&mut connection, connect(site).await?));
        check_nothing_is_open(site, &mut connection).await?;
        assert_eq!(site.look(&graph).await?, Found::None, "after {polls} polls");
        assert_eq!(work.len(), graph.len());
        if let Some(outcome) = outcome {
            assert_eq!(outcome?.rows(), graph.len());
            return Ok(polls);
        }
    }
    unreachable!("a flush ends")
}

/// Another transaction holds what the flush needs, and gives it back in the end.
async fn locked<DB: Engine>(site: Site<DB>, begin: &str, impatient: &str) -> Outcome {
    let earlier = Graph::new(0, Shape::SMALL);
    let mut connection = connect(&site).await?;
    site.work(&earlier, Retry::NONE)
        .flush_on(&mut connection)
        .await?;
    DB::execute_sql(&mut connection, impatient).await?;
    let mut holder = connect(&site).await?;
    let new = Graph::new(1, Shape::SMALL);
    let mut work = site.work(&new, EAGER.with_attempts(1_000));
    DB::change(&mut work, &earlier);
    for sql in [begin, "UPDATE customers SET bucket = 7 WHERE unit = 0"] {
        DB::execute_sql(&mut holder, sql).await?;
    }
    // Longer than the second of InnoDB's timeout, also where it takes long to come to the row.
    let gives_back = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        DB::execute_sql(&mut holder, "ROLLBACK").await
    };
    let (outcome, given) = tokio::join!(work.flush_on(&mut connection), gives_back);
    given?;
    let flushed = outcome?;
    assert!(flushed.retries >= 1, "{flushed:?}");
    assert_eq!(site.look_for_changes(&new, &earlier).await?, Found::All);

    // Not for ever.
    for sql in [begin, "UPDATE customers SET bucket = 7 WHERE unit = 1"] {
        DB::execute_sql(&mut holder, sql).await?;
    }
    let mut work = site.work(&Graph::new(2, Shape::SMALL), EAGER.with_attempts(2));
    DB::change(&mut work, &new);
    let held = work.len();
    let error = work.flush_on(&mut connection).await.expect_err("held");
    assert!(
        error.is_transient() && !error.is_connection_lost(),
        "{error}"
    );
    assert_eq!((error.retries(), work.len()), (1, held));
    DB::execute_sql(&mut holder, "ROLLBACK").await?;
    Ok(())
}

/// A flush over a proxy that does nothing, to learn what is said.
async fn learn_over<DB: Remote>(
    site: &Site<DB>,
    proxy: &Proxy,
    shape: Shape,
) -> Outcome<Conversation> {
    let graph = Graph::new(0, shape);
    let mut connection = connect(&through(site, proxy)).await?;
    let mut work = site.work(&graph, Retry::NONE);
    let outcome = work.flush_on(&mut connection).await;
    connection.close().await?;
    site.judge(&graph, &work, &outcome).await?;
    outcome?;
    Conversation::of(proxy.last_traffic())
}

/// There is no other connection to try: an error, and the next flush goes on with the same keys; where
/// COMMIT is unknown, by asking for them.
async fn lost<DB: Remote>(site: Site<DB>) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let conversation = learn_over(&site, &proxy, Shape::SMALL).await?;
    let through = through(&site, &proxy);
    let (up, answered) = (conversation.before_commit, conversation.answered);
    for (unit, (fault, is_unknown, found)) in (1..).zip([
        (Fault::Cut(At::Up(up / 2)), Some(false), Found::None),
        // Within COMMIT, and behind it.
        (Fault::Cut(At::Up(up + 3)), Some(true), Found::None),
        (Fault::Swallow(answered), Some(true), Found::All),
        // Whether it was sent depends on who is first.
        (Fault::Cut(At::Up(up)), None, Found::None),
    ]) {
        for over_pool in [false, true] {
            let graph = Graph::new(2 * unit + u32::from(over_pool), Shape::SMALL);
            let mut work = site.work(&graph, EAGER);
            proxy.plan([fault]);
            let mut connection = connect(&through).await?;
            let error = work
                .flush_on(&mut connection)
                .await
                .expect_err("it is lost");
            let what = format!("{fault:?} of {conversation:?}: {error}");
            assert!(error.is_connection_lost(), "{what}");
            if let Some(is_unknown) = is_unknown {
                assert_eq!(error.is_commit_unknown(), is_unknown, "{what}");
            }
            assert_eq!((error.retries(), work.len()), (0, graph.len()), "{what}");
            site.settle().await?;
            assert_eq!(site.look(&graph).await?, found, "{what}");
            // The connection is dead, and says so again.
            let error = work.flush_on(&mut connection).await.expect_err("dead");
            assert!(error.is_connection_lost(), "{what}, then {error}");
            assert_eq!(work.len(), graph.len());

            let sent = tell_when_sent(&mut work);
            let outcome = if over_pool {
                let pool = site.pool();
                let outcome = work.flush(&pool).await;
                pool.close().await;
                outcome
            } else {
                let mut connection = connect(&site).await?;
                work.flush_on(&mut connection).await
            };
            let again = site.judge(&graph, &work, &outcome).await?;
            assert_eq!(again, Found::All, "{what}, then {outcome:?}");
            let sent = sent.load(Ordering::Relaxed);
            assert_eq!(sent, found == Found::None, "{what}: found or sent");
        }
    }
    Ok(())
}

/// COMMIT landed, its answer was lost, and somebody deletes the rows before they are looked for.
async fn deleted<DB: Remote>(site: Site<DB>) -> Outcome {
    for recorded in [false, true] {
        let proxy = Proxy::start(DB::address(site.options())?).await?;
        let shape = Shape::SMALL;
        let unit = 10 * u32::from(recorded);
        let graph = Graph::new(unit, shape);
        let make = |graph: &Graph| {
            let work = site.work(graph, Retry::NONE);
            if recorded { work.with_record() } else { work }
        };
        // To learn what is said.
        let mut connection = connect(&through(&site, &proxy)).await?;
        make(&Graph::new(unit + 1, shape))
            .flush_on(&mut connection)
            .await?;
        connection.close().await?;
        let (_, answered) = proxy.last_traffic().commit.ok_or("no COMMIT")?;

        let mut work = make(&graph);
        proxy.plan([Fault::Swallow(answered)]);
        let mut connection = connect(&through(&site, &proxy)).await?;
        let error = work.flush_on(&mut connection).await.expect_err("no answer");
        assert!(error.is_commit_unknown(), "{error}");
        site.settle().await?;
        assert_eq!(site.look(&graph).await?, Found::All);
        clear(&site).await?;

        let mut connection = connect(&site).await?;
        let flushed = work.flush_on(&mut connection).await?;
        assert_eq!(flushed.rows(), graph.len());
        assert!(work.is_empty());
        let found = site.look(&graph).await?;
        assert_eq!(found == Found::None, recorded, "{found:?}");
    }
    Ok(())
}

/// The same where the flush itself tries again, over other connections.
async fn deleted_in_a_pool<DB: Remote>(site: Site<DB>) -> Outcome {
    let proxy = Proxy::start(DB::address(site.options())?).await?;
    let through = through(&site, &proxy);
    let mut work = site
        .work(&Graph::new(0, Shape::SMALL), Retry::NONE)
        .with_record();
    let pool = through.pool();
    work.flush(&pool).await?;
    pool.close().await;
    let (_, answered) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
    clear(&site).await?;

    let graph = Graph::new(1, Shape::SMALL);
    let mut work = site.work(&graph, EAGER.with_attempts(1_000)).with_record();
    // Nobody can ask before the rows are gone.
    proxy.always(Fault::Cut(At::Up(0)));
    proxy.plan([Fault::Swallow(answered)]);
    let pool = through.pool();
    let deletes = async {
        // One statement sees all of a transaction or nothing.
        let there = "SELECT COUNT(*) FROM customers WHERE unit = 1";
        while site.numbers(there).await? == [0] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        clear(&site).await?;
        proxy.always(Fault::None);
        Outcome::Ok(())
    };
    let (outcome, deleted) = tokio::join!(work.flush(&pool), deletes);
    deleted?;
    pool.close().await;
    let flushed = outcome?;
    assert_eq!((flushed.rows(), flushed.retries), (graph.len(), 0));
    assert_eq!(site.look(&graph).await?, Found::None, "they came back");
    Ok(())
}
