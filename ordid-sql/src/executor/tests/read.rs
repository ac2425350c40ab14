//! Tests of columns that the database fills.

use std::time::Duration;

use ordid_core::{
    Assigned,
    entity::{AssignedField as _, Cell, Fields, OrderedKey, Parent, Reads, Sink},
    key::KeyBytes,
    uuid::Uuid,
};

use super::{
    library::{Answer, Binder, Server, Source},
    *,
};
use crate::OnConflict;

/// A row with two columns that the database fills.
#[derive(Clone)]
struct Stamp {
    id: Uuid,
    name: &'static str,
    number: Assigned<i64>,
    page: Assigned<i64>,
}

impl OrderedKey for Stamp {
    type Field = Uuid;
    const SCHEMA: Option<&'static str> = None;
    const TABLE: &'static str = "stamps";
    const KEY_COLUMN: &'static str = "id";
    const COLUMNS: &'static [&'static str] = &["id", "name"];
    const PARENTS: &'static [Parent] = &[];
    const RETURNING: &'static [&'static str] = &["number", "page"];

    fn key(&self) -> Option<Uuid> {
        Some(self.id)
    }

    fn assign_key(&mut self, key: Uuid) {
        self.id = key;
    }

    fn parents(&self, _: &mut dyn FnMut(usize, KeyBytes)) {}

    fn returned(&self, visit: &mut dyn FnMut(usize, &dyn Cell)) {
        visit(0, self.number.cell());
        visit(1, self.page.cell());
    }
}

impl<S: Sink<Uuid> + Sink<&'static str> + Reads<i64>> Fields<S> for Stamp {
    fn write(&self, sink: &mut S) {
        sink.put(&self.id);
        sink.put(&self.name);
    }

    fn write_key(key: Uuid, sink: &mut S) {
        sink.put(&key);
    }

    fn expect_returned(sink: &mut S) {
        sink.expect();
        sink.expect();
    }
}

fn stamp(id: u128) -> Stamp {
    Stamp {
        id: Uuid::from_u128(id),
        name: "a",
        number: Assigned::new(),
        page: Assigned::new(),
    }
}

/// Returns a unit of work that inserts stamps, and the stamps.
fn stamps<const N: usize>() -> (Work<Binder<false>>, [Stamp; N]) {
    let mut work = empty();
    let stamps = std::array::from_fn(|row| stamp(u128::try_from(row).unwrap() + 1));
    work.rows.rows_mut().extend(stamps.iter().cloned());
    (work, stamps)
}

fn numbers(stamps: &[Stamp]) -> Vec<[Option<i64>; 2]> {
    let stamps = stamps.iter();
    stamps.map(|it| [it.number.get(), it.page.get()]).collect()
}

#[test]
fn columns_that_the_database_fills_are_read_before_the_commit_and_filled_after_it() {
    let server = Server::default();
    let (mut work, stamps) = stamps::<3>();
    work.rows.rows_mut().push(item(9, "i"));
    let flushed = flush(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 9:i; 1 insert stamps 1:a 2:a; 1 insert stamps 3:a; 1 read stamps 1 2; \
         1 read stamps 3; 1 commit",
    );
    // The rows of an answer are in no particular order.
    assert_eq!(
        numbers(&stamps),
        [
            [Some(100), Some(101)],
            [Some(110), Some(111)],
            [Some(200), Some(201)]
        ]
    );
    let statements: Vec<_> = flushed.tables.iter().map(|it| it.statements).collect();
    assert_eq!(statements, [1, 4]);
}

#[test]
fn a_flush_without_such_columns_reads_nothing() {
    let server = Server::default();
    let (mut work, _) = stamps::<0>();
    work.rows.rows_mut().push(item(1, "a"));
    work.rows
        .delete(&stamp(2), Registration::in_key_order::<Stamp>);
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "1 marker"),
        "1 insert items 1:a; 1 delete stamps 2; 1 commit"
    );
}

