//! Engines that speak PostgreSQL's protocol, through each library that speaks it.

mod libraries;

use libraries::{Library, pool};
use ordid_recorders::conversation::{Answer, Peer, Refusal, codes};
use ordid_sql::{ChunkLimits, EngineProfile, LockWaits, NotBulk};

use super::entities::{CHANGE, Flush, GRAPH, Rows, Said, TABLES, TENANT, has};

/// What `SELECT version()` answers, by the engines' documentation; and the profile.
const ENGINES: [(&str, EngineProfile); 5] = [
    (
        "CockroachDB CCL v24.3.1 (x86_64-pc-linux-gnu, built 2024/12/02 17:05:10, go1.22.8 X:nocoverageredesign)",
        EngineProfile::COCKROACHDB,
    ),
    (
        "PostgreSQL 15.2-YB-2.25.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17.0.6",
        EngineProfile::YUGABYTEDB,
    ),
    ("PostgreSQL 16", EngineProfile::AURORA_DSQL),
    (
        "PostgreSQL 16.6 on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit",
        EngineProfile::CITUS,
    ),
    (
        "PostgreSQL 16.6 on aarch64-unknown-linux-gnu, compiled by aarch64-unknown-linux-gnu-gcc (GCC) 9.5.0, 64-bit",
        EngineProfile::POSTGRES,
    ),
];

/// A peer whose catalogue says that each table has a primary key and no trigger.
fn peer(version: &'static str) -> Peer {
    let peer = Peer::postgres(version, TABLES).expect("a port");
    peer.always("pg_catalog.pg_index", Answer::Row("0"));
    // The versions of two engines do not say what they are; tables of their catalogs do.
    for (engine, table) in [
        (EngineProfile::AURORA_DSQL, "iam_pg_role_mappings"),
        (EngineProfile::CITUS, "pg_dist_partition"),
    ] {
        if version == version_of(engine) {
            peer.always("c.relname = 'pg_dist_partition'", Answer::Row(table));
        }
    }
    peer
}

const CUSTOMER: &str = r#"INSERT INTO "customers" ("id", "name") VALUES ($1, $2)"#;
const ORDERS: &str =
    r#"INSERT INTO "orders" ("id", "customer", "total") VALUES ($1, $2, $3), ($4, $5, $6)"#;
const PROBE: &str = r#"SELECT 1 FROM "customers" WHERE "id" = $1"#;
const BOUNDS_WAITS: &str = "SELECT pg_catalog.set_config('lock_timeout', '10000ms', true) FROM pg_catalog.pg_settings \
     WHERE name = 'lock_timeout' AND (setting::bigint = 0 OR setting::bigint > 10000)";
const MARKER: &str = "INSERT INTO ordid_flushes (id) VALUES ($1)";
const COPY: &str = r#"COPY "orders" ("id", "customer", "total") FROM STDIN (FORMAT binary)"#;

/// The question for keys is a transaction of its own, since an engine that refuses it would spoil the flush's.
const ASKS: [&str; 3] = ["BEGIN", "catalogue: keys", "ROLLBACK"];

const WRITES: [&str; 4] = ["BEGIN", CUSTOMER, ORDERS, "COMMIT"];

/// Otherwise the other tests would prove nothing.
#[tokio::test]
async fn the_peer_keeps_what_is_committed_and_refuses_it_a_second_time() {
    let peer = peer(version_of(EngineProfile::CITUS));
    let pool = pool(&peer);
    let customer = || {
        let id = ordid::uuid::Uuid::nil();
        sqlx::query(CUSTOMER).bind(id).bind("Ada")
    };
    let mut open = pool.begin().await.unwrap();
    customer().execute(&mut *open).await.unwrap();
    open.rollback().await.unwrap();
    assert_eq!(peer.committed("customers").len(), 0);
    for (answer, committed) in [
        (Answer::Fails(codes::RESULT_IS_AMBIGUOUS), 0),
        (Answer::DoesAndFails(codes::RESULT_IS_AMBIGUOUS), 1),
    ] {
        peer.once("COMMIT", answer);
        let mut open = pool.begin().await.unwrap();
        customer().execute(&mut *open).await.unwrap();
        open.commit().await.unwrap_err();
        assert_eq!(peer.committed("customers").len(), committed);
    }
    let again = customer().execute(&pool).await.unwrap_err();
    let code = again.into_database_error().unwrap();
    assert_eq!(code.code().as_deref(), Some("23505"));
    assert_eq!(peer.committed("customers").len(), 1);
}

