//! The prepared transactions of the scripted library, and two-phase commits over three of its servers.

use std::{collections::BTreeSet, time::Duration};

use ordid_core::{
    clock::{Clock as _, SystemClock},
    testing::Keys,
};

use super::{
    library::{Connection, Open, driver},
    *,
};
use crate::{EngineProfile, Failure, Sharded, Sharding, WrapsWork, spi::StatementFailure};

mod recovered;
mod xa;

type Executed = Result<Changed, StatementFailure<io::Error>>;

/// Returns the id in a statement.
fn gid_of(sql: &str) -> String {
    sql.split('\'').nth(1).expect("an id in quotes").to_owned()
}

/// How a server prepares transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Way {
    /// As PostgreSQL.
    #[default]
    PrepareTransaction,
    /// As MySQL: what is prepared is no longer the connection's.
    Xa,
    /// As MariaDB: it stays the connection's, until the server has noticed that it is closed.
    BoundXa,
}

impl Way {
    pub(super) fn engine(self) -> EngineProfile {
        match self {
            Self::PrepareTransaction => EngineProfile::POSTGRES,
            Self::Xa | Self::BoundXa => EngineProfile::MYSQL,
        }
    }
}

/// What stands in the script for a statement.
fn what(sql: &str) -> Option<&str> {
    Some(match sql {
        "BEGIN" | "ROLLBACK" => sql,
        _ if sql.starts_with("PREPARE TRANSACTION") || sql.starts_with("XA PREPARE") => "PREPARE",
        _ if sql.starts_with("COMMIT PREPARED") || sql.starts_with("XA COMMIT") => {
            "COMMIT PREPARED"
        }
        _ if sql.starts_with("ROLLBACK PREPARED") => "ROLLBACK PREPARED",
        _ if sql.starts_with("XA ROLLBACK") => "ROLLBACK PREPARED",
        _ if sql.starts_with("XA END") => "END",
        _ => return None,
    })
}

impl<const RUNS: bool> Open<'_, RUNS> {
    /// Carries out a statement that deals with prepared transactions, or ends and begins a transaction by itself; `None`
    /// of any other.
    pub(super) async fn prepared(&mut self, sql: &str) -> Option<Executed> {
        let what = what(sql)?;
        let server = self.connection.server.clone();
        let answer = server.take(format!("{} {what}", self.connection.number));
        let is_done = !matches!(answer, Some(Answer::Fails(_)));
        // It is carried out before anyone can hear of it.
        let is_allowed = !is_done || self.carry_out(what, sql);
        server.answered(&answer).await;
        Some(match answer {
            Some(Answer::Fails(failure) | Answer::FailsAfter(failure)) => {
                Err(driver(failure).into())
            }
            _ if !is_allowed => Err(driver(Failure::Refused).into()),
            _ => Ok(Changed::Rows(0)),
        })
    }

    /// Returns whether the state of the connection allows it, and there is such a prepared transaction, if it is to be ended.
    fn carry_out(&mut self, what: &str, sql: &str) -> bool {
        let mut state = self.connection.server.state();
        match what {
            "BEGIN" | "ROLLBACK" => self.connection.xa.is_none(),
            "END" => self.connection.xa.is_some(),
            "PREPARE" => {
                let staged = std::mem::take(&mut self.staged);
                let gid = gid_of(sql);
                match state.way {
                    Way::PrepareTransaction => {}
                    Way::Xa => self.connection.xa = None,
                    Way::BoundXa => {
                        state.bind(&gid);
                        self.connection.xa = Some((gid.clone(), true));
                    }
                }
                state.prepared.insert(gid, staged);
                true
            }
            _ => {
                let gid = gid_of(sql);
                match &self.connection.xa {
                    Some((own, false)) if *own == gid => {
                        assert_eq!(what, "ROLLBACK PREPARED");
                        self.staged.clear();
                        self.connection.xa = None;
                        return true;
                    }
                    Some((own, true)) if *own == gid => self.connection.xa = None,
                    Some(_) => return false,
                    None if !state.may_end(&gid) => return false,
                    None => {}
                }
                match state.prepared.remove(&gid) {
                    Some(rows) if what == "COMMIT PREPARED" => state.commit(rows),
                    Some(_) => {}
                    None => return false,
                }
                true
            }
        }
    }

    /// Answers how many transactions can be prepared, or which ones are.
    pub(super) async fn about_prepared(
        &mut self,
        sql: &str,
    ) -> Result<Vec<String>, crate::DriverError<io::Error>> {
        if sql.contains("max_prepared_transactions") || sql.contains("/*M!100502") {
            let most = match self.connection.call("how many").await {
                Some(Answer::Fails(failure)) => return Err(driver(failure)),
                Some(Answer::Says(false)) => "0",
                _ => "64",
            };
            return Ok(vec![most.to_owned()]);
        }
        let is_one = sql.contains("WHERE gid =");
        if is_one || sql == "XA RECOVER" {
            let line = if is_one { "is it prepared" } else { "recover" };
            match self.connection.call(line).await {
                Some(Answer::Fails(failure)) => return Err(driver(failure)),
                Some(Answer::Says(false)) => return Ok(Vec::new()),
                _ => {}
            }
        }
        let state = self.connection.server.state();
        let gids = state.prepared.keys();
        let gids = gids.filter(|gid| !is_one || **gid == gid_of(sql));
        Ok(gids.cloned().collect())
    }
}

