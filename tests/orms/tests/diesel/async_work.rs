//! The unit of work over diesel-async, on each backend. What is in the database is made and looked at over
//! Diesel's own connections.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use diesel::connection::TransactionManagerStatus;
use diesel_async::{AsyncConnection, SimpleAsyncConnection as _, TransactionManager as _};
use ordid::KeyType as _;
use ordid_diesel::Retry;
use ordid_tests::{
    proxy::{At, Fault},
    trials::{cut_off, run},
};

use crate::{
    Outcome, Test,
    scratch::proxied,
    tables::{
        Customer, CustomerId, Employee, EmployeeId, Keeps, Order, Tables, Work, beginnings, circle,
        connect, create, customer, order,
    },
};

/// The tests of a backend.
pub fn tests<DB: Tables>() -> Vec<(&'static str, Test)> {
    let mut tests: Vec<(_, Test)> = vec![
        ("async::a_graph_goes_in_parents_first", graph::<DB>),
        ("async::rows_are_updated_and_deleted", changes::<DB>),
        ("async::what_is_refused_writes_nothing", refused::<DB>),
        (
            "async::an_open_transaction_is_respected",
            transactions::<DB>,
        ),
        (
            "async::a_connection_that_is_not_made_is_an_attempt",
            unreached::<DB>,
        ),
        ("async::pools_lend_their_connections", pools::<DB>),
        (
            "async::a_lock_that_does_not_come_is_tried_again",
            locked::<DB>,
        ),
        ("async::a_dropped_flush_leaves_no_half_graph", dropped::<DB>),
    ];
    if !DB::IS_FILE {
        tests.push(("async::a_killed_connection_is_replaced", killed::<DB>));
        tests.push((
            "async::what_became_of_a_lost_commit_is_found_out",
            lost_commit::<DB>,
        ));
    }
    tests
}

type Manager<DB> = <<DB as Tables>::Async as AsyncConnection>::TransactionManager;

async fn open<DB: Tables>(url: &str) -> Result<DB::Async, diesel::ConnectionError> {
    let mut connection = DB::Async::establish(url).await?;
    if DB::IS_FILE {
        connection
            .batch_execute("PRAGMA foreign_keys = ON; PRAGMA busy_timeout = 5000")
            .await
            .map_err(diesel::ConnectionError::CouldntSetupConfiguration)?;
    }
    Ok(connection)
}

fn finish(outcome: Result<(), libtest_mimic::Failed>) -> Outcome {
    outcome.map_err(|error| error.message().unwrap_or("failed").into())
}

fn at_once() -> Retry {
    Retry::DEFAULT.with_delays(Duration::ZERO, Duration::ZERO)
}

/// A customer with so many orders.
fn filled<DB: Tables>(orders: i32) -> Work<DB> {
    let mut work = Work::<DB>::new().with_retry(at_once());
    let ada = work.add(customer("Ada"));
    for kind in 100..100 + orders {
        work.add(order(ada, kind));
    }
    work
}

/// Parents first, one statement for 1,000 rows, in one transaction.
pub fn graph<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut connection = open::<DB>(url).await?;
        let (statements, seen) = beginnings(6);
        connection.set_instrumentation(seen);
        let mut work = filled::<DB>(2_500);
        let boss = Employee {
            id: EmployeeId::generate(),
            boss: None,
        };
        work.add(Employee {
            id: EmployeeId::generate(),
            boss: Some(boss.id),
        });
        work.add(boss);
        let progress = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&progress);
        work.observe(move |progress| told.store(progress.done, Ordering::Relaxed));
        let flushed = work.flush_async(&mut connection).await?;
        assert_eq!((flushed.rows(), flushed.retries), (2_503, 0));
        assert_eq!(progress.load(Ordering::Relaxed), 2_503);
        assert!(work.is_empty());
        let table = flushed.tables.iter().find(|it| it.table == "orders");
        let table = table.map(|it| (it.rows, it.statements));
        assert_eq!(table, Some((2_500, 3)));
        let sent = std::mem::take(&mut *statements.lock().unwrap());
        let inserts = sent.iter().filter(|it| *it == "INSERT").count();
        // Two for the two depths of employees at most.
        assert!((5..=6).contains(&inserts), "{sent:?}");
        Ok(())
    }))?;
    assert_eq!(DB::counts(&mut sync)?, [1, 2_500, 2]);
    let kinds = DB::orders(&mut sync)?.into_iter().map(|it| it.kind);
    assert!(kinds.eq(100..2_600));
    Ok(())
}

