//! Transactions of XA on the scripted library's servers.

use super::*;
use crate::Retry;

/// Returns what was asked of a server, without what every flush asks.
fn asked(server: &Server) -> String {
    server.log()[2..].join("; ")
}

#[test]
fn a_participant_begins_and_prepares_by_statements_of_xa() {
    for (way, behind) in [
        (
            Way::Xa,
            "1 commit; release; 1 check; 1 begin; 1 ROLLBACK; 1 COMMIT PREPARED",
        ),
        // The connection is not used again. The server has not noticed at once that it is closed.
        (
            Way::BoundXa,
            "discard; release; connect; 2 check; 2 begin; 2 ROLLBACK; 2 COMMIT PREPARED; 2 BEGIN; 2 recover; 2 rollback; \
             release; pause; 2 check; 2 begin; 2 ROLLBACK; 2 COMMIT PREPARED",
        ),
    ] {
        let servers = servers_of([way; 3]);
        flush_all(&mut unit(), &servers).unwrap();
        let decides = asked(&servers[0]);
        assert!(
            !decides.contains("recover") && decides.ends_with("1 commit"),
            "{decides}"
        );
        for server in &servers[1..] {
            let asked = asked(server);
            let (before, rest) = asked.split_once("1 insert items").unwrap();
            assert_eq!(
                before,
                "1 begin; 1 how long are waits; 1 waits of 10 10; 1 how many; 1 recover; 1 marker; "
            );
            assert!(
                rest.contains("; 1 waits of 50 86400; 1 END; 1 PREPARE; 1 BEGIN; "),
                "{rest}"
            );
            assert!(rest.contains(behind), "{rest}");
        }
        assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
    }
}

/// `ROLLBACK` does not end a transaction of XA. What cannot be rolled back costs the connection.
#[test]
fn a_transaction_of_xa_is_rolled_back_by_its_id_or_its_connection_closed() {
    for is_rolled_back in [true, false] {
        let servers = servers_of([Way::Xa; 3]);
        servers[1].once("insert items", Answer::Fails(Failure::Refused));
        if !is_rolled_back {
            servers[1].once("ROLLBACK PREPARED", Answer::Fails(Failure::Refused));
        }
        let error = flush_all(&mut unit(), &servers).unwrap_err();
        assert!(!error.is_commit_unknown(), "{error}");
        let asked = asked(&servers[1]);
        let end = match is_rolled_back {
            true => "1 END; 1 ROLLBACK PREPARED; 1 rollback",
            false => "1 END; 1 ROLLBACK PREPARED; 1 drop; discard",
        };
        assert!(asked.contains(end), "{asked}");
        assert_eq!((items(&servers), prepared(&servers)), ([0; 3], [0; 3]));
    }
}

/// A server that has ended the transaction says so to the statement that sets the waits of the session back.
#[test]
fn nothing_is_committed_or_prepared_behind_waits_that_cannot_be_set_back() {
    for way in [Way::Xa, Way::BoundXa] {
        for shard in 0..3 {
            for failure in [Failure::Transient, Failure::Lost, Failure::Refused] {
                let servers = servers_of([way; 3]);
                servers[shard].once("waits of 50", Answer::Fails(failure));
                match flush_all(&mut unit(), &servers) {
                    Ok(flushed) => {
                        assert_ne!(failure, Failure::Refused);
                        assert_eq!(flushed[shard].retries, 1);
                        assert_eq!(items(&servers), [2; 3]);
                    }
                    Err(error) => {
                        assert_eq!(failure, Failure::Refused, "{error}");
                        assert!(!error.is_commit_unknown(), "{error}");
                        assert_eq!(items(&servers), [0; 3]);
                        let outcome = &error.shards().unwrap()[shard];
                        let text = outcome.as_ref().unwrap_err().to_string();
                        let step = ["commit", "prepare"][usize::from(shard > 0)];
                        assert!(text.starts_with(&format!("cannot {step}")), "{text}");
                    }
                }
                assert_eq!(prepared(&servers), [0; 3]);
            }
        }
    }
}

