//! What becomes of a flush that fails: nothing is committed, the row is found, and the error says
//! what it was. The errors are the recorder's; their numbers and texts are SQL Server's.

use super::{
    ASK,
    entities::{
        Customer, CustomerId, Order, OrderId, log_is_not_available, orders, orders_of, recorded,
        texts,
    },
};
use ordid::KeyType;
use ordid_recorders::tds::Answer;
use ordid_tiberius::{Retry, UnitOfWork};

const DUPLICATE: &str = "Violation of PRIMARY KEY constraint 'pk'. Cannot insert duplicate key in \
                         object 'shop.my]orders'. The duplicate key value is (..).";

fn three_orders() -> (UnitOfWork, Vec<OrderId>) {
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    let keys = (1..=3).map(|total| work.add(Order::of(customer, total)));
    let keys = keys.collect();
    (work, keys)
}

/// `(@P1, @P2, @P3), (@P4, @P5, @P6)`
fn rows(number: usize) -> String {
    let parameters: Vec<_> = (1..=3 * number)
        .map(|number| format!("@P{number}"))
        .collect();
    let rows: Vec<_> = parameters
        .chunks(3)
        .map(|row| format!("({})", row.join(", ")))
        .collect();
    rows.join(", ")
}

fn singly(number: usize) -> String {
    format!(
        "INSERT INTO [shop].[my]]orders] ([id], [customer], [total]) VALUES {}; SELECT @@ROWCOUNT",
        rows(number)
    )
}

#[tokio::test]
async fn a_refused_row_is_found() {
    let (recorder, mut client) = recorded().await;
    let (mut work, keys) = three_orders();
    recorder.once(&singly(3), Answer::failure(2627, DUPLICATE));
    // Row by row, the first goes through and the second is refused.
    recorder.once(&format!("{}$", singly(1)), Answer::Done(1));
    recorder.once(&format!("{}$", singly(1)), Answer::failure(2627, DUPLICATE));
    let error = work.flush(&mut client).await.unwrap_err();

    assert!(error.is_unique_violation());
    assert!(!error.is_foreign_key_violation());
    assert!(!error.is_connection_lost() && !error.is_commit_unknown() && !error.is_deadlock());
    assert_eq!(error.code(), Some(2627));
    assert_eq!((error.constraint(), error.column()), (Some("pk"), None));
    assert_eq!(error.table(), Some("my]orders"));
    assert_eq!((error.chunk(), error.rows()), (Some(0), Some(0..3)));
    assert_eq!(error.key(), Some(&keys[1].to_string()[..]));
    assert_eq!(
        error.to_string(),
        format!(
            "cannot insert into my]orders (rows 0 to 2), key {}, nothing was written: Token \
             error: '{DUPLICATE}' on server recorder executing  on line 1 (code: 2627, state: 1, \
             class: 14)",
            keys[1]
        )
    );
    assert!(std::error::Error::source(&error).is_some());
    // Nothing is lost: the same entities with the same keys are there.
    assert_eq!(work.len(), 3);
    let kept: Vec<_> = work.get::<Order>().iter().map(|order| order.id).collect();
    assert_eq!(kept, keys);

    let log = recorder.take();
    assert_eq!(
        texts(&log),
        [
            ASK,
            "BEGIN",
            &singly(3),
            "ROLLBACK",
            "BEGIN",
            &singly(1),
            &singly(1),
            "ROLLBACK",
        ]
    );
    // A retry carries the same keys.
    work.flush(&mut client).await.unwrap();
    let log = recorder.take();
    let sent: Vec<_> = log[2]
        .request
        .arguments()
        .chunks(3)
        .map(|row| row[0].value.clone())
        .collect();
    assert_eq!(sent.len(), 3);
    assert_eq!(texts(&log)[3], "COMMIT");
}

