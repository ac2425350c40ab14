use std::{ops::Range, sync::Arc};

use super::*;
use crate::{
    leases::scripted::{Script, Scripted, changed, rows},
    spi::blocking as ready,
};
use ordid_core::storage::dialect::{Babelfish, MySql, Oracle, Postgres, SqlServer, Sqlite};

/// Leases of these nodes.
fn leases<D: LeaseDialect>(script: &Arc<Script>, nodes: Range<u64>) -> SqlLease<Scripted<D>> {
    SqlLease::new(Arc::clone(script), terms(nodes))
}

/// Four nodes of a database with this script.
fn four(script: &Arc<Script>) -> SqlLease<Scripted<Oracle>> {
    leases(script, 0..4)
}

fn terms(nodes: Range<u64>) -> LeaseTerms {
    LeaseTerms::new(nodes).unwrap()
}

/// The texts of all statements: free, take, count, read, renew, release, write back.
fn texts<D: LeaseDialect>() -> [Arc<str>; 7] {
    let nodes = leases::<D>(&Arc::default(), 0..2);
    let statements = [
        &nodes.kind.free,
        &nodes.kind.take,
        &nodes.kind.count,
        &nodes.read,
        &nodes.renew,
        &nodes.release,
        &nodes.write_back,
    ];
    let kinds = statements.map(|statement| (statement.is_change(), statement.may_repeat()));
    let (reads, changes) = ((false, true), (true, false));
    let expected = [reads, changes, reads, reads, changes, changes, (true, true)];
    assert_eq!(kinds, expected, "{}", D::NAME);
    statements.map(|statement| Arc::clone(statement.sql()))
}

#[test]
fn the_statements_of_postgres() {
    assert_eq!(
        texts::<Postgres>().map(|text| text.to_string()),
        [
            "SELECT node, epoch, ceiling, NOW FROM \"ordid_nodes\" WHERE node >= $1 AND node < $2 AND \
             expires <= NOW ORDER BY ceiling, node LIMIT 32",
            "UPDATE \"ordid_nodes\" SET epoch = epoch + 1, ceiling = $1, expires = NOW + $2 WHERE node = $3 \
             AND epoch = $4 AND ceiling = $5 AND expires <= NOW",
            "SELECT COUNT(*), COALESCE(MIN(expires), 0) - NOW FROM \"ordid_nodes\" WHERE node >= $1 AND \
             node < $2",
            "SELECT epoch, ceiling, NOW FROM \"ordid_nodes\" WHERE node = $1",
            "UPDATE \"ordid_nodes\" SET ceiling = $1, expires = NOW + $2 WHERE node = $3 AND epoch = $4 AND \
             ceiling = $5",
            "UPDATE \"ordid_nodes\" SET ceiling = $1, expires = 0 WHERE node = $2 AND epoch = $3 AND \
             ceiling = $4",
            "UPDATE \"ordid_nodes\" SET epoch = CASE WHEN epoch < $1 THEN $2 ELSE epoch END, \
             ceiling = CASE WHEN ceiling < $3 THEN $4 ELSE ceiling END WHERE node = $5",
        ]
        .map(|text| text.replace(
            "NOW",
            "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)"
        ))
    );
}

#[test]
fn the_statements_of_mysql_and_sqlite() {
    for (texts, quote, clock) in [
        (
            texts::<MySql>(),
            "`",
            "(TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(3)) DIV 1000)",
        ),
        (
            texts::<Sqlite>(),
            "\"",
            "CAST(round((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)",
        ),
    ] {
        let [free, take, ..] = texts;
        let expected = "SELECT node, epoch, ceiling, NOW FROM \"ordid_nodes\" WHERE node >= ? AND node < ? \
                        AND expires <= NOW ORDER BY ceiling, node LIMIT 32";
        let expected = expected.replace('"', quote).replace("NOW", clock);
        assert_eq!(*free, *expected);
        let expected = "UPDATE \"ordid_nodes\" SET epoch = epoch + 1, ceiling = ?, expires = NOW + ? WHERE \
                        node = ? AND epoch = ? AND ceiling = ? AND expires <= NOW";
        let expected = expected.replace('"', quote).replace("NOW", clock);
        assert_eq!(*take, *expected);
    }
}

