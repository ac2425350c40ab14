//! The unit of work on a live database: the same tests on each engine.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, mpsc::Receiver},
    task::Poll,
};

use ordid::{
    KeyType, OrderedKey,
    clock::SystemClock,
    entropy::ThreadEntropy,
    generator::{Generator as _, Policy},
    scheme::snowflake::{SnowflakeGenerator, SnowflakeNode},
    storage::Dialect as _,
    uuid::Uuid,
};
use ordid_sqlx::{Entity, UnitOfWork};
use sqlx::{Connection as _, MySql, Pool, Postgres};

use crate::{
    Outcome,
    database::{Keeps, Live, Reads, Test, all_of, begin, read, tests},
    keys::Native,
};

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, prefix = "cust", sqlx)]
pub struct CustomerId(Uuid);

#[derive(KeyType)]
#[ordid(scheme = uuid_v7, sqlx)]
pub struct OrderId(Uuid);

#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "customers")]
pub struct Customer {
    #[ordid(key)]
    pub id: CustomerId,
    pub name: String,
    pub credit: Option<i64>,
}

/// Names that must be quoted, and one from `FromRow`'s own attribute.
#[derive(OrderedKey, Clone, Debug, PartialEq, sqlx::FromRow)]
#[ordid(table = "order")]
pub struct Order {
    #[ordid(key)]
    pub id: OrderId,
    #[ordid(parent)]
    pub customer: CustomerId,
    #[sqlx(rename = "group")]
    pub kind: i32,
    #[ordid(skip)]
    #[sqlx(skip)]
    pub note: String,
}

/// Plain `Uuid` keys, not yet assigned; the parent is named, since its key's type does not tell.
#[derive(OrderedKey)]
#[ordid(table = "line")]
pub struct Line {
    #[ordid(key)]
    pub id: Option<Uuid>,
    #[ordid(parent = Order)]
    pub order_id: OrderId,
    pub amount: i64,
}

/// A tree in one table.
#[derive(OrderedKey)]
#[ordid(table = "employee")]
pub struct Employee {
    #[ordid(key)]
    pub id: Native,
    #[ordid(parent)]
    pub boss: Option<Native>,
}

#[derive(KeyType)]
#[ordid(scheme = snowflake, sqlx)]
pub struct ReadingId(i64);

/// A key whose generator has a node of its own, not yet assigned.
#[derive(OrderedKey, sqlx::FromRow)]
#[ordid(table = "reading")]
pub struct Reading {
    pub id: Option<ReadingId>,
    pub position: i64,
}

/// The same table; the key is always there.
#[derive(OrderedKey)]
#[ordid(table = "reading")]
pub struct KeyedReading {
    pub id: ReadingId,
    pub position: i64,
}

/// Node 7's generator, to be shared.
pub fn readings() -> Arc<SnowflakeGenerator> {
    let node = SnowflakeNode::new(7).expect("ten bits");
    Arc::new(SnowflakeGenerator::with_node(
        node,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
    ))
}

pub fn customer(name: &str) -> Customer {
    Customer {
        id: CustomerId::generate(),
        name: name.into(),
        credit: None,
    }
}

pub fn order(customer: CustomerId, kind: i32) -> Order {
    Order {
        id: OrderId::generate(),
        customer,
        kind,
        note: "not a column".into(),
    }
}

all_of! {
    /// A database that has the tables of [`create`].
    pub trait Flushes:
        Live
        + Keeps<Customer>
        + Keeps<Order>
        + Keeps<Line>
        + Keeps<Employee>
        + Reads<Customer>
        + Reads<Reading>
}

