//! The tables of the suites, for each backend: `table!` makes types, so what is said in Diesel's own query
//! language stands in a macro, and the suites are generic over what it implements.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex},
};

use diesel::{
    connection::{InstrumentationEvent, LoadConnection, SimpleConnection as _},
    prelude::*,
};
use diesel_async::AsyncConnection;
use ordid::{KeyType, OrderedKey, storage::Dialect as _, uuid::Uuid};
use ordid_diesel::{Backend, EngineProfile, Flushed, Retry, UnitOfWork, flushes_table};

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

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, diesel)]
pub struct PairId(Uuid);

#[derive(Debug, Clone, PartialEq)]
pub struct Customer {
    /// Not yet assigned, or what was read.
    pub id: Option<CustomerId>,
    pub name: String,
    pub credit: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    pub key: OrderId,
    pub customer: CustomerId,
    pub kind: i32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Employee {
    pub id: EmployeeId,
    pub boss: Option<EmployeeId>,
}

/// Two that refer to each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    pub id: PairId,
    pub other: PairId,
}

/// A backend whose units of work take these rows, as an entity that they become.
pub trait Keeps<R>: Backend {
    type Key;

    fn add(work: &mut UnitOfWork<Self>, row: R) -> Self::Key;
    fn update(work: &mut UnitOfWork<Self>, row: R);
    fn delete(work: &mut UnitOfWork<Self>, row: R);

    /// Returns the keys of the rows that are to be inserted.
    fn keys(work: &UnitOfWork<Self>) -> Vec<Self::Key>;
}

