mod chunks;
mod library;
mod limits;
mod lost_commits;
mod marked;
mod prepared;
mod read;
mod refusals;
mod upserts;

use std::{
    io,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
};

use self::library::{
    Answer, Binder, Draft, Item, Part, Server, Source, Tie, Tied, View, detail, draft, item, part,
    tie, tied,
};
use super::ProtectedTables;
use crate::{
    EngineProfile, Failure, FlushError, Flushed, LockWaits, Markers, NotBulk, Registration, Retry,
    Updates, Work, copy::MAX_CHUNKS, spi::Changed, spi::TransactionScope,
};

const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// A unit of work with so many items to insert, which a flush tries three times.
fn inserts<const RUNS: bool>(items: usize) -> Work<Binder<RUNS>> {
    let mut work = empty();
    for (id, name) in (1..).zip(NAMES).take(items) {
        work.rows.rows_mut().push(item(id, name));
    }
    work
}

/// As [`inserts`], to update.
fn updates<const RUNS: bool>(items: usize) -> Work<Binder<RUNS>> {
    let mut work = empty();
    for (id, name) in (1..).zip(NAMES).take(items) {
        work.rows
            .update(item(id, name), Registration::in_key_order::<Item>);
    }
    work
}

fn empty<const RUNS: bool>() -> Work<Binder<RUNS>> {
    let mut work = Work::new();
    work.set_retry(Retry::DEFAULT.with_attempts(3).with_jitter(false));
    work.protected = ProtectedTables::of_all();
    work
}

fn finish<T>(future: impl Future<Output = T> + Send) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn flush<const RUNS: bool>(
    work: &mut Work<Binder<RUNS>>,
    source: Source<RUNS>,
) -> Result<Flushed, FlushError<io::Error>> {
    finish(work.flush(source, TransactionScope::Transaction))
}

fn flush_in<const RUNS: bool>(
    work: &mut Work<Binder<RUNS>>,
    source: Source<RUNS>,
) -> Result<Flushed, FlushError<io::Error>> {
    finish(work.flush(source, TransactionScope::Savepoint))
}

/// Asserts what was asked of the server, without the opening of the first connection.
#[track_caller]
fn assert_log(server: &Server, expected: &str) {
    let log = server.log();
    assert_eq!(log[..2], ["connect", "1 check"]);
    assert_eq!(log[2..].join("; "), expected);
}

/// Returns the calls that the server received after the first such call.
fn log_after(server: &Server, first: &str) -> String {
    let log = server.log();
    let begin = log.iter().position(|it| it == first).unwrap() + 1;
    log[begin..].join("; ")
}

fn count(server: &Server, end: &str) -> usize {
    server.log().iter().filter(|it| it.ends_with(end)).count()
}

fn key(number: u128) -> String {
    ordid_core::uuid::Uuid::from_u128(number).to_string()
}

#[test]
fn a_flush_sends_its_tables_in_chunks_and_in_one_transaction() {
    let server = Server::default();
    let mut work = inserts(3);
    work.rows.rows_mut::<Part>().push(part(7, 1));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&seen);
    work.set_observer(move |it| observed.lock().unwrap().push((it.table, it.rows, it.done)));
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3:c; 1 insert parts 1:7; 1 commit",
    );
    let tables = flushed
        .tables
        .iter()
        .map(|it| (it.table, it.rows, it.statements));
    assert_eq!(
        tables.collect::<Vec<_>>(),
        [("items", 3, 2), ("parts", 1, 1)]
    );
    assert_eq!((flushed.rows(), flushed.retries), (4, 0));
    let expected = [("items", 2, 2), ("items", 1, 3), ("parts", 1, 4)];
    assert_eq!(*seen.lock().unwrap(), expected);
    assert!(work.rows.is_empty());
}

#[test]
fn a_flush_without_rows_opens_no_connection() {
    let server = Server::default();
    let flushed = flush::<false>(&mut empty(), Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.log().len()), (0, 0));
}

#[test]
fn a_refused_row_is_found_by_sending_its_chunk_row_by_row() {
    let server = Server::default();
    server.times(2, "4:d", Answer::RefusesARow);
    let mut work = inserts(6);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3:c 4:d; 1 rollback; 1 begin; \
         1 insert items 1:a 2:b; 1 insert items 3:c; 1 insert items 4:d; 1 rollback",
    );
    assert_eq!((error.key(), error.rows()), (Some(&*key(4)), Some(2..4)));
    assert_eq!((error.table(), error.chunk()), (Some("items"), Some(1)));
    assert!(server.items().is_empty() && !error.is_commit_unknown());
    assert_eq!(work.rows.len(), 6, "they can be flushed again");
}

