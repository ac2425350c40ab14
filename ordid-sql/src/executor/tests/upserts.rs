//! Rows that may be there already.

use super::{
    library::{Answer, Binder, Item, Server, Source, item},
    *,
};
use crate::{OnConflict, Upserted};
use ordid_core::uuid::Uuid;

/// A unit of work that upserts so many items.
fn upserts(items: usize, on_conflict: &OnConflict<Item>) -> Work<Binder<false>> {
    let mut work = empty();
    for (id, name) in (1..).zip(NAMES).take(items) {
        let on_conflict = on_conflict.clone();
        work.upsert(
            item(id, name),
            on_conflict,
            Registration::in_key_order::<Item>,
        );
    }
    work
}

fn became(flushed: &Flushed, items: u128) -> Vec<Option<Upserted>> {
    let keys = (1..=items).map(Uuid::from_u128);
    keys.map(|key| flushed.upserted::<Item>(key)).collect()
}

/// A server that has the second item.
fn with_an_item() -> Server {
    Server::with("items 2:old")
}

const INSERTED: Option<Upserted> = Some(Upserted::Inserted);
const UPDATED: Option<Upserted> = Some(Upserted::Updated);
const LEFT_ALONE: Option<Upserted> = Some(Upserted::LeftAlone);

#[test]
fn rows_are_asked_for_then_inserted_or_updated() {
    let server = with_an_item();
    let mut work = upserts(3, &OnConflict::key());
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 marker; 1 find items 1 2; 1 insert items 1:a; 1 update items 2:b; 1 find items 3; \
         1 insert items 3:c; 1 commit",
    );
    assert_eq!(became(&flushed, 3), [INSERTED, UPDATED, INSERTED]);
    assert_eq!(
        [flushed.rows(), flushed.updated(), flushed.left_alone()],
        [2, 1, 0]
    );
    assert_eq!(flushed.tables[0].statements, 5);
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::Upserted));
    assert!(work.rows.is_empty());
}

#[test]
fn rows_that_are_there_are_left_alone() {
    let server = with_an_item();
    let mut work = upserts(2, &OnConflict::key().ignore());
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 marker; 1 find items 1 2; 1 insert items 1:a; 1 commit",
    );
    assert_eq!(became(&flushed, 2), [INSERTED, LEFT_ALONE]);
    assert_eq!(server.items(), ["1:a", "2:old"]);
}

/// Another transaction inserts the first item after the question for it.
#[test]
fn a_row_that_comes_meanwhile_is_found_by_the_next_attempt() {
    for on_conflict in [OnConflict::key(), OnConflict::key().ignore()] {
        let server = with_an_item();
        server.once("insert items 1:a", Answer::Meanwhile("items 1:theirs"));
        let mut work = upserts(2, &on_conflict);
        let flushed = flush(&mut work, Source::new(&server)).unwrap();
        let log = server.log().join("; ");
        assert!(
            log.contains("1 insert items 1:a; 1 rollback; release; pause; 1 begin; 1 marker; 1 find items 1 2; "),
            "{log}"
        );
        assert!(
            flushed.upserted::<Item>(Uuid::from_u128(1)) != INSERTED,
            "{log}"
        );
        assert_eq!((flushed.retries, flushed.rows()), (1, 0));
    }
}

/// Another transaction deletes the second item after the question for it.
#[test]
fn a_row_that_goes_meanwhile_is_asked_for_again() {
    let server = with_an_item();
    server.once("update items 2:b", Answer::Changed(Changed::Rows(0)));
    let mut work = upserts(2, &OnConflict::key());
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        (flushed.retries, flushed.rows(), flushed.updated()),
        (1, 1, 1)
    );
}

/// The key is free, and what is refused is another unique column.
#[test]
fn what_is_refused_twice_is_no_race() {
    // A row that is there before the others, and behind them: the next attempt has it behind them.
    for there in ["items 1:old", "items 2:old"] {
        let server = Server::with(there);
        server.times(9, "insert items", Answer::Fails(Failure::Duplicate));
        let error = flush(&mut upserts(2, &OnConflict::key()), Source::new(&server)).unwrap_err();
        assert_eq!(
            (error.retries(), error.is_transient()),
            (1, false),
            "{error}"
        );
        assert!(!error.is_commit_unknown());
        assert_eq!(server.items().len(), 1);
    }
}

#[test]
fn a_flush_in_the_users_transaction_reports_a_race() {
    let server = with_an_item();
    server.once("insert items 1:a", Answer::Meanwhile("items 1:theirs"));
    let mut work = upserts(2, &OnConflict::key());
    let error = flush_in(&mut work, Source::new(&server)).unwrap_err();
    assert_eq!((error.failure(), error.retries()), (Failure::Duplicate, 0));
    assert_eq!(work.rows.len(), 2);
}

/// The answer to COMMIT is lost, and the marker row says what became of it: what each row became is that of the attempt
/// whose COMMIT it was.
#[test]
fn what_became_of_rows_is_known_after_a_lost_commit() {
    let server = with_an_item();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = upserts(3, &OnConflict::key());
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(became(&flushed, 3), [INSERTED, UPDATED, INSERTED]);
    assert_eq!([flushed.rows(), flushed.updated()], [2, 1]);
    assert_eq!(count(&server, "commit"), 1);
}
