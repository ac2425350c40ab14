//! The unit of work over Diesel's own connections, on each backend.

use std::{
    error::Error as _,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use diesel::{connection::SimpleConnection as _, prelude::*};
use ordid::KeyType as _;
use ordid_diesel::assign_all;

use crate::{
    Outcome, Test,
    tables::{
        Customer, CustomerId, Employee, EmployeeId, Order, Pair, PairId, Tables, Work, beginnings,
        circle, connect, create, customer, order,
    },
};

/// The tests of a backend.
pub fn tests<DB: Tables>() -> [(&'static str, Test); 6] {
    [
        ("a_graph_goes_in_parents_first", graph::<DB>),
        ("rows_are_updated_and_deleted", changes::<DB>),
        ("what_is_refused_writes_nothing", refused::<DB>),
        ("an_open_transaction_is_respected", transactions::<DB>),
        (
            "another_form_is_told_with_what_to_declare",
            other_forms::<DB>,
        ),
        ("plain_inserts_get_keys", plain_inserts::<DB>),
    ]
}

/// Parents first, a statement for 1,000 rows, one transaction; keys are assigned.
pub fn graph<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let (statements, seen) = beginnings(24);
    connection.set_instrumentation(seen);
    let mut work = Work::<DB>::new();
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
    let orders = if DB::COPIES { 1 } else { 3 };
    assert_eq!(of("orders"), Some((2_500, orders)));
    assert_eq!(of("customers"), Some((2, 1)));
    let sent = std::mem::take(&mut *statements.lock().unwrap());
    let is_insert = |it: &&String| it.starts_with("INSERT") || it.starts_with("COPY");
    let inserts = sent.iter().filter(is_insert).count();
    // Two for the two depths of employees at most.
    assert!((orders + 2..=orders + 3).contains(&inserts), "{sent:?}");
    assert_eq!(DB::counts(&mut connection)?, [2, 2_500, 2]);

    let found = DB::customers(&mut connection)?;
    let names: Vec<_> = found
        .iter()
        .map(|it| (it.name.as_str(), it.credit))
        .collect();
    assert_eq!(names, [("Ada", Some(7)), ("Grace", None)]);
    assert_eq!(found[1].id, Some(other));
    let kinds = DB::kinds_of(&mut connection, ada)?;
    assert!(kinds.into_iter().eq(100..2_600));
    let found = DB::employees(&mut connection)?;
    assert_eq!(found, [boss, below]);
    Ok(())
}

/// Rows are updated, deleted children first, and circles closed by a fix-up.
pub fn changes<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut work = Work::<DB>::new();
    let ada = work.add(customer("Ada"));
    let gone = work.add(customer("Gone"));
    let kept = order(ada, 1);
    let dropped = order(gone, 2);
    work.add(kept.clone());
    work.add(dropped.clone());
    let circle = circle();
    for employee in circle.clone() {
        work.add(employee);
    }
    work.flush(&mut connection)?;
    assert_eq!(DB::employees(&mut connection)?, circle);

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
    for employee in &circle {
        work.delete(employee);
    }
    let flushed = work.flush(&mut connection)?;
    assert_eq!(
        (flushed.rows(), flushed.updated(), flushed.deleted()),
        (0, 2, 4)
    );
    assert_eq!(DB::counts(&mut connection)?, [1, 1, 0]);
    assert_eq!(DB::customers(&mut connection)?[0], named);
    assert_eq!(DB::orders(&mut connection)?[0].kind, 3);

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
    assert_eq!(DB::customers(&mut connection)?[0].credit, None);
    Ok(())
}

/// What is refused writes nothing, names the row, and stays to be flushed again.
pub fn refused<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut work = Work::<DB>::new();
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
    assert_eq!(DB::counts(&mut connection)?, [0; 3]);
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
    assert_eq!(DB::counts(&mut connection)?, [1, 1, 0]);

    // One that only inserts does without, unless it is asked to.
    let mut recorded = Work::<DB>::new().with_record();
    recorded.add(customer("Ada"));
    let error = recorded.flush(&mut connection).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("updates, upserts, deletes and `with_record`"),
        "{error}"
    );
    work.clear();
    work.add(customer("Ada"));
    work.flush(&mut connection)?;
    assert_eq!(DB::counts(&mut connection)?, [2, 1, 0]);
    Ok(())
}

