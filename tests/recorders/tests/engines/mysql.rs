//! Engines that speak MySQL's protocol, through each library that speaks it.

mod libraries;

use libraries::{Library, pool};
use ordid_recorders::conversation::{Answer, Peer, Refusal, codes};
use ordid_sql::{EngineProfile, LockWaits};

use super::entities::{CHANGE, Flush, GRAPH, Rows, Said, TABLES, TENANT, has};

/// An engine, what it answers to `SELECT VERSION()` by its documentation, its profile, and which variable shows that its
/// members know their own locks only.
#[derive(Debug, Clone, Copy)]
struct Engine {
    name: &'static str,
    version: &'static str,
    profile: EngineProfile,
    shown_by: Option<&'static str>,
}

const TIDB: Engine = Engine {
    name: "TiDB",
    version: "8.0.11-TiDB-v8.5.0",
    profile: EngineProfile::TIDB,
    shown_by: None,
};

const VITESS: Engine = Engine {
    name: "Vitess",
    version: "8.0.30-Vitess",
    profile: EngineProfile::VITESS,
    shown_by: None,
};

const GALERA: Engine = Engine {
    name: "Galera",
    version: "10.11.6-MariaDB-1:10.11.6+maria~ubu2204-log",
    profile: EngineProfile::GALERA,
    shown_by: Some("wsrep_on"),
};

/// Galera with the library's own profile, which asks the server.
const GALERA_UNNAMED: Engine = Engine {
    name: "Galera, unnamed",
    profile: EngineProfile::MYSQL,
    ..GALERA
};

const GROUP_REPLICATION: Engine = Engine {
    name: "Group Replication",
    version: "8.4.3",
    profile: EngineProfile::GROUP_REPLICATION,
    shown_by: Some("group_replication_group_name"),
};

const AURORA: Engine = Engine {
    name: "Aurora",
    version: "8.0.39",
    profile: EngineProfile::MYSQL,
    shown_by: None,
};

const ENGINES: [Engine; 6] = [
    TIDB,
    VITESS,
    GALERA,
    GALERA_UNNAMED,
    GROUP_REPLICATION,
    AURORA,
];

/// What an attempt in doubt asks for and sets, and what it gives back.
const ASKS_WAITS: &str =
    "SELECT CONCAT(@@SESSION.innodb_lock_wait_timeout, ' ', @@SESSION.lock_wait_timeout)";
const BOUNDS_WAITS: &str =
    "SET SESSION innodb_lock_wait_timeout = 10, SESSION lock_wait_timeout = 10";
const OWN_WAITS: &str =
    "SET SESSION innodb_lock_wait_timeout = 50, SESSION lock_wait_timeout = 31536000";

/// A peer whose catalogue says that each table has a primary key and no trigger.
fn peer(engine: Engine) -> Peer {
    let peer = Peer::mysql(engine.version, TABLES).expect("a port");
    peer.always("information_schema.statistics", Answer::Row("0"));
    peer.always(ASKS_WAITS, Answer::Row("50 31536000"));
    if let Some(variable) = engine.shown_by {
        peer.always("global_variables", Answer::Row(variable));
    }
    peer
}

/// Returns each case with each library.
fn each<T: Copy>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = (T, Library)> {
    let cases = cases.into_iter();
    cases.flat_map(|case| Library::ALL.map(|library| (case, library)))
}

fn count(sent: &[String], of: &str) -> usize {
    sent.iter().filter(|sql| *sql == of).count()
}

const CUSTOMER: &str = "INSERT INTO `customers` (`id`, `name`) VALUES (?, ?)";
const ORDERS: &str = "INSERT INTO `orders` (`id`, `customer`, `total`) VALUES (?, ?, ?), (?, ?, ?)";
const UPDATE: &str = "UPDATE `orders` SET `customer` = ?, `total` = ? WHERE `id` = ?";
const MARKER: &str = "INSERT INTO ordid_flushes (id) VALUES (?)";

/// The question for keys is a transaction of its own, since an engine may end a transaction with a statement that it
/// refuses.
const ASKS: [&str; 3] = ["BEGIN", "catalogue: keys", "ROLLBACK"];

const WRITES: [&str; 4] = ["BEGIN", CUSTOMER, ORDERS, "COMMIT"];