#[test]
fn a_row_that_is_accepted_the_second_time_is_not_named() {
    let server = Server::default();
    server.once("4:d", Answer::RefusesARow);
    let error = flush::<false>(&mut inserts(4), Source::new(&server)).unwrap_err();
    assert_eq!((error.key(), error.rows()), (None, Some(2..4)));
    assert_eq!(server.log().last().unwrap(), "1 rollback");
    assert!(server.items().is_empty());
}

#[test]
fn another_failure_during_the_search_names_no_row() {
    let server = Server::default();
    server.once("3:c 4:d", Answer::RefusesARow);
    server.once("insert items 3:c", Answer::Fails(Failure::Lost));
    let error = flush::<false>(&mut inserts(4), Source::new(&server)).unwrap_err();
    assert_eq!((error.key(), error.is_connection_lost()), (None, false));
    assert_eq!(server.log().last().unwrap(), "1 rollback");
}

#[test]
fn a_lost_connection_is_replaced() {
    let server = Server::default();
    server.once("3:c", Answer::Fails(Failure::Lost));
    let flushed = flush::<false>(&mut inserts(3), Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3:c; 1 drop; discard; release; pause; \
         connect after a loss; 2 check; 2 begin; 2 insert items 1:a 2:b; 2 insert items 3:c; \
         2 commit",
    );
    assert_eq!((flushed.rows(), flushed.retries), (3, 1));
}

#[test]
fn a_transient_failure_is_retried_on_the_same_connection() {
    let server = Server::default();
    server.once("1:a", Answer::Fails(Failure::Transient));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a; 1 rollback; release; pause; 1 begin; 1 insert items 1:a; \
         1 commit",
    );
    assert_eq!(flushed.retries, 1);
}

#[test]
fn a_connection_that_cannot_roll_back_is_not_used_again() {
    let server = Server::default();
    server.once("1:a", Answer::Fails(Failure::Transient));
    server.once("rollback", Answer::Fails(Failure::Refused));
    flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    let log = log_after(&server, "1 rollback");
    let expected = "discard; release; pause; connect; 2 check; 2 begin; ";
    assert!(log.starts_with(expected), "{log}");
}

#[test]
fn a_flush_gives_up_after_its_last_attempt() {
    let server = Server::default();
    server.times(9, "1:a", Answer::Fails(Failure::Transient));
    let error = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap_err();
    assert!(error.is_transient() && !error.is_commit_unknown());
    assert_eq!(error.retries(), 2);
    assert_eq!(count(&server, "begin"), 3);
}

#[test]
fn a_flush_fails_before_its_rows_if_the_table_of_marker_rows_is_missing() {
    let server = Server::default();
    server.once("marker", Answer::Fails(Failure::Refused));
    let error = flush::<false>(&mut updates(1), Source::new(&server)).unwrap_err();
    assert_log(&server, "1 begin; 1 marker; 1 rollback");
    assert!(error.to_string().contains("ordid_test"), "{error}");
}

#[test]
fn inside_the_users_transaction_a_flush_is_a_savepoint() {
    let server = Server::default();
    let mut work = inserts(1);
    let flushed = flush_in::<false>(&mut work, Source::only(&server)).unwrap();
    assert_log(&server, "1 savepoint; 1 insert items 1:a; 1 commit");
    assert_eq!((flushed.rows(), work.rows.len()), (1, 1));
    // Nothing is retried there, and no COMMIT is lost.
    for failure in [Failure::Lost, Failure::Transient] {
        let server = Server::default();
        server.once("commit", Answer::Fails(failure));
        let mut work = inserts(1);
        let error = flush_in::<false>(&mut work, Source::only(&server)).unwrap_err();
        assert!(!error.is_commit_unknown() && work.unresolved.is_none());
        assert_eq!(count(&server, "savepoint"), 1);
    }
}

/// A deadlock of MariaDB ends the whole transaction.
#[test]
fn a_savepoint_that_is_gone_says_that_the_users_transaction_is_over() {
    let server = Server::default();
    server.once("1:a", Answer::Fails(Failure::Transient));
    server.once("rollback", Answer::Fails(Failure::Refused));
    let error = flush_in::<false>(&mut inserts(1), Source::only(&server)).unwrap_err();
    assert!(error.is_transaction_over() && error.is_transient());
    assert!(
        error.to_string().contains("your transaction is over"),
        "{error}"
    );
    assert_log(
        &server,
        "1 savepoint; 1 insert items 1:a; 1 rollback; discard",
    );
}

