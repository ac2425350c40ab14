//! Tests of profiles that are refused, and of the rows that a replay may name.

use super::*;

#[test]
fn a_profile_with_another_way_of_binding_is_refused_before_anything_is_sent() {
    let server = Server::default();
    let mut work = inserts::<false>(1);
    work.set_engine(EngineProfile::ORACLE);
    let error = flush(&mut work, Source::new(&server)).unwrap_err();
    assert!(!error.is_commit_unknown());
    assert_eq!(
        error.to_string(),
        "cannot plan the flush, nothing was sent: the profile of Oracle that `with_engine` gave is not for this library, which binds \
         its parameters as PostgreSQL takes them"
    );
    assert!(work.plan(EngineProfile::POSTGRES).is_err());
    assert!(work.planned_rows(EngineProfile::POSTGRES).is_err());
    assert_eq!((server.log().len(), work.rows.len()), (0, 1));
}

#[test]
fn a_profile_that_allows_no_rows_sends_one_by_one() {
    let server = Server::default();
    let mut work = inserts::<false>(2);
    let mut engine = EngineProfile::POSTGRES;
    engine.max_rows = 0;
    work.set_engine(engine);
    flush(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a; 1 insert items 2:b; 1 commit",
    );
}

/// A bulk command that fails may have failed for any of its chunks. If the replay fails before them, that is another
/// failure, and its row is not the one that is sought.
#[test]
fn a_replay_names_no_row_of_a_chunk_that_had_not_failed() {
    let server = Server::default();
    server.once("109:x", Answer::RefusesARow);
    server.times(2, "insert items 5:x", Answer::RefusesARow);
    let mut source = Source::<false>::bulk(&server, 9);
    source.engine.max_rows = 1;
    let mut work = empty();
    let ids = 1..=u128::try_from(MAX_CHUNKS + 50).unwrap();
    work.rows.rows_mut().extend(ids.map(|id| item(id, "x")));
    let error = flush(&mut work, source).unwrap_err();
    assert_eq!(error.key(), None);
    assert!(log_after(&server, "1 rollback").ends_with("1 insert items 5:x; 1 rollback"));
}

#[test]
fn a_replay_is_rolled_back_also_where_the_connection_counts_as_lost() {
    let server = Server::default();
    server.once("4:d", Answer::RefusesARow);
    server.once("4:d", Answer::Fails(Failure::Lost));
    let error = flush(&mut inserts::<false>(6), Source::new(&server)).unwrap_err();
    assert_eq!(error.key(), None);
    assert_eq!(
        log_after(&server, "1 rollback"),
        "1 begin; 1 insert items 1:a 2:b; 1 insert items 3:c; 1 insert items 4:d; 1 rollback"
    );
}

/// A deadlock, or a group of MySQL, may end it then.
#[test]
fn a_users_transaction_that_ends_while_the_row_is_sought_is_over() {
    for (call, failure) in [
        ("savepoint", Failure::Transient),
        ("rollback", Failure::Refused),
    ] {
        let server = Server::default();
        server.once("2:b", Answer::RefusesARow);
        server.once(call, Answer::Succeeds);
        server.once(call, Answer::Fails(failure));
        let mut source = Source::<false>::only(&server);
        source.engine.updates = Updates::RowByRow;
        let error = flush_in(&mut inserts(2), source).unwrap_err();
        assert!(!error.is_transient() && !error.is_commit_unknown());
        assert!(error.is_transaction_over(), "{call}: {error}");
        assert_eq!(count(&server, call), 2);
    }
}

/// Each statement of the search would be committed by itself.
#[test]
fn the_row_is_not_sought_without_the_users_transaction() {
    let server = Server::default();
    server.once("1:a 2:b", Answer::RefusesARow);
    server.once("rollback", Answer::Fails(Failure::Refused));
    let error = flush_in::<false>(&mut inserts(2), Source::only(&server)).unwrap_err();
    assert!(error.is_transaction_over() && !error.is_commit_unknown());
    assert_log(
        &server,
        "1 savepoint; 1 insert items 1:a 2:b; 1 rollback; discard",
    );
}