/// A backend that has the tables, and how the suites speak to its databases.
pub trait Tables:
    Keeps<Customer, Key = CustomerId>
    + Keeps<Order, Key = OrderId>
    + Keeps<Employee, Key = EmployeeId>
    + Keeps<Pair, Key = PairId>
{
    type Connection: LoadConnection<Backend = Self> + 'static;
    type Async: AsyncConnection<Backend = Self> + 'static;

    /// The entity of customers, which gets its keys in plain inserts, too.
    type Customer: OrderedKey<Field = Option<CustomerId>> + From<Customer> + Into<Customer> + Clone;

    /// The column type of the keys.
    const KEY: &'static str;

    /// Whether a database is a file: nobody can end its connections, and its COMMIT has no answer to lose.
    const IS_FILE: bool = false;

    /// Whether a flush over a connection of Diesel's own sends many rows by `COPY`.
    const COPIES: bool = false;

    /// Makes a connection wait for locks shortly.
    const WAIT: &'static str;

    /// What makes an address ask for no TLS, for Diesel's own connections and for diesel-async's.
    const PLAIN: [&'static str; 2] = ["", ""];

    /// The number of a connection's session, to end it by.
    const SESSION: &'static str;

    /// Ends a session by its number, in the place of `{session}`.
    const KILL: &'static str;

    /// Ends a session over another connection.
    fn kill(killer: &mut Self::Connection, session: i64) {
        let kill = Self::KILL.replace("{session}", &session.to_string());
        killer.batch_execute(&kill).unwrap();
    }

    /// Returns the number of a connection's session.
    fn session(connection: &mut Self::Connection) -> QueryResult<i64>;

    /// Flushes twice over pools of one connection, of both kinds, and then over a connection of one.
    async fn flush_over_pools(url: &str, work: impl Fn() -> Work<Self>) -> Outcome;

    /// Flushes over a pool of one connection what is filled once the number of its session is known.
    async fn flush_over_session(
        url: &str,
        work: impl FnOnce(i64) -> Work<Self>,
    ) -> Outcome<Flushed>;

    /// Counts the rows of customers, orders and employees, as they are at one time.
    fn counts(connection: &mut Self::Connection) -> QueryResult<[i64; 3]>;

    /// Returns all rows, by their keys.
    fn customers(connection: &mut Self::Connection) -> QueryResult<Vec<Customer>>;
    fn orders(connection: &mut Self::Connection) -> QueryResult<Vec<Order>>;
    fn employees(connection: &mut Self::Connection) -> QueryResult<Vec<Employee>>;
    fn pairs(connection: &mut Self::Connection) -> QueryResult<Vec<Pair>>;

    /// Returns the kinds of a customer's orders, by their keys.
    fn kinds_of(connection: &mut Self::Connection, customer: CustomerId) -> QueryResult<Vec<i32>>;

    /// Inserts a row that has its key.
    fn insert(connection: &mut Self::Connection, row: Customer) -> QueryResult<usize>;
    async fn insert_async(connection: &mut Self::Async, row: Customer) -> QueryResult<usize>;

    /// Inserts rows that get their keys.
    fn insert_new(
        connection: &mut Self::Connection,
        row: &mut Self::Customer,
    ) -> QueryResult<usize>;
    fn insert_all_new(
        connection: &mut Self::Connection,
        rows: &mut [Self::Customer],
    ) -> QueryResult<usize>;

    /// Reads a key of a column that declares another type.
    fn other_form(connection: &mut Self::Connection) -> QueryResult<CustomerId>;
}

/// Defines the tables and their entities, and implements [`Tables`] for a backend whose key columns have
/// this type in `table!`.
macro_rules! tables {
    ($connection:ty, $async:ty, $backend:ty, $dialect:ty, $key:ty; $($own:tt)*) => {
        pub mod tables {
            use diesel::prelude::*;
            use diesel_async::pooled_connection::{AsyncDieselConnectionManager, bb8, deadpool};
            use ordid::{OrderedKey, storage::ColumnOn};
            use ordid_diesel::{Flushed, StoredAs, UnitOfWork, assign, assign_all};

            use crate::Outcome;
            use crate::tables::{self, CustomerId, EmployeeId, OrderId, PairId, Tables};

            type Key = $key;

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

            diesel::table! {
                use super::Key;

                pairs (id) {
                    id -> Key,
                    other -> Key,
                }
            }

            diesel::table! {
                use super::Key;

                texts (id) { id -> Key, }
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

            #[derive(OrderedKey, Queryable, Selectable, Debug, Clone, PartialEq)]
            #[diesel(table_name = pairs)]
            #[ordid(diesel)]
            pub struct Pair {
                id: PairId,
                #[ordid(parent, deferrable)]
                other: PairId,
            }

            crate::tables::entity!($backend, Customer { id, name, credit });
            crate::tables::entity!($backend, Order { key, customer, kind });
            crate::tables::entity!($backend, Employee { id, boss });
            crate::tables::entity!($backend, Pair { id, other });

            impl Tables for $backend {
                type Connection = $connection;
                type Async = $async;
                type Customer = Customer;

                const KEY: &'static str =
                    <<CustomerId as StoredAs<$backend>>::Column as ColumnOn<$dialect>>::TYPE;

                $($own)*

                fn session(connection: &mut $connection) -> QueryResult<i64> {
                    let session = diesel::dsl::sql::<diesel::sql_types::BigInt>(Self::SESSION);
                    diesel::select(session).get_result(connection)
                }

                async fn flush_over_pools(
                    url: &str,
                    work: impl Fn() -> tables::Work<Self>,
                ) -> Outcome {
                    let manager = || AsyncDieselConnectionManager::<$async>::new(url);
                    let of_bb8 = bb8::Pool::builder().max_size(1).build(manager()).await?;
                    let of_deadpool = deadpool::Pool::builder(manager()).max_size(1).build()?;
                    for _ in 0..2 {
                        work().flush_with_async(|| of_bb8.get_owned()).await?;
                        work().flush_with_async(|| of_deadpool.get()).await?;
                    }
                    work().flush_async(&mut *of_bb8.get().await?).await?;
                    Ok(())
                }

                async fn flush_over_session(
                    url: &str,
                    work: impl FnOnce(i64) -> tables::Work<Self>,
                ) -> Outcome<Flushed> {
                    let manager = AsyncDieselConnectionManager::<$async>::new(url);
                    let pool = deadpool::Pool::builder(manager).max_size(1).build()?;
                    let mut connection = pool.get().await?;
                    let session = diesel::dsl::sql::<diesel::sql_types::BigInt>(Self::SESSION);
                    let session = diesel::select(session);
                    let session: i64 =
                        diesel_async::RunQueryDsl::get_result(session, &mut connection).await?;
                    drop(connection);
                    Ok(work(session).flush_with_async(|| pool.get()).await?)
                }

                fn counts(connection: &mut $connection) -> QueryResult<[i64; 3]> {
                    let counts: (Option<i64>, Option<i64>, Option<i64>) = diesel::select((
                        customers::table.count().single_value(),
                        orders::table.count().single_value(),
                        employees::table.count().single_value(),
                    ))
                    .get_result(connection)?;
                    Ok([counts.0, counts.1, counts.2].map(Option::unwrap_or_default))
                }

                crate::tables::read!($connection, customers, Customer);
                crate::tables::read!($connection, orders, Order);
                crate::tables::read!($connection, employees, Employee);
                crate::tables::read!($connection, pairs, Pair);

                fn kinds_of(
                    connection: &mut $connection,
                    customer: CustomerId,
                ) -> QueryResult<Vec<i32>> {
                    orders::table
                        .filter(orders::customer.eq(customer))
                        .order(orders::id)
                        .select(orders::kind_)
                        .load(connection)
                }

                fn insert(
                    connection: &mut $connection,
                    row: tables::Customer,
                ) -> QueryResult<usize> {
                    let insert = diesel::insert_into(customers::table).values(Customer::from(row));
                    insert.execute(connection)
                }

                async fn insert_async(
                    connection: &mut $async,
                    row: tables::Customer,
                ) -> QueryResult<usize> {
                    let insert = diesel::insert_into(customers::table).values(Customer::from(row));
                    diesel_async::RunQueryDsl::execute(insert, connection).await
                }

                fn insert_new(
                    connection: &mut $connection,
                    row: &mut Customer,
                ) -> QueryResult<usize> {
                    let insert = diesel::insert_into(customers::table).values(assign(row));
                    insert.execute(connection)
                }

                fn insert_all_new(
                    connection: &mut $connection,
                    rows: &mut [Customer],
                ) -> QueryResult<usize> {
                    let insert = diesel::insert_into(customers::table).values(assign_all(rows));
                    insert.execute(connection)
                }

                fn other_form(connection: &mut $connection) -> QueryResult<CustomerId> {
                    texts::table.select(texts::id).first(connection)
                }
            }
        }
    };
}

/// Makes the entity from the row with the same fields, and back, and takes it as one.
macro_rules! entity {
    ($backend:ty, $entity:ident { $($field:ident),+ }) => {
        impl From<tables::$entity> for $entity {
            fn from(row: tables::$entity) -> Self {
                Self { $($field: row.$field),+ }
            }
        }

        impl From<$entity> for tables::$entity {
            fn from(row: $entity) -> Self {
                Self { $($field: row.$field),+ }
            }
        }

        impl tables::Keeps<tables::$entity> for $backend {
            type Key = ordid::KeyOf<$entity>;

            fn add(work: &mut UnitOfWork<Self>, row: tables::$entity) -> Self::Key {
                work.add($entity::from(row))
            }

            fn update(work: &mut UnitOfWork<Self>, row: tables::$entity) {
                work.update($entity::from(row));
            }

            fn delete(work: &mut UnitOfWork<Self>, row: tables::$entity) {
                work.delete(&$entity::from(row));
            }

            fn keys(work: &UnitOfWork<Self>) -> Vec<Self::Key> {
                work.get::<$entity>().iter().filter_map(OrderedKey::key).collect()
            }
        }
    };
}

macro_rules! read {
    ($connection:ty, $table:ident, $entity:ident) => {
        fn $table(connection: &mut $connection) -> QueryResult<Vec<tables::$entity>> {
            let rows = $table::table.order($table::id).select($entity::as_select());
            let rows: Vec<$entity> = rows.load(connection)?;
            Ok(rows.into_iter().map(Into::into).collect())
        }
    };
}

pub(crate) use {entity, read, tables};

/// A unit of work that takes rows without a backend.
pub struct Work<DB: Tables>(UnitOfWork<DB>);

impl<DB: Tables> Deref for Work<DB> {
    type Target = UnitOfWork<DB>;

    fn deref(&self) -> &UnitOfWork<DB> {
        &self.0
    }
}

impl<DB: Tables> DerefMut for Work<DB> {
    fn deref_mut(&mut self) -> &mut UnitOfWork<DB> {
        &mut self.0
    }
}

impl<DB: Tables> Work<DB> {
    pub fn new() -> Self {
        Self(UnitOfWork::new())
    }

    pub fn with_retry(self, retry: Retry) -> Self {
        Self(self.0.with_retry(retry))
    }

    pub fn with_record(self) -> Self {
        Self(self.0.with_record())
    }

    pub fn with_engine(self, engine: EngineProfile) -> Self {
        Self(self.0.with_engine(engine))
    }

    pub fn add<R>(&mut self, row: R) -> <DB as Keeps<R>>::Key
    where
        DB: Keeps<R>,
    {
        <DB as Keeps<R>>::add(&mut self.0, row)
    }

    pub fn update<R>(&mut self, row: R)
    where
        DB: Keeps<R>,
    {
        <DB as Keeps<R>>::update(&mut self.0, row);
    }

    pub fn delete<R: Clone>(&mut self, row: &R)
    where
        DB: Keeps<R>,
    {
        <DB as Keeps<R>>::delete(&mut self.0, row.clone());
    }
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

/// Returns a list, and an instrumentation of a connection that collects the first bytes of each statement in the list.
pub fn beginnings(
    length: usize,
) -> (
    Arc<Mutex<Vec<String>>>,
    impl FnMut(InstrumentationEvent<'_>) + Send + 'static,
) {
    let statements = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&statements);
    let instrumentation = move |event: InstrumentationEvent<'_>| {
        if let InstrumentationEvent::StartQuery { query, .. } = event {
            let text = query.to_string();
            let beginning = &text[..length.min(text.len())];
            seen.lock().unwrap().push(beginning.to_owned());
        }
    };
    (statements, instrumentation)
}

/// Returns two employees, each of whom is the other's boss.
pub fn circle() -> [Employee; 2] {
    let [first, second] = [EmployeeId::generate(), EmployeeId::generate()];
    [(first, second), (second, first)].map(|(id, boss)| Employee {
        id,
        boss: Some(boss),
    })
}

pub fn connect<DB: Tables>(url: &str) -> Result<DB::Connection, diesel::ConnectionError> {
    DB::Connection::establish(url)
}

/// A connection to the tables, which are made.
pub fn create<DB: Tables>(url: &str) -> Outcome<DB::Connection> {
    let mut connection = connect::<DB>(url)?;
    let key = DB::KEY;
    let q = DB::Dialect::quote;
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
        flushes_table::<DB>().to_owned(),
    ] {
        connection.batch_execute(&sql)?;
    }
    if DB::IS_FILE {
        connection.batch_execute("PRAGMA foreign_keys = ON; PRAGMA journal_mode = WAL")?;
    }
    Ok(connection)
}
