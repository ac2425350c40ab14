//! Recoveries of what is prepared on the scripted library's servers.

use ordid_core::{KeyType as _, uuid::Uuid};

use super::*;
use crate::{
    OrphanDecision, PreparedOrphan, Recovered, prepared_orphans, recover_prepared, two_phase::Gid,
};

pub(super) fn over(servers: [&Server; 3]) -> Result<Recovered, FlushError<io::Error>> {
    let sources = servers.into_iter().map(Source::<false>::new).collect();
    finish(recover_prepared(sources, "test", Duration::ZERO))
}

fn orphans_of(servers: [&Server; 3]) -> Result<Vec<PreparedOrphan>, FlushError<io::Error>> {
    let sources = servers.into_iter().map(Source::<false>::new).collect();
    finish(prepared_orphans(sources, "test"))
}

/// Leaves a transaction prepared on a server, as a program does that has died, and returns its id.
fn leave(servers: &Servers, shard: usize, flush: Uuid) -> String {
    let gid = Gid {
        name: "test".to_owned(),
        flush,
        decides: 0,
        shard,
    }
    .text();
    let mut state = servers[shard].state();
    state.prepared.insert(gid.clone(), Vec::new());
    gid
}

/// What is left prepared is on a server that is where it was.
#[test]
fn databases_whose_order_shows_by_the_decision_alone_are_not_recovered() {
    let servers = Servers::default();
    servers[1].times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
    let error = flush_all(&mut unit(), &servers).unwrap_err();
    assert!(error.is_prepared());
    let [first, second, third] = servers.each_ref();
    let wrong = [third, second, first];
    for error in [orphans_of(wrong).unwrap_err(), over(wrong).unwrap_err()] {
        assert!(error.is_wrong_database(), "{error}");
        assert!(
            error
                .to_string()
                .ends_with("give the databases of the flush, in its order"),
            "{error}"
        );
    }
    assert_eq!(prepared(&servers), [0, 1, 0]);
    servers[1].state().forget();
    assert_eq!(recover(&servers).unwrap().committed.len(), 1);
    assert_eq!(items(&servers), [2; 3]);
}

/// What is prepared there is left, with the error.
#[test]
fn a_database_that_is_down_keeps_nothing_from_being_ended_on_the_others() {
    let servers = Servers::default();
    for server in &servers[1..] {
        server.times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
    }
    flush_all(&mut unit(), &servers).unwrap_err();
    for server in &servers[1..] {
        server.state().forget();
    }
    assert_eq!(prepared(&servers), [0, 1, 1]);
    servers[2].once("begin", Answer::Fails(Failure::Refused));
    orphans_of(servers.each_ref()).unwrap_err();
    servers[2].once("begin", Answer::Fails(Failure::Refused));
    recover(&servers).unwrap_err();
    assert_eq!(prepared(&servers), [0, 0, 1]);
    assert_eq!(recover(&servers).unwrap().committed.len(), 1);
    assert_eq!(items(&servers), [2; 3]);
}

/// The user's transaction would be ended by what ends a prepared one.
#[test]
fn nothing_is_recovered_inside_a_transaction() {
    let servers = Servers::default();
    servers[1].times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
    flush_all(&mut unit(), &servers).unwrap_err();
    servers[1].state().forget();
    for state in [Answer::Savepoint, Answer::WrongState] {
        servers[1].once("check", state.clone());
        assert!(
            orphans_of(servers.each_ref())
                .unwrap_err()
                .is_connection_state()
        );
        servers[1].once("check", state.clone());
        assert!(recover(&servers).unwrap_err().is_connection_state());
        // Found over a connection that is in a transaction later.
        servers[1].once("check", Answer::Succeeds);
        servers[1].once("check", state);
        let error = recover(&servers).unwrap_err();
        assert!(error.is_connection_state(), "{error}");
    }
    assert_eq!(prepared(&servers), [0, 1, 0]);
    assert_eq!(recover(&servers).unwrap().committed.len(), 1);
}

/// The next flush over the same connection finds it in a transaction of its user.
#[test]
fn a_leftover_is_not_rolled_back_inside_a_transaction() {
    let server = Server::default();
    let mut work = empty();
    work.add(item(1, "a"), Registration::in_key_order::<Item>);
    work.leftovers.push("ordid:test:1:0:1".to_owned());
    let mut source = Source::<false>::only(&server);
    finish(work.end_leftovers(&mut source)).unwrap();
    for state in [Answer::Savepoint, Answer::WrongState] {
        work.leftovers.push("ordid:test:1:0:1".to_owned());
        server.log();
        server.once("check", state);
        let error = finish(work.end_leftovers(&mut source)).unwrap_err();
        assert!(error.is_connection_state(), "{error}");
        assert_eq!(server.log(), ["1 check"]);
        assert_eq!(work.leftovers.len(), 1);
        work.leftovers.clear();
    }
}

/// One that cannot be ended does not keep the others.
#[test]
fn what_can_be_recovered_is_also_if_something_else_cannot() {
    for call in ["COMMIT PREPARED", "ROLLBACK PREPARED"] {
        let servers = Servers::default();
        let commits = call == "COMMIT PREPARED";
        for server in &servers[1..] {
            server.times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
        }
        if !commits {
            servers[0].once("commit", Answer::Fails(Failure::Lost));
            servers[0].times(99, "probe marker", Answer::Fails(Failure::Refused));
        }
        flush_all(&mut unit(), &servers).unwrap_err();
        assert_eq!(prepared(&servers), [0, 1, 1]);
        servers.iter().for_each(|it| it.state().forget());
        servers[1].times(99, call, Answer::Fails(Failure::Refused));
        recover(&servers).unwrap_err();
        assert_eq!(prepared(&servers), [0, 1, 0]);
        servers[1].state().forget();
        let recovered = recover(&servers).unwrap();
        assert_eq!(
            (recovered.committed.len(), recovered.rolled_back.len()),
            if commits { (1, 0) } else { (0, 1) }
        );
        assert_eq!(items(&servers), if commits { [2; 3] } else { [0; 3] });
    }
}

