//! Tests of flushes that only insert, but write a marker row because the database would take their rows twice.

use super::*;
use crate::spi::RowBinder;

const ASKED: &str = "1 begin; 1 is the key unique; 1 rollback; ";

/// Returns the memory of a process that has flushed nothing before.
fn new_process() -> &'static ProtectedTables {
    Box::leak(Box::default())
}

/// Does the same as [`inserts`] in a process that has flushed nothing before.
fn first_inserts<const RUNS: bool>(
    items: usize,
    process: &'static ProtectedTables,
) -> Work<Binder<RUNS>>
where
    Binder<RUNS>: RowBinder,
{
    let mut work = inserts(items);
    work.protected = process;
    work
}

fn flush_first(server: &Server, process: &'static ProtectedTables) {
    flush::<false>(&mut first_inserts(1, process), Source::new(server)).unwrap();
}

#[test]
fn a_table_is_asked_for_once_if_its_rows_are_refused_twice() {
    let (server, process) = (Server::default(), new_process());
    flush_first(&server, process);
    assert_log(
        &server,
        &format!("{ASKED}1 begin; 1 insert items 1:a; 1 commit"),
    );
    let mut work = empty::<false>();
    work.protected = process;
    work.rows.rows_mut().push(item(2, "b"));
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        server.log()[2..].join("; "),
        "2 begin; 2 insert items 2:b; 2 commit"
    );
}

#[test]
fn rows_that_the_database_would_take_twice_get_a_marker_row_each_time() {
    let (server, process) = (Server::default(), new_process());
    for flush_number in 1..=2 {
        server.once("unique", Answer::Says(false));
        let mut work = empty::<false>();
        work.protected = process;
        work.rows.rows_mut().push(item(flush_number, "a"));
        flush(&mut work, Source::new(&server)).unwrap();
        let expected = "# begin; # is the key unique; # rollback; # begin; # marker; # insert items #:a; # commit";
        let expected = expected.replace('#', &flush_number.to_string());
        assert_eq!(server.log()[2..].join("; "), expected);
    }
}

/// This holds whether or not the server carried out the COMMIT.
#[test]
fn after_a_lost_commit_rows_that_the_database_would_take_twice_are_there_once() {
    for was_carried_out in [true, false] {
        let (server, process) = (Server::default(), new_process());
        server.once("unique", Answer::Says(false));
        server.once(
            "commit",
            match was_carried_out {
                true => Answer::FailsAfter(Failure::Lost),
                false => Answer::Fails(Failure::Lost),
            },
        );
        let flushed = flush::<false>(&mut first_inserts(2, process), Source::new(&server)).unwrap();
        assert_eq!((flushed.rows(), server.items().len()), (2, 2));
        let log = log_after(&server, "2 check");
        assert_eq!(
            log,
            match was_carried_out {
                true => "2 begin; 2 bound waits; 2 probe marker; 2 rollback",
                false =>
                    "2 begin; 2 bound waits; 2 probe marker; 2 rollback; 2 begin; 2 bound waits; 2 marker; 2 insert \
                     items 1:a 2:b; 2 commit",
            }
        );
    }
}

/// A trigger has replaced the keys, so only the marker row shows that the flush was committed.
#[test]
fn the_next_flush_looks_for_the_marker_row_that_was_written() {
    for markers in [Markers::Changes, Markers::None, Markers::All] {
        let (server, process) = (Server::default(), new_process());
        server.once("unique", Answer::Says(false));
        server.once("commit", Answer::FailsAfter(Failure::Lost));
        let mut work = first_inserts::<false>(1, process);
        let error = flush(&mut work, Source::only(&server)).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        work.set_markers(markers);
        flush(&mut work, Source::only(&server)).unwrap();
        assert_eq!(
            log_after(&server, "2 check"),
            "2 begin; 2 bound waits; 2 probe marker; 2 rollback"
        );
    }
}

/// A marker row of the second attempt would not show that the first attempt has ended.
#[test]
fn a_marker_row_that_was_not_written_at_first_is_not_written_later() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    server.times(9, "unique", Answer::Says(false));
    let mut work = inserts::<false>(1);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    server.log();
    for markers in [Markers::Changes, Markers::All] {
        work.set_markers(markers);
        let error = flush(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        let log = server.log();
        assert!(
            !log.iter()
                .any(|it| it.contains("marker") || it.contains("insert")),
            "{log:?}"
        );
    }
}

