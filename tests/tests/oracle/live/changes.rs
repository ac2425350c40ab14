//! The unit of work: updates, deletes, circles, deferred constraints, lost connections.

use std::{thread, time::Duration};

use oracle::Connection;
use ordid::KeyType as _;
use ordid_oracle::{Action, UnitOfWork};

use ordid_tests::login;

use super::shop::{Customer, Employee, Order, Pair, Shop, customer, order_of};
use crate::{
    Outcome,
    keys::{NetworkId, generated},
};

fn flushes(connection: &Connection) -> Result<usize, oracle::Error> {
    connection.query_row_as("SELECT COUNT(*) FROM ordid_flushes", &[])
}

/// An order moves to a customer that is new, and its old customer goes with another order; values
/// change to NULL and from it.
pub fn all_in_one_flush(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut work = UnitOfWork::new();
    let (old, mut stays) = (customer("old"), customer("stays"));
    stays.credit = Some(1);
    let (mut moves, goes) = (order_of(old.id, 1), order_of(old.id, 2));
    work.add(old.clone());
    work.add(stays.clone());
    work.add(moves.clone());
    work.add(goes.clone());
    work.flush(connection)?;
    let before = flushes(connection)?;

    let mut new = customer("new");
    new.credit = Some(i64::MIN);
    moves.customer = work.add(new.clone());
    moves.kind = -3;
    work.update(moves.clone());
    (stays.name, stays.credit) = ("stayed".into(), None);
    work.update(stays.clone());
    work.delete(&old);
    work.delete(&goes);
    let flushed = work.flush(connection)?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (1, 2, 2)
    );
    assert_eq!(flushes(connection)?, before + 1);
    let sql = "SELECT \"id\", \"name\", \"credit\" FROM \"ordid customers\" ORDER BY \"id\"";
    let read = connection.query_as::<(super::shop::CustomerId, String, Option<i64>)>(sql, &[])?;
    let read = read.collect::<Result<Vec<_>, _>>()?;
    let wanted = [stays, new].map(|it| (it.id, it.name, it.credit));
    assert_eq!(read, wanted);
    let sql = "SELECT \"id\", \"customer\", \"group\" FROM \"ordid order\"";
    let read = connection.query_row_as(sql, &[])?;
    assert_eq!((moves.id, moves.customer, moves.kind), read);
    assert_eq!(shop.count::<Order>()?, 1);
    Ok(())
}

/// The first of two that are not there, in the second chunk; nothing is written, nor recorded.
pub fn a_missing_row_is_named(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let mut customers: Vec<Customer> = (0..1_500).map(|i| customer(&i.to_string())).collect();
    let mut work = UnitOfWork::new();
    for (row, customer) in customers.iter().enumerate() {
        if ![1_234, 1_400].contains(&row) {
            work.add(customer.clone());
        }
    }
    work.flush(connection)?;
    let before = flushes(connection)?;
    for customer in &mut customers {
        customer.name = "changed".into();
        work.update(customer.clone());
    }
    let error = work.flush(connection).unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.action(), Some(Action::Update));
    assert_eq!(error.chunk(), Some(1));
    assert_eq!(error.key(), Some(&*customers[1_234].id.to_string()));
    let text = "there is no such row (and 1 more of these rows)";
    assert!(error.to_string().ends_with(text), "{error}");
    let changed = "SELECT COUNT(*) FROM \"ordid customers\" WHERE \"name\" = 'changed'";
    assert_eq!(connection.query_row_as::<usize>(changed, &[])?, 0);
    assert_eq!(flushes(connection)?, before);

    work.clear();
    for customer in &customers {
        work.delete(customer);
    }
    let error = work.flush(connection).unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert_eq!(error.action(), Some(Action::Delete));
    assert_eq!(shop.count::<Customer>()?, 1_498);
    Ok(())
}

