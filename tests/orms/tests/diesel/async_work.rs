//! The unit of work over diesel-async, written once and expanded for each engine. What is in the
//! database is made and looked at over the sync connection, with the tables of `work`.

/// Defines the tests for a connection of diesel-async. `$kill` ends the session of a connection over
/// another one.
macro_rules! async_work {
    ($connection:ty, $sync:ty, $backend:ty, wait: $wait:literal, plain: $plain:literal, session: $session:literal, kill: $kill:expr) => {
        pub mod async_work {
            use std::{
                future::poll_fn,
                pin::pin,
                sync::{
                    Arc, Mutex,
                    atomic::{AtomicUsize, Ordering},
                },
                task::Poll,
                time::Duration,
            };

            use diesel::{
                connection::{InstrumentationEvent, TransactionManagerStatus},
                prelude::*,
                sql_types::BigInt,
            };
            use diesel_async::{
                AsyncConnection, SimpleAsyncConnection, TransactionManager as _,
                pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool},
            };
            use ordid::{KeyType as _, OrderedKey as _};
            use ordid_diesel::{Retry, UnitOfWork};
            use ordid_tests::{
                proxy::{At, Fault},
                trials::run,
            };

            use super::work::*;
            use crate::{Outcome, scratch::proxied};

            type Connection = $connection;
            type Manager = <Connection as AsyncConnection>::TransactionManager;

            async fn open(url: &str) -> Result<Connection, diesel::ConnectionError> {
                let mut connection = Connection::establish(url).await?;
                if stringify!($backend).contains("Sqlite") {
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
            fn filled(orders: i32) -> UnitOfWork<$backend> {
                let mut work = UnitOfWork::new().with_retry(at_once());
                let ada = work.add(customer("Ada"));
                for kind in 100..100 + orders {
                    work.add(order(ada, kind));
                }
                work
            }

            /// Parents first, one statement for 1,000 rows, in one transaction.
            pub fn graph(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut connection = open(url).await?;
                    let statements = Arc::new(Mutex::new(Vec::new()));
                    let seen = Arc::clone(&statements);
                    connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
                        if let InstrumentationEvent::StartQuery { query, .. } = event {
                            let text = query.to_string();
                            seen.lock()
                                .unwrap()
                                .push(text[..6.min(text.len())].to_owned());
                        }
                    });
                    let mut work = filled(2_500);
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
                assert_eq!(counts(&mut sync)?, [1, 2_500, 2]);
                let kinds: Vec<i32> = orders::table
                    .order(orders::id)
                    .select(orders::kind_)
                    .load(&mut sync)?;
                assert!(kinds.into_iter().eq(100..2_600));
                Ok(())
            }

            /// Rows are updated, deleted children first, and circles closed by a fix-up.
            pub fn changes(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut connection = open(url).await?;
                    let mut work = UnitOfWork::new();
                    let ada = work.add(customer("Ada"));
                    let kept = order(ada, 1);
                    let dropped = order(ada, 2);
                    work.add(kept.clone());
                    work.add(dropped.clone());
                    let [first, second] = [EmployeeId::generate(), EmployeeId::generate()];
                    for (id, boss) in [(first, second), (second, first)] {
                        work.add(Employee {
                            id,
                            boss: Some(boss),
                        });
                    }
                    work.flush_async(&mut connection).await?;
                    assert_eq!(counts(&mut sync)?, [1, 2, 2]);

                    work.update(Order {
                        kind: 3,
                        ..kept.clone()
                    });
                    work.delete(&dropped);
                    for (id, boss) in [(first, second), (second, first)] {
                        work.delete(&Employee {
                            id,
                            boss: Some(boss),
                        });
                    }
                    let flushed = work.flush_async(&mut connection).await?;
                    assert_eq!((flushed.updated(), flushed.deleted()), (1, 3));
                    let found: Vec<Order> =
                        orders::table.select(Order::as_select()).load(&mut sync)?;
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
            pub fn refused(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut connection = open(url).await?;
                    let mut work = filled(1_400);
                    let ada = work.get::<Customer>()[0].key().unwrap();
                    let bad = order(ada, 13);
                    work.add(bad.clone());
                    let error = work.flush_async(&mut connection).await.unwrap_err();
                    assert_eq!(error.key(), Some(bad.key.to_string().as_str()), "{error}");
                    assert_eq!((error.table(), error.chunk()), (Some("orders"), Some(1)));
                    assert_eq!((counts(&mut sync)?, work.len()), ([0; 3], 1_402));
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
                    assert_eq!(counts(&mut sync)?, [1, 0, 0]);
                    Ok(())
                }))
            }

            /// An open transaction is respected, a test transaction is a test's.
            pub fn transactions(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut connection = open(url).await?;
                    let mut work = UnitOfWork::<$backend>::new();
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
                    assert_eq!((counts(&mut sync)?, work.len()), ([0; 3], 1));

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
                    assert_eq!(counts(&mut sync)?, [1, 0, 0]);

                    connection.begin_test_transaction().await?;
                    work.add(customer("Grace"));
                    work.flush_async(&mut connection).await?;
                    assert!(work.is_empty());
                    drop(connection);
                    assert_eq!(counts(&mut sync)?, [1, 0, 0]);
                    Ok(())
                }))
            }

            /// A flush goes over a pool's connections, and gives them back.
            pub fn pools(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let manager = || AsyncDieselConnectionManager::<Connection>::new(url);
                    let of_bb8 = bb8::Pool::builder().max_size(1).build(manager()).await?;
                    let of_deadpool = deadpool::Pool::builder(manager()).max_size(1).build()?;
                    for _ in 0..2 {
                        filled(3).flush_with_async(|| of_bb8.get_owned()).await?;
                        filled(3).flush_with_async(|| of_deadpool.get()).await?;
                    }
                    filled(3).flush_async(&mut *of_bb8.get().await?).await?;
                    assert_eq!(counts(&mut sync)?, [5, 15, 0]);
                    Ok(())
                }))
            }

            /// Who waits for a lock in vain tries again, with the same keys.
            pub fn locked(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut work = UnitOfWork::new().with_retry(at_once());
                    let id = work.add(customer("Ada"));
                    // The same key, which will not come to anything.
                    let mut holder = open(url).await?;
                    holder.batch_execute("BEGIN").await?;
                    let row = Customer {
                        id: Some(id),
                        ..customer("Holder")
                    };
                    let insert = diesel::insert_into(customers::table).values(row);
                    diesel_async::RunQueryDsl::execute(insert, &mut holder).await?;
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
                            let mut connection = open(url).await?;
                            connection.batch_execute($wait).await.unwrap();
                            Ok::<_, diesel::ConnectionError>(connection)
                        })
                        .await?;
                    assert_eq!((flushed.rows(), flushed.retries), (1, 1));
                    let found: Customer = customers::table
                        .select(Customer::as_select())
                        .first(&mut sync)?;
                    assert_eq!((found.id, found.name.as_str()), (Some(id), "Ada"));
                    Ok(())
                }))
            }

            /// A connection that could not be made is an attempt, the first one, too.
            pub fn unreached(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let calls = AtomicUsize::new(0);
                    let connect = async |refused: usize| {
                        if calls.fetch_add(1, Ordering::Relaxed) < refused {
                            return Err(diesel::ConnectionError::BadConnection("no".to_owned()));
                        }
                        open(url).await
                    };
                    let mut work = filled(1).with_retry(Retry::NONE);
                    let error = work.flush_with_async(|| connect(1)).await.unwrap_err();
                    assert!(error.is_connection_lost(), "{error}");
                    assert_eq!(calls.swap(0, Ordering::Relaxed), 1);
                    let flushed = filled(1).flush_with_async(|| connect(2)).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (2, 2));
                    assert_eq!(calls.load(Ordering::Relaxed), 3);
                    assert_eq!(counts(&mut sync)?, [1, 1, 0]);
                    Ok(())
                }))
            }

            /// A connection that dies is replaced, out of a pool, and the rows are there once.
            #[allow(dead_code, reason = "SQLite has none that could die")]
            pub fn killed(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let manager = AsyncDieselConnectionManager::<Connection>::new(url);
                    let pool = deadpool::Pool::builder(manager).max_size(1).build()?;
                    let mut connection = pool.get().await?;
                    let session = diesel::dsl::sql::<BigInt>($session);
                    let session: i64 = diesel_async::RunQueryDsl::get_result(
                        diesel::select(session),
                        &mut connection,
                    )
                    .await?;
                    drop(connection);
                    let mut work = filled(1_500);
                    let mut killer = Some(<$sync as diesel::Connection>::establish(url)?);
                    work.observe(move |_| {
                        let kill: fn(&mut $sync, i64) = $kill;
                        if let Some(mut killer) = killer.take() {
                            kill(&mut killer, session);
                        }
                    });
                    let flushed = work.flush_with_async(|| pool.get()).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (1_501, 1));
                    assert_eq!(counts(&mut sync)?, [1, 1_500, 0]);
                    Ok(())
                }))
            }

            /// The answer to COMMIT is swallowed, or COMMIT itself is: in the end the rows are there
            /// once.
            #[allow(dead_code, reason = "SQLite's COMMIT has no answer to lose")]
            pub fn lost_commit(url: &str) -> Outcome {
                let mut sync = create(url)?;
                let (_runtime, proxy, through) = proxied(url)?;
                let through = through + $plain;
                finish(run(async || {
                    let connect = || open(&through);
                    let flushed = filled(30).flush_with_async(connect).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                    let (up, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
                    let mut expected = [1, 30, 0];
                    assert_eq!(counts(&mut sync)?, expected);
                    let mut more = || {
                        expected = [expected[0] + 1, expected[1] + 30, 0];
                        expected
                    };

                    // It was carried out: found, and not sent again.
                    proxy.plan([Fault::Swallow(down)]);
                    let flushed = filled(30).flush_with_async(connect).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                    assert_eq!(counts(&mut sync)?, more());

                    // It did not arrive: not found, and sent again.
                    proxy.plan([Fault::Cut(At::Up(up))]);
                    let flushed = filled(30).flush_with_async(connect).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (31, 1));
                    assert_eq!(counts(&mut sync)?, more());

                    // Over the one connection it cannot be known; over the next it can.
                    proxy.plan([Fault::Swallow(down)]);
                    let mut unknown = filled(30);
                    let mut connection = open(&through).await?;
                    let error = unknown.flush_async(&mut connection).await.unwrap_err();
                    assert!(error.is_commit_unknown(), "{error}");
                    assert_eq!(unknown.len(), 31);
                    let mut connection = open(url).await?;
                    let flushed = unknown.flush_async(&mut connection).await?;
                    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                    assert_eq!(counts(&mut sync)?, more());
                    Ok(())
                }))
            }

            /// A flush that is dropped at any poll leaves all rows or none, a connection with which
            /// nobody goes on by mistake, and a unit of work that can be flushed again.
            pub fn dropped(url: &str) -> Outcome {
                let mut sync = create(url)?;
                finish(run(async || {
                    let mut expected = [0; 3];
                    for polls in 1.. {
                        let mut work = filled(1_200);
                        let mut connection = open(url).await?;
                        let is_over = {
                            let mut flush = pin!(work.flush_async(&mut connection));
                            let mut polled = 0;
                            poll_fn(|context| match flush.as_mut().poll(context) {
                                Poll::Ready(flushed) => Poll::Ready(flushed.map(|_| true)),
                                Poll::Pending if polled == polls => Poll::Ready(Ok(false)),
                                Poll::Pending => {
                                    polled += 1;
                                    Poll::Pending
                                }
                            })
                            .await?
                        };
                        expected = [expected[0] + 1, expected[1] + 1_200, 0];
                        if is_over {
                            assert!(polls > 1, "it was dropped in the midst");
                            assert_eq!(counts(&mut sync)?, expected);
                            return Ok(());
                        }
                        // Who goes on with the connection commits nothing of it, and a pool closes it.
                        // (What a task of SQLite's still works at, nobody may look at.)
                        let status = match stringify!($backend).contains("Sqlite") {
                            true => TransactionManagerStatus::InError,
                            false => {
                                assert!(Manager::is_broken_transaction_manager(&mut connection));
                                std::mem::take(Manager::transaction_manager_status_mut(
                                    &mut connection,
                                ))
                            }
                        };
                        let committed = match status {
                            TransactionManagerStatus::Valid(_) => Ok(()),
                            error @ TransactionManagerStatus::InError => {
                                if !stringify!($backend).contains("Sqlite") {
                                    *Manager::transaction_manager_status_mut(&mut connection) =
                                        error;
                                }
                                connection
                                    .transaction::<(), diesel::result::Error, _>(async |_| Ok(()))
                                    .await
                            }
                        };
                        let [customers, orders, _] = counts(&mut sync)?;
                        let all = (customers, orders) == (expected[0], expected[1]);
                        let none = (customers, orders) == (expected[0] - 1, expected[1] - 1_200);
                        assert!(all || none, "{polls} polls, {committed:?}: half a graph");
                        drop(connection);
                        if !work.is_empty() {
                            work.flush_async(&mut open(url).await?).await?;
                        }
                        assert_eq!(counts(&mut sync)?, expected, "after {polls} polls");
                    }
                    Ok(())
                }))
            }
        }
    };
}

pub(crate) use async_work;