/// A Galera cluster ends a transaction between two statements, and says so to the next one.
#[test]
fn a_savepoint_that_cannot_be_made_says_that_the_users_transaction_is_over() {
    for (updates, is_over) in [(Updates::RowByRow, true), (Updates::FromValues, false)] {
        for failure in [Failure::Transient, Failure::Refused] {
            let server = Server::default();
            server.once("savepoint", Answer::Fails(failure));
            let mut source = Source::<false>::only(&server);
            source.engine.updates = updates;
            let error = flush_in(&mut inserts(1), source).unwrap_err();
            let is_over = is_over && failure == Failure::Transient;
            assert_eq!(error.is_transaction_over(), is_over, "{error}");
            assert_log(&server, "1 savepoint");
        }
    }
}

/// The next attempt would commit what is open there.
#[test]
fn the_only_connection_is_not_used_again_if_it_could_not_be_rolled_back() {
    let server = Server::default();
    server.once("1:a", Answer::Fails(Failure::Transient));
    server.once("rollback", Answer::Fails(Failure::Refused));
    let error = flush::<false>(&mut inserts(1), Source::only(&server)).unwrap_err();
    assert!(!error.is_transaction_over());
    assert!(
        error.to_string().contains("could not be rolled back"),
        "{error}"
    );
    assert_log(&server, "1 begin; 1 insert items 1:a; 1 rollback; discard");
    // A pool has others.
    server.once("1:a", Answer::Fails(Failure::Transient));
    server.once("rollback", Answer::Fails(Failure::Refused));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (1, 1));
}

#[test]
fn the_search_for_a_row_runs_in_a_savepoint_of_the_users_transaction() {
    let server = Server::default();
    server.times(2, "2:b", Answer::RefusesARow);
    let error = flush_in::<false>(&mut inserts(2), Source::only(&server)).unwrap_err();
    assert_log(
        &server,
        "1 savepoint; 1 insert items 1:a 2:b; 1 rollback; 1 savepoint; 1 insert items 1:a; \
         1 insert items 2:b; 1 rollback",
    );
    assert_eq!(error.key(), Some(&*key(2)));
}

/// A library whose tests run in a transaction takes a savepoint of that.
#[test]
fn a_connection_may_ask_for_a_savepoint() {
    let server = Server::default();
    server.once("check", Answer::Savepoint);
    let mut work = inserts(1);
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_log(&server, "1 savepoint; 1 insert items 1:a; 1 commit");
    assert!(work.rows.is_empty());
}

#[test]
fn the_only_connection_is_not_replaced() {
    let server = Server::default();
    server.once("1:a", Answer::Fails(Failure::Lost));
    let error = flush::<false>(&mut inserts(1), Source::only(&server)).unwrap_err();
    assert_log(&server, "1 begin; 1 insert items 1:a; 1 drop; discard");
    assert!(error.is_connection_lost() && !error.is_commit_unknown());
}

#[test]
fn a_connection_in_a_wrong_state_is_left_alone() {
    let server = Server::default();
    server.once("check", Answer::WrongState);
    let mut work = inserts(1);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_connection_state());
    assert_log(&server, "");
    assert_eq!(work.rows.len(), 1);
}

#[test]
fn a_failed_connect_is_retried_if_the_failure_is_a_loss() {
    let server = Server::default();
    server.times(9, "connect", Answer::Fails(Failure::Lost));
    let error = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap_err();
    let again = ["release", "pause", "connect after a loss"];
    assert_eq!(server.log(), [&["connect"], &again[..], &again].concat());
    assert!(error.is_connection_lost() && !error.is_commit_unknown());
    assert_eq!(error.retries(), 2);
    let refused = Server::default();
    refused.once("connect", Answer::Fails(Failure::Refused));
    flush::<false>(&mut inserts(1), Source::new(&refused)).unwrap_err();
    assert_eq!(refused.log(), ["connect"]);
}

#[test]
fn a_row_that_cannot_be_bound_is_named() {
    let server = Server::default();
    let mut work = inserts(2);
    work.rows.rows_mut().push(item(3, "c"));
    work.rows.rows_mut().push(item(4, "unbindable"));
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert_log(&server, "1 begin; 1 insert items 1:a 2:b; 1 rollback");
    assert_eq!((error.key(), error.rows()), (Some(&*key(4)), Some(2..4)));
    assert!(error.to_string().contains("it has no form"), "{error}");
}

