//! A flush that is tried again: after locks, lost connections and lost answers to COMMIT, each row is
//! there once. Network faults are those of a proxy in front of the real server.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use libtest_mimic::Trial;
use ordid::{KeyType as _, OrderedKey};
use ordid_sqlx::{Retry, UnitOfWork};
use ordid_tests::{
    proxy::{At, Fault, Proxy, Traffic},
    servers::Servers,
};
use sqlx::{
    AssertSqlSafe, MySql, Pool, Postgres, Sqlite,
    mysql::{MySqlConnectOptions, MySqlSslMode},
    pool::PoolOptions,
    postgres::{PgConnectOptions, PgSslMode},
    query_scalar, raw_sql,
    sqlite::SqliteConnectOptions,
};

use crate::{Outcome, keys::Native, server_trial, sqlite};

#[derive(OrderedKey, Clone)]
#[ordid(table = "parents")]
struct Parent {
    #[ordid(key)]
    id: Native,
    name: String,
}

#[derive(OrderedKey, Clone)]
#[ordid(table = "children")]
struct Child {
    #[ordid(key)]
    id: Native,
    #[ordid(references = Parent)]
    parent: Native,
    number: i32,
}

const ROWS: i64 = 35;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    macro_rules! add {
        ($server:literal, $database:ident, $module:ident, $($name:ident),* $(,)?) => {
            $(server_trial::<$database, _, _>(
                trials, servers, $server, concat!("retry::", stringify!($name)), $module::$name,
            );)*
        };
    }
    add!(
        "postgres",
        Postgres,
        postgres,
        an_answer_to_commit_that_is_lost_is_found_out,
        a_commit_that_did_not_arrive_is_sent_again,
        a_commit_that_lands_late_is_no_second_copy,
        a_commit_that_nobody_could_ask_for_is_unknown,
        a_lock_that_does_not_come_is_waited_for_again,
        dead_connections_of_the_pool_are_passed_over,
        a_dropped_flush_is_taken_up_by_the_next,
    );
    add!(
        "mariadb",
        MySql,
        mysql,
        an_answer_to_commit_that_is_lost_is_found_out,
        a_commit_that_did_not_arrive_is_sent_again,
        a_commit_that_lands_late_is_no_second_copy,
        a_commit_that_nobody_could_ask_for_is_unknown,
        a_lock_that_does_not_come_is_waited_for_again,
        dead_connections_of_the_pool_are_passed_over,
        a_dropped_flush_is_taken_up_by_the_next,
    );
    sqlite::add(
        trials,
        "retry::a_lock_that_does_not_come_is_waited_for_again",
        on_sqlite::a_lock_that_does_not_come_is_waited_for_again,
    );
    sqlite::add(
        trials,
        "retry::a_dropped_flush_is_taken_up_by_the_next",
        on_sqlite::a_dropped_flush_is_taken_up_by_the_next,
    );
}

/// Short delays: nobody has to wait for a server to start.
fn quick() -> Retry {
    Retry::DEFAULT.with_delays(Duration::from_millis(10), Duration::from_millis(100))
}