impl<const RUNS: bool> Connection<RUNS> {
    /// Begins a transaction of XA, if this statement does.
    pub(super) fn begin_xa(
        &mut self,
        statement: Option<&str>,
    ) -> Result<(), FlushError<io::Error>> {
        let Some(statement) = statement.filter(|it| it.starts_with("XA START")) else {
            return Ok(());
        };
        let gid = gid_of(statement);
        if self.server.state().prepared.contains_key(&gid) {
            return Err(FlushError::begin(driver(Failure::Transient)));
        }
        self.xa = Some((gid, false));
        Ok(())
    }

    /// A connection inside a transaction of XA is never lent again.
    pub(super) fn is_free(&self) {
        assert_eq!(self.xa, None, "on connection {}", self.number);
    }
}

/// The server rolls back what is not prepared, and gives what is to the next that asks for it twice.
impl<const RUNS: bool> Drop for Connection<RUNS> {
    fn drop(&mut self) {
        if let Some((gid, true)) = &self.xa {
            self.server.state().unbind(gid);
        }
    }
}

/// A unit of work of the scripted library.
struct Unit(Work<Binder<false>>);

impl Default for Unit {
    fn default() -> Self {
        Self(empty())
    }
}

impl WrapsWork for Unit {
    type Binder = Binder<false>;

    fn work(&self) -> &Work<Self::Binder> {
        &self.0
    }

    fn work_mut(&mut self) -> &mut Work<Self::Binder> {
        &mut self.0
    }
}

type Servers = [Server; 3];

/// Returns servers that prepare in these ways.
fn servers_of(ways: [Way; 3]) -> Servers {
    ways.map(|way| {
        let server = Server::default();
        server.state().way = way;
        server
    })
}

/// Ways of three servers.
const WAYS: [[Way; 3]; 4] = [
    [Way::PrepareTransaction; 3],
    [Way::Xa; 3],
    [Way::BoundXa; 3],
    [Way::Xa, Way::PrepareTransaction, Way::BoundXa],
];

fn engines(servers: &Servers) -> Vec<EngineProfile> {
    servers.iter().map(|it| it.state().way.engine()).collect()
}

