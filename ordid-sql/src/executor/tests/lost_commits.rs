//! Tests of commits whose answer is lost, and of marker rows.

use super::*;

#[test]
fn a_lost_commit_that_was_carried_out_is_found() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(2);
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_log(
        &server,
        "1 begin; 1 insert items 1:a 2:b; 1 commit; discard; release; pause; \
         connect after a loss; 2 check; 2 begin; 2 bound waits; 2 probe items 1; 2 rollback",
    );
    assert_eq!((flushed.rows(), flushed.retries), (2, 0));
    assert!(work.rows.is_empty() && work.unresolved.is_none());
}

#[test]
fn a_lost_commit_that_is_not_found_is_sent_again() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    let flushed = flush::<false>(&mut inserts(2), Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "2 probe items 1"),
        "2 is the key unique; 2 rollback; 2 begin; 2 bound waits; 2 insert items 1:a 2:b; 2 commit"
    );
    assert_eq!((flushed.rows(), flushed.retries), (2, 1));
    assert_eq!(server.items(), ["1:a", "2:b"]);
}

/// The probe finds nothing at first, as the server has not read the COMMIT yet. Then the keys are taken.
#[test]
fn a_commit_that_comes_late_is_found_by_the_second_probe() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    server.once("2 rollback", Answer::Meanwhile("items 1:a"));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 1);
    assert_eq!(server.items(), ["1:a"]);
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe items 1; 2 is the key unique; 2 rollback; 2 begin; 2 bound waits; 2 insert items 1:a; 2 rollback; \
         2 begin; 2 bound waits; 2 probe items 1; 2 rollback"
    );
}

/// Room for rows is no change of a unit of work, unless it is the first that is said of a type.
#[test]
fn room_that_is_made_meanwhile_does_not_hinder_the_search() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(1);
    flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    work.reserve::<Item>(10, Registration::in_key_order::<Item>);
    let flushed = flush::<false>(&mut work, Source::only(&server)).unwrap();
    assert_eq!(flushed.rows(), 1);
    assert_eq!(server.items(), ["1:a"]);

    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(2);
    flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    work.reserve::<Part>(10, Registration::in_key_order::<Part>);
    let error = flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    assert!(error.is_plan() && error.is_commit_unknown(), "{error}");
}

/// The keys of a table that is partitioned by time are not unique by themselves.
#[test]
fn rows_whose_keys_are_not_unique_are_not_sent_again() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    server.once("unique", Answer::Says(false));
    let mut work = inserts(1);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe items 1; 2 is the key unique; 2 rollback; release; pause; 2 begin; 2 bound waits; 2 probe items 1; \
         2 rollback"
    );
    // The row came late, and is found.
    server.once("probe", Answer::Meanwhile("items 1:a"));
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.items().len()), (1, 1));
}

#[test]
fn a_marker_row_makes_rows_unique_whose_keys_are_not() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    let mut work = inserts(1);
    work.set_markers(Markers::All);
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(count(&server, "unique"), 0);
    assert_eq!(server.items(), ["1:a"]);
}

/// On other servers than MySQL's, nobody is asked.
#[test]
fn a_cluster_with_local_locks_leaves_the_outcome_unknown_if_rows_are_refused() {
    for (is_cluster, is_unknown) in [(true, true), (false, false)] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        server.once("local", Answer::Says(is_cluster));
        server.once("2 update items", Answer::Fails(Failure::Refused));
        let mut source = Source::<false>::new(&server);
        source.engine.local_locks = EngineProfile::MYSQL.local_locks;
        let error = flush(&mut updates(1), source).unwrap_err();
        assert_eq!(error.is_commit_unknown(), is_unknown, "{error}");
        assert_eq!(count(&server, "local"), 1);
    }
}

/// The older transaction could make the flush wait for hours.
#[test]
fn a_wait_that_cannot_be_bounded_rolls_the_attempt_back() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    // That of the probe goes well.
    server.once("bound waits", Answer::Succeeds);
    server.once("bound waits", Answer::Fails(Failure::Transient));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), flushed.retries), (1, 2));
    assert_eq!(
        log_after(&server, "2 is the key unique"),
        "2 rollback; 2 begin; 2 bound waits; 2 rollback; release; pause; 2 begin; 2 bound waits; 2 probe items 1; 2 rollback; \
         2 begin; 2 bound waits; 2 insert items 1:a; 2 commit"
    );
}

/// Somebody who waits to alter the table makes everybody wait, a reader too.
#[test]
fn a_probe_whose_wait_cannot_be_bounded_asks_nothing() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    server.once("bound waits", Answer::Fails(Failure::Transient));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 1);
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 rollback; release; pause; 2 begin; 2 bound waits; 2 probe items 1; 2 rollback"
    );
}