#[test]
fn a_statement_that_the_library_cannot_bind_is_not_searched_for_a_row() {
    let server = Server::default();
    server.once("1:a", Answer::CannotBind);
    let error = flush::<false>(&mut inserts(2), Source::new(&server)).unwrap_err();
    assert_log(&server, "1 begin; 1 insert items 1:a 2:b; 1 rollback");
    assert_eq!((error.key(), error.table()), (None, Some("items")));
}

#[test]
fn rows_are_updated_one_by_one_if_the_engine_needs_it() {
    let server = Server::default();
    let source = |server: &Server| Source::<false> {
        engine: EngineProfile {
            max_rows: 2,
            ..EngineProfile::MYSQL
        },
        ..Source::new(server)
    };
    let flushed = flush(&mut updates(3), source(&server)).unwrap();
    // The key comes last in the text.
    assert_log(
        &server,
        "1 begin; 1 marker; 1 update items a 1; 1 update items b 2; 1 update items c 3; 1 commit",
    );
    assert_eq!((flushed.updated(), flushed.tables[0].statements), (3, 3));

    let server = Server::default();
    server.once("b 2", Answer::Changed(Changed::Rows(0)));
    let error = flush(&mut updates(3), source(&server)).unwrap_err();
    assert_log(
        &server,
        "1 begin; 1 marker; 1 update items a 1; 1 update items b 2; 1 rollback",
    );
    assert!(error.is_missing_row());
    assert_eq!(error.key(), Some(&*key(2)));
}

/// A binder that keeps columns apart takes the values of a row in their own order.
#[test]
fn a_binder_by_column_takes_the_key_in_its_place() {
    let server = Server::default();
    let source = Source::<true> {
        engine: EngineProfile::MYSQL,
        ..Source::new(&server)
    };
    flush(&mut updates(2), source).unwrap();
    assert_log(
        &server,
        "1 begin; 1 marker; 1 update items 1:a; 1 update items 2:b; 1 commit",
    );
}

#[test]
fn a_missing_row_is_found_by_the_count_of_changed_rows() {
    let server = Server::default();
    server.once("update items 1:a 2:b", Answer::Changed(Changed::Rows(1)));
    server.once("update items 2:b", Answer::Changed(Changed::Rows(0)));
    let error = flush::<false>(&mut updates(2), Source::new(&server)).unwrap_err();
    assert!(error.is_missing_row());
    assert_eq!((error.key(), error.rows()), (Some(&*key(2)), Some(0..2)));
    let log = server.log().join("; ");
    let last = "; 1 begin; 1 update items 1:a; 1 update items 2:b; 1 rollback";
    assert!(log.ends_with(last), "{log}");
}

/// A trigger that returns NULL, a rule, a view.
#[test]
fn a_row_that_the_database_leaves_out_of_an_insert_is_found() {
    let server = Server::default();
    server.once("1:a 2:b", Answer::Changed(Changed::Rows(1)));
    server.once("insert items 2:b", Answer::Changed(Changed::Rows(0)));
    let error = flush::<false>(&mut inserts(2), Source::new(&server)).unwrap_err();
    assert_eq!(error.key(), Some(&*key(2)));
    assert!(error.is_missing_row() && !error.is_commit_unknown());
    assert_eq!(
        error.to_string(),
        format!(
            "cannot insert into items (rows 0 to 1), key {}, nothing was written: the database took 1 of 2 \
             rows; a trigger, a rule or a view leaves rows out, which `#[ordid(uncounted)]` on the entity allows",
            key(2)
        )
    );
    assert!(server.items().is_empty());
}

/// A marker row that is not there would show that a COMMIT was not carried out.
#[test]
fn a_marker_row_that_the_database_leaves_out_ends_the_flush() {
    let server = Server::default();
    server.once("marker", Answer::Changed(Changed::Rows(0)));
    let mut work = inserts(1);
    work.set_markers(Markers::All);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(!error.is_commit_unknown() && !error.is_flushes_table_missing());
    let text = error.to_string();
    assert!(text.starts_with("cannot record the flush"), "{text}");
    assert!(
        text.ends_with("left the row out, and it has to be there"),
        "{text}"
    );
    assert!(server.items().is_empty());
}

#[test]
fn rows_of_an_entity_that_is_not_counted_may_be_left_out() {
    let mut work = empty();
    work.rows.rows_mut::<Part>().push(part(7, 1));
    for is_counted in [true, false] {
        let server = Server::default();
        server.once("parts", Answer::Changed(Changed::Rows(0)));
        let mut source = Source::<false>::new(&server);
        source.engine.counts_inserts = is_counted;
        assert_eq!(flush(&mut work, source).is_err(), is_counted);
    }
    // The entity's own word.
    let server = Server::default();
    server.once("views", Answer::Changed(Changed::Rows(0)));
    let mut work = empty();
    work.rows.rows_mut::<View>().push(View::default());
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 1);
}