/// How a row is asked for: TiDB and Vitess read committed rows anyhow, and TiDB has no `FOR SHARE`.
fn probe(engine: Engine, table: &str) -> String {
    let shared = match engine.name {
        "TiDB" | "Vitess" => "",
        _ => {
            " /*M! LOCK IN SHARE MODE *//*M!100600 SKIP LOCKED *//*!80000 FOR SHARE SKIP LOCKED */"
        }
    };
    format!("SELECT 1 FROM {table} = ?{shared}")
}

#[tokio::test]
async fn each_engine_is_found_by_what_it_answers() {
    for engine in [TIDB, VITESS, GALERA, GROUP_REPLICATION, AURORA] {
        for library in Library::ALL {
            let found = library.detect(&peer(engine)).await.unwrap();
            assert_eq!(found.name, engine.profile.name, "{library:?}");
        }
    }
}

const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
const RELEASE: &str = "RELEASE SAVEPOINT ordid_flush";
const ROLL_BACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";

/// How a flush begins within the caller's transaction. Diesel counts transactions by itself, so there it also asks whether the
/// savepoint is there.
fn begins(library: Library) -> Vec<&'static str> {
    match library {
        Library::Diesel | Library::DieselAsync => vec!["BEGIN", SAVEPOINT, ROLL_BACK_TO],
        _ => vec!["BEGIN", SAVEPOINT],
    }
}

#[tokio::test]
async fn a_flush_within_the_callers_transaction_has_a_savepoint() {
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        let said = library
            .flush(&peer, engine.profile, Flush::within(GRAPH))
            .await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        let expected = [&begins(library)[..], &[CUSTOMER, ORDERS, RELEASE, "COMMIT"]].concat();
        assert_eq!(sent, expected, "{case}");
        assert_eq!(said.wrote().rows(), 3, "{case}");
        has(&peer, GRAPH, true);
    }
}

/// The caller's transaction goes on, without the rows, as the server has ended the statement alone.
#[tokio::test]
async fn a_refusal_within_the_callers_transaction_ends_at_the_savepoint() {
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        peer.once("INSERT INTO `orders`", Answer::Fails(codes::DUPLICATE));
        let said = library
            .flush(&peer, engine.profile, Flush::within(GRAPH))
            .await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        assert!(matches!(said, Said::Nothing(_)), "{case}");
        let expected = [&begins(library)[..], &[CUSTOMER, ORDERS]].concat();
        let (begun, rest) = sent.split_at(expected.len());
        assert_eq!(begun, expected, "{case}");
        assert!(rest.iter().any(|sql| sql == ROLL_BACK_TO), "{case}");
        assert_eq!(sent.last().map(String::as_str), Some("COMMIT"), "{case}");
        has(&peer, GRAPH, false);
    }
}

/// The second row is there, and so is updated; the first one is not, until another program inserts it.
#[tokio::test]
async fn upserts_ask_which_rows_are_there_and_ask_again_after_a_race() {
    const FIND: &str = "(SELECT '0' FROM `orders` WHERE `id` = ?) UNION ALL (SELECT '1' FROM `orders` WHERE `id` = ?)";
    const INSERT: &str = "INSERT INTO `orders` (`id`, `customer`, `total`) VALUES (?, ?, ?)";
    let rows = Rows {
        orders: 0,
        upserts: 2,
        ..GRAPH
    };
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        peer.once("(SELECT '0'", Answer::Row("1"));
        peer.once("INSERT INTO `orders`", Answer::Fails(codes::DUPLICATE));
        peer.once("(SELECT '0'", Answer::Row("1"));
        let flushed = library.flush(&peer, engine.profile, rows).await.wrote();
        assert_eq!(
            (flushed.rows(), flushed.updated(), flushed.retries),
            (2, 1, 1)
        );
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {sent:#?}", engine.name);
        let once = ["BEGIN", MARKER, CUSTOMER, FIND, INSERT];
        assert_eq!(sent[..5], once, "{case}");
        assert_eq!(sent[5], "ROLLBACK", "{case}");
        assert_eq!(sent[6..11], once, "{case}");
        assert_eq!(sent[11..], [UPDATE, "COMMIT"], "{case}");
        assert_eq!(peer.committed("orders").len(), 1, "{case}");
    }
}