/// Returns a unit of work with two items for each of three servers, at one attempt for each.
fn unit() -> Sharded<Unit> {
    let sharding = Sharding::by_hash(3).unwrap();
    let mut unit = Sharded::<Unit>::new(sharding.clone());
    unit.set_two_phase("test");
    let mut counts = [0; 3];
    for id in 1.. {
        let shard = sharding.shard_of(&item(id, "a")).unwrap();
        if counts[shard] < 2 {
            counts[shard] += 1;
            unit.try_add(item(id, "a"), Registration::in_key_order::<Item>)
                .unwrap();
        }
        if counts == [2; 3] {
            return unit;
        }
    }
    unreachable!()
}

fn flush_all(
    unit: &mut Sharded<Unit>,
    servers: &Servers,
) -> Result<Vec<Flushed>, FlushError<io::Error>> {
    finish(unit.flush_each(engines(servers), |unit, shard| {
        let source = Source::new(&servers[shard]);
        Box::pin(unit.0.flush(source, TransactionScope::Transaction))
    }))
}

fn recover(servers: &Servers) -> Result<crate::Recovered, FlushError<io::Error>> {
    recovered::over(servers.each_ref())
}

/// Returns how many transactions are prepared on each server.
fn prepared(servers: &Servers) -> [usize; 3] {
    servers
        .each_ref()
        .map(|server| server.state().prepared.len())
}

/// Returns the number of items of each server.
fn items(servers: &Servers) -> [usize; 3] {
    servers.each_ref().map(|server| server.items().len())
}

#[test]
fn the_shard_that_decides_begins_when_the_others_are_prepared() {
    let servers = Servers::default();
    let flushed = flush_all(&mut unit(), &servers).unwrap();
    assert_eq!(
        flushed.iter().map(Flushed::rows).collect::<Vec<_>>(),
        [2; 3]
    );
    let log = |server: &Server| {
        let log = server.log()[2..].join("; ");
        let (before, rows) = log.split_once("insert items").unwrap();
        let (_, behind) = rows.split_once("; ").unwrap();
        format!("{before}..; {behind}")
    };
    assert_eq!(
        log(&servers[0]),
        "1 begin; 1 bound waits; 1 durable; 1 marker; 1 marker; 1 ..; 1 commit"
    );
    for server in &servers[1..] {
        assert_eq!(
            log(server),
            "1 begin; 1 bound waits; 1 how many; 1 marker; 1 ..; 1 PREPARE; 1 BEGIN; 1 commit; release; 1 check; 1 begin; \
             1 ROLLBACK; 1 COMMIT PREPARED; 1 BEGIN; 1 rollback"
        );
    }
}

/// Where calls block, all parts are done within one poll.
#[test]
fn parts_whose_calls_block_wait_for_each_other() {
    let servers = Servers::default();
    servers.iter().for_each(Server::block);
    let mut unit = unit();
    let flush = unit.flush_each(engines(&servers), |unit, shard| {
        let source = Source::new(&servers[shard]);
        Box::pin(unit.0.flush(source, TransactionScope::Transaction))
    });
    let flushed: Vec<Flushed> = crate::spi::blocking(flush).unwrap();
    assert_eq!((flushed.len(), items(&servers)), (3, [2; 3]));
}

#[test]
fn a_server_that_prepares_nothing_is_refused_before_rows_are_sent() {
    let servers = Servers::default();
    servers[2].once("how many", Answer::Says(false));
    let error = flush_all(&mut unit(), &servers).unwrap_err();
    let outcome = &error.shards().unwrap()[2];
    assert!(outcome.as_ref().unwrap_err().is_wrong_database());
    assert!(
        error
            .to_string()
            .contains("its `max_prepared_transactions` is 0, nothing was sent: set it")
    );
    assert!(servers[2].log().iter().all(|it| !it.contains("insert")));
    assert_eq!(items(&servers), [0; 3]);
    assert_eq!(recover(&servers).unwrap(), crate::Recovered::default());
}

