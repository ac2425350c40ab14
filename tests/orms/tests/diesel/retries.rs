//! What a flush does when it cannot go on, written once and expanded for each engine, with the tables of
//! `work`.

/// Defines the tests for a connection. `$kill` ends the session of a connection over another one, `$wait`
/// makes a connection wait for locks shortly, and `$plain` an address ask for no TLS.
macro_rules! retries {
    ($connection:ty, wait: $wait:literal, plain: $plain:literal, kill: $kill:expr) => {
        pub mod retries {
            use std::{
                sync::{Arc, Mutex},
                time::Duration,
            };

            use diesel::{connection::SimpleConnection as _, prelude::*};
            use ordid_diesel::{Retry, UnitOfWork};
            use ordid_tests::proxy::{At, Fault};

            use super::work::*;
            use crate::{Outcome, scratch::proxied};

            fn at_once() -> Retry {
                Retry::DEFAULT.with_delays(Duration::ZERO, Duration::ZERO)
            }

            /// Who waits for a lock in vain tries again, with the same keys.
            pub fn locked(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut holder = Some(connect(url)?);
                let mut work = UnitOfWork::new().with_retry(at_once());
                let id = work.add(customer("Ada"));
                if let Some(holder) = &mut holder {
                    // The same key, which will not come to anything.
                    holder.batch_execute("BEGIN")?;
                    diesel::insert_into(customers::table)
                        .values(Customer {
                            id: Some(id),
                            ..customer("Holder")
                        })
                        .execute(holder)?;
                }
                let mut connections = 0;
                let flushed = work.flush_with(|| {
                    connections += 1;
                    if connections > 1
                        && let Some(mut holder) = holder.take()
                    {
                        holder.batch_execute("ROLLBACK").unwrap();
                    }
                    let mut connection = connect(url)?;
                    connection.batch_execute($wait).unwrap();
                    Ok::<_, diesel::ConnectionError>(connection)
                })?;
                assert_eq!((flushed.rows(), flushed.retries), (1, 1));
                let found: Customer = customers::table
                    .select(Customer::as_select())
                    .first(&mut connection)?;
                assert_eq!((found.id, found.name.as_str()), (Some(id), "Ada"));
                Ok(())
            }

            /// A connection that dies is replaced, and the rows are there once.
            #[allow(dead_code, reason = "SQLite has none that could die")]
            pub fn killed(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut work = UnitOfWork::new().with_retry(at_once());
                let ada = work.add(customer("Ada"));
                for _ in 0..1_500 {
                    work.add(order(ada, 1));
                }
                let session = Arc::new(Mutex::new(None));
                let target = Arc::clone(&session);
                let mut killer = connect(url)?;
                work.observe(move |_| {
                    let kill: fn(&mut $connection, i64) = $kill;
                    if let Some(id) = target.lock().unwrap().take() {
                        kill(&mut killer, id);
                    }
                });
                let mut connections = 0;
                let flushed = work.flush_with(|| {
                    connections += 1;
                    let mut connection = connect(url)?;
                    if connections == 1 {
                        *session.lock().unwrap() = Some(super::session(&mut connection).unwrap());
                    }
                    Ok::<_, diesel::ConnectionError>(connection)
                })?;
                assert_eq!(
                    (connections, flushed.rows(), flushed.retries),
                    (2, 1_501, 1)
                );
                assert_eq!(counts(&mut connection)?, [1, 1_500, 0]);
                Ok(())
            }

            /// The answer to COMMIT is swallowed, or COMMIT itself is: in the end the rows are there
            /// once, also those of updates and deletes.
            #[allow(dead_code, reason = "SQLite's COMMIT has no answer to lose")]
            pub fn lost_commit(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let (_runtime, proxy, through) = proxied(url)?;
                let through = through + $plain;
                let patient = Retry::DEFAULT;
                let work = |retry| {
                    let mut work = UnitOfWork::new().with_retry(retry);
                    let ada = work.add(customer("Ada"));
                    for _ in 0..30 {
                        work.add(order(ada, 1));
                    }
                    work
                };
                let flushed = work(patient).flush_with(|| connect(&through))?;
                assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                let (up, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
                let mut expected = [1, 30, 0];
                assert_eq!(counts(&mut connection)?, expected);
                let mut more = || {
                    expected = [expected[0] + 1, expected[1] + 30, 0];
                    expected
                };

                // It was carried out: found, and not sent again.
                proxy.plan([Fault::Swallow(down)]);
                let flushed = work(patient).flush_with(|| connect(&through))?;
                assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                assert_eq!(counts(&mut connection)?, more());

                // It did not arrive: not found, and sent again.
                proxy.plan([Fault::Cut(At::Up(up))]);
                let flushed = work(patient).flush_with(|| connect(&through))?;
                assert_eq!((flushed.rows(), flushed.retries), (31, 1));
                assert_eq!(counts(&mut connection)?, more());

                // Over the one connection it cannot be known; over the next it can.
                proxy.plan([Fault::Swallow(down)]);
                let mut unknown = work(patient);
                let error = unknown.flush(&mut connect(&through)?).unwrap_err();
                assert!(
                    error.is_commit_unknown() && error.is_connection_lost(),
                    "{error}"
                );
                assert_eq!(unknown.len(), 31);
                let flushed = unknown.flush(&mut connection)?;
                assert_eq!((flushed.rows(), flushed.retries), (31, 0));
                assert!(unknown.is_empty());
                assert_eq!(counts(&mut connection)?, more());

                // By the flush's own row.
                let found: Vec<Order> = orders::table
                    .select(Order::as_select())
                    .load(&mut connection)?;
                let changes = |rows: &[Order]| {
                    let mut work = UnitOfWork::new();
                    for row in rows {
                        work.update(Order {
                            kind: 2,
                            ..row.clone()
                        });
                    }
                    work
                };
                changes(&found[..10]).flush_with(|| connect(&through))?;
                let (_, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
                proxy.plan([Fault::Swallow(down)]);
                let flushed = changes(&found[10..20]).flush_with(|| connect(&through))?;
                assert_eq!((flushed.updated(), flushed.retries), (10, 0));
                let updated: i64 = orders::table
                    .filter(orders::kind_.eq(2))
                    .count()
                    .get_result(&mut connection)?;
                assert_eq!(updated, 20);
                Ok(())
            }
        }
    };
}

pub(crate) use retries;