#[test]
fn the_statements_of_sql_server_and_babelfish() {
    let expected = [
        "SELECT TOP (32) node, epoch, ceiling, NOW FROM [ordid_nodes] WHERE node >= @P1 AND node < @P2 AND \
         expires <= NOW ORDER BY ceiling, node",
        "UPDATE [ordid_nodes] SET epoch = epoch + 1, ceiling = @P1, expires = NOW + @P2 WHERE node = @P3 \
         AND epoch = @P4 AND ceiling = @P5 AND expires <= NOW; SELECT @@ROWCOUNT",
        "SELECT COUNT(*), COALESCE(MIN(expires), 0) - NOW FROM [ordid_nodes] WHERE node >= @P1 AND node < \
         @P2",
        "SELECT epoch, ceiling, NOW FROM [ordid_nodes] WHERE node = @P1",
        "UPDATE [ordid_nodes] SET ceiling = @P1, expires = NOW + @P2 WHERE node = @P3 AND epoch = @P4 AND \
         ceiling = @P5; SELECT @@ROWCOUNT",
        "UPDATE [ordid_nodes] SET ceiling = @P1, expires = 0 WHERE node = @P2 AND epoch = @P3 AND \
         ceiling = @P4; SELECT @@ROWCOUNT",
        "UPDATE [ordid_nodes] SET epoch = CASE WHEN epoch < @P1 THEN @P2 ELSE epoch END, ceiling = CASE \
         WHEN ceiling < @P3 THEN @P4 ELSE ceiling END WHERE node = @P5; SELECT @@ROWCOUNT",
    ]
    .map(|text| {
        text.replace(
            "NOW",
            "DATEDIFF_BIG(millisecond, '1970-01-01', SYSUTCDATETIME())",
        )
    });
    assert_eq!(texts::<SqlServer>().map(|text| text.to_string()), expected);
    assert_eq!(texts::<Babelfish>().map(|text| text.to_string()), expected);
}

#[test]
fn the_statements_of_oracle() {
    assert_eq!(
        texts::<Oracle>().map(|text| text.to_string()),
        [
            "SELECT node, epoch, ceiling, NOW FROM \"ordid_nodes\" WHERE node >= :1 AND node < :2 AND \
             expires <= NOW ORDER BY ceiling, node FETCH FIRST 32 ROWS ONLY",
            "UPDATE \"ordid_nodes\" SET epoch = epoch + 1, ceiling = :1, expires = NOW + :2 WHERE node = :3 \
             AND epoch = :4 AND ceiling = :5 AND expires <= NOW",
            "SELECT COUNT(*), COALESCE(MIN(expires), 0) - NOW FROM \"ordid_nodes\" WHERE node >= :1 AND \
             node < :2",
            "SELECT epoch, ceiling, NOW FROM \"ordid_nodes\" WHERE node = :1",
            "UPDATE \"ordid_nodes\" SET ceiling = :1, expires = NOW + :2 WHERE node = :3 AND epoch = :4 AND \
             ceiling = :5",
            "UPDATE \"ordid_nodes\" SET ceiling = :1, expires = 0 WHERE node = :2 AND epoch = :3 AND \
             ceiling = :4",
            "UPDATE \"ordid_nodes\" SET epoch = CASE WHEN epoch < :1 THEN :2 ELSE epoch END, \
             ceiling = CASE WHEN ceiling < :3 THEN :4 ELSE ceiling END WHERE node = :5",
        ]
        .map(|text| text.replace(
            "NOW",
            "(EXTRACT(DAY FROM (SYS_EXTRACT_UTC(SYSTIMESTAMP) - TIMESTAMP '1970-01-01 00:00:00')) * \
             86400000 + TO_NUMBER(TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'SSSSSFF3')))"
        ))
    );
}

fn create<D: LeaseDialect>() -> String {
    let nodes = leases::<D>(&Arc::default(), 5..8).with_table("my_nodes");
    nodes.unwrap().create_sql().unwrap()
}

