//! Nodes leased from a table: what is asked, what is committed, and what becomes of failures.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ordid::coordination::{CoordinationFailure, Grant, LeaseTerms, NodeAllocator};
use ordid_oracle::{Connect, SqlLease};

use super::*;

const NOW: u64 = 1_800_000_000_000;
const CLOCK: &str = "(EXTRACT(DAY FROM (SYS_EXTRACT_UTC(SYSTIMESTAMP) - \
                     TIMESTAMP '1970-01-01 00:00:00')) * 86400000 + \
                     TO_NUMBER(TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'SSSSSFF3')))";
const FREE: &str = r#"SELECT node, epoch, ceiling, NOW FROM "ordid_nodes" WHERE node >= :1 AND node < :2 AND expires <= NOW ORDER BY ceiling, node FETCH FIRST 32 ROWS ONLY"#;
const TAKE: &str = r#"UPDATE "ordid_nodes" SET epoch = epoch + 1, ceiling = :1, expires = NOW + :2 WHERE node = :3 AND epoch = :4 AND ceiling = :5 AND expires <= NOW"#;
const COUNT: &str = r#"SELECT COUNT(*), COALESCE(MIN(expires), 0) - NOW FROM "ordid_nodes" WHERE node >= :1 AND node < :2"#;
const READ: &str = r#"SELECT epoch, ceiling, NOW FROM "ordid_nodes" WHERE node = :1"#;
const RENEW: &str = r#"UPDATE "ordid_nodes" SET ceiling = :1, expires = NOW + :2 WHERE node = :3 AND epoch = :4 AND ceiling = :5"#;
const RELEASE: &str = r#"UPDATE "ordid_nodes" SET ceiling = :1, expires = 0 WHERE node = :2 AND epoch = :3 AND ceiling = :4"#;
const WRITE_BACK: &str = r#"UPDATE "ordid_nodes" SET epoch = CASE WHEN epoch < :1 THEN :2 ELSE epoch END, ceiling = CASE WHEN ceiling < :3 THEN :4 ELSE ceiling END WHERE node = :5"#;
/// What follows a change in the same call, and a query in one of its own.
const COMMITTED: &str = "COMMIT OF IT";
const OVER: &str = "ROLLBACK";
/// What begins a connection.
const TIMEOUT: &str = "TIMEOUT 5000";
/// A row as it is while node 3 is held under grant 7, and that it can be changed.
const HELD: &str = "rows 7,1800000003000,1800000000100 SELECT epoch\nchanged 1 UPDATE\n";

fn at(millis: u64) -> Timestamp {
    Timestamp::from_unix_millis(NOW + millis).expect("a time")
}

fn grant() -> Grant {
    Grant::new(3, 7, at(0), at(3_000)).expect("a grant")
}

fn failure<T: std::fmt::Debug>(result: Result<T, ordid::Error>) -> CoordinationFailure {
    let error = result.expect_err("it cannot have succeeded");
    error.coordination_failure().expect("of coordination")
}

/// A table of four nodes, and how often it was connected to.
struct Table {
    log: Arc<Log>,
    leases: SqlLease,
    connected: Arc<AtomicUsize>,
}

impl Table {
    fn new(script: &str) -> Self {
        Self::beginning(script, |_| ())
    }

    /// Each of whose connections begins so.
    fn beginning(script: &str, begin: impl Fn(&Connection) + Send + Sync + 'static) -> Self {
        let log = Arc::new(Log::new());
        log.script(script);
        let connected = Arc::new(AtomicUsize::new(0));
        let (of, count) = (Arc::clone(&log), Arc::clone(&connected));
        let connect = move || {
            count.fetch_add(1, Ordering::Relaxed);
            let path = of.path.to_str().expect("UTF-8");
            let connection = ordid_oracle::connect("scott", "tiger", path)?;
            begin(&connection);
            Ok::<_, Error>(connection)
        };
        let terms = LeaseTerms::new(0..4).expect("terms");
        Self {
            log,
            leases: SqlLease::new(Connect::new(connect), terms),
            connected,
        }
    }

