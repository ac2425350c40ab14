//! Tests of flushes in chunks.

use ordid_core::{
    entity::{Fields, OrderedKey, Parent, Sink},
    key::KeyBytes,
    uuid::Uuid,
};

use super::*;
use crate::ChunkLimits;

/// A unit of work with so many items to insert, in chunks of so many rows.
fn in_chunks(items: usize, rows: usize) -> Work<Binder<false>> {
    let mut work = inserts(items);
    work.set_limits(ChunkLimits::rows(rows));
    work
}

/// Returns the statements that write rows, and the commits.
fn writes(server: &Server) -> String {
    let log = server.log();
    let writes = log
        .iter()
        .filter(|it| it.contains("items") || it.contains("parts") || it.contains("commit"));
    writes.cloned().collect::<Vec<_>>().join("; ")
}

#[test]
fn each_chunk_has_a_transaction_and_a_marker_row() {
    let server = Server::default();
    let mut work = in_chunks(5, 3);
    work.rows.rows_mut::<Part>().push(part(7, 1));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let observed = Arc::clone(&seen);
    work.set_observer(move |it| observed.lock().unwrap().push((it.rows, it.done, it.total)));
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    // A statement takes two items, and is not cut where a chunk has room for a whole one.
    assert_log(
        &server,
        "1 begin; 1 marker; 1 insert items 1:a 2:b; 1 commit; \
         1 begin; 1 marker; 1 insert items 3:c 4:d; 1 insert items 5:e; 1 commit; \
         1 begin; 1 marker; 1 insert parts 1:7; 1 commit",
    );
    let tables = flushed
        .tables
        .iter()
        .map(|it| (it.table, it.rows, it.statements));
    assert_eq!(
        tables.collect::<Vec<_>>(),
        [("items", 5, 3), ("parts", 1, 1)]
    );
    assert_eq!(
        *seen.lock().unwrap(),
        [(2, 2, 6), (2, 4, 6), (1, 5, 6), (1, 6, 6)]
    );
    assert!(work.rows.is_empty() && work.chunked.is_none());
}

#[test]
fn chunks_smaller_than_a_statement_cut_it() {
    let server = Server::default();
    flush(&mut in_chunks(3, 1), Source::new(&server)).unwrap();
    assert_eq!(
        writes(&server),
        "1 insert items 1:a; 1 commit; 1 insert items 2:b; 1 commit; 1 insert items 3:c; 1 commit"
    );
}

#[test]
fn a_chunk_that_fails_leaves_those_before_it_and_is_sent_by_the_next_flush() {
    let server = Server::default();
    server.once("insert items 3", Answer::Fails(Failure::Refused));
    let mut work = in_chunks(5, 2);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert_eq!(
        (error.committed_chunks(), error.committed().unwrap().rows()),
        (1, 2)
    );
    assert!(!error.is_commit_unknown());
    assert_eq!(
        error.to_string(),
        "chunks that are committed: 1 (2 rows); flushing again goes on behind them; of the next one: cannot \
         insert into items (rows 2 to 3), nothing was written: it failed"
    );
    assert_eq!(server.items(), ["1:a", "2:b"]);
    server.log();
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 5);
    assert_eq!(
        writes(&server),
        "2 insert items 3:c 4:d; 2 commit; 2 insert items 5:e; 2 commit"
    );
    assert_eq!(server.items().len(), 5);
}

#[test]
fn a_lost_commit_of_a_chunk_is_found_by_its_marker_row_or_sent_again() {
    for (answer, sent) in [
        (Answer::FailsAfter(Failure::Lost), 1),
        (Answer::Fails(Failure::Lost), 2),
    ] {
        let server = Server::default();
        // The COMMIT of the first chunk is answered.
        server
            .once("1 commit", Answer::Succeeds)
            .once("1 commit", answer);
        let flushed = flush(&mut in_chunks(5, 2), Source::new(&server)).unwrap();
        assert_eq!((flushed.rows(), server.items().len()), (5, 5));
        let log = server.log();
        let count = |what: &str| log.iter().filter(|it| it.ends_with(what)).count();
        assert_eq!(count("insert items 3:c 4:d"), sent);
        assert_eq!([count("probe marker"), count("probe items 3")], [1, 0]);
    }
}