/// The tests of a database.
pub fn tests<DB: Flushes>() -> [(&'static str, Test<DB>); 8]
where
    Reading: Entity<DB>,
    KeyedReading: Entity<DB>,
{
    tests![
        "parents_first_in_chunks": parents_first_in_chunks,
        "failure_names_the_row": failure_names_the_row_and_leaves_nothing,
        "missing_parent": a_missing_parent_and_a_failed_check_are_told,
        "open_transaction": an_open_transaction_is_respected,
        "retry": a_retry_carries_the_same_keys,
        "given_generator": keys_of_a_given_generator,
        "tree": a_tree_in_one_table_goes_in_root_first,
        "cancelled": a_cancelled_flush_leaves_nothing,
    ]
}

async fn create<DB: Live>(pool: &Pool<DB>) -> Result<(), sqlx::Error> {
    let (key, options) = (DB::KEY, DB::OPTIONS);
    let (order, group) = (DB::Dialect::quote("order"), DB::Dialect::quote("group"));
    for sql in [
        format!(
            "CREATE TABLE customers (id {key} NOT NULL PRIMARY KEY, name VARCHAR(100) NOT \
             NULL, credit BIGINT) {options}"
        ),
        format!(
            "CREATE TABLE {order} (id {key} NOT NULL PRIMARY KEY, customer {key} NOT NULL, \
             {group} INTEGER NOT NULL CHECK ({group} <> 13), \
             FOREIGN KEY (customer) REFERENCES customers (id)) {options}"
        ),
        format!(
            "CREATE TABLE line (id {key} NOT NULL PRIMARY KEY, order_id {key} NOT NULL, \
             amount BIGINT NOT NULL, FOREIGN KEY (order_id) REFERENCES {order} (id)) {options}"
        ),
        format!(
            "CREATE TABLE employee (id {key} NOT NULL PRIMARY KEY, boss {key}, \
             FOREIGN KEY (boss) REFERENCES employee (id)) {options}"
        ),
    ] {
        DB::script(pool, &sql).await?;
    }
    Ok(())
}

async fn count<DB: Live>(pool: &Pool<DB>, table: &str) -> Result<i64, sqlx::Error> {
    DB::count(pool, &DB::Dialect::quote(table)).await
}

/// Children are added first; three tables, more rows than a statement takes.
async fn parents_first_in_chunks<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let customers: Vec<Customer> = (0..1_500).map(|i| customer(&i.to_string())).collect();
    let mut work = begin::<DB>();
    let mut lines = Vec::new();
    for customer in &customers {
        let order = order(customer.id, 7);
        let line = Line {
            id: None,
            order_id: order.id,
            amount: 3,
        };
        lines.push(work.add(line));
        assert_eq!(work.add(order.clone()), order.id);
    }
    for customer in customers.clone() {
        work.add(customer);
    }
    assert_eq!(
        work.get::<Line>()[0].id,
        Some(lines[0]),
        "assigned when added"
    );
    assert!(lines.is_sorted());
    assert_eq!(work.len(), 4_500);
    let plan = work.plan()?;
    let flushed = work.flush(&pool).await?;
    assert!(work.is_empty());
    assert_eq!(flushed.rows(), 4_500);
    let (copied, statements) = if DB::COPIES { (1_500, 1) } else { (0, 2) };
    let tables: Vec<_> = flushed
        .tables
        .iter()
        .map(|it| (it.table, it.rows, it.bulk, it.statements))
        .collect();
    let expected = ["customers", "order", "line"].map(|table| (table, 1_500, copied, statements));
    assert_eq!(tables, expected);
    let planned: Vec<_> = plan
        .tables
        .iter()
        .map(|it| (it.table, it.rows, it.statements.len()))
        .collect();
    assert_eq!(
        planned,
        expected.map(|(table, rows, _, _)| (table, rows, 2))
    );
    let read: Vec<Customer> = read(&pool, "SELECT * FROM customers ORDER BY id").await?;
    assert_eq!(read, customers, "ORDER BY is the order of adding");
    assert_eq!(
        work.flush(&pool).await?.rows(),
        0,
        "an empty unit of work is no error"
    );
    Ok(())
}

/// A duplicate in the middle of the second chunk: the error names table, chunk and key,
/// nothing is written, and the same work can be flushed once the cause is gone.
async fn failure_names_the_row_and_leaves_nothing<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let parent = work.add(customer("parent"));
    let orders: Vec<_> = (0..2_500).map(|i| order(parent, i)).collect();
    for order in orders.clone() {
        // 13 is refused by a CHECK; it gets its own test.
        work.add(Order {
            kind: order.kind + 100,
            ..order
        });
    }
    let taken = orders[1_234].id;
    let mut earlier = begin::<DB>();
    let other = earlier.add(customer("other"));
    earlier.add(Order {
        id: taken,
        ..order(other, 1)
    });
    earlier.flush(&pool).await?;

    let error = work.flush(&pool).await.unwrap_err();
    assert!(
        error.is_unique_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!((error.table(), error.chunk()), (Some("order"), Some(1)));
    assert_eq!(error.rows(), Some(1_000..2_000));
    assert_eq!(error.key(), Some(&*taken.to_string()));
    let message = error.to_string();
    let start = format!(
        "cannot insert into order (rows 1000 to 1999), key {taken}, nothing was \
         written: "
    );
    assert!(message.starts_with(&start), "{message}");
    assert_eq!(counts(&pool).await?, (1, 1));

    assert_eq!(work.len(), 2_501, "nothing is lost");
    let sql = format!("DELETE FROM {}", DB::Dialect::quote("order"));
    DB::script(&pool, &sql).await?;
    work.flush(&pool).await?;
    assert_eq!(counts(&pool).await?, (2, 2_500));
    Ok(())
}

/// Counts customers and orders.
async fn counts<DB: Live>(pool: &Pool<DB>) -> Result<(i64, i64), sqlx::Error> {
    Ok((count(pool, "customers").await?, count(pool, "order").await?))
}

async fn a_missing_parent_and_a_failed_check_are_told<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    let lost = work.add(order(CustomerId::generate(), 1));
    let error = work.flush(&pool).await.unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    // SQLite checks foreign keys at the statement's end, row by row as well.
    assert_eq!(error.key(), Some(&*lost.to_string()));

    let mut work = begin::<DB>();
    let parent = work.add(customer("parent"));
    work.add(order(parent, 12));
    let unlucky = work.add(order(parent, 13));
    work.add(order(parent, 14));
    let error = work.flush(&pool).await.unwrap_err();
    assert_eq!(error.key(), Some(&*unlucky.to_string()), "{error}");
    assert_eq!(counts(&pool).await?, (0, 0));
    Ok(())
}