#[test]
fn counts_per_row_name_the_missing_row_without_a_search() {
    let server = Server::default();
    server.once("update", Answer::Changed(Changed::OfEach(vec![1, 1])));
    flush::<false>(&mut updates(2), Source::new(&server)).unwrap();
    for (found, expected) in [(vec![1, 0], 2), (vec![2, 1], 1), (vec![1], 2)] {
        let server = Server::default();
        server.once("update", Answer::Changed(Changed::OfEach(found)));
        let error = flush::<false>(&mut updates(2), Source::new(&server)).unwrap_err();
        assert_eq!(error.key(), Some(&*key(expected)));
        let log = server.log();
        assert_eq!(log.last().unwrap(), "1 rollback");
        assert_eq!(log.len(), 6, "the row is not sought: {log:?}");
    }
}

#[test]
fn a_row_that_the_library_names_is_not_searched_for() {
    let server = Server::default();
    server.once("3:c", Answer::RefusesRow(1, 2));
    let error = flush::<false>(&mut inserts(4), Source::new(&server)).unwrap_err();
    assert_eq!(error.key(), Some(&*key(4)));
    assert_eq!(server.log().len(), 6);
}

#[test]
fn rows_with_different_columns_are_sent_in_separate_statements() {
    let server = Server::default();
    let mut work = empty::<true>();
    for (id, name) in (1..).zip(["a", "b", "default", "default", "e"]) {
        work.rows.rows_mut().push(item(id, name));
    }
    let source = || {
        let mut source = Source::<true>::new(&server);
        source.engine.max_rows = 9;
        source
    };
    let planned = work.plan(source().engine).unwrap();
    let statements = planned.tables[0].statements.iter();
    let statements: Vec<_> = statements.map(|it| (it.rows.clone(), &*it.sql)).collect();
    assert_eq!(
        statements,
        [
            (
                0..2,
                r#"INSERT INTO "items" ("id", "name") VALUES ($1, $2), ($3, $4)"#
            ),
            (2..4, r#"INSERT INTO "items" ("id") VALUES ($1), ($2)"#),
            (
                4..5,
                r#"INSERT INTO "items" ("id", "name") VALUES ($1, $2)"#
            ),
        ]
    );
    server.once("5:e", Answer::Succeeds);
    let flushed = flush(&mut work, source()).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3 4; 1 insert items 5:e; 1 commit",
    );
    assert_eq!((flushed.rows(), flushed.tables[0].statements), (5, 3));
}

/// Rows of three bytes, in chunks of nine rows.
#[test]
fn a_statement_takes_no_more_rows_once_it_is_large_enough() {
    let server = Server::default();
    let mut source = Source::<false>::new(&server);
    source.engine.max_rows = 9;
    source.engine.max_bytes = 6;
    let mut work = inserts(5);
    work.rows.rows_mut::<Part>().push(part(7, 1));
    let flushed = flush(&mut work, source).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3:c 4:d; 1 insert items 5:e; 1 insert parts 1:7; 1 commit",
    );
    let items = &flushed.tables[0];
    assert_eq!((items.rows, items.statements), (5, 3));
}

#[test]
fn a_row_of_a_later_statement_of_its_chunk_is_named() {
    for (answer, times) in [
        (Answer::RefusesARow, 2),
        (Answer::Changed(Changed::Rows(0)), 2),
    ] {
        let server = Server::default();
        server.times(times, "5:e", answer);
        let mut source = Source::<false>::new(&server);
        source.engine.max_rows = 9;
        source.engine.max_bytes = 6;
        let error = flush(&mut inserts(5), source).unwrap_err();
        assert_eq!((error.key(), error.rows()), (Some(&*key(5)), Some(0..5)));
    }
    let server = Server::default();
    let mut source = Source::<false>::new(&server);
    source.engine.max_bytes = 3;
    let mut work = inserts(1);
    work.rows.rows_mut().push(item(2, "unbindable"));
    let error = flush(&mut work, source).unwrap_err();
    assert_eq!(error.key(), Some(&*key(2)));
    assert_log(&server, "1 begin; 1 insert items 1:a; 1 rollback");
}