#[tokio::test]
async fn a_refused_row_of_a_load_is_found_in_its_chunk() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[shop].[my]]orders]", orders());
    recorder.once(
        "BULK$",
        Answer::failure(
            547,
            "The INSERT statement conflicted with the FOREIGN KEY constraint \"fk\".",
        ),
    );
    let mut work = UnitOfWork::new();
    let customer = CustomerId::generate();
    let mut keys: Vec<_> = (0..3_000)
        .map(|total| work.add(Order::of(customer, total)))
        .collect();
    keys.sort();
    // By statements, the third is refused; row by row, its second row.
    let whole = format!("{}$", singly(699));
    for _ in 0..2 {
        recorder.once(&whole, Answer::Done(699));
    }
    let refusal = Answer::failure(
        547,
        "The INSERT statement conflicted with the FOREIGN KEY constraint \"fk\".",
    );
    recorder.once(&whole, refusal.clone());
    for _ in 0..2 {
        recorder.once(&whole, Answer::Done(699));
    }
    recorder.once(&format!("{}$", singly(1)), Answer::Done(1));
    recorder.once(&format!("{}$", singly(1)), refusal);
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_foreign_key_violation());
    assert!(!error.is_unique_violation());
    assert_eq!(error.chunk(), Some(2));
    assert_eq!(error.rows(), Some(1_398..2_097));
    assert_eq!(error.key(), Some(&keys[1_399].to_string()[..]));
    assert_eq!(work.len(), 3_000);
    let texts = texts(&recorder.take());
    assert!(!texts.contains(&"COMMIT".to_owned()));
    let rounds = texts.iter().filter(|text| *text == "ROLLBACK").count();
    assert_eq!(rounds, 3);
}

/// Where the chunk that failed is the last of its table, those of the tables that follow are not looked through for
/// the row.
#[tokio::test]
async fn a_refused_row_is_found_where_other_tables_follow() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let customers = (0..11).map(|number| {
        work.add(Customer {
            id: CustomerId::generate(),
            name: format!("customer {number}"),
            note: None,
        })
    });
    let mut customers: Vec<_> = customers.collect();
    customers.sort();
    for total in 0..10 {
        work.add(Order::of(customers[0], total));
    }
    let whole = format!(
        "INSERT INTO [customers] ([id], [name], [note]) VALUES {}; SELECT @@ROWCOUNT$",
        rows(11)
    );
    let one = format!(
        "INSERT INTO [customers] ([id], [name], [note]) VALUES {}; SELECT @@ROWCOUNT$",
        rows(1)
    );
    recorder.once(&whole, Answer::failure(2627, DUPLICATE));
    for _ in 0..4 {
        recorder.once(&one, Answer::Done(1));
    }
    recorder.once(&one, Answer::failure(2627, DUPLICATE));
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_unique_violation());
    assert_eq!((error.table(), error.chunk()), (Some("customers"), Some(0)));
    assert_eq!(error.key(), Some(&customers[4].to_string()[..]));
    let texts = texts(&recorder.take());
    assert!(
        !texts.iter().any(|text| text.contains("orders")),
        "{texts:?}"
    );
    assert_eq!(texts.len(), 4 + 1 + 5 + 1);
}

#[tokio::test]
async fn a_check_constraint_is_no_foreign_key() {
    let (recorder, mut client) = recorded().await;
    let (mut work, _) = three_orders();
    recorder.always(
        "INSERT",
        Answer::failure(
            547,
            "The INSERT statement conflicted with the CHECK constraint \"c\".",
        ),
    );
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(!error.is_foreign_key_violation());
    assert_eq!(error.code(), Some(547));
    assert!(error.key().is_some());
}

/// A deadlock is about no row, and the server has rolled back by itself.
#[tokio::test]
async fn a_deadlock_is_not_looked_into() {
    let (recorder, mut client) = recorded().await;
    let (work, _) = three_orders();
    let mut work = work.with_retry(Retry::NONE);
    recorder.once("INSERT", Answer::fatal(1205, "Transaction was deadlocked"));
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_deadlock() && error.is_transient());
    assert!(!error.is_connection_lost());
    assert_eq!(error.key(), None);
    let log = recorder.take();
    assert_eq!(texts(&log), [ASK, "BEGIN", &singly(3), "ROLLBACK"]);
    // The same client flushes again.
    assert_eq!(work.flush(&mut client).await.unwrap().rows(), 3);
}