#[test]
fn the_values_of_an_attempt_that_is_rolled_back_are_thrown_away() {
    for (call, answer) in [
        ("commit", Answer::Fails(Failure::Transient)),
        ("read", Answer::Fails(Failure::Transient)),
        ("read", Answer::Fails(Failure::Lost)),
    ] {
        let server = Server::default();
        server.once(call, answer);
        let (mut work, stamps) = stamps::<1>();
        let flushed = flush(&mut work, Source::new(&server)).unwrap();
        assert_eq!(flushed.retries, 1);
        assert_eq!(numbers(&stamps), [[Some(200), Some(201)]]);
        assert_eq!(count(&server, "probe stamps 1"), 0);
    }
}

#[test]
fn a_flush_that_fails_leaves_the_values_as_they_were() {
    for (call, answer, text) in [
        (
            "commit",
            Answer::Fails(Failure::Refused),
            "cannot commit, nothing was written",
        ),
        (
            "read",
            Answer::Fails(Failure::Refused),
            "cannot read back what the database fills in rows of stamps (row 0), nothing was written: \
             it failed",
        ),
        (
            "read",
            Answer::CannotBind,
            "nothing was written: the library returns other values than it was asked for",
        ),
        (
            "read",
            Answer::RefusesRow(7, 0),
            "nothing was written: the database answers \"7\" in place of the number of a row",
        ),
    ] {
        let server = Server::default();
        server.once(call, answer);
        let (mut work, stamps) = stamps::<1>();
        let error = flush(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
        assert!(!error.is_commit_unknown());
        assert_eq!(numbers(&stamps), [[None, None]]);
        // The next flush of the same rows fills them.
        flush(&mut work, Source::new(&server)).unwrap();
        assert!(stamps[0].number.get().is_some());
    }
}

/// The values that the lost attempt had read may differ from those that were committed, if there were other attempts
/// after it.
#[test]
fn after_a_lost_commit_that_is_found_the_rows_are_read_again() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let (mut work, stamps) = stamps::<1>();
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe stamps 1; 2 read stamps 1; 2 rollback"
    );
    assert_eq!(numbers(&stamps), [[Some(200), Some(201)]]);
}

#[test]
fn after_a_lost_commit_that_is_not_found_the_next_attempt_fills_the_values() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    let (mut work, stamps) = stamps::<1>();
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "2 insert stamps 1:a"),
        "2 read stamps 1; 2 commit"
    );
    assert_eq!(numbers(&stamps), [[Some(200), Some(201)]]);
}

/// The outcome is known when the rows are read, so an error delays it only if another try may succeed.
#[test]
fn a_probe_that_cannot_read_the_rows_again_asks_again_or_leaves_the_values() {
    for (failure, reads, expected) in [
        (Failure::Transient, 2, [Some(300), Some(301)]),
        (Failure::Refused, 1, [None, None]),
    ] {
        let server = Server::default();
        server.once("commit", Answer::FailsAfter(Failure::Lost));
        server.once("2 read", Answer::Fails(failure));
        let (mut work, stamps) = stamps::<1>();
        let flushed = flush(&mut work, Source::new(&server)).unwrap();
        assert_eq!(flushed.rows(), 1);
        assert_eq!(numbers(&stamps), [expected]);
        assert_eq!(count(&server, "2 read stamps 1"), reads);
    }
}

/// The attempts or the time end while the rows are read: that they are committed is known all the same, and nothing is sent
/// again, whatever a later probe would see.
#[test]
fn rows_that_a_probe_has_found_are_committed_if_they_cannot_be_read() {
    for (answer, deadline) in [
        (Answer::Fails(Failure::Transient), None),
        (Answer::Fails(Failure::Lost), None),
        (Answer::Silence, Some(Duration::from_millis(500))),
    ] {
        let server = Server::default();
        server.once("commit", Answer::FailsAfter(Failure::Lost));
        for connection in 2..9 {
            server.times(9, &format!("{connection} read"), answer.clone());
        }
        let (mut work, stamps) = stamps::<1>();
        if let Some(deadline) = deadline {
            work.set_deadline(deadline);
        }
        let flushed = flush(&mut work, Source::new(&server)).unwrap();
        assert_eq!((flushed.rows(), numbers(&stamps)), (1, vec![[None, None]]));
        assert!(work.rows.is_empty() && work.unresolved.is_none());
        let log = server.log();
        let count = |end| log.iter().filter(|it| it.ends_with(end)).count();
        assert_eq!((count("1:a"), count("probe stamps 1")), (1, 1), "{log:?}");
    }
}