#[test]
fn the_table_of_each_dialect() {
    let columns = "(node BIGINT NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, ceiling BIGINT NOT NULL, \
                   expires BIGINT NOT NULL)";
    let rows = "(node, epoch, ceiling, expires) VALUES (5, 0, 0, 0), (6, 0, 0, 0), (7, 0, 0, 0)";
    let postgres = format!(
        "CREATE TABLE IF NOT EXISTS \"my_nodes\" {columns};\n\
         INSERT INTO \"my_nodes\" {rows} ON CONFLICT DO NOTHING;"
    );
    assert_eq!(create::<Postgres>(), postgres);
    assert_eq!(create::<Sqlite>(), postgres);
    assert_eq!(
        create::<MySql>(),
        format!(
            "CREATE TABLE IF NOT EXISTS `my_nodes` {columns} ENGINE=InnoDB;\n\
             INSERT INTO `my_nodes` {rows} ON DUPLICATE KEY UPDATE node = node;"
        )
    );
    let sql_server = "\
        IF OBJECT_ID(N'[my_nodes]', N'U') IS NULL CREATE TABLE [my_nodes] (node bigint NOT NULL PRIMARY KEY, \
        epoch bigint NOT NULL, ceiling bigint NOT NULL, expires bigint NOT NULL);\n\
        WITH digits (d) AS (SELECT d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), \
        (11), (12), (13), (14), (15)) AS v (d)), numbers (n) AS (SELECT a.d + 16 * b.d + 256 * c.d + \
        4096 * e.d FROM digits AS a CROSS JOIN digits AS b CROSS JOIN digits AS c CROSS JOIN digits AS e)\n\
        INSERT INTO [my_nodes] (node, epoch, ceiling, expires) SELECT CAST(5 AS bigint) + n, 0, 0, 0 FROM \
        numbers WHERE n < 3 AND NOT EXISTS (SELECT 1 FROM [my_nodes] AS old WHERE old.node = \
        CAST(5 AS bigint) + numbers.n);";
    assert_eq!(create::<Babelfish>(), sql_server);
    let clustered = sql_server.replace("PRIMARY KEY", "PRIMARY KEY CLUSTERED");
    assert_eq!(create::<SqlServer>(), clustered);
    assert_eq!(
        create::<Oracle>(),
        "DECLARE\n  is_there EXCEPTION;\n  PRAGMA EXCEPTION_INIT(is_there, -955);\nBEGIN\n  BEGIN\n    \
         EXECUTE IMMEDIATE 'CREATE TABLE \"my_nodes\" (node NUMBER(19) NOT NULL PRIMARY KEY, epoch \
         NUMBER(19) NOT NULL, ceiling NUMBER(19) NOT NULL, expires NUMBER(19) NOT NULL)';\n  EXCEPTION WHEN \
         is_there THEN NULL;\n  END;\n  EXECUTE IMMEDIATE 'INSERT INTO \"my_nodes\" (node, epoch, ceiling, \
         expires) SELECT wanted.node, 0, 0, 0 FROM (SELECT 5 + LEVEL - 1 AS node FROM dual CONNECT BY LEVEL \
         <= 3) wanted WHERE NOT EXISTS (SELECT 1 FROM \"my_nodes\" old WHERE old.node = wanted.node)';\n  \
         COMMIT;\nEND;"
    );
}

#[test]
fn tables_with_too_many_rows_or_wrong_names_are_refused() {
    let mismatch = Some(CoordinationFailure::Mismatch);
    let nodes = leases::<SqlServer>(&Arc::default(), 3..3 + (1 << 16));
    assert!(nodes.create_sql().is_ok());
    let nodes = leases::<SqlServer>(&Arc::default(), 3..4 + (1 << 16));
    let error = nodes.create_sql().unwrap_err();
    assert_eq!(error.coordination_failure(), mismatch);
    let error = nodes.with_table("a'b").unwrap_err();
    assert_eq!(error.coordination_failure(), mismatch);
}

const NOW: i64 = 1_800_000_000_000;

fn at(millis: i64) -> Timestamp {
    time(NOW + millis)
}

fn word(word: &str, values: &[i64]) -> (String, Vec<String>) {
    (
        word.to_string(),
        values.iter().map(i64::to_string).collect(),
    )
}