/// The server cannot serve, but the session goes on, with the transaction open: the caller's next statement would be in it.
#[tokio::test]
async fn what_was_begun_is_rolled_back_where_the_session_goes_on() {
    for number in [3906, 976, 983, 40197] {
        let (recorder, mut client) = recorded().await;
        let (work, _) = three_orders();
        let mut work = work.with_retry(Retry::NONE);
        recorder.once(
            "INSERT",
            Answer::failure(number, "The database is read-only."),
        );
        let error = work.flush(&mut client).await.unwrap_err();
        assert!(error.is_connection_lost() && !error.is_commit_unknown());
        let log = recorder.take();
        assert_eq!(texts(&log), [ASK, "BEGIN", &singly(3), "ROLLBACK"]);
    }
}

/// Once more, on the same connection and with the same keys, to the byte.
#[tokio::test]
async fn a_deadlock_is_tried_again() {
    let (recorder, mut client) = recorded().await;
    let (mut work, keys) = three_orders();
    recorder.once("INSERT", Answer::fatal(1205, "Transaction was deadlocked"));
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (3, 1));
    assert_eq!(
        flushed.tables[0].statements, 1,
        "of the attempt that succeeded"
    );
    assert!(work.is_empty());
    let log = recorder.take();
    let insert = singly(3);
    let sent = [
        ASK, "BEGIN", &insert, "ROLLBACK", "BEGIN", &insert, "COMMIT",
    ];
    assert_eq!(texts(&log), sent);
    let ids = |position: usize| -> Vec<_> {
        let rows = log[position].request.arguments();
        rows.chunks(3).map(|row| row[0].raw.clone()).collect()
    };
    assert_eq!(ids(2), ids(5));
    assert_eq!(ids(2).len(), keys.len());
}

/// A load is begun anew, too, and what stays in the way is given up.
#[tokio::test]
async fn a_load_is_tried_again_as_often_as_it_is_allowed() {
    let (recorder, mut client) = recorded().await;
    recorder.table("[shop].[my]]orders]", orders());
    let delay = std::time::Duration::from_millis(1);
    let retry = Retry::DEFAULT.with_attempts(3).with_delays(delay, delay);
    let customer = CustomerId::generate();
    let mut work = orders_of(customer, 3_000).with_retry(retry);
    let busy = Answer::failure(1222, "Lock request time out period exceeded.");
    for _ in 0..3 {
        recorder.once("BULK$", busy.clone());
    }
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_transient() && !error.is_deadlock());
    assert_eq!((error.retries(), work.len()), (2, 3_000));
    assert!(error.to_string().ends_with(" (tried 3 times)"), "{error}");
    recorder.once("BULK$", busy);
    let flushed = work.flush(&mut client).await.unwrap();
    assert_eq!((flushed.retries, flushed.tables[0].bulk), (1, 3_000));
}

/// Where the server ends the transaction at every error, nothing is sent outside of one.
#[tokio::test]
async fn under_xact_abort_no_row_is_sent_outside_a_transaction() {
    let (recorder, mut client) = recorded().await;
    let (mut work, keys) = three_orders();
    recorder.always("INSERT", Answer::fatal(2627, DUPLICATE));
    let error = work.flush(&mut client).await.unwrap_err();
    assert_eq!(error.key(), Some(&keys[0].to_string()[..]));
    client.begin_transaction().await.unwrap();
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert!(
        error.is_unique_violation() && error.is_transaction_over(),
        "{error}"
    );
    let log = recorder.take();
    for received in &log {
        if received.request.text().starts_with("INSERT") {
            assert_ne!(received.transaction, 0);
        }
    }
}

/// A deadlock ends the user's transaction, and with it the savepoint.
#[tokio::test]
async fn a_deadlock_inside_the_users_transaction_says_that_it_is_over() {
    let (recorder, mut client) = recorded().await;
    let (mut work, _) = three_orders();
    recorder.always(
        "INSERT",
        Answer::fatal(1205, "chosen as the deadlock victim"),
    );
    client.begin_transaction().await.unwrap();
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert!(
        error.is_deadlock() && error.is_transaction_over(),
        "{error}"
    );
    assert!(
        error.to_string().contains("begin another transaction"),
        "{error}"
    );
    assert_eq!(work.len(), 3);

    // A lock that does not come in time leaves the transaction as it is.
    let (recorder, mut client) = recorded().await;
    recorder.always(
        "INSERT",
        Answer::failure(1222, "Lock request time out period exceeded."),
    );
    client.begin_transaction().await.unwrap();
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert!(
        error.is_transient() && !error.is_transaction_over(),
        "{error}"
    );
    client.rollback_transaction().await.unwrap();
}