#[test]
fn the_values_of_an_unknown_commit_come_with_the_flush_that_finds_it() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    server.once("2 probe", Answer::Fails(Failure::Refused));
    let (mut work, stamps) = stamps::<1>();
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    assert_eq!(numbers(&stamps), [[None, None]]);
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(numbers(&stamps), [[Some(200), Some(201)]]);
    assert!(work.rows.is_empty());
}

#[test]
fn a_row_that_is_not_there_any_more_keeps_its_value() {
    let server = Server::default();
    server.once("read", Answer::Changed(Changed::OfEach(vec![1])));
    let (mut work, stamps) = stamps::<2>();
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(numbers(&stamps), [[None, None], [Some(110), Some(111)]]);
}

/// The flush does not learn whether the user's transaction is committed.
#[test]
fn inside_the_users_transaction_nothing_is_read() {
    let server = Server::default();
    let (mut work, stamps) = stamps::<1>();
    flush_in(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "1 check"),
        "1 savepoint; 1 insert stamps 1:a; 1 commit"
    );
    assert_eq!(numbers(&stamps), [[None, None]]);
}

/// A test that runs in one transaction flushes in this way.
#[test]
fn a_savepoint_in_the_place_of_a_transaction_fills_the_values() {
    let server = Server::default();
    server.once("check", Answer::Savepoint);
    let (mut work, stamps) = stamps::<1>();
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(numbers(&stamps), [[Some(100), Some(101)]]);
}

#[test]
fn rows_that_are_updated_get_their_new_values() {
    let server = Server::with("stamps 1:a");
    let mut work = empty::<false>();
    let kept = stamp(1);
    let read = Stamp {
        number: Assigned::from(7),
        ..kept.clone()
    };
    let number = read.number.clone();
    work.rows.update(read, Registration::in_key_order::<Stamp>);
    work.rows
        .update_columns(stamp(2), vec![1], Registration::in_key_order::<Stamp>);
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "1 marker"),
        "1 update stamps 1:a; 1 update stamps 2:a; 1 read stamps 1; 1 read stamps 2; 1 commit"
    );
    assert_eq!(number.get(), Some(100));
}

#[test]
fn rows_that_are_upserted_are_read_by_what_they_are_found_by() {
    let server = Server::with("stamps 2:a");
    let stamps = [stamp(1), stamp(2)];
    let mut work = empty::<false>();
    for stamp in &stamps {
        work.upsert(
            stamp.clone(),
            OnConflict::key(),
            Registration::in_key_order::<Stamp>,
        );
    }
    flush(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "1 marker"),
        "1 find stamps 1 2; 1 insert stamps 1:a; 1 update stamps 2:a; 1 read stamps 1 2; 1 commit"
    );
    assert_eq!(
        numbers(&stamps),
        [[Some(100), Some(101)], [Some(110), Some(111)]]
    );
}

#[test]
fn rows_of_the_bulk_command_are_read() {
    let server = Server::default();
    let (mut work, stamps) = stamps::<3>();
    // The library sends the stamps in statements. What matters is that the bulk command ends before they are read.
    work.rows.rows_mut().push(item(9, "i"));
    flush(&mut work, Source::bulk(&server, 10)).unwrap();
    assert_eq!(
        log_after(&server, "1 piece 9:i"),
        "1 insert stamps 1:a 2:a; 1 insert stamps 3:a; 1 read stamps 1 2; 1 read stamps 3; 1 commit"
    );
    assert!(stamps.iter().all(|it| !it.number.is_empty()));
}

#[test]
fn a_flush_that_is_dropped_fills_nothing_before_its_commit_is_known() {
    for polls in 0.. {
        let server = Server::default();
        let (mut work, stamps) = stamps::<1>();
        let is_over = {
            let source = Source::new(&server);
            let mut flush = pin!(work.flush(source, TransactionScope::Transaction));
            let mut context = Context::from_waker(Waker::noop());
            (0..polls).any(|_| flush.as_mut().poll(&mut context).is_ready())
        };
        assert_eq!(is_over, !stamps[0].number.is_empty(), "after {polls} polls");
        if is_over {
            break;
        }
        flush(&mut work, Source::new(&server)).unwrap();
        assert!(!stamps[0].number.is_empty());
    }
}