/// MySQL and MariaDB bound the waits of a session, not of a transaction.
#[test]
fn a_session_whose_waits_are_bounded_gets_its_own_values_back() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    let mut source = Source::new(&server);
    source.engine.bounds_waits = LockWaits::InnodbLockWaitTimeout;
    flush::<false>(&mut inserts(2), source).unwrap();
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 how long are waits; 2 waits of 10 10; 2 probe items 1; 2 is the key unique; 2 waits of 50 86400; \
         2 rollback; 2 begin; 2 how long are waits; 2 waits of 10 10; 2 insert items 1:a 2:b; 2 waits of 50 86400; 2 commit"
    );
    // Also after a failure, unless the connection is lost.
    for failure in [Failure::Transient, Failure::Lost] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        server.once("2 insert", Answer::Fails(failure));
        let mut source = Source::new(&server);
        source.engine.bounds_waits = LockWaits::InnodbLockWaitTimeout;
        flush::<false>(&mut inserts(2), source).unwrap();
        let log = log_after(&server, "2 insert items 1:a 2:b");
        assert_eq!(
            log.starts_with("2 waits of 50 86400; 2 rollback"),
            failure == Failure::Transient,
            "{log}"
        );
        assert!(
            log.ends_with("waits of 50 86400; 3 commit")
                || log.ends_with("waits of 50 86400; 2 commit"),
            "{log}"
        );
    }
}

/// A node of Galera or of a group may have ended the transaction, and says so to the next statement. A COMMIT behind that
/// succeeds and commits nothing.
#[test]
fn no_commit_follows_a_session_that_does_not_get_its_own_values_back() {
    for failure in [Failure::Transient, Failure::Lost, Failure::Refused] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        server.once("waits of 50", Answer::Succeeds);
        server.once("waits of 50", Answer::Fails(failure));
        let mut source = Source::new(&server);
        source.engine.bounds_waits = LockWaits::InnodbLockWaitTimeout;
        let mut work = inserts(2);
        let flushed = flush::<false>(&mut work, source);
        let log = log_after(&server, "2 insert items 1:a 2:b");
        let end = match failure {
            Failure::Lost => "2 waits of 50 86400; 2 drop; discard; ",
            _ => "2 waits of 50 86400; 2 waits of 50 86400; 2 rollback; discard; ",
        };
        assert!(log.starts_with(end), "{log}");
        match failure {
            Failure::Refused => {
                // The first COMMIT is still unresolved.
                assert!(flushed.unwrap_err().is_commit_unknown());
                assert!(
                    server.items().is_empty() && !log.contains("commit"),
                    "{log}"
                );
            }
            _ => {
                assert_eq!(flushed.unwrap().rows(), 2);
                assert_eq!(server.items().len(), 2);
                assert_eq!(log.matches("commit").count(), 1, "{log}");
            }
        }
    }
}

#[test]
fn a_session_that_waits_for_less_keeps_its_values() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    server.times(9, "how long are waits", Answer::Says(false));
    let mut source = Source::new(&server);
    source.engine.bounds_waits = LockWaits::InnodbLockWaitTimeout;
    flush::<false>(&mut inserts(2), source).unwrap();
    let log = server.log();
    assert_eq!(log.iter().filter(|it| it.contains("how long")).count(), 2);
    assert!(log.iter().all(|it| !it.contains("waits of")), "{log:?}");
}

#[test]
fn a_question_that_fails_is_asked_again_before_rows_are_sent_again() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    server.once("unique", Answer::Fails(Failure::Transient));
    let flushed = flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
    assert_eq!(flushed.rows(), 1);
    assert_eq!(count(&server, "unique"), 2);
}

#[test]
fn a_flush_with_updates_is_probed_by_its_marker_row() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let flushed = flush::<false>(&mut updates(2), Source::new(&server)).unwrap();
    let log = server.log();
    assert_eq!(log[2..5], ["1 begin", "1 marker", "1 update items 1:a 2:b"]);
    assert_eq!(log[log.len() - 2..], ["2 probe marker", "2 rollback"]);
    assert_eq!(flushed.updated(), 2);
}

#[test]
fn a_flush_of_inserts_writes_a_marker_row_on_request() {
    let server = Server::default();
    server.once("commit", Answer::Fails(Failure::Lost));
    let mut work = inserts(1);
    work.set_markers(Markers::All);
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    let log = server.log();
    assert_eq!(log[2..4], ["1 begin", "1 marker"]);
    let probes: Vec<_> = log.iter().filter(|it| it.contains("probe")).collect();
    assert_eq!(probes, ["2 probe marker"]);
    assert_eq!(server.items(), ["1:a"]);
}