/// The hint was wrong: the outcome is unknown, and the next flush asks.
#[test]
fn a_table_that_is_not_protected_any_more_is_asked_for_again() {
    let (server, process) = (Server::default(), new_process());
    flush_first(&server, process);
    server.once("unique", Answer::Says(false));
    server.once("commit", Answer::Fails(Failure::Lost));
    let mut work = empty::<false>();
    work.protected = process;
    work.rows.rows_mut().push(item(2, "b"));
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    work.clear();
    server.log();
    work.rows.rows_mut().push(item(3, "c"));
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(count(&server, "is the key unique"), 1);
}

/// One protected table among several is enough. The flush looks for a row of that table, since a trigger may have
/// replaced the keys of the others.
#[test]
fn one_protected_table_protects_the_rows_of_all_and_is_looked_into() {
    let (server, process) = (Server::default(), new_process());
    server.once("unique", Answer::IsProtected(1));
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = first_inserts::<false>(1, process);
    work.rows.rows_mut::<Part>().push(part(7, 1));
    let flushed = flush(&mut work, Source::new(&server));
    let log = server.log();
    assert_eq!(
        log[2..9].join("; "),
        "1 begin; 1 are 2 keys unique; 1 rollback; 1 begin; 1 insert items 1:a; 1 insert parts 1:7; 1 commit"
    );
    assert!(log.contains(&"2 probe parts 7".to_owned()), "{log:?}");
    drop(flushed);
}

#[test]
fn a_missing_table_of_marker_rows_is_an_error_before_a_row_is_sent() {
    let (server, process) = (Server::default(), new_process());
    server.times(2, "unique", Answer::Says(false));
    server.once("marker", Answer::MissingTable);
    let mut work = first_inserts::<false>(1, process);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert_log(&server, &format!("{ASKED}1 begin; 1 marker; 1 rollback"));
    assert!(error.is_flushes_table_missing() && !error.is_commit_unknown());
    let text = error.to_string();
    for part in ["the rows of items", "CREATE TABLE", "`without_record`"] {
        assert!(text.contains(part), "{text}");
    }
    // The user gets out of this by flushing without a marker row.
    work.set_markers(Markers::None);
    server.once("commit", Answer::Fails(Failure::Lost));
    server.times(9, "unique", Answer::Says(false));
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    assert!(
        server.log()[2..]
            .join("; ")
            .starts_with("2 begin; 2 insert items 1:a; 2 commit")
    );
}

/// The flush goes on in the same way as on an engine without such a catalog.
#[test]
fn a_catalog_that_cannot_be_asked_leaves_the_marker_row_out() {
    let (server, process) = (Server::default(), new_process());
    for number in 1..=2 {
        server.once("unique", Answer::Fails(Failure::Refused));
        let mut work = empty::<false>();
        work.protected = process;
        work.rows.rows_mut().push(item(number, "a"));
        flush(&mut work, Source::new(&server)).unwrap();
        let expected =
            "# begin; # is the key unique; # rollback; # begin; # insert items #:a; # commit";
        let log = server.log()[2..].join("; ");
        assert_eq!(log, expected.replace('#', &number.to_string()));
    }
}

#[test]
fn a_question_that_may_succeed_another_time_is_an_attempt_that_failed() {
    let rest = "begin; # is the key unique; # rollback; # begin; # insert items 1:a; # commit";
    for (failure, between) in [
        (Failure::Transient, "1 rollback; release; pause; 1 "),
        (
            Failure::Lost,
            "1 drop; discard; release; pause; connect after a loss; 2 check; 2 ",
        ),
    ] {
        let (server, process) = (Server::default(), new_process());
        server.once("unique", Answer::Fails(failure));
        let flushed = flush::<false>(&mut first_inserts(1, process), Source::new(&server)).unwrap();
        assert_eq!(flushed.retries, 1);
        let number = &between[between.len() - 2..between.len() - 1];
        let rest = rest.replace('#', number);
        assert_log(
            &server,
            &format!("1 begin; 1 is the key unique; {between}{rest}"),
        );
    }
}

#[test]
fn a_question_that_cannot_be_rolled_back_ends_the_connection() {
    let (server, process) = (Server::default(), new_process());
    server.once("rollback", Answer::Fails(Failure::Lost));
    let flushed = flush::<false>(&mut first_inserts(1, process), Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (1, 1));
    assert!(
        log_after(&server, "1 rollback")
            .starts_with("discard; release; pause; connect after a loss")
    );
}