/// Otherwise the other tests would prove nothing. After a deadlock the transaction is over, so what follows is committed
/// by itself, and a COMMIT says that all is well.
#[tokio::test]
async fn the_peer_keeps_what_is_committed_and_refuses_it_a_second_time() {
    let peer = peer(GALERA);
    let pool = pool(&peer);
    let customer = |id: u128| {
        let id = ordid::uuid::Uuid::from_u128(id);
        sqlx::query(CUSTOMER).bind(id).bind("Ada")
    };
    let mut open = pool.begin().await.unwrap();
    customer(1).execute(&mut *open).await.unwrap();
    peer.once("INSERT", Answer::Fails(codes::DEADLOCK));
    customer(2).execute(&mut *open).await.unwrap_err();
    customer(3).execute(&mut *open).await.unwrap();
    assert_eq!(peer.committed("customers").len(), 1);
    open.commit().await.unwrap();
    assert_eq!(peer.committed("customers").len(), 1);
    let again = customer(3).execute(&pool).await.unwrap_err();
    let code = again.into_database_error().unwrap();
    assert_eq!(code.code().as_deref(), Some("23000"));
    assert_eq!(peer.committed("customers").len(), 1);
}

#[tokio::test]
async fn a_graph_goes_parents_first_in_one_transaction_on_each_engine() {
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        let flushed = library.flush(&peer, engine.profile, GRAPH).await.wrote();
        let expected = [&ASKS[..], &WRITES].concat();
        assert_eq!(library.sent(&peer), expected, "{library:?} {}", engine.name);
        assert_eq!((flushed.rows(), flushed.retries), (3, 0));
        has(&peer, GRAPH, true);
    }
}

#[tokio::test]
async fn a_change_goes_behind_its_marker_row() {
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        let flushed = library.flush(&peer, engine.profile, CHANGE).await.wrote();
        assert_eq!((flushed.rows(), flushed.updated()), (3, 1));
        let expected = ["BEGIN", MARKER, CUSTOMER, ORDERS, UPDATE, "COMMIT"];
        assert_eq!(library.sent(&peer), expected, "{library:?} {}", engine.name);
        assert_eq!(peer.committed("ordid_flushes").len(), 1);
    }
}

/// What each engine says of a conflict, at which statement. Galera's abort surfaces at the next statement, and a COMMIT
/// after it would say that all is well.
const CONFLICTS: [(Engine, &str, Refusal); 16] = [
    (TIDB, "INSERT INTO `orders`", codes::FOR_UPDATE_CONFLICT),
    (TIDB, "COMMIT", codes::FOR_UPDATE_CONFLICT),
    (TIDB, "COMMIT", codes::RETRY_LATER),
    (TIDB, "COMMIT", codes::SCHEMA_CHANGED),
    (TIDB, "INSERT INTO `orders`", codes::SCHEMA_CHANGED),
    (TIDB, "COMMIT", codes::WRITE_CONFLICT),
    (TIDB, "INSERT INTO `orders`", codes::WRITE_CONFLICT),
    (TIDB, "INSERT INTO `orders`", codes::PD_TIMEOUT),
    (VITESS, "INSERT INTO `orders`", codes::VITESS_ABORTED),
    (VITESS, "INSERT INTO `orders`", codes::VITESS_DEADLOCK),
    (VITESS, "COMMIT", codes::VITESS_DEADLOCK),
    (GALERA, "INSERT INTO `orders`", codes::DEADLOCK),
    (GALERA, "COMMIT", codes::DEADLOCK),
    (GALERA, "INSERT INTO `orders`", codes::WSREP_NOT_READY),
    (GALERA, "BEGIN", codes::WSREP_NOT_READY),
    (
        GROUP_REPLICATION,
        "INSERT INTO `orders`",
        codes::ROLLED_BACK_BY_PLUGIN,
    ),
];

#[tokio::test]
async fn a_conflict_is_tried_again_with_the_same_keys() {
    for ((engine, at, refusal), library) in each(CONFLICTS) {
        let peer = peer(engine);
        let begins = if at == "BEGIN" { library.begin() } else { at };
        peer.once(begins, Answer::Fails(refusal));
        let said = library.flush(&peer, engine.profile, GRAPH).await;
        assert!(peer.is_through());
        let sent = library.sent(&peer);
        let case = format!("{library:?} {refusal:?} at {at}: {said:?} {sent:#?}");
        assert!(matches!(said, Said::Wrote(_)), "{case}");
        assert_eq!(said.wrote().retries, 1, "{case}");
        has(&peer, GRAPH, true);
        let times = if at == "BEGIN" { 1 } else { 2 };
        assert_eq!(count(&sent, CUSTOMER), times, "{case}");
        let asks = count(&sent, &probe(engine, "`customers` WHERE `id`"));
        assert_eq!(asks, 0, "it is known: {case}");
    }
}