#[test]
fn counts_of_several_statements_are_added() {
    let mut work = empty::<true>();
    for (id, name) in (1..).zip(["a", "b", "default"]) {
        let register = Registration::in_key_order::<Item>;
        work.rows.update(item(id, name), register);
    }
    let server = Server::default();
    let mut source = Source::<true>::new(&server);
    source.engine.max_rows = 3;
    server.once("1:a 2:b", Answer::Changed(Changed::Rows(1)));
    let error = flush(&mut work, source).unwrap_err();
    assert!(error.is_missing_row(), "{error}");
    assert!(error.to_string().contains("2 of 3"), "{error}");
}

#[test]
fn one_bulk_command_takes_several_chunks_of_a_table() {
    let server = Server::default();
    let mut work = inserts(5);
    work.rows.rows_mut::<Part>().push(part(7, 1));
    let flushed = flush::<false>(&mut work, Source::bulk(&server, 3)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a 2:b; 1 piece 3:c 4:d; 1 piece 5:e; 1 insert parts 1:7; \
         1 commit",
    );
    let [items, parts] = &flushed.tables[..] else {
        panic!("two tables");
    };
    assert_eq!((items.rows, items.bulk, items.statements), (5, 5, 1));
    assert_eq!((parts.rows, parts.bulk, parts.statements), (1, 0, 1));
    assert_eq!(
        (items.not_bulk, parts.not_bulk),
        (None, Some(NotBulk::Trigger))
    );
    assert_eq!(server.items().len(), 5);
}

/// Items 3 to 5 refer to a part, and item 6 to a part that refers to one of these.
#[test]
fn a_table_in_a_circle_goes_by_the_bulk_command_again_with_enough_rows() {
    let mut work = empty();
    for (id, parent) in [
        (1, None),
        (2, None),
        (3, Some(11)),
        (4, Some(11)),
        (5, Some(11)),
        (6, Some(12)),
    ] {
        work.rows.rows_mut::<Tied>().push(tied(id, parent));
    }
    for (id, item) in [(11, 1), (12, 3)] {
        work.rows.rows_mut::<Tie>().push(tie(id, item));
    }
    let server = Server::default();
    let flushed = flush::<false>(&mut work, Source::bulk(&server, 3)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:0 2:0; 1 insert parts 1:11; 1 bulk; 1 piece 3:11 4:11; 1 piece 5:11; 1 insert \
         parts 3:12; 1 insert items 6:12; 1 commit",
    );
    let items = &flushed.tables[0];
    assert_eq!((items.rows, items.bulk, items.statements), (6, 5, 3));
    assert_eq!(items.not_bulk, Some(NotBulk::FewRows));
    assert_eq!(server.items().len(), 6);
}

/// Rows that the command does not take are sent by statements, and so are all later rows of the table.
#[test]
fn a_table_in_a_circle_goes_by_statements_once_a_row_was_not_for_the_bulk_command() {
    let mut work = empty();
    for (id, parent) in [(1, None), (2, None), (3, Some(11)), (4, Some(11))] {
        work.rows.rows_mut::<Tied>().push(tied(id, parent));
    }
    work.rows.rows_mut::<Tie>().push(tie(11, 1));
    let server = Server::default();
    server.once("piece 1:0", Answer::EndsEarly);
    let flushed = flush::<false>(&mut work, Source::bulk(&server, 1)).unwrap();
    assert_eq!(flushed.tables[0].bulk, 1);
    let commands = server.log().iter().filter(|it| *it == "1 bulk").count();
    assert_eq!(commands, 1);
}

#[test]
fn a_piece_of_the_bulk_command_may_be_smaller_than_a_chunk() {
    let server = Server::default();
    flush::<false>(&mut inserts(3), Source::bulk(&server, 1)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a; 1 piece 2:b; 1 piece 3:c; 1 commit",
    );
}

#[test]
fn inside_the_users_transaction_there_is_no_bulk_command() {
    let server = Server::default();
    let flushed = flush_in::<false>(&mut inserts(1), Source::bulk(&server, 3)).unwrap();
    assert_log(&server, "1 savepoint; 1 insert items 1:a; 1 commit");
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::Savepoint));
    let server = Server::default();
    let mut source = Source::<false>::bulk(&server, 3);
    source.engine.bulk = false;
    let flushed = flush(&mut inserts(1), source).unwrap();
    assert_log(&server, "1 begin; 1 insert items 1:a; 1 commit");
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::SwitchedOff));
}