    /// What was sent since the last call, the clock's words as `NOW`.
    fn sent(&self) -> Vec<String> {
        let sent = self.log.statements();
        std::fs::write(&self.log.path, "").expect("written");
        sent.iter().map(|line| line.replace(CLOCK, "NOW")).collect()
    }

    /// The parameters since the last call of `sent`.
    fn values(&self) -> Vec<Vec<i128>> {
        let rows = self.log.rows().into_iter();
        rows.map(|row| row.iter().map(|value| number(value)).collect())
            .collect()
    }

    /// Has a connection that is idle, and an empty log.
    fn warm(self) -> Self {
        self.leases.renew(&grant(), at(0)).expect("renewed");
        assert_eq!(self.connected(), 1);
        self.sent();
        self
    }

    fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }
}

#[test]
fn the_table_is_made_by_one_block() {
    let table = Table::new("");
    table.leases.create().expect("made");
    let block = table.leases.create_sql().expect("few nodes");
    assert!(block.contains("PRAGMA EXCEPTION_INIT(is_there, -955)"));
    let expected = format!("{TIMEOUT}\n{block}");
    assert_eq!(table.log.lines().join("\n"), expected);
}

#[test]
fn each_change_is_committed_by_the_call_that_makes_it() {
    // In the one free row is a ceiling ahead of the clock.
    let table = Table::new(
        "rows 3,6,1800000000400,1800000000100 SELECT node\nchanged 1 UPDATE\n\
         rows 7,1800000003400,1800000000100 SELECT epoch",
    );
    let leases = &table.leases;
    let grant = leases.acquire(at(0), None).expect("a node");
    assert_eq!(Ok(grant), Grant::new(3, 7, at(400), at(3_400)));
    let now = i128::from(NOW);
    assert_eq!(
        table.values(),
        [vec![0, 4], vec![now + 3_400, 10_000, 3, 6, now + 400]]
    );
    assert_eq!(table.sent(), [TIMEOUT, FREE, OVER, TAKE, COMMITTED]);

    let renewed = leases.renew(&grant, at(1_000)).expect("renewed");
    assert_eq!(Ok(renewed), Grant::new(3, 7, at(400), at(4_000)));
    assert_eq!(
        table.values(),
        [vec![3], vec![now + 4_000, 10_000, 3, 7, now + 3_400]]
    );
    assert_eq!(table.sent(), [READ, OVER, RENEW, COMMITTED]);

    leases.release(&grant, Some(at(500))).expect("given back");
    assert_eq!(
        table.values(),
        [vec![3], vec![now + 501, 3, 7, now + 3_400]]
    );
    assert_eq!(table.sent(), [READ, OVER, RELEASE, COMMITTED]);
    assert_eq!(table.connected(), 1);
}

#[test]
fn a_change_of_no_row_is_none() {
    let table = Table::new("rows 7,1800000003000,1800000000100 SELECT epoch\n");
    let renewed = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    let released = table.leases.release(&grant(), None);
    assert_eq!(failure(released), CoordinationFailure::Fenced);

    // Another was faster each time.
    table.log.script("rows 3,0,0,1800000000100 SELECT node\n");
    let acquired = table.leases.acquire(at(0), None);
    assert_eq!(failure(acquired), CoordinationFailure::NoFreeNode);
}

#[test]
fn all_held_and_rows_that_are_gone_are_told_apart() {
    let table = Table::new("rows - SELECT node\nrows 4,70 SELECT COUNT\n");
    let error = table.leases.acquire(at(0), None).expect_err("none is free");
    assert_eq!(
        error.to_string(),
        "no node is free: table ordid_nodes of Oracle has 4 nodes, and all are held; the first may be free \
         in 70 ms"
    );
    assert_eq!(table.sent(), [TIMEOUT, FREE, OVER, COUNT, OVER]);
    // The first line that fits is taken.
    table.log.script("rows 3,70 SELECT COUNT\nrows - SELECT\n");
    let acquired = table.leases.acquire(at(0), None);
    assert_eq!(failure(acquired), CoordinationFailure::StateLost);
    let renewed = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::StateLost);
}