/// Nobody else has the key of the marker row. So a server that refused the COMMIT was wrong, as may be in a cluster.
#[test]
fn a_marker_row_that_is_there_shows_a_commit_that_was_refused() {
    for is_found in [true, false] {
        let server = Server::default();
        server
            .once("commit", Answer::FailsAfter(Failure::Transient))
            .once("2 marker", Answer::Fails(Failure::Duplicate))
            .once("1 marker", Answer::Succeeds)
            .once("1 marker", Answer::Fails(Failure::Duplicate));
        if !is_found {
            server.once("probe marker", Answer::Fails(Failure::Refused));
        }
        let mut work = inserts(1);
        work.set_markers(Markers::All);
        let outcome = flush::<false>(&mut work, Source::new(&server));
        assert_eq!(server.items(), ["1:a"]);
        match is_found {
            true => assert_eq!(outcome.unwrap().rows(), 1),
            false => {
                assert!(outcome.unwrap_err().is_commit_unknown());
                let flushed = flush::<false>(&mut work, Source::new(&server));
                assert_eq!(flushed.unwrap().rows(), 1);
            }
        }
    }
}

/// After a day the marker row may have been removed. Then a missing one says nothing.
#[test]
fn changes_whose_marker_row_may_have_been_removed_are_not_sent_again() {
    for of_today in [true, false] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        let mut work = updates(1);
        flush::<false>(&mut work, Source::only(&server)).unwrap_err();
        if !of_today {
            work.unresolved.as_mut().unwrap().made_long_ago();
        }
        let outcome = flush::<false>(&mut work, Source::new(&server));
        let log = log_after(&server, "2 check");
        if of_today {
            assert_eq!(outcome.unwrap().updated(), 1);
            assert!(
                log.ends_with("2 marker; 2 update items 1:a; 2 commit"),
                "{log}"
            );
            continue;
        }
        assert!(
            !log.contains("update") && log.contains("2 probe marker"),
            "{log}"
        );
        let error = outcome.unwrap_err();
        let text = error.to_string();
        assert!(
            error.is_commit_unknown() && text.contains("may have been removed"),
            "{text}"
        );
        // Nothing is sent until the program says what became of it.
        let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        work.clear();
        work.update(item(2, "b"), Registration::in_key_order::<Item>);
        flush::<false>(&mut work, Source::new(&server)).unwrap();
    }
}

/// Somebody else may have written them with the same keys: that is why the program asked for a marker row.
#[test]
fn rows_do_not_stand_for_the_marker_row_that_a_program_asked_for() {
    for asked_for in [true, false] {
        let server = Server::default();
        server.once("commit", Answer::Fails(Failure::Lost));
        let mut work = inserts(1);
        let markers = if asked_for {
            Markers::All
        } else {
            Markers::Changes
        };
        work.set_markers(markers);
        flush::<false>(&mut work, Source::only(&server)).unwrap_err();
        flush::<false>(&mut inserts(1), Source::new(&server)).unwrap();
        work.unresolved.as_mut().unwrap().made_long_ago();
        let outcome = flush::<false>(&mut work, Source::new(&server));
        match asked_for {
            true => assert!(outcome.unwrap_err().is_commit_unknown()),
            false => assert_eq!(outcome.unwrap().rows(), 1),
        }
    }
}

/// What the next flush may do is what the first one has left to look for, whatever is asked of it now.
#[test]
fn a_flush_without_a_marker_row_is_not_sent_again_after_a_lost_commit() {
    for markers in [Markers::None, Markers::Changes, Markers::All] {
        let server = Server::default();
        server.once("commit", Answer::FailsAfter(Failure::Lost));
        let mut work = updates(1);
        work.set_markers(Markers::None);
        let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.is_commit_unknown() && error.retries() == 0);
        assert_log(&server, "1 begin; 1 update items 1:a; 1 commit; discard");
        work.set_markers(markers);
        let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        assert!(
            error.to_string().contains(
                "a flush `without_record` cannot find out: look for its changes in the database, then \
                 `clear` the unit of work"
            ),
            "{error}"
        );
        assert_eq!(log_after(&server, "2 check"), "");
        work.clear();
        work.update(item(2, "b"), Registration::in_key_order::<Item>);
        flush::<false>(&mut work, Source::new(&server)).unwrap();
    }
}