/// The COMMIT was not carried out, and somebody else has written a row with the same key. No engine is an exception.
#[test]
fn rows_whose_keys_others_may_write_get_a_marker_row() {
    type Add = fn(&mut Work<Binder<false>>);
    let tables: [(Add, &str); 2] = [
        (|work| work.rows.rows_mut().push(View::default()), "views 0"),
        (|work| work.rows.rows_mut().push(detail(0)), "details 0"),
    ];
    for (add, row) in tables {
        for engine in [EngineProfile::POSTGRES, EngineProfile::SQLITE] {
            let server = Server::default();
            server.once("commit", Answer::Fails(Failure::Lost));
            server.once("2 check", Answer::Meanwhile(row));
            let mut work = empty();
            add(&mut work);
            let mut source = Source::<false>::new(&server);
            source.engine = engine;
            let error = flush(&mut work, source).unwrap_err();
            assert!(!error.is_commit_unknown(), "{error}");
            let begin = format!("1 begin; 1 marker; 1 insert {row}; 1 commit; ");
            let log = server.log()[2..].join("; ");
            assert!(
                log.starts_with(&begin) && log.contains("2 probe marker"),
                "{log}"
            );
            assert!(!log.contains("unique"), "{log}");
        }
    }
}

/// With `without_record`, nothing tells whether the flush was committed.
#[test]
fn without_a_marker_row_keys_that_others_may_write_tell_nothing() {
    for engine in [EngineProfile::POSTGRES, EngineProfile::SQLITE] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        server.once("2 check", Answer::Meanwhile("details 0"));
        let mut work = empty();
        work.rows.rows_mut().push(detail(0));
        work.set_markers(Markers::None);
        let mut source = Source::<false>::new(&server);
        source.engine = engine;
        let error = flush(&mut work, source).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        assert_eq!(count(&server, "probe details 0"), 0);
    }
}

/// The row with such a key shows that the flush was committed.
#[test]
fn one_table_whose_keys_nobody_else_writes_is_enough() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = empty::<false>();
    work.rows.rows_mut().push(item(0, "a"));
    work.rows.rows_mut().push(detail(0));
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 2);
    let log = server.log()[2..].join("; ");
    assert!(
        log.contains("2 probe items 0") && !log.contains("marker"),
        "{log}"
    );
}

/// Such a flush needs no marker row, or writes one in any case.
#[test]
fn other_flushes_ask_nothing() {
    let server = Server::default();
    let ask_nothing = |work: &mut Work<Binder<false>>, log: &str| {
        work.protected = new_process();
        flush(work, Source::new(&server)).unwrap();
        let all = server.log()[2..].join("; ");
        assert!(all.ends_with(log) && !all.contains("unique"), "{all}");
    };
    ask_nothing(
        &mut updates(1),
        "begin; 1 marker; 1 update items 1:a; 1 commit",
    );
    let mut work = inserts(1);
    work.set_markers(Markers::All);
    ask_nothing(&mut work, "begin; 2 marker; 2 insert items 1:a; 2 commit");
    let mut work = empty();
    work.rows.rows_mut().push(item(2, "b"));
    work.set_markers(Markers::None);
    ask_nothing(&mut work, "begin; 3 insert items 2:b; 3 commit");
    // The user commits the user's own transaction.
    let mut work = empty::<false>();
    work.protected = new_process();
    work.rows.rows_mut().push(item(3, "c"));
    flush_in(&mut work, Source::new(&server)).unwrap();
    let log = server.log()[2..].join("; ");
    assert_eq!(log, "4 savepoint; 4 insert items 3:c; 4 commit");
    // SQLite's catalog is not asked.
    let mut source = Source::<false>::new(&server);
    source.engine = EngineProfile::SQLITE;
    let mut work = empty();
    work.protected = new_process();
    work.rows.rows_mut().push(item(4, "d"));
    flush(&mut work, source).unwrap();
    assert_eq!(
        server.log()[2..].join("; "),
        "5 begin; 5 insert items 4:d; 5 commit"
    );
}

#[test]
fn a_deadline_that_ends_the_question_leaves_nothing_written() {
    let (server, process) = (Server::default(), new_process());
    server.once("unique", Answer::Silence);
    let mut work = first_inserts::<false>(1, process);
    // Time enough to come to the question.
    work.set_deadline(std::time::Duration::from_millis(500));
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_timeout() && !error.is_commit_unknown(), "{error}");
    assert!(server.items().is_empty() && work.unresolved.is_none());
}