#[test]
fn a_ceiling_that_went_back_is_written_back() {
    // The change finds no row as it was granted, so the row is as old as it was read.
    let table = Table::new(
        "rows 6,1800000000000,1800000000100 SELECT epoch\nchanged 0 UPDATE \"ordid_nodes\" SET ceiling\n\
         changed 1 UPDATE\n",
    );
    let renewed = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    let now = i128::from(NOW);
    let renewal = vec![now + 3_000, 10_000, 3, 7, now + 3_000];
    let back = vec![7, 7, now + 3_000, now + 3_000, 3];
    assert_eq!(table.values(), [vec![3], renewal, back]);
    assert_eq!(
        table.sent(),
        [TIMEOUT, READ, OVER, RENEW, COMMITTED, WRITE_BACK, COMMITTED]
    );
}

/// Such as that of a standby, to which queries are sent.
#[test]
fn a_row_that_was_only_read_too_early_is_renewed() {
    let table = Table::new("rows 6,1800000000000,1800000000100 SELECT epoch\nchanged 1 UPDATE\n");
    let renewed = table.leases.renew(&grant(), at(1_000)).expect("renewed");
    assert_eq!(Ok(renewed), Grant::new(3, 7, at(0), at(4_000)));
    assert_eq!(table.sent(), [TIMEOUT, READ, OVER, RENEW, COMMITTED]);
}

/// A table that is not there is no reason to try again.
#[test]
fn what_the_database_refuses_has_a_kind() {
    for (code, kind) in [
        (942, CoordinationFailure::StateLost),
        (1031, CoordinationFailure::Unavailable),
    ] {
        let table = Table::new(HELD).warm();
        table.log.script(&format!("statement {code} SELECT\n"));
        let error = table.leases.renew(&grant(), at(0)).expect_err("refused");
        assert_eq!(error.coordination_failure(), Some(kind), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("Oracle: OCI Error: ORA-{code:05}: ")),
            "{text}"
        );
        assert_eq!(table.sent(), [READ]);
    }
    let table = Table::new("attach 12541\n");
    let renewed = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
    assert_eq!(table.connected(), 1, "whoever asks asks again");
}

#[test]
fn what_lost_to_another_transaction_is_sent_again_over_the_same_connection() {
    for code in [60, 8177] {
        let table = Table::new(HELD).warm();
        table.log.script(&format!("{HELD}execute {code} 2\n"));
        table.leases.renew(&grant(), at(0)).expect("renewed");
        let again = [RENEW, OVER, RENEW, OVER, RENEW, COMMITTED];
        assert_eq!(table.sent(), [&[READ, OVER][..], &again].concat());
        assert_eq!(table.connected(), 1);
    }
}

/// Only what may be carried out twice, and only where the connection may have been closed while it was idle.
#[test]
fn a_lost_connection_is_replaced_for_what_may_be_sent_again() {
    // A query on a connection that is idle.
    let table = Table::new(HELD).warm();
    table.log.script(&format!("{HELD}statement 3113 SELECT\n"));
    let read = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(read), CoordinationFailure::Unavailable);
    // Over another one, which is lost, too: that is no accident of age.
    assert_eq!(table.sent(), [READ, TIMEOUT, READ]);
    assert_eq!(table.connected(), 2);
    table.log.script(HELD);
    table.leases.renew(&grant(), at(0)).expect("renewed");
    assert_eq!(table.sent(), [TIMEOUT, READ, OVER, RENEW, COMMITTED]);

    // A change: it was made or not.
    let table = Table::new(HELD).warm();
    table.log.script(&format!("{HELD}execute 3113\n"));
    let renewed = table.leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
    assert_eq!(table.sent(), [READ, OVER, RENEW]);
    assert_eq!(table.connected(), 1);
}

/// Whoever has not heard it does not know that it is time of theirs, so that nobody uses it.
#[test]
fn a_commit_that_is_not_heard_of_grants_nothing() {
    let table = Table::new("rows 3,0,0,1800000000100 SELECT node\nchanged 1 UPDATE\ncommit 3113\n");
    let acquired = table.leases.acquire(at(0), None);
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
    assert_eq!(table.sent(), [TIMEOUT, FREE, OVER, TAKE, COMMITTED]);
}