/// MariaDB before 10.5.2 would end what it has prepared with the connection, and the shard that decides would commit alone.
#[test]
fn a_server_that_keeps_nothing_prepared_is_refused_before_rows_are_sent() {
    let servers = servers_of([Way::BoundXa; 3]);
    servers[1].once("how many", Answer::Says(false));
    let error = flush_all(&mut unit(), &servers).unwrap_err();
    let outcome = &error.shards().unwrap()[1];
    assert!(outcome.as_ref().unwrap_err().is_wrong_database());
    assert!(error.to_string().contains("take MariaDB 10.5.2"), "{error}");
    assert!(servers[1].log().iter().all(|it| !it.contains("insert")));
    assert_eq!((items(&servers), prepared(&servers)), ([0; 3], [0; 3]));
}

/// The marker row of a shard stands before that of its fence. A recovery needs the fence.
#[test]
fn a_marker_row_that_is_left_out_ends_the_flush_and_the_recovery() {
    for kept in [0, 1] {
        let servers = Servers::default();
        servers[0].times(kept, "marker", Answer::Succeeds);
        servers[0].once("marker", Answer::Changed(Changed::Rows(0)));
        let error = flush_all(&mut unit(), &servers).unwrap_err();
        assert!(
            error.to_string().contains("left the row out"),
            "{kept}: {error}"
        );
        assert_eq!((items(&servers), prepared(&servers)), ([0; 3], [0; 3]));
    }
    let servers = Servers::default();
    servers[0].times(9, "commit", Answer::Fails(Failure::Lost));
    servers[0].times(99, "probe marker", Answer::Fails(Failure::Lost));
    flush_all(&mut unit(), &servers).unwrap_err();
    let before = prepared(&servers);
    servers[0].state().forget();
    servers[0].times(99, "marker", Answer::Changed(Changed::Rows(0)));
    let error = recover(&servers).unwrap_err();
    assert!(error.to_string().contains("left the row out"), "{error}");
    assert_eq!(prepared(&servers), before);
}

/// Each question of a probe sees what is committed then. A COMMIT that lands between two of them shows its own fence to the
/// later one.
#[test]
fn a_commit_that_lands_between_two_questions_is_no_recovery() {
    for before in 0..3 {
        let servers = Servers::default();
        servers[0].once("commit", Answer::Held);
        servers[0].times(before, "probe marker", Answer::Succeeds);
        servers[0].once("probe marker", Answer::Lands);
        let flushed = flush_all(&mut unit(), &servers).unwrap();
        assert_eq!(flushed.len(), 3, "{before}");
        assert_eq!(items(&servers), [2; 3], "{before}");
    }
}