/// Marker rows are kept for a day. Otherwise no lost COMMIT of a long import could be resolved.
#[test]
fn a_chunk_has_a_marker_row_of_its_own_time() {
    for (is_done, sent) in [(true, 1), (false, 2)] {
        for is_left in [false, true] {
            let answer = match is_done {
                true => Answer::FailsAfter(Failure::Lost),
                false => Answer::Fails(Failure::Lost),
            };
            let server = Server::default();
            server
                .once("1 commit", Answer::Succeeds)
                .once("insert items 3", Answer::Fails(Failure::Refused));
            let mut work = in_chunks(5, 2);
            flush(&mut work, Source::new(&server)).unwrap_err();
            // The next day.
            work.chunked.as_mut().unwrap().made_at(0);
            server.log();
            server.once("2 commit", answer);
            let flushed = match is_left {
                false => flush(&mut work, Source::new(&server)),
                // By another flush, soon after.
                true => {
                    let error = flush(&mut work, Source::only(&server)).unwrap_err();
                    assert!(error.is_commit_unknown());
                    flush(&mut work, Source::new(&server))
                }
            };
            assert_eq!((flushed.unwrap().rows(), server.items().len()), (5, 5));
            let log = server.log();
            let count = |what: &str| log.iter().filter(|it| it.ends_with(what)).count();
            assert_eq!(count("insert items 3:c 4:d"), sent);
        }
    }
}

/// Otherwise a program that is killed then would have only the rest of the half day to resume it.
#[test]
fn a_chunk_that_was_refused_begins_anew() {
    let server = Server::default();
    server.once("1 commit", Answer::Succeeds).times(
        2,
        "insert items 3",
        Answer::Fails(Failure::Refused),
    );
    let mut work = in_chunks(5, 2);
    flush(&mut work, Source::new(&server)).unwrap_err();
    let now = ordid_core::clock::Clock::now(&ordid_core::clock::SystemClock).as_unix_millis();
    work.chunked
        .as_mut()
        .unwrap()
        .made_at(now - 11 * 60 * 60 * 1_000);
    flush(&mut work, Source::new(&server)).unwrap_err();
    let made = work.chunked.as_ref().unwrap().marker().as_u128() >> 80;
    assert!(made >= u128::from(now), "{made} and {now}");
}

#[test]
fn a_chunk_whose_outcome_is_unknown_is_looked_for_by_the_next_flush() {
    let server = Server::default();
    server
        .once("1 commit", Answer::Succeeds)
        .once("1 commit", Answer::FailsAfter(Failure::Lost));
    let mut work = in_chunks(5, 2);
    let error = flush(&mut work, Source::only(&server)).unwrap_err();
    assert!(error.is_commit_unknown());
    assert_eq!(error.committed_chunks(), 1);
    // Not as a whole, and not with other rows.
    let limits = work.limits.take();
    let whole = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(
        whole.is_plan() && whole.to_string().contains("flush `in_chunks`"),
        "{whole}"
    );
    work.limits = limits;
    server.log();
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.items().len()), (5, 5));
    assert_eq!(writes(&server), "2 insert items 5:e; 2 commit");
}

/// Otherwise its marker row would be taken for that of other rows.
#[test]
fn a_chunk_in_doubt_keeps_its_rows_through_other_limits_and_a_refused_connection() {
    for limit in [1, 4] {
        let server = Server::default();
        server
            .once("1 commit", Answer::Succeeds)
            .once("1 commit", Answer::FailsAfter(Failure::Lost));
        let mut work = in_chunks(6, 2);
        flush(&mut work, Source::only(&server)).unwrap_err();
        work.set_limits(ChunkLimits::rows(limit));
        server.once("check", Answer::WrongState);
        let error = flush(&mut work, Source::new(&server)).unwrap_err();
        assert!(
            error.is_connection_state() && error.is_commit_unknown(),
            "{error}"
        );
        let flushed = flush(&mut work, Source::new(&server)).unwrap();
        assert_eq!((flushed.rows(), server.items().len()), (6, 6), "{limit}");
    }
}

