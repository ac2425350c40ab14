//! Keys of ordid in Toasty, without an adapter.
//!
//! The guide shows the code from the first `use` to the end of `sell`. `tests/tests/toasty.rs` compares both.

#![cfg(test)]
#![forbid(unsafe_code)]

use ordid::{KeyType, uuid::Uuid};
use toasty::{Db, Deferred};

#[derive(KeyType, toasty::Embed)]
#[ordid(prefix = "cus")]
struct CustomerId(Uuid);

#[derive(KeyType, toasty::Embed)]
#[ordid(prefix = "ord")]
struct OrderId(Uuid);

#[derive(Debug, toasty::Model)]
struct Customer {
    #[key]
    id: CustomerId,
    name: String,
    #[has_many]
    orders: Deferred<Vec<Order>>,
}

#[derive(Debug, toasty::Model)]
struct Order {
    #[key]
    id: OrderId,
    #[index]
    customer_id: CustomerId,
    #[belongs_to(key = customer_id, references = id)]
    customer: Deferred<Customer>,
    total: i64,
}

async fn sell(db: &mut Db) -> toasty::Result<()> {
    let ada = CustomerId::generate();
    let [first, second] = [OrderId::generate(), OrderId::generate()];
    // The children name their parent's key before the database has seen it. Parents come first.
    toasty::create!((
        Customer {
            id: ada,
            name: "Ada"
        },
        Order {
            id: first,
            customer_id: ada,
            total: 1250
        },
        Order {
            id: second,
            customer_id: ada,
            total: 300
        },
    ))
    .exec(db)
    .await?;

    let order = Order::get_by_id(db, &first).await?;
    assert_eq!((order.id, order.customer_id), (first, ada));
    assert_eq!(order.customer().exec(db).await?.name, "Ada");

    // The order of the keys is the order in which they were made.
    let newest = Order::all().order_by(Order::fields().id().desc());
    let page = newest.paginate(1).exec(db).await?;
    assert_eq!(page.items[0].id, second);
    let next = page.next(db).await?.expect("another page");
    assert_eq!(next.items[0].id, first);
    Ok(())
}

mod tests {
    use super::*;
    use ordid::{
        clock::SystemClock,
        entropy::ThreadEntropy,
        generator::{Generator as _, OrderedGenerator, Policy},
    };
    use toasty::{sql, stmt::Value};

    #[derive(KeyType, toasty::Embed)]
    #[ordid(scheme = snowflake)]
    struct EventId(i64);

    #[derive(toasty::Model)]
    struct Event {
        #[key]
        id: EventId,
    }

    #[derive(Debug, toasty::Model)]
    struct Plain {
        #[key]
        id: Uuid,
    }

    async fn database() -> Db {
        let mut db = Db::builder();
        db.models(toasty::models!(Customer, Event, Order, Plain));
        let db = db.connect("sqlite::memory:").await.unwrap();
        db.push_schema().await.unwrap();
        db
    }

    /// Returns the first column of a query.
    async fn column(db: &mut Db, query: &str) -> Vec<Value> {
        let rows = sql::query(query).exec(db).await.unwrap();
        rows.into_iter()
            .map(|row| row.into_record().fields[0].clone())
            .collect()
    }

    #[tokio::test]
    async fn the_code_of_the_guide_runs() {
        sell(&mut database().await).await.unwrap();
    }

    #[tokio::test]
    async fn rows_are_read_in_the_order_of_their_keys() {
        let mut db = database().await;
        let customer_id = CustomerId::generate();
        let keys: Vec<OrderId> = (0..500).map(|_| OrderId::generate()).collect();
        // Not in the order of the keys, so that the table's own order cannot pass for it.
        for step in [7, 3, 0, 9, 1, 8, 5, 2, 6, 4] {
            for &id in keys.iter().skip(step).step_by(10) {
                toasty::create!(Order {
                    id,
                    customer_id,
                    total: 1
                })
                .exec(&mut db)
                .await
                .unwrap();
            }
        }
        let by_key = Order::all().order_by(Order::fields().id().asc());
        let read = by_key.exec(&mut db).await.unwrap();
        assert!(read.iter().map(|order| order.id).eq(keys.iter().copied()));

        // Both keys are stored as 16 bytes.
        for name in ["id", "customer_id"] {
            let query = format!("SELECT DISTINCT typeof({name}) || length({name}) FROM orders");
            assert_eq!(column(&mut db, &query).await, [Value::from("blob16")]);
        }

        // So are pages, each of which begins after the last key of the one before.
        let newest = Order::all().order_by(Order::fields().id().desc());
        let mut page = newest.paginate(100).exec(&mut db).await.unwrap();
        let mut pages = Vec::new();
        loop {
            pages.extend(page.items.iter().map(|order| order.id));
            match page.next(&mut db).await.unwrap() {
                Some(next) => page = next,
                None => break,
            }
        }
        assert!(pages.iter().rev().eq(&keys));
    }