/// What every engine is tried with: SQLx's executors are those of concrete connections.
macro_rules! common {
    ($database:ident, $key:literal, $options:literal, $make:literal) => {
        use super::*;

        async fn execute(pool: &Pool<$database>, sql: &str) -> Result<(), sqlx::Error> {
            raw_sql(AssertSqlSafe(sql)).execute(pool).await.map(drop)
        }

        async fn count(pool: &Pool<$database>) -> Result<i64, sqlx::Error> {
            query_scalar("SELECT (SELECT COUNT(*) FROM parents) + (SELECT COUNT(*) FROM children)")
                .fetch_one(pool)
                .await
        }

        async fn create(pool: &Pool<$database>) -> Result<(), sqlx::Error> {
            for sql in [
                concat!(
                    "CREATE TABLE parents (id ",
                    $key,
                    " NOT NULL PRIMARY KEY, name VARCHAR(20) \
                     NOT NULL UNIQUE) ",
                    $options
                ),
                concat!(
                    "CREATE TABLE children (id ",
                    $key,
                    " NOT NULL PRIMARY KEY, parent ",
                    $key,
                    " NOT NULL, number INTEGER NOT NULL, FOREIGN KEY (parent) REFERENCES parents \
                     (id)) ",
                    $options
                ),
            ] {
                execute(pool, sql).await?;
            }
            Ok(())
        }

        async fn empty(pool: &Pool<$database>) -> Result<(), sqlx::Error> {
            execute(pool, "DELETE FROM children").await?;
            execute(pool, "DELETE FROM parents").await
        }

        /// Five parents with six children each.
        fn work() -> UnitOfWork<$database> {
            let mut work = UnitOfWork::new().with_retry(quick());
            for name in 0..5 {
                let parent = Parent {
                    id: Native::generate(),
                    name: name.to_string(),
                };
                for number in 0..6 {
                    work.add(Child {
                        id: Native::generate(),
                        parent: parent.id,
                        number,
                    });
                }
                work.add(parent);
            }
            assert_eq!(i64::try_from(work.len()).ok(), Some(ROWS));
            work
        }

        /// Cut off at each poll, and flushed again: all rows are there, once.
        pub(super) async fn a_dropped_flush_is_taken_up_by_the_next(
            pool: Pool<$database>,
        ) -> Outcome {
            create(&pool).await?;
            let (mut none, mut all) = (0, 0);
            for polls in 1.. {
                let mut work = work();
                let over = {
                    let mut flush = pin!(work.flush(&pool));
                    let mut left = polls;
                    poll_fn(|context| match flush.as_mut().poll(context) {
                        Poll::Ready(outcome) => Poll::Ready(outcome.map(|_| true)),
                        Poll::Pending if left == 1 => Poll::Ready(Ok(false)),
                        Poll::Pending => {
                            left -= 1;
                            Poll::Pending
                        }
                    })
                    .await?
                };
                if !over {
                    assert_eq!(i64::try_from(work.len())?, ROWS, "nothing is lost");
                    // Both may be: one cut off at COMMIT lands when it lands.
                    match count(&pool).await? {
                        0 => none += 1,
                        ROWS => all += 1,
                        rows => panic!("{rows} rows after {polls} polls"),
                    }
                    let flushed = work.flush(&pool).await?;
                    assert_eq!(i64::try_from(flushed.rows())?, ROWS);
                }
                assert!(work.is_empty());
                assert_eq!(count(&pool).await?, ROWS, "after {polls} polls");
                empty(&pool).await?;
                if over {
                    break;
                }
            }
            assert!(none > 3 && all > 0, "{none} before COMMIT, {all} after it");
            Ok(())
        }

        /// Another transaction has a name, and gives it back in the end; or does not.
        pub(super) async fn a_lock_that_does_not_come_is_waited_for_again(
            pool: Pool<$database>,
        ) -> Outcome {
            create(&pool).await?;
            let impatient = impatient(&pool).await?;
            let takes = concat!("INSERT INTO parents (id, name) VALUES (", $make, ", '3')");
            let mut other = pool.begin().await?;
            raw_sql(takes).execute(&mut *other).await?;
            let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
            let mut patient = work().with_retry(quick().with_attempts(1_000));
            patient.observe(move |progress| told.send(progress).unwrap());
            let gives_back = async {
                tokio::time::sleep(Duration::from_millis(1_500)).await;
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
            raw_sql(takes).execute(&mut *other).await?;
            let mut work = work().with_retry(quick().with_attempts(2));
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
    };
}

macro_rules! remote {
    (
        $database:ident, $connect_options:ty, $no_tls:expr, $key:literal, $options:literal,
        make: $make:literal, impatient: $impatient:literal, waits: $waits:literal, id: $id:literal,
        kill: $kill:literal
    ) => {
        common!($database, $key, $options, $make);

        /// The same database over connections that do not wait long for a lock.
        async fn impatient(pool: &Pool<$database>) -> Result<Pool<$database>, sqlx::Error> {
            let pools = PoolOptions::new()
                .max_connections(2)
                .after_connect(|connection, _| {
                    Box::pin(async { raw_sql($impatient).execute(connection).await.map(drop) })
                });
            pools.connect_with((*pool.connect_options()).clone()).await
        }

        /// The same database through a proxy, over fresh connections.
        async fn through(
            pool: &Pool<$database>,
            proxy: &Proxy,
        ) -> Result<Pool<$database>, sqlx::Error> {
            let options: $connect_options = (*pool.connect_options()).clone();
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

        async fn proxy(
            pool: &Pool<$database>,
        ) -> Result<Proxy, Box<dyn std::error::Error + Send + Sync>> {
            let options = pool.connect_options();
            let mut found =
                tokio::net::lookup_host((options.get_host(), options.get_port())).await?;
            let address = found.next().ok_or("the server has no address")?;
            Ok(Proxy::start(address).await?)
        }

        /// Flushes once without a fault: where its COMMIT is.
        async fn learn(
            pool: &Pool<$database>,
            proxy: &Proxy,
        ) -> Result<Traffic, Box<dyn std::error::Error + Send + Sync>> {
            create(pool).await?;
            let behind = through(pool, proxy).await?;
            let flushed = work().flush(&behind).await?;
            assert_eq!(flushed.retries, 0);
            let traffic = proxy.last_traffic();
            behind.close().await;
            empty(pool).await?;
            assert!(traffic.commit.is_some());
            Ok(traffic)
        }

        pub(super) async fn an_answer_to_commit_that_is_lost_is_found_out(
            pool: Pool<$database>,
        ) -> Outcome {
            let proxy = proxy(&pool).await?;
            let (_, down) = learn(&pool, &proxy).await?.commit.unwrap();
            let behind = through(&pool, &proxy).await?;
            proxy.plan([Fault::Swallow(down)]);
            let mut work = work();
            let flushed = work.flush(&behind).await?;
            assert_eq!(
                (flushed.rows(), flushed.retries),
                (35, 0),
                "found, not sent again"
            );
            assert_eq!(flushed.tables.len(), 2);
            assert!(work.is_empty());
            assert_eq!(count(&pool).await?, ROWS);
            behind.close().await;
            Ok(())
        }

        pub(super) async fn a_commit_that_did_not_arrive_is_sent_again(
            pool: Pool<$database>,
        ) -> Outcome {
            let proxy = proxy(&pool).await?;
            let (up, _) = learn(&pool, &proxy).await?.commit.unwrap();
            for at in [up, up / 2, 10] {
                let behind = through(&pool, &proxy).await?;
                proxy.plan([Fault::Cut(At::Up(at))]);
                let connections = proxy.traffic().len();
                let mut work = work();
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

        /// It is not there when it is looked for, and then it lands while the rows are sent again.
        pub(super) async fn a_commit_that_lands_late_is_no_second_copy(
            pool: Pool<$database>,
        ) -> Outcome {
            let proxy = proxy(&pool).await?;
            let (up, _) = learn(&pool, &proxy).await?.commit.unwrap();
            let behind = through(&pool, &proxy).await?;
            proxy.plan([Fault::Hold(up)]);
            let mut work = work();
            let landing = async {
                while query_scalar::<_, i64>($waits).fetch_one(&pool).await? == 0 {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                proxy.release();
                Ok::<(), sqlx::Error>(())
            };
            let (flushed, landed) = tokio::join!(work.flush(&behind), landing);
            landed?;
            let flushed = flushed?;
            assert_eq!((flushed.rows(), flushed.retries), (35, 1));
            assert!(work.is_empty());
            assert_eq!(count(&pool).await?, ROWS);
            behind.close().await;
            Ok(())
        }

        /// Neither could the database be asked; but the next flush asks it.
        pub(super) async fn a_commit_that_nobody_could_ask_for_is_unknown(
            pool: Pool<$database>,
        ) -> Outcome {
            let proxy = proxy(&pool).await?;
            let (_, down) = learn(&pool, &proxy).await?.commit.unwrap();
            let behind = through(&pool, &proxy).await?;
            let cut = Fault::Cut(At::Up(1));
            for added in [false, true] {
                proxy.plan([Fault::Swallow(down)].into_iter().chain([cut; 50]));
                let mut work = work().with_retry(Retry::NONE);
                let error = work.flush(&behind).await.unwrap_err();
                assert!(error.is_commit_unknown(), "{error}");
                assert!(error.is_connection_lost(), "{error}");
                assert_eq!(count(&pool).await?, ROWS);
                proxy.plan([]);
                if added {
                    // Another flush: what is there is refused.
                    let parent = Parent {
                        id: Native::generate(),
                        name: "another".into(),
                    };
                    work.add(parent);
                    let error = work.flush(&behind).await.unwrap_err();
                    assert!(
                        error.is_unique_violation() && !error.is_commit_unknown(),
                        "{error}"
                    );
                    assert!(error.key().is_some());
                } else {
                    assert_eq!(work.flush(&behind).await?.rows(), 35);
                    assert!(work.is_empty());
                }
                assert_eq!(count(&pool).await?, ROWS);
                empty(&pool).await?;
            }
            behind.close().await;
            Ok(())
        }

        /// The server ends all connections of a pool that does not ask them first.
        pub(super) async fn dead_connections_of_the_pool_are_passed_over(
            pool: Pool<$database>,
        ) -> Outcome {
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
                let id = query_scalar::<_, i64>($id)
                    .fetch_one(&mut *connection)
                    .await?;
                all.push((connection, id));
            }
            for (connection, id) in all {
                drop(connection);
                execute(&pool, &format!($kill, id)).await?;
            }
            let mut work = work().with_retry(quick().with_attempts(2));
            let flushed = work.flush(&tired).await?;
            assert_eq!((flushed.rows(), flushed.retries), (35, 1));
            assert_eq!(count(&pool).await?, ROWS);
            tired.close().await;
            Ok(())
        }
    };
}

mod postgres {
    remote!(
        Postgres, PgConnectOptions, PgSslMode::Disable, "uuid", "",
        make: "gen_random_uuid()",
        impatient: "SET lock_timeout = '100ms'",
        waits: "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND \
                wait_event_type = 'Lock'",
        id: "SELECT pg_backend_pid()::bigint",
        kill: "SELECT pg_terminate_backend({}, 5000)"
    );
}

mod mysql {
    remote!(
        MySql, MySqlConnectOptions, MySqlSslMode::Disabled, "BINARY(16)", "ENGINE=InnoDB",
        make: "UNHEX(REPLACE(UUID(), '-', ''))",
        impatient: "SET innodb_lock_wait_timeout = 1",
        waits: "SELECT COUNT(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'",
        id: "SELECT CAST(CONNECTION_ID() AS SIGNED)",
        kill: "KILL {}"
    );
}

mod on_sqlite {
    common!(Sqlite, "BLOB", "WITHOUT ROWID", "randomblob(16)");

    async fn impatient(pool: &Pool<Sqlite>) -> Result<Pool<Sqlite>, sqlx::Error> {
        let options: SqliteConnectOptions = (*pool.connect_options()).clone();
        Pool::connect_with(options.busy_timeout(Duration::ZERO)).await
    }
}