#[test]
fn inside_the_transaction_of_a_test_each_chunk_has_a_savepoint() {
    let server = Server::default();
    server.once("check", Answer::Savepoint);
    flush(&mut in_chunks(4, 2), Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 savepoint; 1 insert items 1:a 2:b; 1 commit; 1 savepoint; 1 insert items 3:c 4:d; 1 commit",
    );
}

#[test]
fn rows_that_were_added_after_a_chunk_cannot_be_told_from_the_others() {
    let server = Server::default();
    server.once("insert items 3", Answer::Fails(Failure::Refused));
    let mut work = in_chunks(5, 2);
    flush(&mut work, Source::new(&server)).unwrap_err();
    work.rows_mut::<Item>(Registration::in_key_order::<Item>)
        .push(item(9, "z"));
    server.log();
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(
        error.is_plan() && error.to_string().contains("has changed since"),
        "{error}"
    );
    assert_eq!(error.committed_chunks(), 1);
    assert!(server.log().is_empty());
    work.clear();
    flush(&mut work, Source::new(&server)).unwrap();
}

#[test]
fn rows_may_be_added_while_nothing_is_committed() {
    let server = Server::default();
    server.once("insert items 1", Answer::Fails(Failure::Refused));
    let mut work = in_chunks(3, 2);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert_eq!((error.committed_chunks(), error.committed()), (0, None));
    work.rows_mut::<Item>(Registration::in_key_order::<Item>)
        .push(item(4, "d"));
    assert_eq!(flush(&mut work, Source::new(&server)).unwrap().rows(), 4);
    assert_eq!(server.items().len(), 4);
}

#[test]
fn a_flush_as_a_whole_that_may_be_committed_is_not_sent_in_chunks() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(3);
    flush(&mut work, Source::<false>::only(&server)).unwrap_err();
    work.set_limits(ChunkLimits::rows(1));
    server.log();
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(
        error.is_plan() && error.to_string().contains("without `in_chunks`"),
        "{error}"
    );
    assert!(server.log().is_empty());
}

#[test]
fn without_marker_rows_there_are_no_chunks() {
    let server = Server::default();
    let mut work = in_chunks(3, 2);
    work.set_markers(Markers::None);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(
        error.is_plan() && error.to_string().contains("without_record"),
        "{error}"
    );
    assert!(server.log().is_empty());
}

/// A chunk cannot do without it.
#[test]
fn a_missing_table_of_marker_rows_is_told_without_a_way_around_it() {
    let server = Server::default();
    server.once("marker", Answer::MissingTable);
    let error = flush(&mut in_chunks(2, 1), Source::new(&server)).unwrap_err();
    let text = error.to_string();
    assert!(error.is_flushes_table_missing());
    assert!(
        text.contains("missing, which each chunk needs; create it once"),
        "{text}"
    );
    assert!(!text.contains("without_record"), "{text}");
}

#[test]
fn a_transaction_takes_no_more_rows_than_the_engine_allows() {
    let server = Server::default();
    let mut work = inserts(5);
    let mut source = Source::<false>::new(&server);
    // The marker row is the third.
    source.engine.max_transaction_rows = Some(3);
    let error = flush(&mut work, source).unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert!(
        error.to_string().contains("takes 3, a marker row included"),
        "{error}"
    );
    assert!(server.log().is_empty());
    work.set_limits(ChunkLimits::OF_ENGINE);
    let mut source = Source::<false>::new(&server);
    source.engine.max_transaction_rows = Some(3);
    flush(&mut work, source).unwrap();
    assert_eq!(count(&server, "commit"), 3);

    // The user's transaction has no marker row, and cannot be several.
    let in_transaction = |rows: usize| {
        let mut work = inserts(rows);
        let mut source = Source::<false>::new(&server);
        source.engine.max_transaction_rows = Some(3);
        flush_in(&mut work, source)
    };
    let error = in_transaction(4).unwrap_err();
    assert!(
        error.is_plan() && error.to_string().contains("send fewer"),
        "{error}"
    );
}