    #[tokio::test]
    async fn integer_keys_are_read_in_their_order() {
        let mut db = database().await;
        let node = 7_u64.try_into().unwrap();
        let generator =
            OrderedGenerator::with_node(node, SystemClock, ThreadEntropy, Policy::DEFAULT);
        let keys: Result<Vec<EventId>, _> =
            (0..100).map(|_| generator.try_generate_key()).collect();
        let keys = keys.unwrap();
        for &id in keys.iter().rev() {
            toasty::create!(Event { id }).exec(&mut db).await.unwrap();
        }
        let by_key = Event::all().order_by(Event::fields().id().asc());
        let read = by_key.exec(&mut db).await.unwrap();
        assert!(read.iter().map(|event| event.id).eq(keys));
    }

    /// Writes the tables by hand, since Toasty's own schema declares no foreign keys.
    async fn with_foreign_keys(mode: &str) -> Db {
        let mut db = database().await;
        let declared = "SELECT sql FROM sqlite_schema WHERE sql LIKE '%REFERENCES%'";
        assert!(column(&mut db, declared).await.is_empty());
        let customers = "CREATE TABLE customers (id BLOB NOT NULL PRIMARY KEY, name TEXT NOT NULL)";
        let orders = format!(
            "CREATE TABLE orders (id BLOB NOT NULL PRIMARY KEY, \
             customer_id BLOB NOT NULL REFERENCES customers (id) {mode}, total INTEGER NOT NULL)"
        );
        let drops = ["DROP TABLE orders", "DROP TABLE customers"];
        for statement in drops.into_iter().chain([customers, &orders]) {
            sql::statement(statement).exec(&mut db).await.unwrap();
        }
        db
    }

    #[tokio::test]
    async fn a_batch_is_written_in_its_order_and_as_a_whole() {
        let mut db = with_foreign_keys("").await;
        sell(&mut db).await.unwrap();

        // Toasty does not sort a batch: with the child first it is refused, and none of its rows is written.
        let (id, customer_id) = (OrderId::generate(), CustomerId::generate());
        let batch = toasty::create!((
            Customer {
                id: CustomerId::generate(),
                name: "Alan"
            },
            Order {
                id,
                customer_id,
                total: 1
            },
            Customer {
                id: customer_id,
                name: "Grace"
            },
        ));
        let error = batch.exec(&mut db).await.unwrap_err();
        assert!(error.to_string().contains("FOREIGN KEY"), "{error}");
        let names = column(&mut db, "SELECT name FROM customers").await;
        assert_eq!(names, [Value::from("Ada")]);
    }

    #[tokio::test]
    async fn nested_children_are_written_before_their_parent() {
        for (mode, is_written) in [("", false), ("DEFERRABLE INITIALLY DEFERRED", true)] {
            let mut db = with_foreign_keys(mode).await;
            let id = CustomerId::generate();
            let nested = toasty::create!(Customer {
                id,
                name: "Ada",
                orders: [
                    { id: OrderId::generate(), total: 1250 },
                    { id: OrderId::generate(), total: 300 },
                ],
            });
            assert_eq!(nested.exec(&mut db).await.is_ok(), is_written, "{mode}");
            let orders = Order::filter_by_customer_id(id);
            let orders = orders.exec(&mut db).await.unwrap();
            assert_eq!(orders.len(), if is_written { 2 } else { 0 }, "{mode}");
        }
    }

    #[tokio::test]
    async fn keys_are_not_checked_when_they_are_read() {
        let mut db = database().await;
        let insert = "INSERT INTO orders (id, customer_id, total) \
                      VALUES (x'919108f752d143209bacf847db4148a8', x'919108f752d143209bacf847db4148a8', 1)";
        sql::statement(insert).exec(&mut db).await.unwrap();
        // A key of version 4 becomes an `OrderId`, whose scheme is version 7. Asked for, ordid refuses it.
        let order = Order::all().first().exec(&mut db).await.unwrap().unwrap();
        assert!(OrderId::from_raw(order.id.to_raw()).is_err());
        assert!(OrderId::from_raw(OrderId::generate().to_raw()).is_ok());
    }

    // A gap of Toasty 0.11, which the guide names. If this test fails, Toasty has closed it.
    #[tokio::test]
    #[should_panic(expected = "RecvError")]
    async fn typed_keys_cannot_be_compared_on_sqlite() {
        let mut db = database().await;
        let newer = Order::filter(Order::fields().id().ge(OrderId::generate()));
        drop(newer.exec(&mut db).await);
    }

    #[tokio::test]
    async fn plain_keys_can_be_compared() {
        let mut db = database().await;
        let keys: Vec<Uuid> = (0..100).map(|_| Uuid::generate()).collect();
        for &id in keys.iter().rev() {
            toasty::create!(Plain { id }).exec(&mut db).await.unwrap();
        }
        let id = || Plain::fields().id();
        let some = Plain::filter(id().ge(keys[10]).and(id().lt(keys[20])));
        let some = some.order_by(id().asc()).exec(&mut db).await.unwrap();
        assert!(
            some.iter()
                .map(|plain| plain.id)
                .eq(keys[10..20].iter().copied())
        );
    }
}