/// A keyspace of Vitess that is sharded by the tenant would send a statement that does not name it to all shards.
#[tokio::test]
async fn a_key_that_begins_with_the_tenant_stands_in_each_statement() {
    const WRITTEN: [&str; 5] = [
        MARKER,
        CUSTOMER,
        "INSERT INTO `items` (`customer`, `id`, `total`) VALUES (?, ?, ?), (?, ?, ?)",
        "UPDATE `items` SET `total` = ? WHERE `customer` = ? AND `id` = ?",
        "DELETE FROM `items` WHERE `customer` = ? AND `id` = ?",
    ];
    for (engine, library) in each(ENGINES) {
        let peer = peer(engine);
        let flushed = library.flush(&peer, engine.profile, TENANT).await.wrote();
        let counts = (flushed.rows(), flushed.updated(), flushed.deleted());
        assert_eq!(counts, (3, 1, 1));
        has(&peer, TENANT, true);
        let sent = library.sent(&peer);
        let expected = [&["BEGIN"][..], &WRITTEN, &["COMMIT"]].concat();
        assert_eq!(sent, expected, "{library:?} {}", engine.name);
    }
}

/// MySQL itself would take so many changes through a temporary table.
#[tokio::test]
async fn many_changes_and_deletes_go_by_statements_for_the_table_itself() {
    let rows = Rows {
        updates: 150,
        deletes: 3,
        ..GRAPH
    };
    for (engine, library) in each([TIDB, VITESS]) {
        let peer = peer(engine);
        let said = library.flush(&peer, engine.profile, rows).await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        assert!(matches!(said, Said::Wrote(_)), "{case}");
        let flushed = said.wrote();
        assert_eq!((flushed.updated(), flushed.deleted()), (150, 3), "{case}");
        assert_eq!(
            sent.iter().filter(|sql| sql.contains("TEMP")).count(),
            0,
            "{case}"
        );
        assert_eq!(count(&sent, UPDATE), 150, "{case}");
        let deletes = "DELETE FROM `orders` WHERE `id` IN (?, ?, ?)";
        assert_eq!(count(&sent, deletes), 1, "{case}");
        has(&peer, rows, true);
    }
}

/// Over another connection, which reaches the server that now writes.
#[tokio::test]
async fn a_failover_is_tried_again_over_another_connection() {
    let answers = |engine| {
        [
            (engine, Answer::Fails(codes::MYSQL_READ_ONLY)),
            (engine, Answer::Ends),
        ]
    };
    let answers = ENGINES.into_iter().flat_map(answers);
    let of_vitess = (VITESS, Answer::Fails(codes::VITESS_UNAVAILABLE));
    for ((engine, answer), library) in each(answers.chain([of_vitess])) {
        let peer = peer(engine);
        peer.once("INSERT INTO `orders`", answer);
        let said = library.flush(&peer, engine.profile, GRAPH).await;
        let case = format!("{library:?} {} {answer:?}: {said:?}", engine.name);
        assert!(matches!(said, Said::Wrote(_)), "{case}");
        assert_eq!(said.wrote().retries, 1, "{case}");
        has(&peer, GRAPH, true);
    }
}

/// What these engines refuse, they would refuse each time. Nothing is written.
#[tokio::test]
async fn a_limit_or_a_missing_statement_is_not_tried_again() {
    for ((engine, at, refusal), library) in each([
        (TIDB, "COMMIT", codes::TOO_LARGE),
        (TIDB, "INSERT INTO `orders`", codes::TOO_LARGE),
        (VITESS, "INSERT INTO `orders`", codes::VITESS_UNSUPPORTED),
        (VITESS, "INSERT INTO `orders`", codes::VITESS_ROWS),
    ]) {
        let peer = peer(engine);
        peer.always(at, Answer::Fails(refusal));
        let said = library.flush(&peer, engine.profile, GRAPH).await;
        let case = format!("{library:?} {refusal:?} at {at}: {said:?}");
        has(&peer, GRAPH, false);
        let commits = count(&library.sent(&peer), "COMMIT");
        assert!(matches!(said, Said::Nothing(_)), "{case}");
        assert_eq!(commits, usize::from(at == "COMMIT"), "{case}");
    }
}