#[test]
fn a_free_node_is_taken_as_it_was_read() {
    let script = Script::new(vec![
        // The ceiling of one that is further than the clock, so that there is no choice.
        rows(vec![vec![2, 6, NOW + 500, NOW], vec![3, 1, NOW + 900, NOW]]),
        // Another was faster.
        changed(0),
        changed(1),
    ]);
    let grant = ready(four(&script).acquire(at(0), None));
    let expected = Grant::new(3, 2, at(900), at(3_900)).unwrap();
    assert_eq!(grant, Ok(expected));
    assert_eq!(
        script.asked(),
        [
            word("SELECT", &[0, 4]),
            word("UPDATE", &[NOW + 3_500, 10_000, 2, 6, NOW + 500]),
            word("UPDATE", &[NOW + 3_900, 10_000, 3, 1, NOW + 900]),
        ]
    );
}

/// The ceiling of a node that was never granted is a floor that somebody has set.
#[test]
fn a_ceiling_counts_without_a_grant() {
    for (ceiling, floor) in [(0, 0), (NOW + 400, 400)] {
        let script = Script::new(vec![rows(vec![vec![3, 0, ceiling, NOW + 100]]), changed(1)]);
        let grant = ready(four(&script).acquire(at(0), None)).unwrap();
        assert_eq!((grant.epoch(), grant.floor()), (1, at(floor)));
    }
}

#[test]
fn processes_that_start_together_begin_with_different_nodes() {
    let mut first = [0; 4];
    for _ in 0..200 {
        let free = (0..4).map(|node| vec![node, 0, 0, NOW]).collect();
        let script = Script::new(vec![rows(free), changed(1)]);
        let grant = ready(four(&script).acquire(at(0), None));
        let node = usize::try_from(grant.unwrap().node()).unwrap();
        first[node] += 1;
    }
    assert!(first.iter().all(|times| *times > 0), "{first:?}");
}

