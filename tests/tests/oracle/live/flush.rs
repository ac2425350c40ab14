//! The unit of work: rows that are inserted.

use oracle::Connection;
use ordid::KeyType as _;
use ordid_oracle::UnitOfWork;

use super::shop::{Customer, CustomerId, Employee, Order, Shop, customer, order_of};
use crate::{
    Outcome,
    keys::{NetworkId, generated},
};

/// Children are added first; more rows than a statement takes.
pub fn parents_first_in_chunks(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let customers: Vec<Customer> = (0..1_500).map(|i| customer(&i.to_string())).collect();
    let mut work = UnitOfWork::new();
    for customer in &customers {
        work.add(order_of(customer.id, 7));
    }
    for customer in customers.clone() {
        work.add(customer);
    }
    let flushed = work.flush(connection)?;
    assert!(work.is_empty());
    assert_eq!(
        ordid_tests::flushed::tables(&flushed),
        ["ordid customers", "ordid order"].map(|table| (table, 1_500, 2))
    );
    let select = "SELECT \"id\", \"name\", \"credit\" FROM \"ordid customers\" ORDER BY \"id\"";
    let rows = connection.query_as::<(CustomerId, String, Option<i64>)>(select, &[])?;
    for (row, customer) in rows.zip(&customers) {
        assert_eq!(row?, (customer.id, customer.name.clone(), customer.credit));
    }
    assert_eq!(
        (shop.count::<Customer>()?, shop.count::<Order>()?),
        (1_500, 1_500)
    );
    Ok(())
}

/// A duplicate in the second chunk: the error names table, chunk and key, nothing is written, and
/// the same work can be flushed once the cause is gone.
pub fn failure_names_the_row(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    let parent = work.add(customer("parent"));
    let orders: Vec<_> = (0..2_500).map(|kind| order_of(parent, kind)).collect();
    for order in orders.clone() {
        work.add(order);
    }
    let taken = orders[1_234].id;
    let mut earlier = UnitOfWork::new();
    let other = earlier.add(customer("other"));
    earlier.add(Order {
        id: taken,
        ..order_of(other, 1)
    });
    earlier.flush(connection)?;

    let error = work.flush(connection).unwrap_err();
    assert!(
        error.is_unique_violation() && !error.is_commit_unknown(),
        "{error}"
    );
    assert_eq!(
        (error.table(), error.chunk()),
        (Some("ordid order"), Some(1))
    );
    assert_eq!(error.key(), Some(&*taken.to_string()));
    assert_eq!((shop.count::<Customer>()?, shop.count::<Order>()?), (1, 1));

    assert_eq!(work.len(), 2_501, "nothing is lost");
    connection.execute("DELETE FROM \"ordid order\"", &[])?;
    connection.commit()?;
    work.flush(connection)?;
    assert_eq!(
        (shop.count::<Customer>()?, shop.count::<Order>()?),
        (2, 2_500)
    );
    Ok(())
}

pub fn a_missing_parent_is_told(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    let lost = work.add(order_of(CustomerId::generate(), 1));
    let error = work.flush(connection).unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert_eq!(error.key(), Some(&*lost.to_string()));
    assert_eq!(shop.count::<Order>()?, 0);
    Ok(())
}

/// Gone with the user's rollback, kept by the user's commit; a failed flush leaves the transaction
/// as it was; and `flush` does not commit what is not its own.
pub fn an_open_transaction_is_respected(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    work.add(customer("one"));
    work.flush_in(connection)?;
    connection.rollback()?;
    assert_eq!((shop.count::<Customer>()?, work.len()), (0, 1));

    work.flush_in(connection)?;
    let mut failing = UnitOfWork::new();
    failing.add(customer("two"));
    let lost = failing.add(order_of(CustomerId::generate(), 1));
    let error = failing.flush_in(connection).unwrap_err();
    assert_eq!(error.key(), Some(&*lost.to_string()));
    let mut third = UnitOfWork::new();
    third.add(customer("three"));
    let error = third.flush(connection).unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    third.flush_in(connection)?;
    connection.commit()?;
    let select = "SELECT \"name\" FROM \"ordid customers\" ORDER BY \"id\"";
    let names: Vec<String> = connection
        .query_as(select, &[])?
        .collect::<Result<_, _>>()?;
    assert_eq!(names, ["one", "three"]);
    Ok(())
}

/// A tree whose children have lower keys than their parents.
pub fn a_tree_in_one_table_goes_in_root_first(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let ids: Vec<NetworkId> = generated(1_500);
    let mut work = UnitOfWork::new();
    for (position, id) in ids.iter().enumerate() {
        // The last one is the root; each refers to one of higher key.
        let boss = (2 * (position + 1)).min(ids.len() - 1);
        work.add(Employee {
            id: *id,
            boss: (boss > position).then(|| ids[boss]),
        });
    }
    work.flush(connection)?;
    assert_eq!(shop.count::<Employee>()?, 1_500);
    Ok(())
}