/// From each engine the answer may be lost. TiDB's placement driver, the shards of Vitess, and a member that leaves its
/// replication group may leave it open with a code.
#[tokio::test]
async fn an_unknown_commit_is_asked_for_and_no_row_is_doubled() {
    let lost = ENGINES.map(|engine| {
        [
            (engine, Answer::Ends, false),
            (engine, Answer::DoesAndEnds, true),
        ]
    });
    let said = [
        (TIDB, codes::PD_TIMEOUT),
        (VITESS, codes::VITESS_UNAVAILABLE),
        (VITESS, codes::VITESS_ABORTED),
        (VITESS, codes::VITESS_UNSUPPORTED),
        (GROUP_REPLICATION, codes::ROLLED_BACK_BY_PLUGIN),
        (GROUP_REPLICATION, codes::HOOK_FAILED),
    ];
    let said = said.map(|(engine, refusal)| {
        [
            (engine, Answer::Fails(refusal), false),
            (engine, Answer::DoesAndFails(refusal), true),
        ]
    });
    let answers = lost.into_iter().chain(said).flatten();
    let answers = answers.flat_map(|it| [(it, GRAPH), (it, CHANGE)]);
    for (((engine, answer, is_done), rows), library) in each(answers) {
        let peer = peer(engine);
        peer.once("COMMIT", answer);
        let said = library.flush(&peer, engine.profile, rows).await;
        let sent = library.sent(&peer);
        let case = format!(
            "{library:?} {} {answer:?} {rows:?}: {said:?} {sent:#?}",
            engine.name
        );
        assert!(matches!(said, Said::Wrote(_)), "{case}");
        assert_eq!(said.wrote().rows(), 3, "{case}");
        has(&peer, rows, true);
        let table = match rows.changes {
            false => "`customers` WHERE `id`",
            true => "ordid_flushes WHERE id",
        };
        let asks = probe(engine, table);
        let place = sent.iter().position(|sql| *sql == asks);
        let place = place.unwrap_or_else(|| panic!("{asks}: {case}"));
        let before = sent[..place].iter().map(String::as_str);
        let before: Vec<_> = before
            .filter(|sql| !(library.rolls_back_after_commit() && *sql == "ROLLBACK"))
            .collect();
        let begins = match engine.profile.bounds_waits {
            LockWaits::AsSet => &["BEGIN"][..],
            _ => &["BEGIN", ASKS_WAITS, BOUNDS_WAITS],
        };
        assert!(before.ends_with(begins), "a transaction of its own: {case}");
        assert_eq!(count(&sent, BOUNDS_WAITS), count(&sent, OWN_WAITS));
        let times = if is_done { 1 } else { 2 };
        assert_eq!(count(&sent, CUSTOMER), times, "{case}");
        // A server that may be one of several is asked before rows are sent again.
        let asks_cluster = engine.profile.name == "MySQL" && !is_done;
        assert_eq!(
            count(&sent, "catalogue: cluster"),
            usize::from(asks_cluster),
            "{case}"
        );
    }
}

/// Where the question for the rows has no answer either, the flush does not know, and says so.
#[tokio::test]
async fn a_commit_stays_unknown_while_its_rows_cannot_be_asked_for() {
    let answers = [
        (Answer::Ends, false),
        (Answer::DoesAndEnds, true),
        (Answer::Fails(codes::PD_TIMEOUT), false),
        (Answer::DoesAndFails(codes::PD_TIMEOUT), true),
        (Answer::Fails(codes::VITESS_UNAVAILABLE), false),
        (Answer::DoesAndFails(codes::VITESS_UNAVAILABLE), true),
    ];
    let asked = [
        Answer::Ends,
        Answer::Fails(codes::PD_TIMEOUT),
        Answer::Fails(codes::VITESS_UNSUPPORTED),
    ];
    let cases = answers
        .iter()
        .flat_map(|&it| asked.map(|asked| (it, asked)));
    let cases = cases.flat_map(|it| ENGINES.map(|engine| (it, engine)));
    for ((((answer, is_done), asked), engine), library) in each(cases) {
        let peer = peer(engine);
        peer.once("COMMIT", answer);
        peer.always("SELECT 1 FROM `customers`", asked);
        let said = library.flush(&peer, engine.profile, GRAPH).await;
        let sent = library.sent(&peer);
        assert!(
            matches!(said, Said::Unknown(_)),
            "{library:?} {} {answer:?} {asked:?}: {said:?} {sent:#?}",
            engine.name
        );
        has(&peer, GRAPH, is_done);
        assert_eq!(count(&sent, CUSTOMER), 1, "{library:?} {sent:#?}");
    }
}
