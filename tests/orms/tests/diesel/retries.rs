//! What a flush over Diesel's own connections does when it cannot go on, on each backend.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use diesel::connection::SimpleConnection as _;
use ordid_diesel::Retry;
use ordid_tests::proxy::{At, Fault};

use crate::{
    Outcome, Test,
    scratch::proxied,
    tables::{Customer, Order, Tables, Work, connect, create, customer, order},
};

/// The tests of a backend.
pub fn tests<DB: Tables>() -> Vec<(&'static str, Test)> {
    let mut tests: Vec<(_, Test)> =
        vec![("a_lock_that_does_not_come_is_tried_again", locked::<DB>)];
    if !DB::IS_FILE {
        tests.push(("a_killed_connection_is_replaced", killed::<DB>));
        tests.push((
            "what_became_of_a_lost_commit_is_found_out",
            lost_commit::<DB>,
        ));
    }
    tests
}

fn at_once() -> Retry {
    Retry::DEFAULT.with_delays(Duration::ZERO, Duration::ZERO)
}

/// Who waits for a lock in vain tries again, with the same keys.
pub fn locked<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut holder = Some(connect::<DB>(url)?);
    let mut work = Work::<DB>::new().with_retry(at_once());
    let id = work.add(customer("Ada"));
    if let Some(holder) = &mut holder {
        // The same key, which will not come to anything.
        holder.batch_execute("BEGIN")?;
        let row = Customer {
            id: Some(id),
            ..customer("Holder")
        };
        DB::insert(holder, row)?;
    }
    let mut connections = 0;
    let flushed = work.flush_with(|| {
        connections += 1;
        if connections > 1
            && let Some(mut holder) = holder.take()
        {
            holder.batch_execute("ROLLBACK").unwrap();
        }
        let mut connection = connect::<DB>(url)?;
        connection.batch_execute(DB::WAIT).unwrap();
        Ok::<_, diesel::ConnectionError>(connection)
    })?;
    assert_eq!((flushed.rows(), flushed.retries), (1, 1));
    let found = &DB::customers(&mut connection)?[0];
    assert_eq!((found.id, found.name.as_str()), (Some(id), "Ada"));
    Ok(())
}

/// A connection that dies is replaced, and the rows are there once.
pub fn killed<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let mut work = Work::<DB>::new().with_retry(at_once());
    let ada = work.add(customer("Ada"));
    for _ in 0..1_500 {
        work.add(order(ada, 1));
    }
    let session = Arc::new(Mutex::new(None));
    let target = Arc::clone(&session);
    let mut killer = connect::<DB>(url)?;
    work.observe(move |_| {
        if let Some(id) = target.lock().unwrap().take() {
            DB::kill(&mut killer, id);
        }
    });
    let mut connections = 0;
    let flushed = work.flush_with(|| {
        connections += 1;
        let mut connection = connect::<DB>(url)?;
        if connections == 1 {
            *session.lock().unwrap() = Some(DB::session(&mut connection).unwrap());
        }
        Ok::<_, diesel::ConnectionError>(connection)
    })?;
    assert_eq!(
        (connections, flushed.rows(), flushed.retries),
        (2, 1_501, 1)
    );
    assert_eq!(DB::counts(&mut connection)?, [1, 1_500, 0]);
    Ok(())
}

/// The answer to COMMIT is swallowed, or COMMIT itself is: in the end the rows are there
/// once, also those of updates and deletes.
pub fn lost_commit<DB: Tables>(url: &str) -> Outcome {
    let mut connection = create::<DB>(url)?;
    let (_runtime, proxy, through) = proxied(url)?;
    let through = through + DB::PLAIN[0];
    let patient = Retry::DEFAULT;
    let work = |retry| {
        let mut work = Work::<DB>::new().with_retry(retry);
        let ada = work.add(customer("Ada"));
        for _ in 0..30 {
            work.add(order(ada, 1));
        }
        work
    };
    let flushed = work(patient).flush_with(|| connect::<DB>(&through))?;
    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
    let (up, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
    let mut expected = [1, 30, 0];
    assert_eq!(DB::counts(&mut connection)?, expected);
    let mut more = || {
        expected = [expected[0] + 1, expected[1] + 30, 0];
        expected
    };

    // It was carried out: found, and not sent again.
    proxy.plan([Fault::Swallow(down)]);
    let flushed = work(patient).flush_with(|| connect::<DB>(&through))?;
    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
    assert_eq!(DB::counts(&mut connection)?, more());

    // It did not arrive: not found, and sent again.
    proxy.plan([Fault::Cut(At::Up(up))]);
    let flushed = work(patient).flush_with(|| connect::<DB>(&through))?;
    assert_eq!((flushed.rows(), flushed.retries), (31, 1));
    assert_eq!(DB::counts(&mut connection)?, more());

    // Over the one connection it cannot be known; over the next it can.
    proxy.plan([Fault::Swallow(down)]);
    let mut unknown = work(patient);
    let error = unknown.flush(&mut connect::<DB>(&through)?).unwrap_err();
    assert!(
        error.is_commit_unknown() && error.is_connection_lost(),
        "{error}"
    );
    assert_eq!(unknown.len(), 31);
    let flushed = unknown.flush(&mut connection)?;
    assert_eq!((flushed.rows(), flushed.retries), (31, 0));
    assert!(unknown.is_empty());
    assert_eq!(DB::counts(&mut connection)?, more());

    // By the flush's own row.
    let found = DB::orders(&mut connection)?;
    let changes = |rows: &[Order]| {
        let mut work = Work::<DB>::new();
        for row in rows {
            work.update(Order {
                kind: 2,
                ..row.clone()
            });
        }
        work
    };
    changes(&found[..10]).flush_with(|| connect::<DB>(&through))?;
    let (_, down) = proxy.last_traffic().commit.ok_or("no COMMIT")?;
    proxy.plan([Fault::Swallow(down)]);
    let flushed = changes(&found[10..20]).flush_with(|| connect::<DB>(&through))?;
    assert_eq!((flushed.updated(), flushed.retries), (10, 0));
    let kinds = DB::orders(&mut connection)?.into_iter().map(|it| it.kind);
    assert_eq!(kinds.filter(|kind| *kind == 2).count(), 20);
    Ok(())
}