/// Another session has locked the marker row, as a `DELETE` that looks at all of them does. The fence is in the same
/// transaction.
#[test]
fn a_marker_row_that_is_locked_is_not_passed_over_behind_its_fence() {
    let servers = servers_of([Way::Xa; 3]);
    servers[0].once("commit", Answer::FailsAfter(Failure::Lost));
    servers[0].once("probe marker", Answer::Succeeds);
    servers[0].once("probe marker", Answer::Locked);
    let flushed = flush_all(&mut unit(), &servers).unwrap();
    assert_eq!((flushed.len(), items(&servers)), (3, [2; 3]));
}

/// MySQL has ended it at a deadlock, and says so at `XA END`.
#[test]
fn what_cannot_be_prepared_is_rolled_back_and_tried_again() {
    for call in ["1 END", "1 PREPARE"] {
        let servers = servers_of([Way::BoundXa; 3]);
        servers[2].once(call, Answer::Fails(Failure::Transient));
        let flushed = flush_all(&mut unit(), &servers).unwrap();
        assert_eq!(flushed[2].retries, 1, "{call}");
        assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
    }
}

/// The first question after it fails.
#[test]
fn a_prepare_whose_answer_was_lost_is_found_by_a_later_question() {
    let servers = servers_of([Way::Xa; 3]);
    servers[1].once("PREPARE", Answer::FailsAfter(Failure::Lost));
    servers[1].once("1 recover", Answer::Succeeds);
    servers[1].once("2 recover", Answer::Fails(Failure::Transient));
    flush_all(&mut unit(), &servers).unwrap();
    assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
}

/// The connection that holds it is the flush's own, so it is waited for even without retries.
#[test]
fn a_closed_connection_that_still_holds_what_is_prepared_is_no_failure() {
    let servers = servers_of([Way::BoundXa; 3]);
    let mut unit = unit();
    unit.each(|work| work.set_retry(Retry::NONE));
    flush_all(&mut unit, &servers).unwrap();
    assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
}

#[test]
fn a_server_that_lists_nothing_for_this_user_is_refused_before_rows_are_sent() {
    let servers = servers_of([Way::Xa; 3]);
    servers[2].once("recover", Answer::Fails(Failure::Refused));
    let error = flush_all(&mut unit(), &servers).unwrap_err();
    let words = "cannot list prepared transactions, nothing was written (on MySQL the user needs the privilege \
                 XA_RECOVER_ADMIN, on `*.*`): it failed";
    assert!(error.to_string().contains(words), "{error}");
    assert!(servers[2].log().iter().all(|it| !it.contains("insert")));
    assert_eq!(items(&servers), [0; 3]);
}

/// A library that writes BEGIN itself cannot begin one of XA.
#[test]
fn a_library_that_begins_transactions_itself_is_refused() {
    let error = crate::two_phase::check_engine::<Binder<true>>(&EngineProfile::MYSQL, 1);
    assert_eq!(
        error.unwrap_err().to_string(),
        "shard 1 is MySQL, whose transactions are prepared by XA, and this library begins its transactions itself, so that \
         `XA START` cannot be sent: leave `two_phase_commit` out, or use SQLx (`ordid-sqlx`), mysql_async \
         (`ordid-mysql-async`) or, on MariaDB, Diesel (`ordid-diesel`) for these databases"
    );
    let error = crate::two_phase::check_engine::<Binder<false>>(&EngineProfile::GALERA, 0);
    assert_eq!(
        error.unwrap_err().to_string(),
        "shard 0 is Galera, which has no two-phase commit here: leave `two_phase_commit` out, or use PostgreSQL, MySQL or \
         MariaDB (see https://github.com/ordid/ordid/blob/main/docs/src/engines/galera.md)"
    );
    crate::two_phase::check_engine::<Binder<false>>(&EngineProfile::MYSQL, 0).unwrap();
    crate::two_phase::check_engine::<Binder<true>>(&EngineProfile::POSTGRES, 0).unwrap();
}