#[tokio::test]
async fn each_engine_is_found_by_what_it_answers() {
    for (version, engine) in ENGINES {
        let peer = peer(version);
        for library in Library::ALL {
            let found = library.detect(&peer).await.unwrap();
            assert_eq!(found.name, engine.name, "{library:?}");
        }
    }
    // What a server refuses is no answer.
    let peer = peer(version_of(EngineProfile::POSTGRES));
    peer.always("pg_dist_partition", Answer::Fails(codes::SYNTAX));
    for library in Library::ALL {
        let refused = library.detect(&peer).await.unwrap_err();
        assert!(refused.contains("syntax"), "{library:?}: {refused}");
    }
}

#[tokio::test]
async fn a_graph_goes_parents_first_in_one_transaction_on_each_engine() {
    for (version, engine) in ENGINES {
        for library in Library::ALL {
            let peer = peer(version);
            let flushed = library.flush(&peer, engine, GRAPH).await.wrote();
            let expected = [&ASKS[..], &WRITES].concat();
            assert_eq!(library.sent(&peer), expected, "{library:?} {}", engine.name);
            assert_eq!((flushed.rows(), flushed.retries), (3, 0));
            has(&peer, GRAPH, true);
        }
    }
}

/// The key of the new order shows it for a flush that only inserts; a change needs the marker row.
#[tokio::test]
async fn a_change_goes_behind_its_marker_row() {
    for (version, engine) in ENGINES {
        for library in Library::ALL {
            let peer = peer(version);
            let flushed = library.flush(&peer, engine, CHANGE).await.wrote();
            assert_eq!((flushed.rows(), flushed.updated()), (3, 1));
            let sent = library.sent(&peer);
            assert_eq!(
                sent[..4],
                ["BEGIN", MARKER, CUSTOMER, ORDERS],
                "{library:?}"
            );
            assert!(sent[4].starts_with(library.update()), "{}", sent[4]);
            assert_eq!(sent[5..], ["COMMIT"]);
            assert_eq!(peer.committed("ordid_flushes").len(), 1);
        }
    }
}