/// Inside the user's transaction: visible there, gone with its rollback, kept by its
/// commit; a failed flush leaves the transaction as it was.
async fn an_open_transaction_is_respected<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    work.add(customer("one"));

    let mut transaction = pool.begin().await?;
    work.flush_in(&mut transaction).await?;
    transaction.rollback().await?;
    assert_eq!(count(&pool, "customers").await?, 0);
    assert_eq!(work.len(), 1, "rows stay until `clear`");

    let mut transaction = pool.begin().await?;
    work.flush_in(&mut transaction).await?;
    let mut failing = begin::<DB>();
    failing.add(customer("two"));
    let lost = failing.add(order(CustomerId::generate(), 1));
    let error = failing.flush_in(&mut transaction).await.unwrap_err();
    assert_eq!(error.key(), Some(&*lost.to_string()));
    let mut third = begin::<DB>();
    third.add(customer("three"));
    third.flush_in(&mut transaction).await?;
    transaction.commit().await?;
    work.clear();
    let names: Vec<String> = DB::texts(&pool, "SELECT name FROM customers ORDER BY id").await?;
    assert_eq!(names, ["one", "three"]);
    Ok(())
}

/// PostgreSQL makes no savepoint behind a statement that has failed, and SQLx gives the whole transaction up then.
pub async fn a_transaction_that_has_failed_is_over(pool: Pool<Postgres>) -> Outcome {
    create(&pool).await?;
    let mut transaction = pool.begin().await?;
    let mut work = begin::<Postgres>();
    work.add(customer("one"));
    work.flush_in(&mut transaction).await?;
    let failed = sqlx::query("SELECT 1 / 0").execute(&mut *transaction).await;
    assert!(failed.is_err());
    let error = work.flush_in(&mut transaction).await.unwrap_err();
    assert!(
        error.is_transaction_over() && !error.is_connection_lost(),
        "{error}"
    );
    drop(transaction);
    assert_eq!(count(&pool, "customers").await?, 0);
    Ok(())
}

/// A statement that changes a table commits, and then there is none.
pub async fn a_transaction_that_a_statement_has_committed_is_not_there(
    pool: Pool<MySql>,
) -> Outcome {
    create(&pool).await?;
    let mut transaction = pool.begin().await?;
    sqlx::query("CREATE TABLE other (id INT)")
        .execute(&mut *transaction)
        .await?;
    let mut work = begin::<MySql>();
    work.add(customer("one"));
    let error = work.flush_in(&mut transaction).await.unwrap_err();
    assert!(!error.is_connection_lost(), "{error}");
    assert!(
        error.to_string().contains("no transaction is open"),
        "{error}"
    );
    assert_eq!(count(&pool, "customers").await?, 0);
    Ok(())
}

/// The same keys again: a retry after a lost answer is a duplicate, never a second row.
async fn a_retry_carries_the_same_keys<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    work.add(Line {
        id: None,
        order_id: OrderId::generate(),
        amount: 1,
    });
    let first = work.flush(&pool).await.unwrap_err();
    let assigned = work.get::<Line>()[0].id;
    let second = work.flush(&pool).await.unwrap_err();
    assert_eq!(first.key(), second.key());
    assert_eq!(work.get::<Line>()[0].id, assigned);
    let mut row = Line {
        id: assigned,
        order_id: OrderId::generate(),
        amount: 1,
    };
    assert_eq!(Some(row.ensure_key()), assigned);
    Ok(())
}

