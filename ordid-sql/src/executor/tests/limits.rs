//! Tests of limits: how long a flush may take, and how large a row may be.

use std::time::{Duration, Instant};

use super::{library::MAX_PACKET, *};
use crate::MessageLimit;

/// A deadline before which a flush comes to the step that a test is about, also where the machine has other things to do.
const SOON: Duration = Duration::from_millis(500);

#[test]
fn a_server_that_does_not_answer_ends_the_flush_at_its_deadline() {
    for silent in ["connect", "check", "begin", "insert items 3:c"] {
        let server = Server::default();
        server.once(silent, Answer::Silence);
        let mut work = inserts(3);
        work.set_deadline(SOON);
        let begun = Instant::now();
        let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
        assert!(
            error.is_timeout() && !error.is_commit_unknown(),
            "{silent}: {error}"
        );
        assert!(begun.elapsed() >= SOON && begun.elapsed() < 50 * SOON);
        let log = server.log();
        assert_eq!(log.last().map(String::as_str), Some("discard"), "{silent}");
        assert_eq!(count_in(&log, "commit"), 0);
        // The rows are still there for another flush.
        let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
        assert_eq!(flushed.rows(), 3);
    }
}

#[test]
fn a_commit_without_an_answer_is_unknown_at_the_deadline() {
    let server = Server::default();
    server.once("commit", Answer::Silence);
    let mut work = inserts(1);
    work.set_deadline(SOON);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_timeout() && error.is_commit_unknown(), "{error}");
    assert!(error.to_string().contains("longer than 500ms"), "{error}");
    // The next flush asks first.
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.items().len()), (1, 1));
    assert_eq!(count(&server, "probe items 1"), 1);
}

#[test]
fn a_probe_without_an_answer_leaves_the_commit_unknown_at_the_deadline() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    server.once("probe", Answer::Silence);
    let mut work = inserts(1);
    work.set_deadline(SOON);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_timeout() && error.is_commit_unknown(), "{error}");
    assert!(error.driver().is_some(), "the loss is the cause");
}

#[test]
fn attempts_end_at_the_deadline() {
    let server = Server::default();
    server.times(usize::MAX, "insert", Answer::Fails(Failure::Transient));
    let mut work = inserts(1);
    work.set_retry(Retry::DEFAULT.with_attempts(u32::MAX));
    work.set_deadline(SOON);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_timeout() && error.is_transient(), "{error}");
    assert!(error.retries() > 0 && !error.is_commit_unknown());
}

/// Where calls block, the time is looked at between them.
#[test]
fn a_flush_whose_calls_block_is_rolled_back_after_its_deadline() {
    for rollback in [Answer::Succeeds, Answer::Fails(Failure::Lost)] {
        let server = Server::default();
        server.block();
        server.once("rollback", rollback.clone());
        let mut work = inserts(3);
        work.set_deadline(SOON);
        work.set_observer(|_| std::thread::sleep(SOON));
        let error = flush::<false>(&mut work, Source::only(&server)).unwrap_err();
        assert!(error.is_timeout() && !error.is_commit_unknown(), "{error}");
        let is_open = error.to_string().contains("could not be rolled back");
        assert_eq!(is_open, matches!(rollback, Answer::Fails(_)), "{error}");
        assert_eq!(count_in(&server.log(), "insert"), 1);
    }
}

/// The error is there. Only the row that it is about stays unknown.
#[test]
fn a_search_for_the_failed_row_ends_at_the_deadline() {
    let server = Server::default();
    server.once("insert items", Answer::RefusesARow);
    server.once("insert items", Answer::Silence);
    let mut work = inserts(3);
    work.set_deadline(SOON);
    let begun = Instant::now();
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(begun.elapsed() < 50 * SOON);
    assert!(!error.is_timeout() && !error.is_commit_unknown(), "{error}");
    assert_eq!(error.key(), None);
    assert_eq!(server.log().last().map(String::as_str), Some("discard"));
}

#[test]
fn a_transaction_of_the_users_has_no_deadline() {
    let server = Server::default();
    let mut work = inserts(3);
    work.set_deadline(Duration::ZERO);
    let flushed = flush_in::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 3);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_timeout(), "{error}");
}

/// Statements are large enough from 6 bytes on.
fn small_statements(server: &Server, limit: MessageLimit) -> Source<false> {
    let mut source = Source::new(server);
    source.engine.max_rows = 9;
    source.engine.max_bytes = 6;
    source.engine.max_message = limit;
    source
}

const SETTING: MessageLimit = MessageLimit::Setting("@@max_allowed_packet");
const LARGE: &str = "fifteen letters";
const TOO_LARGE: &str = "one-and-twenty letters";

#[test]
fn a_large_row_goes_alone() {
    let server = Server::default();
    let mut work = inserts(1);
    for (id, name) in (2..).zip([LARGE, "c", "d"]) {
        work.rows.rows_mut().push(item(id, name));
    }
    let flushed = flush(&mut work, small_statements(&server, SETTING)).unwrap();
    assert_eq!(flushed.rows(), 4);
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a; 1 how large a message; 1 insert items 2:fifteen letters; \
         1 insert items 3:c 4:d; 1 commit",
    );
}

#[test]
fn a_row_that_is_too_large_is_named_with_its_size_and_the_limit() {
    for limit in [SETTING, MessageLimit::Bytes(MAX_PACKET)] {
        let server = Server::default();
        let mut work = inserts(2);
        work.rows.rows_mut().push(item(3, TOO_LARGE));
        let error = flush(&mut work, small_statements(&server, limit)).unwrap_err();
        assert!(
            error.is_row_too_large() && !error.is_commit_unknown(),
            "{error}"
        );
        assert_eq!((error.key(), error.retries()), (Some(&*key(3)), 0));
        let text = error.to_string();
        assert!(
            text.contains("the row has 24 bytes, and the server takes 20"),
            "{text}"
        );
        let is_setting = limit == SETTING;
        assert_eq!(
            text.contains("(`@@max_allowed_packet`)"),
            is_setting,
            "{text}"
        );
        let log = server.log();
        assert_eq!(count_in(&log, "insert items 3"), 0);
        assert_eq!(log.last().map(String::as_str), Some("1 rollback"));
    }
    let server = Server::default();
    let mut work = empty();
    work.rows.rows_mut().push(item(3, TOO_LARGE));
    flush(&mut work, small_statements(&server, MessageLimit::None)).unwrap();
}

fn count_in(log: &[String], part: &str) -> usize {
    log.iter().filter(|it| it.contains(part)).count()
}