/// The marker row that is not there may have been removed.
#[test]
fn an_orphan_without_a_decision_is_left_alone_after_half_a_day() {
    for (hours, is_left) in [(11, false), (13, true)] {
        let servers = Servers::default();
        let flush = keys_of(hours * HOUR).run(Uuid::generate);
        let gid = leave(&servers, 2, flush);
        let recovered = recover(&servers).unwrap();
        let decisions: Vec<_> = recovered.left.iter().map(|it| it.decision).collect();
        match is_left {
            true => assert_eq!(decisions, [OrphanDecision::Unknown]),
            false => assert_eq!(recovered.rolled_back, [gid]),
        }
        assert_eq!(prepared(&servers), [0, 0, usize::from(is_left)]);
    }
}

/// The next one that needs it gets another one.
#[test]
fn a_connection_that_is_lost_does_not_keep_the_others_from_being_recovered() {
    for call in ["probe marker", "1 marker", "1 commit"] {
        let servers = Servers::default();
        for shard in [1, 2] {
            leave(&servers, shard, Uuid::generate());
        }
        servers[0].once(call, Answer::Fails(Failure::Lost));
        assert!(recover(&servers).unwrap_err().is_connection_lost());
        assert!(servers[0].log().contains(&"discard".to_owned()), "{call}");
        assert_eq!(prepared(&servers), [0, 1, 0], "{call}");
        assert_eq!(recover(&servers).unwrap().rolled_back.len(), 1);
    }
}

/// Half a day is over between the question for the decision and the fence.
#[test]
fn an_orphan_whose_decision_is_lost_meanwhile_is_left_alone() {
    const MEANWHILE: Duration = Duration::from_millis(300);
    loop {
        let servers = Servers::default();
        let flush = keys_of(12 * HOUR - MEANWHILE).run(Uuid::generate);
        let gid = leave(&servers, 2, flush);
        servers[0].once("1 marker", Answer::TakenAfter(2 * MEANWHILE));
        let recovered = recover(&servers).unwrap();
        let left: Vec<_> = recovered
            .left
            .iter()
            .map(|it| (&it.gid, it.decision))
            .collect();
        assert_eq!(left, [(&gid, OrphanDecision::Unknown)]);
        assert_eq!(prepared(&servers), [0, 0, 1]);
        // Otherwise the first question came too late already.
        if servers[0].log().contains(&"1 marker".to_owned()) {
            return;
        }
    }
}

/// The COMMIT of a fence is not lost in a crash, either.
#[test]
fn a_recovery_waits_until_its_fence_is_on_the_disk() {
    let servers = Servers::default();
    leave(&servers, 1, Uuid::generate());
    assert_eq!(recover(&servers).unwrap().rolled_back.len(), 1);
    let log = servers[0].log().join("; ");
    assert!(
        log.contains("1 begin; 1 bound waits; 1 durable; 1 marker; 1 commit"),
        "{log}"
    );
}

/// A server that has ended the transaction of the fence says so to the statement that sets the waits of the session back.
#[test]
fn a_fence_is_not_committed_behind_waits_that_cannot_be_set_back() {
    for failure in [Failure::Transient, Failure::Lost, Failure::Refused] {
        let servers = servers_of([Way::Xa; 3]);
        leave(&servers, 1, Uuid::generate());
        servers[0].once("waits of 50", Answer::Fails(failure));
        let error = recover(&servers).unwrap_err();
        assert!(!error.is_commit_unknown(), "{error}");
        assert_eq!(prepared(&servers), [0, 1, 0]);
        let log = servers[0].log();
        assert!(log.iter().all(|it| !it.contains("commit")), "{log:?}");
        assert!(log.contains(&"discard".to_owned()), "{log:?}");
        assert_eq!(recover(&servers).unwrap().rolled_back.len(), 1);
    }
}

/// All databases of one server of MySQL list the same transactions, which flushes prepare and end meanwhile.
#[test]
fn what_is_prepared_or_ended_while_databases_are_asked_shows_no_other_order() {
    let left_at = |elsewhere: usize| {
        let servers = servers_of([Way::Xa; 3]);
        let gid = leave(&servers, 1, Uuid::generate());
        let mut state = servers[elsewhere].state();
        state.prepared.insert(gid, Vec::new());
        drop(state);
        servers
    };
    // It is prepared behind the question at its own database, and before that at the next one.
    let servers = left_at(2);
    servers[1].once("recover", Answer::Says(false));
    assert_eq!(orphans_of(servers.each_ref()).unwrap().len(), 1);
    // It is ended behind the question at another database.
    let servers = left_at(0);
    servers[1].state().prepared.clear();
    servers[0].once("recover", Answer::Succeeds);
    servers[0].once("recover", Answer::Says(false));
    assert_eq!(orphans_of(servers.each_ref()).unwrap(), []);
    // It stays where it should not be.
    let servers = left_at(0);
    servers[1].state().prepared.clear();
    let error = orphans_of(servers.each_ref()).unwrap_err();
    assert!(error.is_wrong_database(), "{error}");
}