/// Keys of a scheme that takes a node, by a generator that two units of work share.
async fn keys_of_a_given_generator<DB: Flushes>(pool: Pool<DB>) -> Outcome
where
    Reading: Entity<DB>,
    KeyedReading: Entity<DB>,
{
    let sql = "CREATE TABLE reading (id BIGINT NOT NULL PRIMARY KEY, position BIGINT NOT NULL)";
    DB::script(&pool, sql).await?;
    let generator = readings();
    let mut work = UnitOfWork::<DB>::new().with_generator::<ReadingId>(generator.clone());
    let mut other = UnitOfWork::<DB>::new();
    for position in (0..3_000).step_by(3) {
        let first = work.try_add(Reading { id: None, position })?;
        let reading = Reading {
            id: None,
            position: position + 1,
        };
        let second = other.add_with(&generator, reading)?;
        assert!(first < second);
        let id = generator.try_generate_key()?;
        assert_eq!(
            work.add(KeyedReading {
                id,
                position: position + 2
            }),
            id
        );
    }
    let first = work.get::<Reading>()[0].id;
    let flushed = work.flush(&pool).await?;
    assert_eq!(flushed.rows() + other.flush(&pool).await?.rows(), 3_000);
    let read: Vec<Reading> = read(&pool, "SELECT * FROM reading ORDER BY id").await?;
    let positions: Vec<i64> = read.iter().map(|reading| reading.position).collect();
    assert!(
        positions.into_iter().eq(0..3_000),
        "ORDER BY is the order of making"
    );

    // A generator stays for the next flush, and a retry carries the same key.
    let next = work.try_add(Reading {
        id: None,
        position: 0,
    })?;
    assert!(next > read[2_999].id.expect("not null"));
    let again = work.try_add(Reading {
        id: first,
        position: 0,
    })?;
    assert_eq!(Some(again), first);
    let error = work.flush(&pool).await.unwrap_err();
    assert_eq!(error.key(), Some(&*again.to_string()));
    Ok(())
}

/// A tree whose children have lower keys than their parents, added upside down.
async fn a_tree_in_one_table_goes_in_root_first<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let ids: Vec<Native> = (0..1_500).map(|_| Native::generate()).collect();
    let mut work = begin::<DB>();
    for (position, id) in ids.iter().enumerate() {
        // The last one is the root; each refers to one of higher key.
        let boss = (2 * (position + 1)).min(ids.len() - 1);
        work.add(Employee {
            id: *id,
            boss: (boss > position).then(|| ids[boss]),
        });
    }
    work.flush(&pool).await?;
    assert_eq!(count(&pool, "employee").await?, 1_500);
    Ok(())
}

/// Polls a flush until it reports sent rows, and checks that it has not ended before.
pub async fn until_sent<T>(mut flush: Pin<&mut impl Future>, sent: &Receiver<T>) {
    poll_fn(|context| {
        assert!(flush.as_mut().poll(context).is_pending());
        match sent.try_recv() {
            Ok(_) => Poll::Ready(()),
            Err(_) => Poll::Pending,
        }
    })
    .await;
}

/// A dropped future, as after a timeout, leaves nothing.
async fn a_cancelled_flush_leaves_nothing<DB: Flushes>(pool: Pool<DB>) -> Outcome {
    create(&pool).await?;
    let mut work = begin::<DB>();
    for name in 0..5_000 {
        work.add(customer(&name.to_string()));
    }
    // `COPY` reports customers when it has ended. The orders that follow take the server a while.
    let buyer = work.add(customer("who buys"));
    for _ in 0..5_000 {
        work.add(order(buyer, 1));
    }
    let (report, sent) = std::sync::mpsc::channel();
    work.observe(move |progress| report.send(progress.rows).unwrap());
    {
        let flush = work.flush(&pool);
        tokio::pin!(flush);
        until_sent(flush, &sent).await;
    }
    assert_eq!(count(&pool, "customers").await?, 0);
    assert_eq!(work.len(), 10_001);
    // A pool's connection is used again; the transaction must not still be open on it.
    let mut connection = pool.acquire().await?;
    connection.ping().await?;
    drop(connection);
    work.flush(&pool).await?;
    assert_eq!(count(&pool, "customers").await?, 5_001);
    Ok(())
}