/// Where the rows of a tenant are on one machine, a statement that does not name the tenant would go to all of them.
#[tokio::test]
async fn a_key_that_begins_with_the_tenant_stands_in_each_statement() {
    const ITEMS: &str =
        r#"INSERT INTO "items" ("customer", "id", "total") VALUES ($1, $2, $3), ($4, $5, $6)"#;
    const DELETE: &str = r#"DELETE FROM "items" WHERE "customer" = $1 AND "id" = $2"#;
    for ((version, engine), library) in each(ENGINES) {
        let peer = peer(version);
        peer.once(
            "INSERT INTO \"items\"",
            Answer::Fails(codes::DEADLOCK_DETECTED),
        );
        let flushed = library.flush(&peer, engine, TENANT).await.wrote();
        let counts = (flushed.rows(), flushed.updated(), flushed.deleted());
        assert_eq!((counts, flushed.retries), ((3, 1, 1), 1));
        has(&peer, TENANT, true);
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {sent:#?}", engine.name);
        assert_eq!(
            sent[..5],
            ["BEGIN", MARKER, CUSTOMER, ITEMS, "ROLLBACK"],
            "{case}"
        );
        assert_eq!(sent[5..9], ["BEGIN", MARKER, CUSTOMER, ITEMS], "{case}");
        let (set, found_by) = sent[9].split_once(" WHERE ").expect("an UPDATE");
        assert!(set.starts_with(r#"UPDATE "items" "#), "{case}");
        assert!(
            !set.contains(r#""customer" = "#) && !set.contains(r#""id" = "#),
            "{case}"
        );
        assert!(
            found_by.contains(r#""customer" = "#) && found_by.contains(r#""id" = "#),
            "{case}"
        );
        assert_eq!(sent[10..], [DELETE, "COMMIT"], "{case}");
    }
}

const SAVEPOINT: &str = "SAVEPOINT ordid_flush";
const RELEASE: &str = "RELEASE SAVEPOINT ordid_flush";
const ROLL_BACK_TO: &str = "ROLLBACK TO SAVEPOINT ordid_flush";

#[tokio::test]
async fn a_flush_within_the_callers_transaction_has_a_savepoint() {
    for ((version, engine), library) in each(ENGINES) {
        let peer = peer(version);
        let said = library.flush(&peer, engine, Flush::within(GRAPH)).await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        if engine.savepoints {
            let expected = ["BEGIN", SAVEPOINT, CUSTOMER, ORDERS, RELEASE, "COMMIT"];
            assert_eq!(sent, expected, "{case}");
            assert_eq!(said.wrote().rows(), 3, "{case}");
        } else {
            assert_eq!(sent, ["BEGIN", "COMMIT"], "{case}");
            assert!(
                matches!(&said, Said::Nothing(text) if text.contains("savepoints")),
                "{case}"
            );
        }
        has(&peer, GRAPH, engine.savepoints);
    }
}

/// The caller's transaction goes on, without the rows. It is not tried again: the caller would have to repeat what came before.
#[tokio::test]
async fn a_refusal_within_the_callers_transaction_ends_at_the_savepoint() {
    let engines = ENGINES.into_iter().filter(|(_, it)| it.savepoints);
    for ((version, engine), library) in each(engines) {
        let peer = peer(version);
        peer.once(
            "INSERT INTO \"orders\"",
            Answer::Fails(codes::RETRY_SERIALIZABLE),
        );
        let said = library.flush(&peer, engine, Flush::within(GRAPH)).await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        assert!(matches!(said, Said::Nothing(_)), "{case}");
        let begun = ["BEGIN", SAVEPOINT, CUSTOMER, ORDERS];
        assert_eq!(sent[..4], begun, "{case}");
        assert_eq!(sent[4], ROLL_BACK_TO, "{case}");
        assert_eq!(sent.last().map(String::as_str), Some("COMMIT"), "{case}");
        has(&peer, GRAPH, false);
    }
}

/// Two rows that refer to each other, in columns that are not NULL.
#[tokio::test]
async fn a_circle_is_checked_at_commit_where_the_engine_defers() {
    const LINKS: &str = r#"INSERT INTO "links" ("id", "next") VALUES ($1, $2), ($3, $4)"#;
    let rows = Rows {
        orders: 0,
        links: true,
        ..GRAPH
    };
    for ((version, engine), library) in each(ENGINES) {
        let peer = peer(version);
        let said = library.flush(&peer, engine, rows).await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        let Some(defer) = engine.defer else {
            assert_eq!(sent.len(), 0, "{case}");
            assert!(
                matches!(&said, Said::Nothing(text) if text.contains("circle")),
                "{case}"
            );
            continue;
        };
        let position = |of: &str| sent.iter().position(|sql| sql == of);
        let [begins, defers, writes, commits] =
            ["BEGIN", defer, LINKS, "COMMIT"].map(|sql| position(sql).expect(&case));
        assert!(
            begins < defers && defers < writes && writes < commits,
            "{case}"
        );
        assert_eq!(said.wrote().rows(), 3, "{case}");
        has(&peer, rows, true);
    }
}

/// The first row is there, and so is updated; the second one is not, until another program inserts it.
#[tokio::test]
async fn upserts_ask_which_rows_are_there_and_ask_again_after_a_race() {
    const FIND: &str =
        "SELECT string_agg(ordid_number, ',') FROM (VALUES ($1, '0'), ($2, '1')) AS ordid_rows";
    const INSERT: &str = r#"INSERT INTO "orders" ("id", "customer", "total") VALUES ($1, $2, $3)"#;
    let rows = Rows {
        orders: 0,
        upserts: 2,
        ..GRAPH
    };
    for ((version, engine), library) in each(ENGINES) {
        let peer = peer(version);
        peer.once("SELECT string_agg", Answer::Row("0"));
        peer.once(
            "INSERT INTO \"orders\"",
            Answer::Fails(codes::UNIQUE_VIOLATION),
        );
        peer.once("SELECT string_agg", Answer::Row("0"));
        let flushed = library.flush(&peer, engine, rows).await.wrote();
        assert_eq!(
            (flushed.rows(), flushed.updated(), flushed.retries),
            (2, 1, 1)
        );
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {sent:#?}", engine.name);
        let begins = |at: usize, with: &str| assert!(sent[at].starts_with(with), "{at} {case}");
        assert_eq!(sent[..3], ["BEGIN", MARKER, CUSTOMER], "{case}");
        begins(3, FIND);
        begins(4, INSERT);
        assert_eq!(
            sent[5..9],
            ["ROLLBACK", "BEGIN", MARKER, CUSTOMER],
            "{case}"
        );
        begins(9, FIND);
        begins(10, INSERT);
        begins(11, library.update());
        assert_eq!(sent[12..], ["COMMIT"], "{case}");
        assert_eq!(peer.committed("orders").len(), 1, "{case}");
    }
}

/// PostgreSQL itself would take so many changes through a temporary table.
#[tokio::test]
async fn many_changes_and_deletes_go_by_statements_for_the_table_itself() {
    let rows = Rows {
        updates: 1_001,
        deletes: 3,
        ..GRAPH
    };
    let engines = ENGINES
        .into_iter()
        .filter(|(_, engine)| !engine.temporary_tables);
    for ((version, engine), library) in each(engines) {
        let peer = peer(version);
        let said = library.flush(&peer, engine, rows).await;
        let sent = library.sent(&peer);
        let case = format!("{library:?} {}: {said:?} {sent:#?}", engine.name);
        assert!(matches!(said, Said::Wrote(_)), "{case}");
        let flushed = said.wrote();
        assert_eq!((flushed.updated(), flushed.deleted()), (1_001, 3), "{case}");
        let count = |begin: &str| sent.iter().filter(|sql| sql.starts_with(begin)).count();
        assert_eq!(
            sent.iter().filter(|sql| sql.contains("TEMP")).count(),
            0,
            "{case}"
        );
        assert_eq!(count(r#"UPDATE "orders" "#), 2, "{case}");
        assert_eq!(
            count(r#"DELETE FROM "orders" WHERE "id" IN ($1, $2, $3)"#),
            1,
            "{case}"
        );
        has(&peer, rows, true);
    }
}

/// A catalogue that knows of no unique index: the engine would take the rows twice, so the marker row tells.
#[tokio::test]
async fn a_catalogue_without_keys_brings_a_marker_row() {
    for (version, engine) in ENGINES {
        for library in Library::ALL {
            let peer = Peer::postgres(version, TABLES).unwrap();
            library.flush(&peer, engine, GRAPH).await.wrote();
            let expected = [&ASKS[..], &["BEGIN", MARKER, CUSTOMER, ORDERS, "COMMIT"]].concat();
            assert_eq!(library.sent(&peer), expected, "{library:?} {}", engine.name);
        }
    }
}

const MANY: Rows = Rows {
    orders: 1_200,
    ..GRAPH
};

#[tokio::test]
async fn many_rows_go_by_copy_where_the_engine_has_it() {
    for (version, engine) in ENGINES {
        for library in Library::ALL {
            let peer = peer(version);
            let flushed = library.flush(&peer, engine, MANY).await.wrote();
            assert_eq!(flushed.rows(), 1_201);
            has(&peer, MANY, true);
            let sent = library.sent(&peer);
            let copies = sent.iter().filter(|sql| *sql == COPY).count();
            let copies_on = ["Citus", "PostgreSQL"].contains(&engine.name);
            let copies_by = Library::THAT_COPY.contains(&library);
            assert_eq!(copies == 1, copies_on && copies_by, "{library:?} {sent:#?}");
            if copies_on && !copies_by {
                assert_eq!(flushed.tables[1].not_bulk, Some(NotBulk::NoCommand));
            }
            let asks = sent.iter().any(|sql| sql == "catalogue: columns");
            assert_eq!(asks, copies == 1, "{sent:#?}");
        }
    }
}

/// What each engine says of a conflict, at which statement.
const CONFLICTS: [(EngineProfile, &str, Refusal); 9] = [
    (
        EngineProfile::COCKROACHDB,
        "INSERT INTO \"orders\"",
        codes::RETRY_SERIALIZABLE,
    ),
    (
        EngineProfile::COCKROACHDB,
        "COMMIT",
        codes::RETRY_SERIALIZABLE,
    ),
    (
        EngineProfile::YUGABYTEDB,
        "INSERT INTO \"orders\"",
        codes::CONFLICTS,
    ),
    (
        EngineProfile::YUGABYTEDB,
        "INSERT INTO \"customers\"",
        codes::DEADLOCK_DETECTED,
    ),
    (EngineProfile::YUGABYTEDB, "COMMIT", codes::CONFLICTS),
    (
        EngineProfile::CITUS,
        "INSERT INTO \"orders\"",
        codes::DEADLOCK_DETECTED,
    ),
    (EngineProfile::AURORA_DSQL, "COMMIT", codes::OC000),
    (EngineProfile::AURORA_DSQL, "COMMIT", codes::OC001),
    (
        EngineProfile::AURORA_DSQL,
        "INSERT INTO \"orders\"",
        codes::OC001,
    ),
];

#[tokio::test]
async fn a_conflict_is_tried_again_with_the_same_keys() {
    for (engine, at, refusal) in CONFLICTS {
        for library in Library::ALL {
            let peer = peer(version_of(engine));
            peer.once(at, Answer::Fails(refusal));
            let flushed = library.flush(&peer, engine, GRAPH).await.wrote();
            assert_eq!(flushed.retries, 1, "{refusal:?} at {at}");
            has(&peer, GRAPH, true);
            let sent = library.sent(&peer);
            let of_customer = sent.iter().filter(|sql| *sql == CUSTOMER).count();
            assert_eq!(of_customer, 2, "{sent:#?}");
            assert!(
                !sent.iter().any(|sql| sql == PROBE),
                "it is known: {sent:#?}"
            );
        }
    }
}

/// A primary that Patroni shuts down, a server that became a replica, and DSQL's sessions that end: over another
/// connection, which reaches the server that now writes.
#[tokio::test]
async fn a_failover_is_tried_again_over_another_connection() {
    for answer in [
        Answer::Fails(codes::ADMIN_SHUTDOWN),
        Answer::Fails(codes::READ_ONLY),
        Answer::Ends,
    ] {
        for (version, engine) in ENGINES {
            for library in Library::ALL {
                let peer = peer(version);
                peer.once("INSERT INTO \"orders\"", answer);
                let flushed = library.flush(&peer, engine, GRAPH).await.wrote();
                assert_eq!(flushed.retries, 1, "{answer:?}");
                has(&peer, GRAPH, true);
            }
        }
    }
}

/// CockroachDB says so by 40003, YugabyteDB by what failed within it; from each engine the answer may be lost.
#[tokio::test]
async fn an_unknown_commit_is_asked_for_and_no_row_is_doubled() {
    let mut answers = vec![(Answer::Ends, false), (Answer::DoesAndEnds, true)];
    for unknown in [
        codes::RESULT_IS_AMBIGUOUS,
        codes::TIMED_OUT,
        codes::EXPIRED,
        codes::IO_ERROR,
    ] {
        answers.push((Answer::Fails(unknown), false));
        answers.push((Answer::DoesAndFails(unknown), true));
    }
    for (answer, is_done) in answers {
        // PostgreSQL itself says after these that the transaction is rolled back.
        let is_of_server = answer.says(codes::TIMED_OUT) || answer.says(codes::IO_ERROR);
        let engines = ENGINES
            .into_iter()
            .filter(|(_, engine)| engine.is_distributed || !is_of_server);
        for (version, engine) in engines {
            for library in Library::ALL {
                let peer = peer(version);
                peer.once("COMMIT", answer);
                let flushed = library.flush(&peer, engine, GRAPH).await.wrote();
                has(&peer, GRAPH, true);
                let sent = library.sent(&peer);
                let place = sent.iter().position(|sql| sql == PROBE);
                let place = place.unwrap_or_else(|| panic!("{library:?} {sent:#?}"));
                let before = [&ASKS[..], &WRITES].concat();
                assert_eq!(sent[..7], before, "{library:?}");
                let asks: Vec<_> = sent[7..=place]
                    .iter()
                    .filter(|sql| !(library.rolls_back_after_commit() && *sql == "ROLLBACK"))
                    .collect();
                let expected = match engine.bounds_waits {
                    LockWaits::AsSet => &["BEGIN", PROBE][..],
                    _ => &["BEGIN", BOUNDS_WAITS, PROBE],
                };
                assert_eq!(asks, expected, "a transaction of its own: {library:?}");
                let written = sent.iter().filter(|sql| *sql == CUSTOMER).count();
                assert_eq!(written, if is_done { 1 } else { 2 }, "{sent:#?}");
                assert_eq!(flushed.rows(), 3);
            }
        }
    }
}

/// The same, of a change, of which only the marker row tells.
#[tokio::test]
async fn the_marker_row_tells_of_an_unknown_commit_of_a_change() {
    let asks = "SELECT 1 FROM ordid_flushes WHERE id = $1";
    for (answer, times) in [
        (Answer::Fails(codes::RESULT_IS_AMBIGUOUS), 2),
        (Answer::DoesAndFails(codes::RESULT_IS_AMBIGUOUS), 1),
    ] {
        for ((version, engine), library) in each(ENGINES) {
            let peer = peer(version);
            peer.once("COMMIT", answer);
            library.flush(&peer, engine, CHANGE).await.wrote();
            has(&peer, CHANGE, true);
            let sent = library.sent(&peer);
            assert!(sent.iter().any(|sql| sql == asks), "{library:?} {sent:#?}");
            let updates = sent.iter().filter(|sql| sql.starts_with("UPDATE")).count();
            assert_eq!(updates, times, "{library:?} {sent:#?}");
        }
    }
}

/// Where the question for the rows has no answer either, the flush does not know, and says so.
#[tokio::test]
async fn a_commit_stays_unknown_while_its_rows_cannot_be_asked_for() {
    for (answer, is_done) in [
        (Answer::Ends, false),
        (Answer::DoesAndEnds, true),
        (Answer::Fails(codes::RESULT_IS_AMBIGUOUS), false),
        (Answer::DoesAndFails(codes::RESULT_IS_AMBIGUOUS), true),
    ] {
        for asked in [
            Answer::Ends,
            Answer::Fails(codes::STATEMENT_TIMEOUT),
            Answer::Fails(codes::CONFLICTS),
        ] {
            for ((version, engine), library) in each(ENGINES) {
                let peer = peer(version);
                peer.once("COMMIT", answer);
                peer.always(PROBE, asked);
                let said = library.flush(&peer, engine, GRAPH).await;
                assert!(
                    matches!(said, Said::Unknown(_)),
                    "{library:?} {} {answer:?} {asked:?}: {said:?}",
                    engine.name
                );
                has(&peer, GRAPH, is_done);
                let sent = library.sent(&peer);
                let written = sent.iter().filter(|sql| *sql == CUSTOMER).count();
                assert_eq!(written, 1, "{library:?} {sent:#?}");
            }
        }
    }
}

/// An engine behind PostgreSQL's name that has no `COPY`.
#[tokio::test]
async fn a_refused_copy_becomes_an_insert() {
    for (refusal, engine) in [
        (codes::NO_COPY, EngineProfile::POSTGRES),
        (codes::NO_COPY, EngineProfile::CITUS),
        (codes::SYNTAX, EngineProfile::POSTGRES),
    ] {
        for library in Library::THAT_COPY {
            let peer = peer(version_of(engine));
            peer.always("COPY ", Answer::Fails(refusal));
            let flushed = library.flush(&peer, engine, MANY).await.wrote();
            assert_eq!((flushed.rows(), flushed.retries), (1_201, 0));
            let orders = flushed
                .tables
                .iter()
                .find(|it| it.table == "orders")
                .unwrap();
            assert_eq!((orders.bulk, orders.not_bulk), (0, Some(NotBulk::Refused)));
            has(&peer, MANY, true);
            let sent = library.sent(&peer);
            let of_copy = sent.iter().position(|sql| sql == COPY).unwrap();
            assert_eq!(
                sent[of_copy + 1..of_copy + 4],
                ["ROLLBACK", "BEGIN", CUSTOMER],
                "{library:?}"
            );
            let copies = sent.iter().filter(|sql| *sql == COPY).count();
            assert_eq!(copies, 1, "it is not tried again");
        }
    }
}

#[tokio::test]
async fn chunks_offer_no_more_rows_to_a_copy_that_was_refused() {
    for library in Library::THAT_COPY {
        let peer = peer(version_of(EngineProfile::CITUS));
        peer.always("COPY ", Answer::Fails(codes::NO_COPY));
        let rows = Rows {
            orders: 4_000,
            ..GRAPH
        };
        let flush = Flush {
            chunks: Some(ChunkLimits::rows(1_500)),
            ..rows.into()
        };
        let flushed = library.flush(&peer, EngineProfile::CITUS, flush).await;
        assert_eq!(flushed.wrote().rows(), 4_001);
        has(&peer, rows, true);
        assert!(peer.committed("ordid_flushes").len() >= 3);
        let copies = library.sent(&peer);
        let copies = copies.iter().filter(|sql| *sql == COPY).count();
        assert_eq!(copies, 1, "{library:?}");
    }
}

/// A limit that ended a `COPY` would end an `INSERT`, too.
#[tokio::test]
async fn a_copy_that_a_limit_ended_is_refused() {
    for library in Library::THAT_COPY {
        let peer = peer(version_of(EngineProfile::POSTGRES));
        peer.always("COPY ", Answer::Fails(codes::STATEMENT_TIMEOUT));
        let said = library.flush(&peer, EngineProfile::POSTGRES, MANY).await;
        let Said::Nothing(error) = said else {
            panic!("{said:?}");
        };
        assert!(error.contains("statement timeout"), "{error}");
        has(&peer, MANY, false);
        let sent = library.sent(&peer);
        let mut inserts = sent.iter().filter(|sql| sql.contains(" VALUES "));
        assert!(inserts.all(|sql| sql == CUSTOMER), "{sent:#?}");
    }
}

/// DSQL's limits: of a transaction, which would be met again, and of new connections.
#[tokio::test]
async fn a_limit_of_a_transaction_is_refused_and_one_of_connections_waited_for() {
    for library in Library::ALL {
        let engine = EngineProfile::AURORA_DSQL;
        let peer = peer(version_of(engine));
        peer.once("INSERT INTO \"orders\"", Answer::Fails(codes::ROW_LIMIT));
        let said = library.flush(&peer, engine, GRAPH).await;
        assert!(
            matches!(&said, Said::Nothing(error) if error.contains("row limit")),
            "{said:?}"
        );
        has(&peer, GRAPH, false);

        peer.once("BEGIN", Answer::Fails(codes::RATE_EXCEEDED));
        let said = library.flush(&peer, engine, GRAPH).await;
        assert_eq!(said.wrote().retries, 1, "{library:?}");
        has(&peer, GRAPH, true);
    }
}

/// Returns each case with each library.
fn each<T: Copy>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = (T, Library)> {
    let cases = cases.into_iter();
    cases.flat_map(|case| Library::ALL.map(|library| (case, library)))
}

fn version_of(engine: EngineProfile) -> &'static str {
    let found = ENGINES.iter().find(|(_, it)| it.name == engine.name);
    found.map(|(version, _)| *version).expect("it is listed")
}