#[tokio::test]
async fn in_the_users_transaction_a_failure_goes_back_to_the_savepoint() {
    let (recorder, mut client) = recorded().await;
    let (mut work, keys) = three_orders();
    recorder.always("INSERT", Answer::failure(2627, DUPLICATE));
    client.begin_transaction().await.unwrap();
    let error = work.flush_in(&mut client).await.unwrap_err();
    assert_eq!(error.key(), Some(&keys[0].to_string()[..]));
    client.commit_transaction().await.unwrap();
    let log = recorder.take();
    assert_eq!(
        texts(&log),
        [
            "BEGIN",
            ASK,
            "SAVE TRANSACTION [ordid_flush]",
            &singly(3),
            "ROLLBACK TRANSACTION [ordid_flush]",
            "SAVE TRANSACTION [ordid_flush]",
            &singly(1),
            "ROLLBACK TRANSACTION [ordid_flush]",
            "COMMIT",
        ]
    );
    assert!(log[1..].iter().all(|received| received.transaction == 1));
}

#[tokio::test]
async fn a_lost_connection_is_told_apart_by_when_it_was_lost() {
    for (at, unknown) in [
        ("SELECT @@", false),
        ("BEGIN", false),
        ("INSERT", false),
        ("COMMIT", true),
    ] {
        for answer in [Answer::HangUp, Answer::HalfAnswer] {
            let (recorder, mut client) = recorded().await;
            let (mut work, _) = three_orders();
            recorder.once(at, answer);
            let error = work.flush(&mut client).await.unwrap_err();
            assert!(error.is_connection_lost(), "{at}: {error}");
            assert_eq!(error.is_commit_unknown(), unknown, "{at}: {error}");
            assert_eq!(
                error
                    .to_string()
                    .starts_with("the answer to COMMIT was lost, so either all"),
                unknown
            );
            assert_eq!(error.code(), None);
            assert_eq!(work.len(), 3);
        }
    }
}

#[tokio::test]
async fn a_load_that_is_cut_off_is_a_lost_connection() {
    for at in ["INSERT BULK", "BULK$"] {
        let (recorder, mut client) = recorded().await;
        recorder.table("[shop].[my]]orders]", orders());
        let mut work = orders_of(CustomerId::generate(), 3_000);
        recorder.once(at, Answer::HangUp);
        let error = work.flush(&mut client).await.unwrap_err();
        assert!(error.is_connection_lost(), "{error}");
        assert_eq!(error.table(), Some("my]orders"));
        assert_eq!(work.len(), 3_000);
    }
}

#[tokio::test]
async fn a_commit_that_the_server_refuses_wrote_nothing() {
    let (recorder, mut client) = recorded().await;
    let (mut work, _) = three_orders();
    recorder.once(
        "COMMIT",
        Answer::failure(3902, "no corresponding BEGIN TRANSACTION"),
    );
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(!error.is_commit_unknown());
    assert!(
        error
            .to_string()
            .starts_with("cannot commit, nothing was written: ")
    );
    assert_eq!(work.len(), 3);

    // An error after which the server hangs up leaves it open.
    let (recorder, mut client) = recorded().await;
    recorder.once("COMMIT", log_is_not_available());
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_commit_unknown() && error.is_connection_lost());
}

#[tokio::test]
async fn what_cannot_be_planned_is_not_sent() {
    let (recorder, mut client) = recorded().await;
    let mut work = UnitOfWork::new();
    let id = CustomerId::generate();
    for name in ["Ada", "Ada again"] {
        work.add(Customer {
            id,
            name: name.to_owned(),
            note: None,
        });
    }
    let error = work.flush(&mut client).await.unwrap_err();
    assert!(error.is_plan());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot plan the flush, nothing was sent: two rows of customers have the key {id}; was an \
             entity added twice?"
        )
    );
    assert!(recorder.take().is_empty());
}