/// The values of an item have three bytes.
#[test]
fn a_chunk_takes_no_more_bytes_than_it_may_but_one_row_at_least() {
    for (bytes, commits) in [(2, 5), (5, 5), (6, 3), (14, 2), (15, 1)] {
        let server = Server::default();
        let mut work = inserts(5);
        work.set_limits(ChunkLimits::OF_ENGINE.with_bytes(bytes));
        flush(&mut work, Source::<false>::new(&server)).unwrap();
        assert_eq!((bytes, count(&server, "commit")), (bytes, commits));
        assert_eq!(server.items().len(), 5);
    }
}

#[test]
fn there_is_a_pause_between_two_chunks() {
    let server = Server::default();
    let mut work = inserts(3);
    work.set_limits(ChunkLimits::rows(2).with_pause(std::time::Duration::from_millis(1)));
    flush(&mut work, Source::<false>::new(&server)).unwrap();
    let log = server.log();
    let first = log.iter().position(|it| it.ends_with("commit")).unwrap();
    assert_eq!(log[first + 1..first + 3], ["release", "pause"]);
    assert!(log.last().unwrap().ends_with("commit"), "{log:?}");
}

/// Dropped before COMMIT, a chunk is sent again; the ones before it are not.
#[test]
fn a_flush_that_was_dropped_goes_on_with_its_chunk() {
    let server = Server::default();
    server.once("insert items 3", Answer::Silence);
    let mut work = in_chunks(5, 2);
    {
        let mut future = pin!(work.flush(Source::new(&server), TransactionScope::Transaction));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            assert!(future.as_mut().poll(&mut context).is_pending());
        }
    }
    server.lose_connection();
    server.log();
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.items().len()), (5, 5));
    assert_eq!(
        writes(&server),
        "2 insert items 3:c 4:d; 2 commit; 2 insert items 5:e; 2 commit"
    );
}

/// A row that refers to another one of its table.
struct Pair {
    id: Uuid,
    peer: Uuid,
}

impl OrderedKey for Pair {
    type Field = Uuid;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "stamps";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", "peer"];
    const PARENTS: &'static [Parent] = &[Parent::by_entity::<Uuid, Self>("peer").deferrable()];

    fn key(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id = key;
    }

    fn parents(&self, visit: &mut dyn FnMut(usize, KeyBytes)) {
        visit(0, KeyBytes::of(self.peer));
    }
}

impl<S: Sink<Uuid>> Fields<S> for Pair {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.peer);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }
}

/// Two rows refer to each other, and the database checks that at COMMIT.
#[test]
fn rows_of_a_circle_that_is_checked_at_commit_go_in_one_chunk() {
    let circle = |rows: usize| {
        let mut work = in_chunks(3, rows);
        for (id, peer) in [(7, 8), (8, 7)] {
            let [id, peer] = [id, peer].map(Uuid::from_u128);
            work.rows.rows_mut().push(Pair { id, peer });
        }
        work
    };
    let server = Server::default();
    let flushed = flush(&mut circle(4), Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 5);
    let log = server.log();
    assert_eq!(
        log[log.len() - 2..],
        ["1 insert stamps 7:8 8:7", "1 commit"]
    );
    assert_eq!(log.iter().filter(|it| it.ends_with("commit")).count(), 2);

    let server = Server::default();
    let error = flush(&mut circle(1), Source::new(&server)).unwrap_err();
    let text = error.to_string();
    assert!(error.is_plan(), "{text}");
    assert!(
        text.contains("the 2 rows of stamps refer to each other in a circle"),
        "{text}"
    );
    assert!(server.log().is_empty());
}