/// A router may send each query there. What is not found is then no sign that it is not committed.
#[test]
fn a_standby_that_is_behind_does_not_decide() {
    let ways = [Way::PrepareTransaction, Way::Xa, Way::BoundXa];
    for servers in ways.map(|way| servers_of([way; 3])) {
        // The shard that decides has a fence of its own COMMIT.
        servers[0].once("commit", Answer::FailsAfter(Failure::Lost));
        servers[0].once("probe marker", Answer::Succeeds);
        servers[0].times(9, "probe marker", Answer::Says(false));
        // On another one, nothing is prepared any more when it is asked.
        servers[1].once("COMMIT PREPARED", Answer::FailsAfter(Failure::Lost));
        servers[1].times(9, "probe marker", Answer::Says(false));
        // And one is ended by a recovery.
        servers[2].times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
        let error = flush_all(&mut unit(), &servers).unwrap_err();
        let outcomes = error.shards().unwrap();
        assert!(outcomes[0].is_ok() && outcomes[1].is_ok(), "{error}");
        assert!(outcomes[2].as_ref().unwrap_err().is_prepared(), "{error}");
        servers[2].state().forget();
        assert_eq!(recover(&servers).unwrap().committed.len(), 1);
        assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Returns keys that are made as if it were so long ago.
fn keys_of(ago: Duration) -> Keys {
    let keys = Keys::new(1);
    let now = SystemClock.now().as_unix_millis();
    let millis = now - u64::try_from(ago.as_millis()).unwrap();
    keys.clock().set_unix_millis(millis);
    keys
}

/// Its marker rows could be removed before a recovery finds them.
#[test]
fn a_flush_that_began_half_a_day_ago_does_not_decide() {
    let servers = Servers::default();
    let mut unit = unit();
    let error = keys_of(13 * HOUR).run(|| flush_all(&mut unit, &servers).unwrap_err());
    let words = "nothing was written on any of 3 shards; shard 0: the flush began more than half a day ago, which is too \
                 long for a two-phase commit, nothing was written";
    assert!(error.to_string().starts_with(words), "{error}");
    assert!(!error.is_commit_unknown() && error.is_transient());
    assert_eq!((items(&servers), prepared(&servers)), ([0; 3], [0; 3]));
    keys_of(11 * HOUR).run(|| flush_all(&mut unit, &servers).unwrap());
    assert_eq!(items(&servers), [2; 3]);
}

/// Marker rows grow old together with their fences, and are removed some at a time.
#[test]
fn a_fence_without_a_decision_that_may_have_been_removed_shows_nothing() {
    const LEFT: Duration = Duration::from_secs(2);
    let servers = Servers::default();
    servers[0].once("commit", Answer::FailsAfter(Failure::Lost));
    servers[0].times(99, "probe marker", Answer::Fails(Failure::Lost));
    let mut unit = unit();
    let error = keys_of(12 * HOUR - LEFT).run(|| flush_all(&mut unit, &servers).unwrap_err());
    assert!(error.is_commit_unknown(), "{error}");
    let mut state = servers[0].state();
    state.forget();
    let markers = state
        .committed
        .iter()
        .filter(|it| it.starts_with("ordid_flushes"));
    let [decision, _fence] = markers.cloned().collect::<Vec<_>>().try_into().unwrap();
    state.committed.remove(&decision);
    drop(state);
    std::thread::sleep(LEFT);
    // One of its rows does.
    flush_all(&mut unit, &servers).unwrap();
    assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
}

/// Somebody has rolled back what one shard had prepared, after the decision. The others are finished all the same, and
/// then its rows are flushed alone.
#[test]
fn a_flush_goes_on_where_one_prepared_transaction_has_vanished() {
    let servers = Servers::default();
    for server in &servers[1..] {
        server.times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
    }
    let mut unit = unit();
    assert!(flush_all(&mut unit, &servers).unwrap_err().is_prepared());
    servers[1].state().forget();
    servers[1].state().prepared.clear();

    let error = flush_all(&mut unit, &servers).unwrap_err();
    let words = "the flush is committed, but not yet on 2 of 3 shards; shard 1: the flush is committed on other shards, and \
                 somebody has rolled back ordid:test:";
    assert!(error.to_string().starts_with(words), "{error}");
    assert!(error.is_commit_unknown() && error.is_prepared());
    let [_, vanished, unfinished] = error.shards().unwrap() else {
        panic!("{error}")
    };
    let [vanished, unfinished] = [vanished, unfinished].map(|it| it.as_ref().unwrap_err());
    assert!(vanished.is_commit_unknown() && !vanished.is_prepared());
    assert!(
        !vanished.to_string().contains("nothing was written"),
        "{vanished}"
    );
    assert!(unfinished.is_prepared());

    servers[2].state().forget();
    let error = flush_all(&mut unit, &servers).unwrap_err();
    assert!(error.is_commit_unknown() && !error.is_prepared(), "{error}");
    assert_eq!(items(&servers), [2, 0, 2]);
    flush_all(&mut unit, &servers).unwrap();
    assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
    assert!(unit.is_empty());
}

/// A recovery has committed it, and its marker row was removed a day later. It is not told from one that was rolled back.
#[test]
fn a_part_whose_marker_row_may_have_been_removed_is_not_written_again() {
    const MEANWHILE: Duration = Duration::from_millis(300);
    loop {
        let servers = Servers::default();
        servers[1].times(99, "COMMIT PREPARED", Answer::Fails(Failure::Lost));
        let mut unit = unit();
        let flushed = keys_of(12 * HOUR - MEANWHILE).run(|| flush_all(&mut unit, &servers));
        if !flushed.unwrap_err().is_prepared() {
            // It began too late.
            continue;
        }
        servers[1].state().forget();
        let (_, mut rows) = servers[1].state().prepared.pop_first().unwrap();
        rows.retain(|it| it.starts_with("items"));
        servers[1].state().commit(rows);
        std::thread::sleep(2 * MEANWHILE);
        for _ in 0..2 {
            let error = flush_all(&mut unit, &servers).unwrap_err();
            assert!(error.is_commit_unknown(), "{error}");
            let of_part = error.shards().unwrap()[1].as_ref().unwrap_err().to_string();
            assert!(
                of_part.contains("is so old that it may have been removed"),
                "{of_part}"
            );
        }
        let inserts = servers[1]
            .log()
            .iter()
            .filter(|it| it.contains("insert"))
            .count();
        assert_eq!((items(&servers), inserts), ([2; 3], 1));
        return;
    }
}

/// Nothing was asked of any shard, and one of them may have the rows.
#[test]
fn a_plan_that_fails_while_a_shard_is_in_doubt_leaves_it_so() {
    for two_phase in [false, true] {
        let servers = Servers::default();
        servers[0].times(9, "commit", Answer::FailsAfter(Failure::Lost));
        servers[0].times(9, "probe", Answer::Fails(Failure::Lost));
        let mut unit = match two_phase {
            true => unit(),
            false => Sharded::<Unit>::new(Sharding::by_hash(3).unwrap()),
        };
        if !two_phase {
            for id in 1..9 {
                let register = Registration::in_key_order::<Item>;
                unit.try_add(item(id, "a"), register).unwrap();
            }
        }
        flush_all(&mut unit, &servers).unwrap_err();
        let sharding = Sharding::by_hash(3).unwrap();
        let of_first = |id: &u128| sharding.shard_of(&item(*id, "a")).unwrap() == 0;
        let id = (1..).find(of_first).unwrap();
        unit.try_add(item(id, "twice"), Registration::in_key_order::<Item>)
            .unwrap();
        let error = flush_all(&mut unit, &servers).unwrap_err();
        assert!(
            error.is_plan() && error.is_commit_unknown(),
            "{two_phase}: {error}"
        );
        assert!(error.to_string().contains("is still unknown"), "{error}");
    }
}

/// An adapter that makes no connection does not begin the part of its shard.
#[test]
fn a_part_that_does_not_begin_ends_the_others() {
    for blocks in [false, true] {
        for failing in 0..3 {
            let servers = Servers::default();
            if blocks {
                servers.iter().for_each(Server::block);
            }
            let mut unit = unit();
            let flush = unit.flush_each(engines(&servers), |unit, shard| {
                if shard == failing {
                    let error = FlushError::connect("there is no such database");
                    return Box::pin(std::future::ready(Err(error)));
                }
                let source = Source::new(&servers[shard]);
                Box::pin(unit.0.flush(source, TransactionScope::Transaction))
            });
            let error = ended(flush).unwrap_err();
            assert!(error.to_string().contains("no such database"), "{error}");
            // Its earlier COMMIT might have been carried out, if it is the one that decides.
            assert_eq!(error.is_commit_unknown(), failing == 0, "{error}");
            assert_eq!(items(&servers), [0; 3]);
            flush_all(&mut unit, &servers).unwrap();
            assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
        }
    }
}

/// The COMMIT that decides may have been carried out, so that what is prepared must not be rolled back.
#[test]
fn a_part_that_is_prepared_and_does_not_begin_again_leaves_the_decision_open() {
    for is_committed in [false, true] {
        let servers = Servers::default();
        servers[0].once(
            "commit",
            match is_committed {
                true => Answer::FailsAfter(Failure::Lost),
                false => Answer::Fails(Failure::Lost),
            },
        );
        servers[0].times(99, "probe", Answer::Fails(Failure::Refused));
        let mut unit = unit();
        assert!(
            flush_all(&mut unit, &servers)
                .unwrap_err()
                .is_commit_unknown()
        );
        servers[0].state().forget();
        let flush = unit.flush_each(engines(&servers), |unit, shard| {
            if shard == 1 {
                return Box::pin(std::future::ready(Err(FlushError::connect("no database"))));
            }
            let source = Source::new(&servers[shard]);
            Box::pin(unit.0.flush(source, TransactionScope::Transaction))
        });
        let error = ended(flush).unwrap_err();
        assert!(error.is_commit_unknown(), "{error}");
        let outcomes = error.shards().unwrap().iter();
        for outcome in outcomes {
            assert!(outcome.as_ref().unwrap_err().is_commit_unknown());
        }
        assert_eq!(prepared(&servers), [0, 1, 1]);
        flush_all(&mut unit, &servers).unwrap();
        assert_eq!((items(&servers), prepared(&servers)), ([2; 3], [0; 3]));
    }
}

/// Polls a future to its end. It may be one that nobody wakes any more.
fn ended<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
    panic!("it waits for ever");
}

/// In a test's transaction there is only a savepoint.
#[test]
fn a_savepoint_cannot_be_prepared() {
    let servers = Servers::default();
    servers[1].once("check", Answer::Savepoint);
    let error = flush_all(&mut unit(), &servers).unwrap_err();
    assert!(
        error.shards().unwrap()[1]
            .as_ref()
            .unwrap_err()
            .is_connection_state()
    );
    assert_eq!(items(&servers), [0; 3]);
}

/// One shard alone is committed as usual. If its COMMIT is unknown, it does not go together with others.
#[test]
fn an_unknown_commit_of_one_shard_is_resolved_before_others_join_it() {
    let servers = Servers::default();
    let mut alone = Sharded::<Unit>::new(Sharding::by_hash(3).unwrap());
    alone.set_two_phase("test");
    let register = Registration::in_key_order::<Item>;
    let ids = || (1..).map(|id| item(id, "a"));
    let of = |shard: usize| {
        let sharding = Sharding::by_hash(3).unwrap();
        ids()
            .find(|it| sharding.shard_of(it).unwrap() == shard)
            .unwrap()
    };
    alone.try_add(of(1), register).unwrap();
    servers[1].once("commit", Answer::FailsAfter(Failure::Lost));
    servers[1].times(9, "probe", Answer::Fails(Failure::Lost));
    let error = flush_all(&mut alone, &servers).unwrap_err();
    assert!(
        error.shards().unwrap()[1]
            .as_ref()
            .unwrap_err()
            .is_commit_unknown()
    );
    alone.try_add(of(2), register).unwrap();
    let error = flush_all(&mut alone, &servers).unwrap_err();
    assert!(error.is_plan(), "{error}");
    assert_eq!(items(&servers), [0, 1, 0]);
}

/// Dropped at any poll, a flush leaves rows that the next flush writes once.
#[test]
fn a_flush_that_is_dropped_at_any_poll_is_resumed() {
    WAYS.into_iter().for_each(is_dropped_and_resumed);
}

fn is_dropped_and_resumed(ways: [Way; 3]) {
    for polls in 0.. {
        let servers = servers_of(ways);
        let mut unit = unit();
        let is_over = {
            let flush = unit.flush_each(engines(&servers), |unit, shard| {
                let source = Source::new(&servers[shard]);
                Box::pin(unit.0.flush(source, TransactionScope::Transaction))
            });
            let mut flush = pin!(flush);
            let mut context = Context::from_waker(Waker::noop());
            (0..polls).any(|_| flush.as_mut().poll(&mut context).is_ready())
        };
        servers.iter().for_each(Server::lose_connection);
        if polls % 2 == 0 {
            let _ = recover(&servers);
        }
        let mut outcome = flush_all(&mut unit, &servers);
        // A recovery has kept it from being committed.
        if outcome.is_err() {
            assert_eq!(items(&servers), [0; 3], "{polls}");
            outcome = flush_all(&mut unit, &servers);
        }
        outcome.unwrap();
        assert_eq!(items(&servers), [2; 3], "{polls}");
        assert!(
            servers.iter().all(|it| it.state().prepared.is_empty()),
            "{polls}"
        );
        assert_eq!(unit.len(), 0);
        if is_over {
            assert!(polls > 20);
            return;
        }
    }
}

/// Random failures of any call on any server, and recoveries by others between two flushes. Whatever a flush says is so,
/// and stays so once what is prepared was recovered.
#[test]
fn ten_thousand_random_worlds_are_written_everywhere_or_nowhere() {
    const CALLS: [&str; 14] = [
        "begin",
        "bound",
        "durable",
        "how many",
        "marker",
        "insert items",
        "PREPARE",
        "COMMIT PREPARED",
        "ROLLBACK",
        "commit",
        "is it prepared",
        "probe marker",
        "END",
        "recover",
    ];
    let mut seen = BTreeSet::new();
    for seed in 0..10_000 {
        let mut random = Random(seed);
        let servers = servers_of(WAYS[random.below(WAYS.len())]);
        for _ in 0..1 + random.below(4) {
            let server = &servers[random.below(3)];
            let failure = [
                Failure::Lost,
                Failure::Lost,
                Failure::Transient,
                Failure::Refused,
            ][random.below(4)];
            let call = CALLS[random.below(CALLS.len())];
            let may_be_done = matches!(call, "PREPARE" | "COMMIT PREPARED" | "commit");
            let answer = match may_be_done && failure == Failure::Lost && random.below(2) == 0 {
                true => Answer::FailsAfter(failure),
                false => Answer::Fails(failure),
            };
            server.times(1 + random.below(5), call, answer);
        }
        let mut unit = unit();
        for flush in 0..25 {
            let outcome = flush_all(&mut unit, &servers);
            let before = items(&servers);
            match &outcome {
                Ok(_) => assert_eq!(before, [2; 3], "{seed}"),
                Err(error) if error.is_prepared() => assert_eq!(before[0], 2, "{seed}"),
                Err(error) if error.is_commit_unknown() => {}
                Err(error) => assert_eq!(before, [0; 3], "{seed}: {error}"),
            }
            let is_recovered = random.below(2) == 0 || outcome.is_ok();
            if is_recovered && recover(&servers).is_ok() {
                let after = items(&servers);
                assert!([[0; 3], [2; 3]].contains(&after), "{seed}: {after:?}");
                let is_prepared = |it: &Server| !it.state().prepared.is_empty();
                assert!(!servers.iter().any(is_prepared), "{seed}");
                match &outcome {
                    Err(error) if error.is_prepared() => assert_eq!(after, [2; 3], "{seed}"),
                    Err(error) if error.is_commit_unknown() => {}
                    Err(error) => assert_eq!(after, [0; 3], "{seed}: {error}"),
                    Ok(_) => assert_eq!(after, [2; 3], "{seed}"),
                }
            }
            seen.insert(match &outcome {
                Ok(_) => "written",
                Err(error) if error.is_prepared() => "prepared",
                Err(error) if error.is_commit_unknown() => "unknown",
                Err(_) => "nothing",
            });
            if outcome.is_ok() {
                break;
            }
            assert!(flush < 24, "{seed}: {}", outcome.unwrap_err());
        }
    }
    let all = ["nothing", "prepared", "unknown", "written"];
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
}

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end as u64).unwrap()
    }
}