/// ODPI-C makes DPI-1067 of what the database says where a call has a time.
#[test]
fn a_call_that_takes_too_long_is_unavailable_and_its_connection_gone() {
    let table = Table::new(HELD);
    let leases = table.leases.with_timeout(Duration::from_millis(250));
    leases.renew(&grant(), at(0)).expect("renewed");
    table.log.script(&format!("{HELD}execute 3156\n"));
    let error = leases.renew(&grant(), at(0)).expect_err("late");
    let text = error.to_string();
    assert!(
        text.contains("DPI-1067: call timeout of 250 ms exceeded"),
        "{text}"
    );
    let unavailable = Some(CoordinationFailure::Unavailable);
    assert_eq!(error.coordination_failure(), unavailable);
    table.log.script(HELD);
    leases.renew(&grant(), at(0)).expect("renewed");
    let timeouts = table.log.statements();
    let timeouts = timeouts.iter().filter(|line| *line == "TIMEOUT 250");
    assert_eq!(timeouts.count(), 2, "the second connection's, too");

    let none = leases.with_timeout(Duration::ZERO);
    table.log.script("attach 12541\n");
    let error = none.create().expect_err("no time at all");
    assert_eq!(error.coordination_failure(), unavailable, "{error}");
    table.log.script("");
    let error = none.create().expect_err("no time at all");
    let mismatch = Some(CoordinationFailure::Mismatch);
    assert_eq!(error.coordination_failure(), mismatch, "{error}");
}

#[test]
fn an_open_transaction_is_not_committed() {
    let table = Table::beginning(HELD, |connection| {
        connection
            .execute("DELETE FROM shop", &[])
            .expect("deleted");
    });
    let error = table.leases.renew(&grant(), at(0)).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "not what was asked for: Oracle: a transaction is open on the new connection, which the first grant \
         would commit: connect without one"
    );
    assert_eq!(table.sent(), ["DELETE FROM shop", OVER]);
}

/// A session that is lost is not given back to be lent again, also where the client library holds it for alive.
#[test]
fn a_pool_gets_back_what_is_not_lost() {
    let log = Log::new();
    log.script(HELD);
    let path = log.path.to_str().expect("UTF-8");
    let pool = oracle::pool::PoolBuilder::new("scott", "tiger", path).build();
    let pool = pool.expect("a pool");
    let terms = LeaseTerms::new(0..4).expect("terms");
    let leases = SqlLease::new(Connect::new(move || pool.get()), terms);
    leases.renew(&grant(), at(0)).expect("renewed");
    log.script(&format!("{HELD}execute 25408\n"));
    let renewed = leases.renew(&grant(), at(0));
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
    log.script(HELD);
    leases.renew(&grant(), at(0)).expect("renewed");
    drop(leases);
    let sent = log.statements();
    let ends = sent
        .iter()
        .filter(|line| line.contains("GET") || line.contains("RELEASE"));
    assert_eq!(
        ends.collect::<Vec<_>>(),
        ["GET", "RELEASE AND DROP", "GET", "RELEASE"]
    );
}

/// The keeper's thread takes it, as any allocator that is asked synchronously.
#[test]
fn a_thread_keeps_a_lease() {
    use ordid::{
        clock::Clock as _,
        generator::{AtCeiling, Generator as _, LeaseKeeper},
    };

    let now = SystemClock.now().as_unix_millis();
    let table = Table::new(&format!("rows 3,0,0,{now} SELECT node\nchanged 1 UPDATE\n"));
    let leases = table.leases;
    let keeper = LeaseKeeper::<ordid::scheme::Snowflake, _, _>::acquire_sync(
        &leases,
        SystemClock,
        ThreadEntropy,
        Policy::DEFAULT,
        AtCeiling::Error,
    );
    let keeper = keeper.expect("a node");
    let grant = keeper.generator().grant();
    let ceiling = grant.ceiling().as_unix_millis();
    table.log.script(&format!(
        "rows 1,{ceiling},{now} SELECT epoch\nchanged 1 UPDATE\n"
    ));
    let kept = keeper.start(leases).expect("a thread");
    kept.generator().try_generate().expect("a key");
    // Given back at the end.
    kept.stop().expect("released");
    let sent = table.log.statements();
    assert_eq!(sent.last().map(String::as_str), Some(COMMITTED));
    assert!(sent.contains(&RELEASE.to_owned()), "{sent:?}");
}