/// Rows in a circle of foreign keys that may not be NULL are inserted as they are and checked
/// at COMMIT, which tells what it refuses.
pub fn deferred<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let key = DB::KEY;
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
    let mut work = Work::<DB>::new();
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
    let count = |connection: &mut DB::Connection| DB::pairs(connection).map(|it| it.len());
    assert_eq!((work.len(), count(&mut connection)?), (3, 0));
    work.clear();

    let pairs = circle();
    for pair in &pairs {
        work.add(pair.clone());
    }
    let flushed = work.flush(&mut connection)?;
    assert_eq!(flushed.tables[0].statements, 1, "and nothing to complete");
    assert_eq!(DB::pairs(&mut connection)?, pairs);
    for pair in &pairs {
        work.delete(pair);
    }
    assert_eq!(work.flush(&mut connection)?.deleted(), 2);
    assert_eq!(count(&mut connection)?, 0);
    Ok(())
}

/// An open transaction is respected, a test transaction is a test's.
pub fn transactions<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut work = Work::<DB>::new();
    let ada = work.add(customer("Ada"));
    let error = work.flush_in(&mut connection).unwrap_err();
    assert!(error.is_connection_state(), "{error}");
    let outcome = connection.transaction::<(), diesel::result::Error, _>(|connection| {
        let error = work.flush(connection).unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        assert!(error.to_string().contains("with `flush_in`"), "{error}");
        work.flush_in(connection).unwrap();
        assert_eq!(DB::counts(connection)?, [1, 0, 0]);
        Err(diesel::result::Error::RollbackTransaction)
    });
    assert!(outcome.is_err());
    assert_eq!(DB::counts(&mut connection)?, [0; 3]);
    assert_eq!(work.len(), 1, "they stay until they are forgotten");

    connection.transaction::<(), diesel::result::Error, _>(|connection| {
        work.flush_in(connection).unwrap();
        work.clear();
        // What fails leaves the transaction as it was.
        work.add(order(ada, 1));
        work.add(order(ada, 13));
        let error = work.flush_in(connection).unwrap_err();
        assert!(error.key().is_some(), "{error}");
        assert_eq!(DB::counts(connection)?, [1, 0, 0]);
        Ok(())
    })?;
    work.clear();
    assert_eq!(DB::counts(&mut connection)?, [1, 0, 0]);

    connection.begin_test_transaction()?;
    work.add(customer("Grace"));
    work.flush(&mut connection)?;
    assert_eq!((work.len(), DB::counts(&mut connection)?), (0, [2, 0, 0]));
    Ok(())
}

/// A key that is stored in another form than its column's is told with what to declare.
pub fn other_forms<DB: Tables>(url: &str) -> Outcome {
    let mut connection = connect::<DB>(url)?;
    connection.batch_execute(
        "CREATE TABLE texts (id VARCHAR(36) NOT NULL);
         INSERT INTO texts VALUES ('0190a6a1-0000-7000-8000-000000000001');",
    )?;
    let found = DB::other_form(&mut connection);
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
pub fn plain_inserts<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut ada = DB::Customer::from(customer("Ada"));
    DB::insert_new(&mut connection, &mut ada)?;
    let mut others: Vec<DB::Customer> = ["B", "C", "D"].map(|it| customer(it).into()).into();
    DB::insert_all_new(&mut connection, &mut others)?;
    let found = DB::customers(&mut connection)?;
    others.insert(0, ada);
    assert!(others.iter().cloned().map(Into::into).eq(found.clone()));
    let again: Vec<Customer> = assign_all(&mut others)
        .iter()
        .cloned()
        .map(Into::into)
        .collect();
    assert_eq!(again, found, "assigned once");
    Ok(())
}