#[test]
fn acquire_says_why_no_node_is_free() {
    for (there, failure, said) in [
        (
            4,
            CoordinationFailure::NoFreeNode,
            "no node is free: table ordid_nodes of SQL Server has 4 nodes, and all are held; the first may \
             be free in 70 ms",
        ),
        (
            3,
            CoordinationFailure::StateLost,
            "the store has lost its state: table ordid_nodes of SQL Server has rows for 3 of the nodes 0..4: \
             make the others with `create`, once it is known that no process has them",
        ),
    ] {
        let script = Script::new(vec![rows(vec![]), rows(vec![vec![there, 70]])]);
        let error = ready(leases::<SqlServer>(&script, 0..4).acquire(at(0), None)).unwrap_err();
        assert_eq!(error.coordination_failure(), Some(failure));
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn a_renewal_compares_what_was_read_and_reads_again_after_a_change() {
    let grant = Grant::new(2, 7, at(0), at(3_000)).unwrap();
    let stored = || rows(vec![vec![7, NOW + 3_000, NOW]]);
    let script = Script::new(vec![stored(), changed(1)]);
    let renewed = ready(four(&script).renew(&grant, at(1_000)));
    assert_eq!(renewed, Grant::new(2, 7, at(0), at(4_000)));
    let read = word("SELECT", &[2]);
    let update = word("UPDATE", &[NOW + 4_000, 10_000, 2, 7, NOW + 3_000]);
    assert_eq!(script.asked(), [read.clone(), update.clone()]);

    let others = rows(vec![vec![8, NOW + 9_000, NOW]]);
    let script = Script::new(vec![stored(), changed(0), others]);
    let error = ready(four(&script).renew(&grant, at(1_000))).unwrap_err();
    assert!(
        error.to_string().contains("was granted to another"),
        "{error}"
    );
    assert_eq!(script.asked(), [read.clone(), update.clone(), read.clone()]);

    // It is as before, and yet nothing was changed.
    let script = Script::new(vec![stored(), changed(0), stored()]);
    let error = ready(four(&script).renew(&grant, at(1_000))).unwrap_err();
    let fenced = Some(CoordinationFailure::Fenced);
    assert_eq!(error.coordination_failure(), fenced, "{error}");

    // A row that is gone.
    let script = Script::new(vec![rows(vec![])]);
    let error = ready(four(&script).renew(&grant, at(1_000))).unwrap_err();
    let lost = Some(CoordinationFailure::StateLost);
    assert_eq!(error.coordination_failure(), lost, "{error}");
}

#[test]
fn a_ceiling_that_went_back_is_written_back() {
    let grant = Grant::new(2, 7, at(0), at(3_000)).unwrap();
    let regressed = Some(CoordinationFailure::CeilingRegressed);
    let unavailable = Error::coordination(CoordinationFailure::Unavailable, "");
    // Whether it is heard or not, the holder stops for the same reason.
    for written in [changed(1), Err(unavailable)] {
        let old = || rows(vec![vec![6, NOW, NOW]]);
        let script = Script::new(vec![
            old(),
            changed(0),
            written.clone(),
            old(),
            changed(0),
            written,
        ]);
        let renewed = ready(four(&script).renew(&grant, at(0))).unwrap_err();
        let released = ready(four(&script).release(&grant, None)).unwrap_err();
        assert_eq!(renewed.coordination_failure(), regressed);
        assert_eq!(released.coordination_failure(), regressed);
        let back = word("UPDATE", &[7, 7, NOW + 3_000, NOW + 3_000, 2]);
        let read = word("SELECT", &[2]);
        let renews = word("UPDATE", &[NOW + 3_000, 10_000, 2, 7, NOW + 3_000]);
        let releases = word("UPDATE", &[NOW, 2, 7, NOW + 3_000]);
        assert_eq!(
            script.asked(),
            [read.clone(), renews, back.clone(), read, releases, back]
        );
    }
}

/// The row was read from a server that is behind, and changed on the one that has it.
#[test]
fn a_ceiling_that_was_read_from_a_copy_has_not_gone_back() {
    let grant = Grant::new(2, 7, at(0), at(3_000)).unwrap();
    let old = || rows(vec![vec![6, NOW, NOW]]);
    let script = Script::new(vec![old(), changed(1), old(), changed(1)]);
    let renewed = ready(four(&script).renew(&grant, at(1_000))).unwrap();
    assert_eq!(renewed, Grant::new(2, 7, at(0), at(4_000)).unwrap());
    assert_eq!(ready(four(&script).release(&renewed, Some(at(41)))), Ok(()));
    let read = word("SELECT", &[2]);
    let renews = word("UPDATE", &[NOW + 4_000, 10_000, 2, 7, NOW + 3_000]);
    let releases = word("UPDATE", &[NOW + 42, 2, 7, NOW + 4_000]);
    assert_eq!(script.asked(), [read.clone(), renews, read, releases]);
    // The answer to the change was lost: nobody says that the store went back.
    let unavailable = || Err(Error::coordination(CoordinationFailure::Unavailable, ""));
    let script = Script::new(vec![old(), unavailable()]);
    let error = ready(four(&script).renew(&grant, at(0))).unwrap_err();
    let expected = Some(CoordinationFailure::Unavailable);
    assert_eq!(error.coordination_failure(), expected);
}

/// A member of a Galera cluster or a replication group takes writes, and may be behind the others.
#[test]
fn a_member_of_a_cluster_waits_for_what_the_others_committed() {
    let grant = Grant::new(2, 7, at(0), at(3_000)).unwrap();
    let stored = || rows(vec![vec![7, NOW + 3_000, NOW]]);
    let said = || rows(vec![vec![7, NOW + 4_000, NOW]]);
    let refused = Err(Error::coordination(CoordinationFailure::Unavailable, ""));
    for (cluster, settings) in [
        (rows(vec![vec![1]]), Some("wsrep_sync_wait = ")),
        (
            rows(vec![vec![0]]),
            Some("group_replication_consistency = "),
        ),
        (rows(vec![]), None),
        // An engine that has no such variables.
        (refused, None),
    ] {
        let script = Script::new(vec![cluster, stored(), changed(1), said(), changed(1)]);
        let leases = leases::<MySql>(&script, 0..4);
        let renewed = ready(leases.renew(&grant, at(1_000))).unwrap();
        let texts = script.texts();
        assert!(texts[0].starts_with("SET SESSION autocommit = 1;"));
        assert!(texts[1].contains("wsrep_on"), "{}", texts[1]);
        if let Some(setting) = settings {
            assert!(texts[2].contains(setting), "{}", texts[2]);
        }
        let next = if settings.is_some() { 3 } else { 2 };
        let words = |texts: &[Arc<str>]| {
            texts
                .iter()
                .map(|text| text[..6].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&texts[next..]), ["SELECT", "UPDATE"]);
        // Once for each connection.
        ready(leases.renew(&renewed, at(1_500))).unwrap();
        assert_eq!(words(&script.texts()), ["SELECT", "UPDATE"]);
    }
    // Without an answer nobody knows.
    let lost = Script::new(vec![stored(), changed(1)]);
    ready(four(&lost).renew(&grant, at(1_000))).unwrap();
    assert_eq!(lost.texts().len(), 2, "no other dialect asks");
}

#[test]
fn a_release_keeps_what_was_used() {
    let grant = Grant::new(2, 7, at(0), at(3_000)).unwrap();
    let stored = || rows(vec![vec![7, NOW + 3_000, NOW]]);
    let script = Script::new(vec![stored(), changed(1), stored(), changed(0)]);
    assert_eq!(ready(four(&script).release(&grant, Some(at(41)))), Ok(()));
    let error = ready(four(&script).release(&grant, Some(at(41)))).unwrap_err();
    assert!(
        error.to_string().contains("was changed by others"),
        "{error}"
    );
    let update = word("UPDATE", &[NOW + 42, 2, 7, NOW + 3_000]);
    let read = word("SELECT", &[2]);
    assert_eq!(
        script.asked(),
        [read.clone(), update.clone(), read.clone(), update]
    );
    // Its answer was lost: nothing is written back.
    let script = Script::new(vec![rows(vec![vec![7, NOW + 42, NOW]]), changed(1)]);
    assert_eq!(ready(four(&script).release(&grant, Some(at(41)))), Ok(()));
    let again = word("UPDATE", &[NOW + 42, 2, 7, NOW + 42]);
    assert_eq!(script.asked(), [read, again]);
}

fn disposable<D: CounterDialect>() -> (String, Arc<str>) {
    let nodes = SqlDisposableNode::<Scripted<D>>::new(Arc::default(), terms(0..4));
    (nodes.create_sql(), Arc::clone(nodes.kind.insert.sql()))
}

#[test]
fn the_statements_of_nodes_that_are_used_once() {
    let (create, insert) = disposable::<Postgres>();
    assert_eq!(
        create,
        "CREATE TABLE IF NOT EXISTS \"ordid_disposable_nodes\" (node bigint GENERATED BY DEFAULT AS IDENTITY \
         PRIMARY KEY, epoch BIGINT NOT NULL, ceiling BIGINT NOT NULL, expires BIGINT NOT NULL);"
    );
    assert_eq!(
        *insert,
        *"INSERT INTO \"ordid_disposable_nodes\" (epoch, ceiling, expires) VALUES (1, $1, \
          CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint) + $2) RETURNING node"
    );
    let (create, insert) = disposable::<MySql>();
    assert!(create.ends_with(") ENGINE=InnoDB;") && create.contains("AUTO_INCREMENT"));
    assert!(insert.ends_with(" + ?)"), "by LAST_INSERT_ID");
    let (create, _) = disposable::<Sqlite>();
    assert!(create.contains("AUTOINCREMENT"), "never a number again");
}

#[test]
fn exhausted_numbers_and_numbers_below_the_first_are_errors() {
    let grant = |nodes: Range<u64>, returned: i64| {
        let script = Script::new(vec![rows(vec![vec![NOW]]), rows(vec![vec![returned]])]);
        let nodes = SqlDisposableNode::<Scripted<Sqlite>>::new(script, terms(nodes));
        ready(nodes.acquire(at(0), None))
    };
    assert_eq!(grant(0..4, 3), Grant::new(3, 1, at(0), at(3_000)));
    let failure = |grant: Result<Grant, Error>| grant.unwrap_err().coordination_failure();
    let none = Some(CoordinationFailure::NoFreeNode);
    assert_eq!(failure(grant(0..4, 4)), none);
    let mismatch = Some(CoordinationFailure::Mismatch);
    assert_eq!(failure(grant(2..4, 1)), mismatch);
}
