//! Nodes leased from a table: what a real tiberius sends for them, and what becomes of errors, of lost
//! connections and of silence. The peer is a recorder, no SQL engine: what is in the rows is what the test
//! says.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use super::entities::{connect_to, texts};
use ordid::{
    Error,
    clock::Timestamp,
    coordination::{AsyncNodeAllocator as _, CoordinationFailure, Grant, LeaseTerms},
};
use ordid_recorders::tds::{
    Answer, BABELFISH, Column, Failure, Parameter, Recorder, Type, babelfish,
};
use ordid_tiberius::{Connect, SqlLease};
use tokio::net::TcpStream;
use tokio_util::compat::Compat;

const NOW: i64 = 1_800_000_000_000;
const CLOCK: &str = "DATEDIFF_BIG(millisecond, '1970-01-01', SYSUTCDATETIME())";
/// What each connection is asked first.
const CHECK: &str = "SET IMPLICIT_TRANSACTIONS OFF; SELECT @@TRANCOUNT, @@VERSION";
const FREE: &str = "SELECT TOP (32) node, epoch, ceiling, NOW FROM [ordid_nodes] WHERE node >= @P1 AND node < \
                    @P2 AND expires <= NOW ORDER BY ceiling, node";
const TAKE: &str = "UPDATE [ordid_nodes] SET epoch = epoch + 1, ceiling = @P1, expires = NOW + @P2 WHERE node \
                    = @P3 AND epoch = @P4 AND ceiling = @P5 AND expires <= NOW; SELECT @@ROWCOUNT";
const COUNT: &str = "SELECT COUNT(*), COALESCE(MIN(expires), 0) - NOW FROM [ordid_nodes] WHERE node >= @P1 AND \
                     node < @P2";
const READ: &str = "SELECT epoch, ceiling, NOW FROM [ordid_nodes] WHERE node = @P1";
const RENEW: &str = "UPDATE [ordid_nodes] SET ceiling = @P1, expires = NOW + @P2 WHERE node = @P3 AND epoch = \
                     @P4 AND ceiling = @P5; SELECT @@ROWCOUNT";
const RELEASE: &str = "UPDATE [ordid_nodes] SET ceiling = @P1, expires = 0 WHERE node = @P2 AND epoch = @P3 \
                       AND ceiling = @P4; SELECT @@ROWCOUNT";
const WRITE_BACK: &str = "UPDATE [ordid_nodes] SET epoch = CASE WHEN epoch < @P1 THEN @P2 ELSE epoch END, \
                          ceiling = CASE WHEN ceiling < @P3 THEN @P4 ELSE ceiling END WHERE node = @P5; \
                          SELECT @@ROWCOUNT";

fn at(millis: i64) -> Timestamp {
    let millis = (NOW + millis).try_into().expect("after 1970");
    Timestamp::from_unix_millis(millis).expect("a time")
}

fn grant() -> Grant {
    Grant::new(3, 7, at(0), at(3_000)).expect("a grant")
}

fn failure<T: std::fmt::Debug>(result: Result<T, Error>) -> CoordinationFailure {
    let error = result.expect_err("it cannot have succeeded");
    error.coordination_failure().expect("of coordination")
}

/// A row of `bigint`.
fn row(values: &[i64]) -> Answer {
    let columns = values.iter().map(|_| Column::new("", Type::int(8)));
    let row = values
        .iter()
        .map(|value| Some(value.to_le_bytes().to_vec()));
    Answer::rows(columns, [row.collect()])
}

fn no_rows() -> Answer {
    let columns = [Column::new("", Type::int(8)), Column::new("", Type::int(8))];
    Answer::rows(columns, [])
}

/// A table of four nodes, and how often it was connected to.
struct Table {
    recorder: Recorder,
    leases: SqlLease<Compat<TcpStream>>,
    connected: Arc<AtomicUsize>,
}

impl Table {
    fn new() -> Self {
        let recorder = Recorder::start().expect("a port");
        let connected = Arc::new(AtomicUsize::new(0));
        let (address, count) = (recorder.address(), Arc::clone(&connected));
        let connect = move || {
            count.fetch_add(1, Ordering::Relaxed);
            connect_to(address)
        };
        let terms = LeaseTerms::new(0..4).expect("terms");
        Self {
            recorder,
            leases: SqlLease::new(Connect::new(connect), terms),
            connected,
        }
    }