/// Rows are updated, deleted children first, and circles closed by a fix-up.
pub fn changes<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut connection = open::<DB>(url).await?;
        let mut work = Work::<DB>::new();
        let ada = work.add(customer("Ada"));
        let kept = order(ada, 1);
        let dropped = order(ada, 2);
        work.add(kept.clone());
        work.add(dropped.clone());
        let circle = circle();
        for employee in circle.clone() {
            work.add(employee);
        }
        work.flush_async(&mut connection).await?;
        assert_eq!(DB::counts(&mut sync)?, [1, 2, 2]);

        work.update(Order {
            kind: 3,
            ..kept.clone()
        });
        work.delete(&dropped);
        for employee in &circle {
            work.delete(employee);
        }
        let flushed = work.flush_async(&mut connection).await?;
        assert_eq!((flushed.updated(), flushed.deleted()), (1, 3));
        let found = DB::orders(&mut sync)?;
        assert_eq!(found, [Order { kind: 3, ..kept }]);

        // As it is already: a row that is found is not missing.
        work.update(found[0].clone());
        assert_eq!(work.flush_async(&mut connection).await?.updated(), 1);
        work.delete(&dropped);
        let error = work.flush_async(&mut connection).await.unwrap_err();
        assert!(error.is_missing_row(), "{error}");
        assert_eq!(error.key(), Some(dropped.key.to_string().as_str()));
        Ok(())
    }))
}

/// What is refused writes nothing, names the row, and stays to be flushed again.
pub fn refused<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut connection = open::<DB>(url).await?;
        let mut work = filled::<DB>(1_400);
        let ada = <DB as Keeps<Customer>>::keys(&work)[0];
        let bad = order(ada, 13);
        work.add(bad.clone());
        let error = work.flush_async(&mut connection).await.unwrap_err();
        assert_eq!(error.key(), Some(bad.key.to_string().as_str()), "{error}");
        assert_eq!((error.table(), error.chunk()), (Some("orders"), Some(1)));
        assert_eq!((DB::counts(&mut sync)?, work.len()), ([0; 3], 1_402));
        work.clear();

        // The connection is as before.
        let ada = work.add(customer("Ada"));
        work.flush_async(&mut connection).await?;
        work.add(Customer {
            id: Some(ada),
            ..customer("Twin")
        });
        let error = work.flush_async(&mut connection).await.unwrap_err();
        assert!(error.is_unique_violation(), "{error}");
        assert_eq!(error.key(), Some(ada.to_string().as_str()));
        work.clear();
        work.add(order(CustomerId::generate(), 1));
        let error = work.flush_async(&mut connection).await.unwrap_err();
        assert!(error.is_foreign_key_violation(), "{error}");
        assert_eq!(DB::counts(&mut sync)?, [1, 0, 0]);
        Ok(())
    }))
}