/// With one attempt: that the command is refused is no retry, unless the library lost the connection by it.
#[test]
fn a_bulk_command_that_the_server_does_not_have_becomes_statements() {
    let server = Server::default();
    server.once("piece 1:a", Answer::Lacks(Failure::Refused));
    let mut work = inserts(2);
    work.set_retry(Retry::NONE);
    let flushed = flush::<false>(&mut work, Source::bulk(&server, 3)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a 2:b; 1 rollback; 1 begin; 1 insert items 1:a 2:b; 1 commit",
    );
    let items = &flushed.tables[0];
    assert_eq!((items.rows, items.bulk, flushed.retries), (2, 0, 0));
    assert_eq!(items.not_bulk, Some(NotBulk::Refused));

    let server = Server::default();
    server.once("piece 1:a", Answer::Lacks(Failure::Lost));
    let flushed = flush::<false>(&mut inserts(1), Source::bulk(&server, 3)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a; 1 drop; discard; release; pause; connect after a loss; 2 check; 2 begin; \
         2 insert items 1:a; 2 commit",
    );
    assert_eq!(flushed.retries, 1);
    assert_eq!(flushed.tables[0].not_bulk, Some(NotBulk::Refused));
}

/// Without a server it is known what is not offered to the command.
#[test]
fn a_plan_says_which_rows_are_not_for_the_bulk_command() {
    let not_bulk = |work: &mut Work<Binder<false>>, bulk| {
        let mut engine = EngineProfile::POSTGRES;
        engine.bulk = bulk;
        let plan = work.plan(engine).unwrap();
        plan.tables.iter().map(|it| it.not_bulk).collect::<Vec<_>>()
    };
    assert_eq!(not_bulk(&mut inserts(2), true), [None]);
    let off = Some(NotBulk::SwitchedOff);
    assert_eq!(not_bulk(&mut inserts(2), false), [off]);
    let updated = Some(NotBulk::NotInserted);
    assert_eq!(not_bulk(&mut updates(2), true), [updated]);
    let flushed = flush(&mut updates(2), Source::<false>::new(&Server::default())).unwrap();
    assert_eq!(flushed.tables[0].not_bulk, None, "nothing was inserted");
}

#[test]
fn a_plan_has_a_text_to_print() {
    let text = |work: &mut Work<Binder<false>>| {
        let mut engine = EngineProfile::POSTGRES;
        engine.max_rows = 2;
        work.plan(engine).unwrap().to_string()
    };
    assert_eq!(
        text(&mut inserts(5)),
        "insert into items: 5 rows by 3 statements, or in bulk if the table and the values allow it\n    \
         2 times INSERT INTO \"items\" (\"id\", \"name\") VALUES ($1, $2), ($3, $4)\n    \
         INSERT INTO \"items\" (\"id\", \"name\") VALUES ($1, $2)"
    );
    let updated = text(&mut updates(1));
    assert!(
        updated.starts_with("update items: 1 row by 1 statement\n    UPDATE "),
        "{updated}"
    );
    assert_eq!(text(&mut empty()), "");
}

/// Several chunks went by the command: the one with the row is found first.
#[test]
fn a_row_that_the_bulk_command_refuses_is_searched_for_with_statements() {
    let server = Server::default();
    server.times(3, "4:d", Answer::RefusesARow);
    let error = flush::<false>(&mut inserts(6), Source::bulk(&server, 3)).unwrap_err();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a 2:b; 1 piece 3:c 4:d; 1 rollback; 1 begin; \
         1 insert items 1:a 2:b; 1 insert items 3:c 4:d; 1 rollback; 1 begin; \
         1 insert items 1:a 2:b; 1 insert items 3:c; 1 insert items 4:d; 1 rollback",
    );
    assert_eq!((error.key(), error.rows()), (Some(&*key(4)), Some(2..4)));
    assert_eq!(error.chunk(), Some(1));
}

#[test]
fn a_bulk_command_that_knows_its_row_names_it() {
    let server = Server::default();
    server.once("3:c", Answer::RefusesTheLastRow);
    let error = flush::<false>(&mut inserts(6), Source::bulk(&server, 1)).unwrap_err();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a; 1 piece 2:b; 1 piece 3:c; 1 rollback",
    );
    assert_eq!(error.key(), Some(&*key(3)));
}

#[test]
fn a_row_that_cannot_be_bound_ends_the_bulk_command() {
    let server = Server::default();
    let mut work = inserts(2);
    work.rows.rows_mut().push(item(3, "unbindable"));
    let error = flush::<false>(&mut work, Source::bulk(&server, 3)).unwrap_err();
    assert_log(&server, "1 begin; 1 bulk; 1 piece 1:a 2:b; 1 rollback");
    assert_eq!(error.key(), Some(&*key(3)));
}