/// Rings of three, each of whose rows refers to the next.
pub fn circles_are_fixed_up_and_parted(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let ids: Vec<NetworkId> = generated(900);
    let employees: Vec<Employee> = ids
        .chunks(3)
        .flat_map(|ring| [(0, 1), (1, 2), (2, 0)].map(|(of, boss)| (ring[of], ring[boss])))
        .map(|(id, boss)| Employee {
            id,
            boss: Some(boss),
        })
        .collect();
    let wanted: Vec<_> = employees.iter().map(|it| (it.id, it.boss)).collect();
    let mut work = UnitOfWork::new();
    let mut gone = UnitOfWork::new();
    for employee in employees {
        gone.delete(&employee);
        work.add(employee);
    }
    work.flush(connection)?;
    let sql = "SELECT \"id\", \"boss\" FROM \"ordid employee\" ORDER BY \"id\"";
    let read = connection.query_as::<(NetworkId, Option<NetworkId>)>(sql, &[])?;
    assert_eq!(read.collect::<Result<Vec<_>, _>>()?, wanted);
    assert_eq!(gone.flush(connection)?.deleted(), 900);
    assert_eq!(shop.count::<Employee>()?, 0);
    Ok(())
}

/// A tree of which each row but the first refers to one of lower key.
pub fn a_tree_goes_leaves_first(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let ids: Vec<NetworkId> = generated(1_500);
    let mut work = UnitOfWork::new();
    let mut gone = UnitOfWork::new();
    for (position, id) in ids.iter().enumerate() {
        let boss = (position > 0).then(|| ids[(position - 1) / 2]);
        let employee = Employee { id: *id, boss };
        gone.delete(&employee);
        work.add(employee);
    }
    work.flush(connection)?;
    assert_eq!(gone.flush(connection)?.deleted(), 1_500);
    assert_eq!(shop.count::<Employee>()?, 0);
    Ok(())
}

/// A circle that cannot be NULL goes in; what is not there at COMMIT is told by it.
pub fn deferred_keys_are_checked_at_commit(connection: &Connection) -> Outcome {
    let shop = Shop::new(connection)?;
    let ids: Vec<NetworkId> = generated(3);
    let mut work = UnitOfWork::new();
    for (id, other) in [(ids[0], ids[1]), (ids[1], ids[0])] {
        work.add(Pair { id, other });
    }
    work.flush(connection)?;
    assert_eq!(shop.count::<Pair>()?, 2);

    let missing = NetworkId::generate();
    let (left, right): (NetworkId, NetworkId) = (NetworkId::generate(), ids[2]);
    for (id, other) in [
        (left, right),
        (right, left),
        (NetworkId::generate(), missing),
    ] {
        work.add(Pair { id, other });
    }
    let error = work.flush(connection).unwrap_err();
    assert!(error.is_foreign_key_violation(), "{error}");
    assert!(!error.is_commit_unknown(), "{error}");
    assert!(error.to_string().starts_with("cannot commit, "), "{error}");
    assert_eq!((shop.count::<Pair>()?, work.len()), (2, 3));
    Ok(())
}

/// The first connection is closed already.
pub fn a_dead_connection_is_replaced(url: &str) -> Outcome {
    let connection = login::oracle(url)??;
    let shop = Shop::new(&connection)?;
    let mut work = UnitOfWork::new();
    work.add(customer("one"));
    let mut connections = 0;
    let flushed = work.flush_with(|| {
        connections += 1;
        let connection = login::oracle(url).expect("a URL")?;
        if connections == 1 {
            connection.close()?;
        }
        Ok::<_, ordid_oracle::Error>(connection)
    })?;
    assert_eq!((flushed.retries, connections), (1, 2));
    assert_eq!(shop.count::<Customer>()?, 1);
    Ok(())
}

/// Until it is known whether the other's row will be there: what finds out about a COMMIT whose answer
/// was lost relies on it.
pub fn a_key_that_another_holds_is_waited_for(url: &str) -> Outcome {
    let connection = login::oracle(url)??;
    let shop = Shop::new(&connection)?;
    for commits in [false, true] {
        let held = customer("held");
        let (mut first, mut second) = (UnitOfWork::new(), UnitOfWork::new());
        first.add(held.clone());
        second.add(held);
        first.flush_in(&connection)?;
        let refused = thread::scope(|scope| {
            let second = scope.spawn(|| second.flush_with(|| login::oracle(url).expect("a URL")));
            // Time for it to come there; where it comes later, it meets the outcome itself.
            thread::sleep(Duration::from_millis(300));
            if commits {
                connection.commit()?;
            } else {
                connection.rollback()?;
            }
            Ok::<_, oracle::Error>(second.join().expect("no panic").err())
        })?;
        assert_eq!(refused.is_some(), commits);
        assert!(refused.is_none_or(|error| error.is_unique_violation()));
    }
    assert_eq!(shop.count::<Customer>()?, 2);
    Ok(())
}