/// An open transaction is respected, a test transaction is a test's.
pub fn transactions<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut connection = open::<DB>(url).await?;
        let mut work = Work::<DB>::new();
        let ada = work.add(customer("Ada"));
        let error = work.flush_in_async(&mut connection).await.unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        let outcome = connection
            .transaction::<(), diesel::result::Error, _>(async |connection| {
                let error = work.flush_async(connection).await.unwrap_err();
                assert!(error.is_connection_state(), "{error}");
                work.flush_in_async(connection).await.unwrap();
                Err(diesel::result::Error::RollbackTransaction)
            })
            .await;
        assert!(outcome.is_err());
        assert_eq!((DB::counts(&mut sync)?, work.len()), ([0; 3], 1));

        connection
            .transaction::<(), diesel::result::Error, _>(async |connection| {
                work.flush_in_async(connection).await.unwrap();
                work.clear();
                // What fails leaves the transaction as it was.
                work.add(order(ada, 1));
                work.add(order(ada, 13));
                let error = work.flush_in_async(connection).await.unwrap_err();
                assert!(error.key().is_some(), "{error}");
                Ok(())
            })
            .await?;
        work.clear();
        assert_eq!(DB::counts(&mut sync)?, [1, 0, 0]);

        connection.begin_test_transaction().await?;
        work.add(customer("Grace"));
        work.flush_async(&mut connection).await?;
        assert!(work.is_empty());
        drop(connection);
        assert_eq!(DB::counts(&mut sync)?, [1, 0, 0]);
        Ok(())
    }))
}

/// A flush goes over a pool's connections, and gives them back.
pub fn pools<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        DB::flush_over_pools(url, || filled(3)).await?;
        assert_eq!(DB::counts(&mut sync)?, [5, 15, 0]);
        Ok(())
    }))
}

/// Who waits for a lock in vain tries again, with the same keys.
pub fn locked<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut work = Work::<DB>::new().with_retry(at_once());
        let id = work.add(customer("Ada"));
        // The same key, which will not come to anything.
        let mut holder = open::<DB>(url).await?;
        holder.batch_execute("BEGIN").await?;
        let row = Customer {
            id: Some(id),
            ..customer("Holder")
        };
        DB::insert_async(&mut holder, row).await?;
        let holder = Mutex::new(Some(holder));
        let calls = AtomicUsize::new(0);
        let flushed = work
            .flush_with_async(async || {
                let released = match calls.fetch_add(1, Ordering::Relaxed) {
                    0 => None,
                    _ => holder.lock().unwrap().take(),
                };
                if let Some(mut holder) = released {
                    holder.batch_execute("ROLLBACK").await.unwrap();
                }
                let mut connection = open::<DB>(url).await?;
                connection.batch_execute(DB::WAIT).await.unwrap();
                Ok::<_, diesel::ConnectionError>(connection)
            })
            .await?;
        assert_eq!((flushed.rows(), flushed.retries), (1, 1));
        let found = &DB::customers(&mut sync)?[0];
        assert_eq!((found.id, found.name.as_str()), (Some(id), "Ada"));
        Ok(())
    }))
}

/// A connection that could not be made is an attempt, the first one, too.
pub fn unreached<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let calls = AtomicUsize::new(0);
        let connect = async |refused: usize| {
            if calls.fetch_add(1, Ordering::Relaxed) < refused {
                return Err(diesel::ConnectionError::BadConnection("no".to_owned()));
            }
            open::<DB>(url).await
        };
        let mut work = filled::<DB>(1).with_retry(Retry::NONE);
        let error = work.flush_with_async(|| connect(1)).await.unwrap_err();
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(calls.swap(0, Ordering::Relaxed), 1);
        let flushed = filled::<DB>(1).flush_with_async(|| connect(2)).await?;
        assert_eq!((flushed.rows(), flushed.retries), (2, 2));
        assert_eq!(calls.load(Ordering::Relaxed), 3);
        assert_eq!(DB::counts(&mut sync)?, [1, 1, 0]);
        Ok(())
    }))
}

/// A connection that dies is replaced, out of a pool, and the rows are there once.
pub fn killed<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut killer = Some(connect::<DB>(url)?);
        let flushed = DB::flush_over_session(url, |session| {
            let mut work = filled(1_500);
            work.observe(move |_| {
                if let Some(mut killer) = killer.take() {
                    DB::kill(&mut killer, session);
                }
            });
            work
        })
        .await?;
        assert_eq!((flushed.rows(), flushed.retries), (1_501, 1));
        assert_eq!(DB::counts(&mut sync)?, [1, 1_500, 0]);
        Ok(())
    }))
}