#[test]
fn a_marker_row_is_looked_for_although_none_is_written_any_more() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = updates(1);
    flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    work.set_markers(Markers::None);
    let flushed = flush::<false>(&mut work, Source::only(&server)).unwrap();
    assert_eq!(flushed.updated(), 1);
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe marker; 2 rollback"
    );
}

#[test]
fn inserts_and_failures_before_commit_need_no_marker_row() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(1);
    work.set_markers(Markers::None);
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe items 1; 2 rollback"
    );
    let server = Server::default();
    server.once("update items", Answer::Fails(Failure::Lost));
    let mut work = updates(1);
    work.set_markers(Markers::None);
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.updated(), flushed.retries), (1, 1));
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 update items 1:a; 2 commit"
    );
}

#[test]
fn the_next_flush_probes_a_commit_that_was_lost_on_the_only_connection() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(1);
    let error = flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    assert_log(&server, "1 begin; 1 insert items 1:a; 1 commit; discard");
    assert!(error.is_commit_unknown());
    let flushed = flush::<false>(&mut work, Source::only(&server)).unwrap();
    assert_eq!(
        log_after(&server, "2 check"),
        "2 begin; 2 bound waits; 2 probe items 1; 2 rollback"
    );
    assert_eq!(flushed.rows(), 1);
}

/// The probe for one row would speak for the others.
#[test]
fn rows_added_after_an_unknown_commit_are_refused_until_the_unit_of_work_is_cleared() {
    let unknown = |server: &Server| {
        server.once("commit", Answer::FailsAfter(Failure::Lost));
        let mut work = inserts(1);
        let error = flush::<false>(&mut work, Source::only(server)).unwrap_err();
        assert!(error.is_commit_unknown());
        work
    };
    let changes: [fn(&mut Work<_>); 3] = [
        |work| {
            let register = Registration::in_key_order::<Item>;
            work.try_add(item(2, "b"), register).unwrap();
        },
        |work| work.update(item(2, "b"), Registration::in_key_order::<Item>),
        |work| work.delete(&item(2, "b"), Registration::in_key_order::<Item>),
    ];
    for change in changes {
        let server = Server::default();
        let mut work = unknown(&server);
        server.log();
        change(&mut work);
        let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
        assert!(error.is_plan() && error.is_commit_unknown(), "{error}");
        assert!(error.to_string().contains("`clear`"), "{error}");
        assert_eq!((server.log().len(), work.rows.len()), (0, 2));
        work.clear();
        change(&mut work);
        let _ = flush::<false>(&mut work, Source::new(&server)).unwrap();
    }
}

/// A journal brings rows back without a change.
#[test]
fn a_cleared_unit_of_work_forgets_that_it_had_changed() {
    let server = Server::default();
    server.times(2, "commit", Answer::FailsAfter(Failure::Lost));
    let mut work = inserts(1);
    flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    work.update(item(2, "b"), Registration::in_key_order::<Item>);
    work.clear();
    work.rows.rows_mut().push(item(3, "c"));
    let error = flush::<false>(&mut work, Source::only(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    let flushed = flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!((flushed.rows(), server.items().len()), (1, 2));
}

/// "Nothing was sent", which is true of the new connection, would be a lie about the flush by itself.
#[test]
fn a_commit_stays_unknown_if_the_next_connection_is_in_a_wrong_state() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    server.times(9, "2 check", Answer::WrongState);
    let mut work = inserts(1);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    assert_eq!(server.log().last().unwrap(), "2 check");
    assert!(work.unresolved.is_some() && work.rows.len() == 1);

    server.once("3 check", Answer::WrongState);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown() && error.is_connection_state());
    let text = error.to_string();
    assert!(
        text.contains("what became of an earlier COMMIT is still unknown"),
        "{text}"
    );
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(server.items().len(), 1);
}

/// It could ask nobody before it sends the rows a second time.
#[test]
fn rows_that_may_be_committed_do_not_go_into_the_users_transaction() {
    let server = Server::default();
    server.once("commit", Answer::FailsAfter(Failure::Lost));
    server.times(9, "2 check", Answer::WrongState);
    let mut work = inserts(1);
    let error = flush::<false>(&mut work, Source::new(&server)).unwrap_err();
    assert!(error.is_commit_unknown(), "{error}");
    server.log();
    let error = flush_in::<false>(&mut work, Source::only(&server)).unwrap_err();
    assert!(
        error.is_plan() && error.to_string().contains("`flush`"),
        "{error}"
    );
    assert!(server.log().is_empty() && work.rows.len() == 1);
    flush::<false>(&mut work, Source::new(&server)).unwrap();
    assert_eq!(server.items().len(), 1);
}
