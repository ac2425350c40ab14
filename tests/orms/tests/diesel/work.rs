//! The unit of work, written once and expanded for each engine.

/// Defines the tables, and the tests for a connection whose key columns have this type in `table!`.
macro_rules! work {
    ($connection:ty, $backend:ty, $dialect:ty, $key_sql:ty) => {
        pub mod work {
            use std::{
                error::Error as _,
                sync::{
                    Arc, Mutex,
                    atomic::{AtomicUsize, Ordering},
                },
            };

            use diesel::{
                connection::{InstrumentationEvent, SimpleConnection as _},
                prelude::*,
            };
            use ordid::{
                KeyType, OrderedKey,
                storage::{ColumnOn, Dialect as _},
                uuid::Uuid,
            };
            use ordid_diesel::{StoredAs, UnitOfWork, assign, assign_all, flushes_table};

            use crate::Outcome;

            #[derive(KeyType)]
            #[ordid(scheme = uuid_v7, prefix = "cust", diesel)]
            pub struct CustomerId(Uuid);

            #[derive(KeyType)]
            #[ordid(scheme = uuid_v7, prefix = "ord", diesel)]
            pub struct OrderId(Uuid);

            #[derive(KeyType)]
            #[ordid(scheme = uuid_v7, diesel)]
            pub struct EmployeeId(Uuid);

            type Key = $key_sql;

            diesel::table! {
                use diesel::sql_types::*;
                use super::Key;

                customers (id) {
                    id -> Key,
                    name -> Text,
                    credit -> Nullable<BigInt>,
                }
            }

            diesel::table! {
                use diesel::sql_types::*;
                use super::Key;

                #[sql_name = "order"]
                orders (id) {
                    id -> Key,
                    customer -> Key,
                    #[sql_name = "group"]
                    kind_ -> Integer,
                }
            }

            diesel::table! {
                use diesel::sql_types::*;
                use super::Key;

                employees (id) {
                    id -> Key,
                    boss -> Nullable<Key>,
                }
            }

            #[derive(OrderedKey, Queryable, Selectable, Insertable, Debug, Clone, PartialEq)]
            #[diesel(table_name = customers)]
            #[ordid(diesel)]
            pub struct Customer {
                // Not yet assigned, or what was read.
                #[diesel(deserialize_as = CustomerId)]
                pub id: Option<CustomerId>,
                pub name: String,
                pub credit: Option<i64>,
            }

            #[derive(OrderedKey, Queryable, Selectable, Insertable, Debug, Clone, PartialEq)]
            #[diesel(table_name = orders, primary_key(id))]
            #[diesel(treat_none_as_default_value = false)]
            #[ordid(diesel)]
            pub struct Order {
                #[diesel(column_name = id)]
                #[ordid(key)]
                pub key: OrderId,
                #[ordid(parent)]
                pub customer: CustomerId,
                #[diesel(column_name = kind_)]
                pub kind: i32,
            }

            #[derive(OrderedKey, Queryable, Selectable, Debug, Clone, PartialEq)]
            #[diesel(table_name = employees)]
            #[ordid(diesel)]
            pub struct Employee {
                pub id: EmployeeId,
                #[ordid(parent)]
                pub boss: Option<EmployeeId>,
            }

            pub fn customer(name: &str) -> Customer {
                Customer {
                    id: None,
                    name: name.into(),
                    credit: None,
                }
            }

            pub fn order(customer: CustomerId, kind: i32) -> Order {
                Order {
                    key: OrderId::generate(),
                    customer,
                    kind,
                }
            }

            pub fn connect(url: &str) -> Result<$connection, diesel::ConnectionError> {
                <$connection>::establish(url)
            }

            /// A connection to the tables, which are made.
            pub fn create(
                url: &str,
            ) -> Result<$connection, Box<dyn std::error::Error + Send + Sync>> {
                let mut connection = connect(url)?;
                type Column = <CustomerId as StoredAs<$backend>>::Column;
                let key = <Column as ColumnOn<$dialect>>::TYPE;
                let q = <$dialect>::quote;
                let (order, group) = (q("order"), q("group"));
                for sql in [
                    format!(
                        "CREATE TABLE customers (id {key} NOT NULL PRIMARY KEY, name VARCHAR(100) \
                         NOT NULL, credit BIGINT)"
                    ),
                    format!(
                        "CREATE TABLE {order} (id {key} NOT NULL PRIMARY KEY, customer {key} NOT \
                         NULL, {group} INTEGER NOT NULL CHECK ({group} <> 13), \
                         FOREIGN KEY (customer) REFERENCES customers (id))"
                    ),
                    format!(
                        "CREATE TABLE employees (id {key} NOT NULL PRIMARY KEY, boss {key} NULL, \
                         FOREIGN KEY (boss) REFERENCES employees (id))"
                    ),
                    flushes_table::<$backend>().to_owned(),
                ] {
                    connection.batch_execute(&sql)?;
                }
                if stringify!($connection).contains("Sqlite") {
                    connection
                        .batch_execute("PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL")?;
                }
                Ok(connection)
            }

            /// Of all tables, as they are at one time.
            pub fn counts(connection: &mut $connection) -> QueryResult<[i64; 3]> {
                let counts: (Option<i64>, Option<i64>, Option<i64>) = diesel::select((
                    customers::table.count().single_value(),
                    orders::table.count().single_value(),
                    employees::table.count().single_value(),
                ))
                .get_result(connection)?;
                Ok([counts.0, counts.1, counts.2].map(Option::unwrap_or_default))
            }

            /// Parents first, a statement for 1,000 rows, one transaction; keys are assigned.
            pub fn graph(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let statements = Arc::new(Mutex::new(Vec::new()));
                let seen = Arc::clone(&statements);
                connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
                    if let InstrumentationEvent::StartQuery { query, .. } = event {
                        let text = query.to_string();
                        seen.lock()
                            .unwrap()
                            .push(text[..24.min(text.len())].to_owned());
                    }
                });
                let mut work = UnitOfWork::new();
                let ada = CustomerId::generate();
                for kind in 100..2_600 {
                    work.add(order(ada, kind));
                }
                let other = work.add(customer("Grace"));
                work.add(Customer {
                    id: Some(ada),
                    name: "Ada".into(),
                    credit: Some(7),
                });
                let boss = Employee {
                    id: EmployeeId::generate(),
                    boss: None,
                };
                // The boss comes last.
                let below = Employee {
                    id: EmployeeId::generate(),
                    boss: Some(boss.id),
                };
                work.add(below.clone());
                work.add(boss.clone());
                let progress = Arc::new(AtomicUsize::new(0));
                let told = Arc::clone(&progress);
                work.observe(move |progress| told.store(progress.done, Ordering::Relaxed));
                let flushed = work.flush(&mut connection)?;
                assert_eq!((flushed.rows(), flushed.retries), (2_504, 0));
                assert_eq!(progress.load(Ordering::Relaxed), 2_504);
                assert!(work.is_empty());
                let of = |name: &str| {
                    let table = flushed.tables.iter().find(|table| table.table == name);
                    table.map(|table| (table.rows, table.statements))
                };
                // On PostgreSQL by `COPY`.
                let copies = stringify!($connection).contains("PgConnection");
                let orders = if copies { 1 } else { 3 };
                assert_eq!(of("orders"), Some((2_500, orders)));
                assert_eq!(of("customers"), Some((2, 1)));
                let sent = std::mem::take(&mut *statements.lock().unwrap());
                let is_insert = |it: &&String| it.starts_with("INSERT") || it.starts_with("COPY");
                let inserts = sent.iter().filter(is_insert).count();
                // Two for the two depths of employees at most.
                assert!((orders + 2..=orders + 3).contains(&inserts), "{sent:?}");
                assert_eq!(counts(&mut connection)?, [2, 2_500, 2]);

                let found: Vec<Customer> = customers::table
                    .order(customers::id)
                    .select(Customer::as_select())
                    .load(&mut connection)?;
                let names: Vec<_> = found
                    .iter()
                    .map(|it| (it.name.as_str(), it.credit))
                    .collect();
                assert_eq!(names, [("Ada", Some(7)), ("Grace", None)]);
                assert_eq!(found[1].id, Some(other));
                let kinds: Vec<i32> = orders::table
                    .filter(orders::customer.eq(ada))
                    .order(orders::id)
                    .select(orders::kind_)
                    .load(&mut connection)?;
                assert!(kinds.into_iter().eq(100..2_600));
                let found: Vec<Employee> = employees::table
                    .order(employees::id)
                    .select(Employee::as_select())
                    .load(&mut connection)?;
                assert_eq!(found, [boss, below]);
                Ok(())
            }

            /// Rows are updated, deleted children first, and circles closed by a fix-up.
            pub fn changes(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut work = UnitOfWork::new();
                let ada = work.add(customer("Ada"));
                let gone = work.add(customer("Gone"));
                let kept = order(ada, 1);
                let dropped = order(gone, 2);
                work.add(kept.clone());
                work.add(dropped.clone());
                let [first, second] = [EmployeeId::generate(), EmployeeId::generate()];
                for (id, boss) in [(first, second), (second, first)] {
                    work.add(Employee {
                        id,
                        boss: Some(boss),
                    });
                }
                work.flush(&mut connection)?;
                let bosses: Vec<Option<EmployeeId>> = employees::table
                    .order(employees::id)
                    .select(employees::boss)
                    .load(&mut connection)?;
                assert_eq!(bosses, [Some(second), Some(first)]);

                let named = Customer {
                    id: Some(ada),
                    name: "Ada Lovelace".into(),
                    credit: Some(-1),
                };
                work.update(named.clone());
                work.update(Order {
                    kind: 3,
                    ..kept.clone()
                });
                work.delete(&Customer {
                    id: Some(gone),
                    ..customer("Gone")
                });
                work.delete(&dropped);
                for (id, boss) in [(first, second), (second, first)] {
                    work.delete(&Employee {
                        id,
                        boss: Some(boss),
                    });
                }
                let flushed = work.flush(&mut connection)?;
                assert_eq!(
                    (flushed.rows(), flushed.updated(), flushed.deleted()),
                    (0, 2, 4)
                );
                assert_eq!(counts(&mut connection)?, [1, 1, 0]);
                let found: Customer = customers::table
                    .select(Customer::as_select())
                    .first(&mut connection)?;
                assert_eq!(found, named);
                let kind: i32 = orders::table.select(orders::kind_).first(&mut connection)?;
                assert_eq!(kind, 3);

                // As it is already: a row that is found is not missing.
                work.update(Order {
                    kind: 3,
                    ..kept.clone()
                });
                assert_eq!(work.flush(&mut connection)?.updated(), 1);
                // NULL over a value.
                work.update(Customer {
                    credit: None,
                    ..named
                });
                work.flush(&mut connection)?;
                let credit: Option<i64> = customers::table
                    .select(customers::credit)
                    .first(&mut connection)?;
                assert_eq!(credit, None);
                Ok(())
            }

            /// What is refused writes nothing, names the row, and stays to be flushed again.
            pub fn refused(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut work = UnitOfWork::new();
                let ada = work.add(customer("Ada"));
                let orders: Vec<Order> = (0..1_500).map(|_| order(ada, 1)).collect();
                for order in &orders[..1_400] {
                    work.add(order.clone());
                }
                let bad = Order {
                    kind: 13,
                    ..orders[1_400].clone()
                };
                work.add(bad.clone());
                let error = work.flush(&mut connection).unwrap_err();
                assert_eq!(error.key(), Some(bad.key.to_string().as_str()), "{error}");
                assert_eq!((error.table(), error.chunk()), (Some("orders"), Some(1)));
                assert!(!error.is_transient() && !error.is_unique_violation());
                assert_eq!(counts(&mut connection)?, [0; 3]);
                assert_eq!(work.len(), 1_402);
                work.clear();

                let ada = work.add(customer("Ada"));
                work.add(order(ada, 1));
                work.flush(&mut connection)?;
                let twin = Customer {
                    id: Some(ada),
                    ..customer("Twin")
                };
                work.add(twin);
                let error = work.flush(&mut connection).unwrap_err();
                assert!(error.is_unique_violation(), "{error}");
                assert_eq!(error.key(), Some(ada.to_string().as_str()));
                work.clear();

                let orphan = order(CustomerId::generate(), 1);
                work.add(orphan.clone());
                let error = work.flush(&mut connection).unwrap_err();
                assert!(error.is_foreign_key_violation(), "{error}");
                // SQLite tells of it at the end of the statement all the same.
                assert_eq!(error.key(), Some(orphan.key.to_string().as_str()));
                work.clear();

                work.update(Order {
                    kind: 9,
                    ..orphan.clone()
                });
                let error = work.flush(&mut connection).unwrap_err();
                assert!(error.is_missing_row(), "{error}");
                assert_eq!(error.key(), Some(orphan.key.to_string().as_str()));
                work.clear();
                work.delete(&orphan);
                assert!(work.flush(&mut connection).unwrap_err().is_missing_row());
                work.clear();

                connection.batch_execute("DROP TABLE ordid_flushes")?;
                work.add(customer("Grace"));
                work.delete(&orphan);
                let error = work.flush(&mut connection).unwrap_err();
                assert!(
                    error.to_string().contains("`ordid_diesel::flushes_table`"),
                    "{error}"
                );
                assert_eq!(counts(&mut connection)?, [1, 1, 0]);

                // One that only inserts does without, unless it is asked to.
                let mut recorded = UnitOfWork::new().with_record();
                recorded.add(customer("Ada"));
                let error = recorded.flush(&mut connection).unwrap_err();
                assert!(
                    error
                        .to_string()
                        .contains("updates, deletes and `with_record`"),
                    "{error}"
                );
                work.clear();
                work.add(customer("Ada"));
                work.flush(&mut connection)?;
                assert_eq!(counts(&mut connection)?, [2, 1, 0]);
                Ok(())
            }

            #[derive(KeyType)]
            #[ordid(scheme = uuid_v7, diesel)]
            pub struct PairId(Uuid);

            diesel::table! {
                use super::Key;

                pairs (id) {
                    id -> Key,
                    other -> Key,
                }
            }

            #[derive(OrderedKey, Queryable, Selectable, Debug, Clone, PartialEq)]
            #[diesel(table_name = pairs)]
            #[ordid(diesel)]
            struct Pair {
                id: PairId,
                #[ordid(parent, deferrable)]
                other: PairId,
            }

            /// Rows in a circle of foreign keys that may not be NULL are inserted as they are and checked
            /// at COMMIT, which tells what it refuses.
            #[allow(dead_code, reason = "MariaDB defers nothing")]
            pub fn deferred(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let key = <<PairId as StoredAs<$backend>>::Column as ColumnOn<$dialect>>::TYPE;
                connection.batch_execute(&format!(
                    "CREATE TABLE pairs (id {key} NOT NULL PRIMARY KEY, other {key} NOT NULL \
                     REFERENCES pairs (id) DEFERRABLE)"
                ))?;
                let circle = || {
                    let [one, two] = [PairId::generate(), PairId::generate()];
                    [
                        Pair {
                            id: one,
                            other: two,
                        },
                        Pair {
                            id: two,
                            other: one,
                        },
                    ]
                };
                let mut work = UnitOfWork::new();
                let orphan = Pair {
                    id: PairId::generate(),
                    other: PairId::generate(),
                };
                for pair in circle().into_iter().chain([orphan]) {
                    work.add(pair);
                }
                let error = work.flush(&mut connection).unwrap_err();
                assert!(
                    error.is_foreign_key_violation() && !error.is_commit_unknown(),
                    "{error}"
                );
                assert!(error.to_string().contains("cannot commit"), "{error}");
                let count = |connection: &mut $connection| {
                    pairs::table.count().get_result::<i64>(connection)
                };
                assert_eq!((work.len(), count(&mut connection)?), (3, 0));
                work.clear();

                let pairs = circle();
                for pair in &pairs {
                    work.add(pair.clone());
                }
                let flushed = work.flush(&mut connection)?;
                assert_eq!(flushed.tables[0].statements, 1, "and nothing to complete");
                let found: Vec<Pair> = pairs::table
                    .order(pairs::id)
                    .select(Pair::as_select())
                    .load(&mut connection)?;
                assert_eq!(found, pairs);
                for pair in &pairs {
                    work.delete(pair);
                }
                assert_eq!(work.flush(&mut connection)?.deleted(), 2);
                assert_eq!(count(&mut connection)?, 0);
                Ok(())
            }

            /// An open transaction is respected, a test transaction is a test's.
            pub fn transactions(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut work = UnitOfWork::<$backend>::new();
                let ada = work.add(customer("Ada"));
                let error = work.flush_in(&mut connection).unwrap_err();
                assert!(error.is_connection_state(), "{error}");
                let outcome =
                    connection.transaction::<(), diesel::result::Error, _>(|connection| {
                        let error = work.flush(connection).unwrap_err();
                        assert!(error.is_connection_state(), "{error}");
                        assert!(error.to_string().contains("with `flush_in`"), "{error}");
                        work.flush_in(connection).unwrap();
                        assert_eq!(counts(connection)?, [1, 0, 0]);
                        Err(diesel::result::Error::RollbackTransaction)
                    });
                assert!(outcome.is_err());
                assert_eq!(counts(&mut connection)?, [0; 3]);
                assert_eq!(work.len(), 1, "they stay until they are forgotten");

                connection.transaction::<(), diesel::result::Error, _>(|connection| {
                    work.flush_in(connection).unwrap();
                    work.clear();
                    // What fails leaves the transaction as it was.
                    work.add(order(ada, 1));
                    work.add(order(ada, 13));
                    let error = work.flush_in(connection).unwrap_err();
                    assert!(error.key().is_some(), "{error}");
                    assert_eq!(counts(connection)?, [1, 0, 0]);
                    Ok(())
                })?;
                work.clear();
                assert_eq!(counts(&mut connection)?, [1, 0, 0]);

                connection.begin_test_transaction()?;
                work.add(customer("Grace"));
                work.flush(&mut connection)?;
                assert_eq!((work.len(), counts(&mut connection)?), (0, [2, 0, 0]));
                Ok(())
            }

            diesel::table! {
                use super::Key;

                texts (id) { id -> Key, }
            }

            /// A key that is stored in another form than its column's is told with what to declare.
            pub fn other_forms(url: &str) -> Outcome {
                let mut connection = connect(url)?;
                connection.batch_execute(
                    "CREATE TABLE texts (id VARCHAR(36) NOT NULL);
                     INSERT INTO texts VALUES ('0190a6a1-0000-7000-8000-000000000001');",
                )?;
                let found = texts::table
                    .select(texts::id)
                    .first::<CustomerId>(&mut connection);
                // Diesel's own error says which field it was.
                let found = found.unwrap_err();
                let mut error = found.to_string();
                let mut source = found.source();
                while let Some(cause) = source {
                    error = format!("{error}: {cause}");
                    source = cause.source();
                }
                assert!(error.contains("field 'id'"), "{error}");
                assert!(error.contains("found 36 bytes"), "{error}");
                assert!(
                    error.contains("this is a UUID as text; declare `char36`"),
                    "{error}"
                );
                Ok(())
            }

            /// Keys are assigned on the way into Diesel's own `values`, of one row and of many.
            pub fn plain_inserts(url: &str) -> Outcome {
                let mut connection = create(url)?;
                let mut ada = customer("Ada");
                diesel::insert_into(customers::table)
                    .values(assign(&mut ada))
                    .execute(&mut connection)?;
                let mut others: Vec<Customer> = ["B", "C", "D"].into_iter().map(customer).collect();
                diesel::insert_into(customers::table)
                    .values(assign_all(&mut others))
                    .execute(&mut connection)?;
                let found: Vec<Customer> = customers::table
                    .order(customers::id)
                    .select(Customer::as_select())
                    .load(&mut connection)?;
                others.insert(0, ada);
                assert_eq!(found, others);
                assert!(assign_all(&mut others).iter().eq(&found), "assigned once");
                Ok(())
            }
        }
    };
}

pub(crate) use work;