/// The answer to COMMIT is swallowed, or COMMIT itself is: in the end the rows are there
/// once.
pub fn lost_commit<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    let (_runtime, proxy, through) = proxied(url)?;
    let through = through + DB::PLAIN[1];
    finish(run(async || {
        let connect = || open::<DB>(&through);
        let flushed = filled::<DB>(30).flush_with_async(connect).await?;
        assert_eq!((flushed.rows(), flushed.retries), (31, 0));
        let (up, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
        let mut expected = [1, 30, 0];
        assert_eq!(DB::counts(&mut sync)?, expected);
        let mut more = || {
            expected = [expected[0] + 1, expected[1] + 30, 0];
            expected
        };

        // It was carried out: found, and not sent again.
        proxy.plan([Fault::Swallow(down)]);
        let flushed = filled::<DB>(30).flush_with_async(connect).await?;
        assert_eq!((flushed.rows(), flushed.retries), (31, 0));
        assert_eq!(DB::counts(&mut sync)?, more());

        // It did not arrive: not found, and sent again.
        proxy.plan([Fault::Cut(At::Up(up))]);
        let flushed = filled::<DB>(30).flush_with_async(connect).await?;
        assert_eq!((flushed.rows(), flushed.retries), (31, 1));
        assert_eq!(DB::counts(&mut sync)?, more());

        // Over the one connection it cannot be known; over the next it can.
        proxy.plan([Fault::Swallow(down)]);
        let mut unknown = filled::<DB>(30);
        let mut connection = open::<DB>(&through).await?;
        let error = unknown.flush_async(&mut connection).await.unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        assert_eq!(unknown.len(), 31);
        let mut connection = open::<DB>(url).await?;
        let flushed = unknown.flush_async(&mut connection).await?;
        assert_eq!((flushed.rows(), flushed.retries), (31, 0));
        assert_eq!(DB::counts(&mut sync)?, more());
        Ok(())
    }))
}

/// A flush that is dropped at any poll leaves all rows or none, a connection with which
/// nobody goes on by mistake, and a unit of work that can be flushed again.
pub fn dropped<DB: Tables>(url: &str) -> Outcome {
    let mut sync = create::<DB>(url)?;
    finish(run(async || {
        let mut expected = [0; 3];
        for polls in 1.. {
            let mut work = filled::<DB>(1_200);
            let mut connection = open::<DB>(url).await?;
            let outcome = cut_off(work.flush_async(&mut connection), polls + 1).await;
            let is_over = outcome.transpose()?.is_some();
            expected = [expected[0] + 1, expected[1] + 1_200, 0];
            if is_over {
                assert!(polls > 1, "it was dropped in the midst");
                assert_eq!(DB::counts(&mut sync)?, expected);
                return Ok(());
            }
            // Who goes on with the connection commits nothing of it, and a pool closes it.
            // (What a task of SQLite's still works at, nobody may look at.)
            let status = match DB::IS_FILE {
                true => TransactionManagerStatus::InError,
                false => {
                    assert!(Manager::<DB>::is_broken_transaction_manager(
                        &mut connection
                    ));
                    std::mem::take(Manager::<DB>::transaction_manager_status_mut(
                        &mut connection,
                    ))
                }
            };
            let committed = match status {
                TransactionManagerStatus::Valid(_) => Ok(()),
                error @ TransactionManagerStatus::InError => {
                    if !DB::IS_FILE {
                        *Manager::<DB>::transaction_manager_status_mut(&mut connection) = error;
                    }
                    connection
                        .transaction::<(), diesel::result::Error, _>(async |_| Ok(()))
                        .await
                }
            };
            let [customers, orders, _] = DB::counts(&mut sync)?;
            let all = (customers, orders) == (expected[0], expected[1]);
            let none = (customers, orders) == (expected[0] - 1, expected[1] - 1_200);
            assert!(all || none, "{polls} polls, {committed:?}: half a graph");
            drop(connection);
            if !work.is_empty() {
                work.flush_async(&mut open::<DB>(url).await?).await?;
            }
            assert_eq!(DB::counts(&mut sync)?, expected, "after {polls} polls");
        }
        Ok(())
    }))
}