    /// Node 3 is held under grant 7, and can be changed.
    fn held() -> Self {
        let table = Self::new();
        let recorder = &table.recorder;
        recorder.always("SELECT epoch", row(&[7, NOW + 3_000, NOW + 100]));
        recorder.always("UPDATE", Answer::Done(1));
        table
    }

    /// Has a connection that is idle, and an empty log.
    async fn warm(self) -> Self {
        self.leases.renew(&grant(), at(0)).await.expect("renewed");
        assert_eq!(self.connected(), 1);
        self.sent();
        self
    }

    /// What was sent since the last call, the clock's words as `NOW`, and the parameters.
    fn log(&self) -> (Vec<String>, Vec<Vec<i64>>) {
        let log = self.recorder.take();
        let sent = texts(&log)
            .into_iter()
            .map(|text| text.replace(CLOCK, "NOW"));
        let values = |parameters: &[Parameter]| parameters.iter().map(bigint).collect();
        let values = log.iter().map(|it| values(it.request.arguments()));
        (
            sent.collect(),
            values.filter(|it: &Vec<_>| !it.is_empty()).collect(),
        )
    }

    fn sent(&self) -> Vec<String> {
        self.log().0
    }

    fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }
}

fn bigint(parameter: &Parameter) -> i64 {
    assert_eq!(parameter.ty, Type::int(8), "a bigint");
    let bytes = parameter.value.as_deref().expect("no NULL");
    i64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

#[tokio::test]
async fn the_table_is_made_by_one_batch() {
    let table = Table::new();
    table.leases.create().await.unwrap();
    let batch = table.leases.create_sql().unwrap();
    assert!(batch.starts_with("IF OBJECT_ID(N'[ordid_nodes]', N'U') IS NULL CREATE TABLE "));
    assert_eq!(table.sent(), [CHECK, &batch]);
}

/// Of several, the first that is refused tells, and what came before it does not hide it.
#[tokio::test]
async fn a_batch_that_fails_in_its_second_statement_has_failed() {
    let table = Table::new();
    let refused = Answer::failure(262, "INSERT permission was denied");
    let answer = Answer::Several(vec![Answer::Done(0), refused]);
    table.recorder.once("IF OBJECT_ID", answer);
    let created = table.leases.create().await;
    assert_eq!(failure(created), CoordinationFailure::Unavailable);
}

#[tokio::test]
async fn each_step_is_a_statement_without_a_transaction() {
    let table = Table::new();
    let (recorder, leases) = (&table.recorder, &table.leases);
    recorder.once("SELECT TOP", row(&[3, 6, NOW + 400, NOW + 100]));
    recorder.always("UPDATE", Answer::Done(1));
    let grant = leases.acquire(at(0), None).await.unwrap();
    assert_eq!(Ok(grant), Grant::new(3, 7, at(400), at(3_400)));
    let (sent, values) = table.log();
    assert_eq!(sent, [CHECK, FREE, TAKE]);
    let taken = vec![NOW + 3_400, 10_000, 3, 6, NOW + 400];
    assert_eq!(values, [vec![0, 4], taken]);

    recorder.always("SELECT epoch", row(&[7, NOW + 3_400, NOW + 100]));
    let renewed = leases.renew(&grant, at(1_000)).await.unwrap();
    assert_eq!(Ok(renewed), Grant::new(3, 7, at(400), at(4_000)));
    let (sent, values) = table.log();
    assert_eq!(sent, [READ, RENEW]);
    let moved = vec![NOW + 4_000, 10_000, 3, 7, NOW + 3_400];
    assert_eq!(values, [vec![3], moved]);

    leases.release(&grant, Some(at(500))).await.unwrap();
    let log = recorder.log();
    assert!(log.iter().all(|received| received.transaction == 0));
    let (sent, values) = table.log();
    assert_eq!(sent, [READ, RELEASE]);
    assert_eq!(values, [vec![3], vec![NOW + 501, 3, 7, NOW + 3_400]]);
    assert_eq!(table.connected(), 1);
}

/// The row that says how many rows it were, and no count of the protocol's: that is off under `NOCOUNT`, and
/// may be a trigger's.
#[tokio::test]
async fn a_change_of_no_row_is_none_whatever_the_protocol_counts() {
    let table = Table::held();
    let none = Answer::Several(vec![Answer::Done(1), Answer::int(0)]);
    let uncounted = Answer::Several(vec![Answer::Uncounted, Answer::int(1)]);
    table.recorder.once("UPDATE", none.clone());
    let renewed = table.leases.renew(&grant(), at(0)).await;
    assert_eq!(failure(renewed), CoordinationFailure::Fenced);
    assert_eq!(table.sent(), [CHECK, READ, RENEW, READ]);
    table.recorder.once("UPDATE", none);
    let released = table.leases.release(&grant(), None).await;
    assert_eq!(failure(released), CoordinationFailure::Fenced);
    table.recorder.once("UPDATE", uncounted);
    table.leases.renew(&grant(), at(0)).await.unwrap();
    // A trigger that selects something, before.
    let of_a_trigger = Answer::Several(vec![row(&[0]), Answer::Done(1), Answer::int(1)]);
    table.recorder.once("UPDATE", of_a_trigger);
    table.leases.renew(&grant(), at(0)).await.unwrap();
}

#[tokio::test]
async fn all_held_and_rows_that_are_gone_are_told_apart() {
    let table = Table::new();
    table.recorder.always("SELECT TOP", no_rows());
    // `COUNT(*)` is an `int`.
    let counts = |rows: i32| {
        let columns = [Column::new("", Type::int(4)), Column::new("", Type::int(8))];
        let rows = Some(rows.to_le_bytes().to_vec());
        Answer::rows(columns, [vec![rows, Some(70_i64.to_le_bytes().to_vec())]])
    };
    table.recorder.once("COUNT(*)", counts(4));
    let error = table.leases.acquire(at(0), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no node is free: table ordid_nodes of SQL Server has 4 nodes, and all are held; the first may be \
         free in 70 ms"
    );
    assert_eq!(table.sent(), [CHECK, FREE, COUNT]);
    table.recorder.once("COUNT(*)", counts(3));
    let acquired = table.leases.acquire(at(0), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::StateLost);
    // What is no number is no answer.
    let columns = [Column::new("", Type::int(4)), Column::new("", Type::int(8))];
    let null = Answer::rows(columns, [vec![None, None]]);
    table.recorder.once("COUNT(*)", null);
    let acquired = table.leases.acquire(at(0), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
}

#[tokio::test]
async fn a_ceiling_that_went_back_is_written_back() {
    let table = Table::new();
    table
        .recorder
        .once("SELECT epoch", row(&[6, NOW, NOW + 100]));
    // The change finds no row as it was granted, so the row is as old as it was read.
    for changed in [0, 1] {
        table.recorder.once("UPDATE", Answer::Done(changed));
    }
    let renewed = table.leases.renew(&grant(), at(0)).await;
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    let (sent, values) = table.log();
    assert_eq!(sent, [CHECK, READ, RENEW, WRITE_BACK]);
    let renewal = vec![NOW + 3_000, 10_000, 3, 7, NOW + 3_000];
    let back = vec![7, 7, NOW + 3_000, NOW + 3_000, 3];
    assert_eq!(values, [vec![3], renewal, back]);
}

/// Such as that of a replica, to which queries are sent.
#[tokio::test]
async fn a_row_that_was_only_read_too_early_is_renewed() {
    let table = Table::held().warm().await;
    table
        .recorder
        .once("SELECT epoch", row(&[6, NOW, NOW + 100]));
    let renewed = table.leases.renew(&grant(), at(1_000)).await.unwrap();
    assert_eq!(Ok(renewed), Grant::new(3, 7, at(0), at(4_000)));
    assert_eq!(table.sent(), [READ, RENEW]);
}

#[tokio::test]
async fn what_the_server_refuses_has_a_kind() {
    for (code, kind) in [
        (208, CoordinationFailure::StateLost),
        (229, CoordinationFailure::Unavailable),
    ] {
        let table = Table::held().warm().await;
        table
            .recorder
            .once("SELECT epoch", Answer::failure(code, "no"));
        let error = table.leases.renew(&grant(), at(0)).await.unwrap_err();
        assert_eq!(error.coordination_failure(), Some(kind), "{error}");
        assert!(
            error.to_string().contains("SQL Server: Token error: 'no'"),
            "{error}"
        );
        assert_eq!(table.sent(), [READ], "and not once more");
    }
}

#[tokio::test]
async fn a_victim_is_sent_again_over_the_same_connection() {
    for code in [1205, 3960, 1222] {
        let table = Table::held().warm().await;
        for _ in 0..3 {
            table.recorder.once("UPDATE", Answer::fatal(code, "victim"));
        }
        table.leases.renew(&grant(), at(0)).await.unwrap();
        assert_eq!(table.sent(), [READ, RENEW, RENEW, RENEW, RENEW], "{code}");
        assert_eq!(table.connected(), 1);
    }
}

/// Only what may be carried out twice, and only where the connection may have been closed while it was idle.
#[tokio::test]
async fn a_lost_connection_is_replaced_for_what_may_be_sent_again() {
    for end in [
        Answer::HangUp,
        Answer::HalfAnswer,
        // Killed, and shutting down.
        Answer::Failure(Failure {
            number: 596,
            class: 21,
            message: "killed".to_owned(),
            rolls_back: true,
        }),
        Answer::failure(6005, "SHUTDOWN is in progress."),
    ] {
        // A query, on a connection that is idle.
        let table = Table::held().warm().await;
        table.recorder.once("SELECT epoch", end.clone());
        table.leases.renew(&grant(), at(0)).await.unwrap();
        assert_eq!(table.sent(), [READ, CHECK, READ, RENEW], "{end:?}");
        assert_eq!(table.connected(), 2);

        // Over another one, which is lost, too: that is no accident of age.
        for _ in 0..2 {
            table.recorder.once("SELECT epoch", end.clone());
        }
        let renewed = table.leases.renew(&grant(), at(0)).await;
        assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
        assert_eq!(table.sent(), [READ, CHECK, READ], "{end:?}");

        // A change: it was made or not.
        let table = Table::held().warm().await;
        table.recorder.once("UPDATE", end.clone());
        let renewed = table.leases.renew(&grant(), at(0)).await;
        assert_eq!(
            failure(renewed),
            CoordinationFailure::Unavailable,
            "{end:?}"
        );
        assert_eq!(table.sent(), [READ, RENEW]);
        // The next is asked over another.
        table.leases.renew(&grant(), at(0)).await.unwrap();
        assert_eq!(table.sent(), [CHECK, READ, RENEW]);
    }
}

/// To raise a ceiling twice is to raise it once.
#[tokio::test]
async fn what_is_written_back_is_sent_again() {
    let table = Table::held().warm().await;
    table
        .recorder
        .once("SELECT epoch", row(&[6, NOW, NOW + 100]));
    table.recorder.once("UPDATE", Answer::Done(0));
    table.recorder.once("UPDATE", Answer::HangUp);
    let renewed = table.leases.renew(&grant(), at(0)).await;
    assert_eq!(failure(renewed), CoordinationFailure::CeilingRegressed);
    assert_eq!(table.sent(), [READ, RENEW, WRITE_BACK, CHECK, WRITE_BACK]);
}

#[tokio::test]
async fn silence_ends_and_its_connection_is_not_used_again() {
    let table = Table::held().warm().await;
    let leases = table.leases.with_timeout(Duration::from_secs(2));
    for part in ["SELECT epoch", "UPDATE"] {
        table.recorder.once(part, Answer::Silence);
        let error = leases.renew(&grant(), at(0)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the store is unavailable: SQL Server gave no answer within 2s"
        );
    }
    let connections = table.recorder.log().iter().map(|it| it.connection).max();
    // The first is that of `warm`; each that was silent is gone.
    assert_eq!(
        (connections, table.connected.load(Ordering::Relaxed)),
        (Some(1), 2)
    );
    leases.renew(&grant(), at(0)).await.unwrap();
    assert_eq!(table.connected.load(Ordering::Relaxed), 3);
    // Nobody answers the question that a connection begins with.
    table.recorder.once("UPDATE", Answer::HangUp);
    leases.renew(&grant(), at(0)).await.unwrap_err();
    table.recorder.once("@@VERSION", Answer::Silence);
    let renewed = leases.renew(&grant(), at(0)).await;
    assert_eq!(failure(renewed), CoordinationFailure::Unavailable);
}

/// A future that is dropped takes its connection with it.
#[tokio::test]
async fn an_answer_that_nobody_waited_for_is_not_taken_for_the_next() {
    let table = Table::held().warm().await;
    table.recorder.once("SELECT epoch", Answer::Silence);
    let grant = grant();
    let renewing = table.leases.renew(&grant, at(0));
    let dropped = tokio::time::timeout(Duration::from_millis(50), renewing).await;
    assert!(dropped.is_err());
    table.leases.renew(&grant, at(0)).await.unwrap();
    assert_eq!(table.sent(), [READ, CHECK, READ, RENEW]);
}

#[tokio::test]
async fn nobody_who_listens_is_unavailable() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let terms = LeaseTerms::new(0..4).unwrap();
    let leases = SqlLease::new(Connect::new(move || connect_to(address)), terms);
    let acquired = leases.acquire(at(0), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Unavailable);
}

/// An UPDATE in a transaction that is rolled back would be a grant that two have.
#[tokio::test]
async fn a_connection_with_an_open_transaction_is_refused() {
    let recorder = Recorder::start().unwrap();
    let address = recorder.address();
    let connect = move || async move {
        let mut client = connect_to(address).await?;
        client.begin_transaction().await?;
        Ok(client)
    };
    let leases = SqlLease::new(Connect::new(connect), LeaseTerms::new(0..4).unwrap());
    let error = leases.acquire(at(0), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not what was asked for: SQL Server: a transaction is open on the new connection, and what it would \
         undo is not granted: connect without one"
    );
    assert_eq!(texts(&recorder.take()), ["BEGIN", CHECK]);
}

#[tokio::test]
async fn a_server_of_the_other_flavour_is_refused() {
    let terms = || LeaseTerms::new(0..4).unwrap();
    let recorder = Recorder::start().unwrap();
    let address = recorder.address();
    let leases = SqlLease::new(Connect::for_babelfish(move || connect_to(address)), terms());
    let error = leases.acquire(at(0), None).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not what was asked for: these leases are for Babelfish, and the server is `Microsoft SQL Server \
         2022 (RTM) - 16.0.1000.6 (X64)`"
    );

    let recorder = Recorder::start_as(BABELFISH).unwrap();
    let address = recorder.address();
    let leases = SqlLease::new(Connect::new(move || connect_to(address)), terms());
    let acquired = leases.acquire(at(0), None).await;
    assert_eq!(failure(acquired), CoordinationFailure::Mismatch);
    let leases = SqlLease::new(Connect::for_babelfish(move || connect_to(address)), terms());
    recorder.once("SELECT TOP", row(&[3, 6, NOW + 400, NOW + 100]));
    recorder.once("UPDATE", Answer::Done(1));
    leases.acquire(at(0), None).await.unwrap();
    // Its errors that have no number of SQL Server share one.
    for (message, kind) in [
        (
            "relation \"ordid_leases\" does not exist",
            CoordinationFailure::StateLost,
        ),
        ("permission denied", CoordinationFailure::Unavailable),
    ] {
        recorder.once("SELECT TOP", Answer::failure(babelfish::OTHER, message));
        let acquired = leases.acquire(at(0), None).await;
        assert_eq!(failure(acquired), kind, "{message}");
    }
}

/// Many at once: each question has a connection to itself, and few of them are kept.
#[tokio::test]
async fn questions_at_the_same_time_do_not_mix() {
    let table = Arc::new(Table::held());
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let table = Arc::clone(&table);
        tasks.spawn(async move {
            for _ in 0..20 {
                let renewed = table.leases.renew(&grant(), at(500)).await;
                assert_eq!(renewed, Grant::new(3, 7, at(0), at(3_500)));
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert!(table.connected() > 1, "they were not at the same time");
    let sent = table.sent();
    assert_eq!(sent.iter().filter(|text| *text == RENEW).count(), 320);
}