#[test]
fn statements_send_the_rest_of_a_chunk_that_the_bulk_command_left() {
    let server = Server::default();
    let mut work = inserts(3);
    work.rows.rows_mut().push(item(4, "no bulk"));
    work.rows.rows_mut().push(item(5, "e"));
    let flushed = flush::<false>(&mut work, Source::bulk(&server, 3)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 bulk; 1 piece 1:a 2:b; 1 piece 3:c; 1 insert items 4:no bulk; \
         1 insert items 5:e; 1 commit",
    );
    let items = &flushed.tables[0];
    assert_eq!((items.rows, items.bulk, items.statements), (5, 3, 3));
    assert_eq!(items.not_bulk, Some(NotBulk::Value(None)));
    assert_eq!(server.items().len(), 5);
}

/// A library that does not ask for all rows loses none.
#[test]
fn rows_that_the_bulk_command_did_not_ask_for_are_sent_by_statements() {
    let server = Server::default();
    server.once("piece 3:c 4:d", Answer::EndsEarly);
    let flushed = flush::<false>(&mut inserts(6), Source::bulk(&server, 3)).unwrap();
    assert_eq!(server.log()[6..], ["1 insert items 5:e 6:f", "1 commit"]);
    assert_eq!(flushed.tables[0].bulk, 4);
    assert_eq!(server.items().len(), 6);
}

#[test]
fn the_bulk_command_is_ended_after_many_chunks() {
    let server = Server::default();
    let mut source = Source::<false>::bulk(&server, 9);
    source.engine.max_rows = 1;
    let mut work = empty();
    let rows = MAX_CHUNKS + 50;
    let ids = 1..=u128::try_from(rows).unwrap();
    work.rows.rows_mut().extend(ids.map(|id| item(id, "x")));
    let flushed = flush(&mut work, source).unwrap();
    let log = server.log();
    let commands: Vec<_> = (0..log.len()).filter(|it| log[*it] == "1 bulk").collect();
    assert_eq!(commands, [3, 3 + MAX_CHUNKS + 1]);
    let items = &flushed.tables[0];
    assert_eq!((items.rows, items.bulk, items.statements), (rows, rows, 2));
    assert_eq!(server.items().len(), rows);
}

#[test]
fn a_flush_dropped_at_any_poll_is_written_once_by_the_next() {
    for is_carried_out in [false, true] {
        let mut ends = [0; 2];
        for polls in 0.. {
            let server = Server::default();
            if is_carried_out {
                server.once("commit", Answer::Succeeds);
            }
            let mut work = inserts::<false>(3);
            let is_over = {
                let source = Source::new(&server);
                let mut flush = pin!(work.flush(source, TransactionScope::Transaction));
                let mut context = Context::from_waker(Waker::noop());
                (0..polls).any(|_| flush.as_mut().poll(&mut context).is_ready())
            };
            if is_over {
                break;
            }
            let was_committing = server.log().iter().any(|it| it.ends_with("commit"));
            ends[usize::from(was_committing)] += 1;
            let flushed = flush(&mut work, Source::new(&server)).unwrap();
            assert_eq!(flushed.rows(), 3);
            assert_eq!(server.items(), ["1:a", "2:b", "3:c"]);
            let log = server.log();
            let has = |what: &str| log.iter().any(|it| it.contains(what));
            assert_eq!(has("probe"), was_committing, "{polls}: {log:?}");
            assert_eq!(has("insert"), !(was_committing && is_carried_out));
        }
        // Two polls each, but one for a statement, which is polled again once the next one is bound.
        assert_eq!(ends, [1 + 2 + 2 + 2 + 1 + 1, 2]);
    }
}

#[test]
fn updates_of_each_engine_reach_the_binder_in_the_order_of_the_text() {
    for (updates_by, expected) in [
        (Updates::FromValues, "1 update items 1:a 2:b"),
        (Updates::WithValues, "1 update items 1:a 2:b"),
        (Updates::JoinValues, "1 update items 1:a 2:b"),
        (Updates::Arrays, "1 update items 1:a 2:b"),
        (Updates::RowByRow, "1 update items a 1; 1 update items b 2"),
    ] {
        let server = Server::default();
        let mut source = Source::<false>::new(&server);
        source.engine.updates = updates_by;
        flush(&mut updates(2), source).unwrap();
        let expected = format!("1 begin; 1 marker; {expected}; 1 commit");
        assert_log(&server, &expected);
    }
}