/// A cluster may end it before the savepoint is released. PostgreSQL lets it be rolled back.
#[test]
fn a_users_transaction_that_has_ended_at_the_release_is_over() {
    for (updates, is_over) in [
        (Updates::RowByRow, true),
        (EngineProfile::POSTGRES.updates, false),
    ] {
        for failure in [Failure::Transient, Failure::Refused] {
            let server = Server::default();
            server.once("commit", Answer::Fails(failure));
            let mut source = Source::<false>::only(&server);
            source.engine.updates = updates;
            let error = flush_in(&mut inserts(2), source).unwrap_err();
            assert!(!error.is_commit_unknown(), "{error}");
            let is_over = is_over && failure == Failure::Transient;
            assert_eq!(error.is_transaction_over(), is_over, "{error}");
        }
    }
}

/// As after the flush itself: what is open there, the next statements would add to.
#[test]
fn a_connection_on_which_the_row_was_sought_is_given_up_if_it_cannot_be_rolled_back() {
    let server = Server::default();
    server.once("2:b", Answer::RefusesARow);
    server.once("rollback", Answer::Succeeds);
    server.once("rollback", Answer::Fails(Failure::Refused));
    let error = flush::<false>(&mut inserts(2), Source::only(&server)).unwrap_err();
    assert!(!error.is_transaction_over() && !error.is_commit_unknown());
    assert!(
        error.to_string().contains("could not be rolled back"),
        "{error}"
    );
    assert_eq!(server.log().last().unwrap(), "discard");
}

#[test]
fn a_users_transaction_that_ends_while_the_version_is_sought_is_over() {
    for (call, failure) in [
        ("savepoint", Failure::Transient),
        ("rollback", Failure::Refused),
    ] {
        let server = Server::default();
        server.once("update drafts", Answer::Changed(Changed::Rows(0)));
        server.once(call, Answer::Succeeds);
        server.once(call, Answer::Fails(failure));
        let mut work = empty();
        work.rows
            .update(draft(1, 7), Registration::in_key_order::<Draft>);
        let mut source = Source::<false>::only(&server);
        source.engine.updates = Updates::RowByRow;
        let error = flush_in(&mut work, source).unwrap_err();
        assert!(error.is_stale(), "{error}");
        assert!(error.is_transaction_over(), "{call}: {error}");
        assert_eq!(count(&server, call), 2);
    }
}

/// A savepoint of the user's transaction sees the row as it was when the transaction began, and so with the version
/// that was read, although the update found another one.
#[test]
fn the_version_is_not_sought_in_an_old_snapshot() {
    for (engine, scope, asks) in [
        (EngineProfile::TIDB, TransactionScope::Savepoint, false),
        (EngineProfile::VITESS, TransactionScope::Savepoint, false),
        (EngineProfile::TIDB, TransactionScope::Transaction, true),
        (EngineProfile::MYSQL, TransactionScope::Savepoint, true),
    ] {
        let server = Server::default();
        server.once("update drafts", Answer::Changed(Changed::Rows(0)));
        let mut work = empty();
        work.rows
            .update(draft(1, 7), Registration::in_key_order::<Draft>);
        let mut source = Source::<false>::only(&server);
        source.engine.updates = Updates::RowByRow;
        source.engine.words.reads_snapshots = engine.words.reads_snapshots;
        let error = finish(work.flush(source, scope)).unwrap_err();
        assert!(error.is_stale(), "{}: {error}", engine.name);
        assert_eq!(error.found_version(), asks.then_some("9"));
        assert_eq!(count(&server, "probe drafts 1:7"), usize::from(asks));
    }
}

/// The text of a time may differ from what this program makes of it. So the server compares.
#[test]
fn a_row_that_the_database_leaves_out_has_the_version_that_it_was_read_with() {
    for there in ["drafts 1:7", "drafts 1:8"] {
        let server = Server::with(there);
        server.once("update drafts", Answer::Changed(Changed::Rows(0)));
        let mut work = empty();
        work.rows
            .update(draft(1, 7), Registration::in_key_order::<Draft>);
        let mut source = Source::<false>::new(&server);
        source.engine.updates = Updates::RowByRow;
        let error = flush(&mut work, source).unwrap_err();
        let is_there = there == "drafts 1:7";
        assert_eq!(
            (error.is_missing_row(), error.is_stale()),
            (is_there, !is_there),
            "{error}"
        );
    }
}
