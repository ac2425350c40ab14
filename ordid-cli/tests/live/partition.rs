//! `ordid partition` on PostgreSQL.

use std::sync::atomic::{AtomicBool, Ordering};

use libtest_mimic::Trial;
use ordid::{KeyType, OrderedKey, uuid::Uuid};
use ordid_sqlx::UnitOfWork;
use serde_json::Value;
use sqlx::{
    AssertSqlSafe, PgPool, Postgres,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::place::{Result, Servers, block_on, execute, ordid, printed, refused};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name, test| trials.push(servers.trial("postgres", name, test));
    add(
        "partitions_are_made_ahead_and_a_second_run_does_nothing",
        ahead,
    );
    add(
        "the_statements_that_are_printed_do_the_same_in_psql",
        by_psql,
    );
    add(
        "a_unit_of_work_flushes_into_the_partitions_exactly_once",
        flushes,
    );
    add(
        "a_query_by_time_reads_only_the_partitions_of_that_time",
        prunes,
    );
    add("old_partitions_are_detached_and_keep_their_rows", detaches);
    add(
        "flushes_are_exactly_once_while_partitions_come_and_go_and_connections_are_cut",
        flushes_under_change,
    );
    add("a_detach_that_was_interrupted_is_completed", finalizes);
    add(
        "the_scheme_is_found_from_the_rows_or_has_to_be_named",
        schemes,
    );
    add(
        "tables_that_cannot_be_partitioned_get_one_clear_line",
        refusals,
    );
    add(
        "a_table_becomes_the_first_partition_by_the_statements_that_are_printed",
        becomes_partitioned,
    );
    add("names_are_quoted", names);
}

fn pool(url: &str) -> PgPool {
    PgPoolOptions::new()
        .max_connections(2)
        .connect_lazy(url)
        .expect("an address")
}

fn texts(url: &str, sql: &str) -> Result<Vec<String>> {
    block_on(async {
        let pool = pool(url);
        let texts = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_all(&pool)
            .await;
        pool.close().await;
        texts
    })
}

fn answer(arguments: &[&str], code: i32) -> Result<Value> {
    let arguments = [&["--json", "partition"][..], arguments].concat();
    Ok(serde_json::from_str(&printed(&arguments, code)?)?)
}

fn names_in(value: &Value) -> Vec<&str> {
    let rows = value.as_array().map(Vec::as_slice).unwrap_or_default();
    rows.iter().filter_map(|row| row["name"].as_str()).collect()
}

const EVENTS: &str = "CREATE SCHEMA app;
    CREATE TABLE app.events (id uuid PRIMARY KEY, note text NOT NULL) PARTITION BY RANGE (id)";

/// The table that the tests of a unit of work fill.
#[derive(KeyType)]
#[ordid(sqlx(postgres = uuid))]
struct EventId(Uuid);

#[derive(OrderedKey)]
#[ordid(schema = "app", table = "events")]
struct Event {
    id: EventId,
    note: String,
}

fn ahead(url: &str) -> Result {
    execute(url, EVENTS)?;
    for (by, ahead) in [("day", "2"), ("week", "1"), ("month", "3"), ("year", "1")] {
        let arguments = [
            url,
            "--table",
            "app.events",
            "--scheme",
            "uuid_v7",
            "--by",
            by,
            "--ahead",
            ahead,
        ];
        let planned = answer(&arguments, 1)?;
        assert_eq!(planned["applied"], false);
        let count = ahead.parse::<usize>()? + 1;
        assert_eq!(names_in(&planned["create"]).len(), count, "{planned}");
        // Nothing was changed.
        assert_eq!(answer(&arguments, 1)?, planned);
        let applied = answer(&[&arguments[..], &["--apply"]].concat(), 0)?;
        assert_eq!(applied["applied"], true);
        assert_eq!(applied["create"], planned["create"]);
        let there = answer(&arguments, 0)?;
        assert_eq!(names_in(&there["partitions"]), names_in(&planned["create"]));
        assert_eq!(names_in(&there["create"]), [""; 0]);
        let again = printed(&[&["partition"][..], &arguments, &["--apply"]].concat(), 0)?;
        assert!(again.ends_with("-- nothing is to be done\n"), "{again}");
        // Of each period its own table.
        execute(
            url,
            "DROP TABLE app.events; CREATE TABLE app.events (id uuid PRIMARY KEY) PARTITION BY RANGE (id)",
        )?;
    }
    Ok(())
}

fn by_psql(url: &str) -> Result {
    execute(url, EVENTS)?;
    let arguments = [
        "partition",
        url,
        "--table",
        "app.events",
        "--scheme",
        "uuid_v7",
    ];
    let script = printed(&arguments, 1)?;
    assert!(
        script.contains("-- 4 to create, 0 to detach; --apply does it"),
        "{script}"
    );
    let mut child = std::process::Command::new("psql")
        .args(["-q", "-X", "-v", "ON_ERROR_STOP=1", url])
        .stdin(std::process::Stdio::piped())
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("stdin")?;
    std::io::Write::write_all(&mut stdin, script.as_bytes())?;
    drop(stdin);
    assert!(child.wait()?.success());
    printed(&arguments, 0).map(|_| ())
}

fn flushes(url: &str) -> Result {
    execute(url, EVENTS)?;
    printed(
        &[
            "partition",
            url,
            "--table",
            "app.events",
            "--scheme",
            "uuid_v7",
            "--apply",
        ],
        0,
    )?;
    block_on(async {
        let pool = pool(url);
        sqlx::raw_sql(ordid_sqlx::flushes_table::<Postgres>())
            .execute(&pool)
            .await?;
        let mut work = UnitOfWork::<Postgres>::new();
        for number in 0..5_000 {
            work.add(Event {
                id: EventId::generate(),
                note: number.to_string(),
            });
        }
        let flushed = work.flush(&pool).await.expect("a flush");
        assert_eq!(flushed.rows(), 5_000);
        // What was flushed is not flushed again.
        assert_eq!(work.flush(&pool).await.expect("a flush").rows(), 0);
        pool.close().await;
        Ok(())
    })?;
    let counted = texts(
        url,
        "SELECT count(*) || ' ' || count(DISTINCT note) || ' ' || count(DISTINCT tableoid) FROM app.events",
    )?;
    assert!(
        ["5000 5000 1", "5000 5000 2"].contains(&&*counted[0]),
        "{counted:?}"
    );
    // The rows tell the scheme.
    let found = answer(&[url, "--table", "app.events"], 0)?;
    assert_eq!(
        (&found["scheme"], &found["column"]),
        (&"uuid_v7".into(), &"uuid".into())
    );
    Ok(())
}

fn prunes(url: &str) -> Result {
    execute(url, EVENTS)?;
    let arguments = [
        "partition",
        url,
        "--table",
        "app.events",
        "--scheme",
        "uuid_v7",
        "--apply",
        "--ahead",
        "11",
    ];
    printed(&arguments, 0)?;
    let functions = printed(
        &["sql", "postgres", "--scheme", "uuid_v7", "--column", "uuid"],
        0,
    )?;
    execute(url, &functions)?;
    let names = texts(
        url,
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'app.events'::regclass ORDER BY 1",
    )?;
    assert_eq!(names.len(), 12);
    let plan = |from: &str, to: &str| -> Result<Vec<String>> {
        let sql = format!(
            "EXPLAIN (COSTS OFF) SELECT * FROM app.events WHERE id >= ordid_uuid_v7_lowest({from}) \
             AND id < ordid_uuid_v7_lowest({to})"
        );
        let plan = texts(url, &sql)?.join("\n");
        let own = names.iter().map(|name| name.trim_start_matches("app."));
        Ok(own
            .filter(|name| plan.contains(&format!(" on {name}")))
            .map(str::to_owned)
            .collect())
    };
    let found = plan("date_trunc('month', now(), 'UTC')", "now()")?;
    // What is not a constant is pruned when the query runs; the plan of EXPLAIN has what is left.
    assert_eq!(found, [names[0].trim_start_matches("app.")]);
    let month = texts(
        url,
        "SELECT to_char(date_trunc('month', now(), 'UTC') + interval '2 months', 'YYYY-MM-01\"Z\"')",
    )?;
    let next = texts(
        url,
        "SELECT to_char(date_trunc('month', now(), 'UTC') + interval '4 months', 'YYYY-MM-01\"Z\"')",
    )?;
    let found = plan(&format!("'{}'", month[0]), &format!("'{}'", next[0]))?;
    let expected = names[2..4]
        .iter()
        .map(|name| name.trim_start_matches("app."));
    assert_eq!(found, expected.collect::<Vec<_>>());
    // `ordid range` gives literals that prune alike.
    let range = printed(
        &[
            "range",
            "uuid_v7",
            month[0].trim_end_matches('Z'),
            next[0].trim_end_matches('Z'),
            "--engine",
            "postgres",
            "--json",
        ],
        0,
    )?;
    let range: Value = serde_json::from_str(&range)?;
    let clause = range["where"].as_str().ok_or("a condition")?;
    let sql = format!(
        "EXPLAIN (COSTS OFF) SELECT * FROM app.events WHERE {}",
        clause.trim_start_matches("WHERE ")
    );
    let plan = texts(url, &sql)?.join("\n");
    let read = names
        .iter()
        .filter(|name| plan.contains(&format!(" on {}", name.trim_start_matches("app."))));
    assert_eq!(
        read.collect::<Vec<_>>(),
        names[2..4].iter().collect::<Vec<_>>(),
        "{plan}"
    );
    Ok(())
}

/// Makes a table with a partition for each of the last so many months, each with a row.
fn with_old(url: &str, months: u32) -> Result {
    execute(url, EVENTS)?;
    execute(
        url,
        &printed(
            &["sql", "postgres", "--scheme", "uuid_v7", "--column", "uuid"],
            0,
        )?,
    )?;
    execute(
        url,
        &format!(
            "DO $$ DECLARE at timestamptz; name text; BEGIN
            FOR n IN 1..{months} LOOP
                at := date_trunc('month', now(), 'UTC') - n * interval '1 month';
                name := 'app.events_' || to_char(at AT TIME ZONE 'UTC', 'YYYYMM');
                EXECUTE format('CREATE TABLE %s PARTITION OF app.events FOR VALUES FROM (%L) TO (%L)', name,
                    ordid_uuid_v7_lowest(at), ordid_uuid_v7_lowest(at + interval '1 month'));
                INSERT INTO app.events VALUES (ordid_uuid_v7_highest(at + interval '1 day'), name);
            END LOOP; END $$"
        ),
    )
}

fn detaches(url: &str) -> Result {
    with_old(url, 5)?;
    let arguments = [url, "--table", "app.events", "--ahead", "1"];
    assert_eq!(
        names_in(&answer(&arguments, 1)?["detach"]),
        [""; 0],
        "without --keep, none is old"
    );
    let arguments = [&arguments[..], &["--keep", "2"]].concat();
    let planned = answer(&arguments, 1)?;
    let there = texts(
        url,
        "SELECT relname::text FROM pg_class WHERE relname ~ '^events_[0-9]*$' ORDER BY 1",
    )?;
    assert_eq!(names_in(&planned["detach"]), there[..3]);
    let sql = planned["detach"][0]["sql"].as_str().unwrap_or_default();
    assert!(sql.ends_with(" CONCURRENTLY"), "{sql}");
    answer(&[&arguments[..], &["--apply"]].concat(), 0)?;
    assert_eq!(answer(&arguments, 0)?["detach"], Value::Array(Vec::new()));
    for name in &there[..3] {
        let rows = texts(url, &format!("SELECT note FROM app.{name}"))?;
        assert_eq!(rows, [format!("app.{name}")], "detached, and not dropped");
    }
    assert_eq!(texts(url, "SELECT count(*)::text FROM app.events")?, ["2"]);
    // With a default partition, PostgreSQL refuses to detach concurrently.
    execute(
        url,
        "CREATE TABLE app.other PARTITION OF app.events DEFAULT",
    )?;
    let arguments = [
        url,
        "--table",
        "app.events",
        "--ahead",
        "1",
        "--keep",
        "1",
        "--apply",
    ];
    let applied = answer(&arguments, 0)?;
    assert_eq!(names_in(&applied["detach"]), there[3..4]);
    assert_eq!(texts(url, "SELECT count(*)::text FROM app.events")?, ["1"]);
    Ok(())
}

/// Flushes while partitions are made ahead and old ones detached, and while the server ends the writer's connections.
fn flushes_under_change(url: &str) -> Result {
    const ROWS: usize = 250;

    with_old(url, 5)?;
    execute(url, ordid_sqlx::flushes_table::<Postgres>())?;
    let partition = |ahead: &str, keep: &str| {
        let arguments = [
            url,
            "--table",
            "app.events",
            "--ahead",
            ahead,
            "--keep",
            keep,
        ];
        answer(&[&arguments[..], &["--apply"]].concat(), 0)
    };
    partition("1", "5")?;
    let is_over = AtomicBool::new(false);
    let write = || {
        block_on(async {
            let options: PgConnectOptions = url.parse()?;
            let pool = PgPoolOptions::new()
                .max_connections(2)
                .connect_with(options.application_name("writer"))
                .await?;
            let mut flushes = 0;
            while !is_over.load(Ordering::Relaxed) {
                let mut work = UnitOfWork::<Postgres>::new();
                for row in 0..ROWS {
                    work.add(Event {
                        id: EventId::generate(),
                        note: format!("{flushes} {row}"),
                    });
                }
                // Rows stay with the unit of work until they are known to be committed.
                let mut tries = 0;
                while let Err(error) = work.flush(&pool).await {
                    tries += 1;
                    assert!(tries < 100, "{error}");
                }
                flushes += 1;
            }
            pool.close().await;
            Ok(flushes)
        })
    };
    let change = || -> Result<(usize, usize)> {
        let (mut cut, mut changed) = (0, 0);
        for (ahead, keep) in [("2", "4"), ("3", "3"), ("4", "2"), ("5", "1")] {
            for _ in 0..5 {
                let ended = texts(
                    url,
                    "SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity \
                     WHERE application_name = 'writer' AND datname = current_database()",
                )?;
                cut += ended.len();
            }
            let done = partition(ahead, keep)?;
            changed += names_in(&done["create"]).len() + names_in(&done["detach"]).len();
        }
        Ok((cut, changed))
    };
    let (flushes, changes) = std::thread::scope(|scope| {
        let writer = scope.spawn(write);
        let changes = change();
        is_over.store(true, Ordering::Relaxed);
        (writer.join(), changes)
    });
    let flushes: usize = flushes.map_err(|_| "the writer has panicked")??;
    let (cut, changed) = changes?;
    assert!(cut > 0 && flushes > 0, "{cut} cut, {flushes} flushes");
    assert_eq!(changed, 8, "four are made, and four detached");
    let counted = texts(
        url,
        "SELECT count(*) || ' ' || count(DISTINCT note) || ' ' || count(DISTINCT id) FROM app.events WHERE note !~ '^app'",
    )?;
    let all = flushes * ROWS;
    assert_eq!(counted, [format!("{all} {all} {all}")], "{cut} cut");
    Ok(())
}

fn finalizes(url: &str) -> Result {
    with_old(url, 2)?;
    let name = texts(
        url,
        "SELECT relname::text FROM pg_class WHERE relname ~ '^events_[0-9]*$' ORDER BY 1",
    )?;
    let [oldest, _] = &name[..] else {
        return Err("two partitions".into());
    };
    // A reader holds the second step of DETACH CONCURRENTLY back, until the lock timeout.
    block_on(async {
        let pool = pool(url);
        let mut reader = pool.begin().await?;
        sqlx::query("SELECT 1 FROM app.events")
            .execute(&mut *reader)
            .await?;
        let mut other = pool.acquire().await?;
        let sql = format!("ALTER TABLE app.events DETACH PARTITION app.{oldest} CONCURRENTLY");
        sqlx::query("SET lock_timeout = '300ms'")
            .execute(&mut *other)
            .await?;
        let held = sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *other).await;
        assert!(held.is_err());
        reader.rollback().await?;
        drop(other);
        pool.close().await;
        Ok(())
    })?;
    let arguments = [url, "--table", "app.events", "--ahead", "0"];
    let planned = answer(&arguments, 1)?;
    assert_eq!(names_in(&planned["detach"]), [oldest]);
    assert!(
        planned["detach"][0]["sql"]
            .as_str()
            .unwrap_or_default()
            .ends_with(" FINALIZE")
    );
    answer(&[&arguments[..], &["--apply"]].concat(), 0)?;
    assert_eq!(answer(&arguments, 0)?["detach"], Value::Array(Vec::new()));
    assert_eq!(
        texts(url, &format!("SELECT note FROM app.{oldest}"))?,
        [format!("app.{oldest}")]
    );
    Ok(())
}

fn schemes(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE ulids (id text COLLATE \"C\" PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE ulids_all PARTITION OF ulids DEFAULT;
         CREATE TABLE flakes (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE flakes_all PARTITION OF flakes DEFAULT;
         CREATE TABLE randoms (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE randoms_all PARTITION OF randoms DEFAULT;
         CREATE TABLE none (id uuid PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE bytes (id bytea PRIMARY KEY) PARTITION BY RANGE (id);
         INSERT INTO randoms SELECT gen_random_uuid() FROM generate_series(1, 100)",
    )?;
    for (table, scheme) in [("ulids", "ulid"), ("flakes", "snowflake")] {
        // Keys of next month at the earliest, so that no partition to come would take one of the default partition.
        let mut arguments = vec!["new", scheme, "-n", "50", "--at", "2024-05-01"];
        if scheme == "snowflake" {
            arguments.extend(["--node", "7"]);
        }
        for key in printed(&arguments, 0)?.lines() {
            execute(url, &format!("INSERT INTO {table} VALUES ('{key}')"))?;
        }
    }
    let found = answer(&[url, "--table", "ulids", "--apply"], 0)?;
    assert_eq!(
        (&found["scheme"], &found["column"]),
        (&"ulid".into(), &"char26".into())
    );
    let line = refused(&["partition", url, "--table", "flakes"], 2)?;
    assert!(
        line.contains("may be of") && line.contains("snowflake") && line.contains("--scheme"),
        "{line}"
    );
    answer(
        &[url, "--table", "flakes", "--scheme", "snowflake", "--apply"],
        0,
    )?;
    answer(&[url, "--table", "flakes", "--scheme", "snowflake"], 0)?;
    answer(
        &[url, "--table", "bytes", "--scheme", "object_id", "--apply"],
        0,
    )?;
    answer(&[url, "--table", "bytes", "--scheme", "object_id"], 0)?;
    let line = refused(&["partition", url, "--table", "randoms"], 2)?;
    assert!(line.contains("--scheme"), "{line}");
    let line = refused(&["partition", url, "--table", "none"], 2)?;
    assert!(
        line.contains("no rows that tell") && line.contains("--scheme"),
        "{line}"
    );
    let line = refused(
        &[
            "partition",
            url,
            "--table",
            "randoms",
            "--scheme",
            "uuid_v7",
        ],
        2,
    )?;
    assert!(line.contains("which is none of uuid_v7"), "{line}");
    let line = refused(
        &["partition", url, "--table", "none", "--scheme", "uuid_v1"],
        2,
    )?;
    assert!(line.contains("lose their order"), "{line}");
    Ok(())
}

fn refusals(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE plain (key uuid PRIMARY KEY); CREATE TABLE keyless (key uuid);
         CREATE TABLE two (a uuid, b uuid, PRIMARY KEY (a, b)); CREATE VIEW shown AS TABLE plain;
         CREATE TABLE listed (id uuid PRIMARY KEY) PARTITION BY LIST (id);
         CREATE TABLE pairs (a uuid, b uuid, PRIMARY KEY (a, b)) PARTITION BY RANGE (a, b);
         CREATE TABLE texts (id text PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE floats (id float8 PRIMARY KEY) PARTITION BY RANGE (id);
         CREATE TABLE taken (id uuid PRIMARY KEY) PARTITION BY RANGE (id)",
    )?;
    let month = texts(url, "SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMM')")?;
    execute(url, &format!("CREATE TABLE taken_{} (id uuid)", month[0]))?;
    let line = |table: &str, code: i32| {
        let scheme = [
            "partition",
            url,
            "--table",
            table,
            "--scheme",
            "uuid_v7",
            "--apply",
        ];
        refused(&scheme, code)
    };
    for (table, code, part) in [
        ("keyless", 3, "is not partitioned, and cannot be"),
        ("two", 3, "is not partitioned, and cannot be"),
        ("shown", 3, "is not partitioned, and cannot be"),
        ("listed", 3, "partitioned otherwise"),
        ("pairs", 3, "partitioned otherwise"),
        ("texts", 3, "COLLATE \"C\""),
        (
            "floats",
            2,
            "is a double precision, expected uuid, bytea, text or bigint",
        ),
        ("missing", 2, "there is no table \"missing\""),
        ("a.b.c", 2, "is no table's name"),
        ("taken", 3, "already exists"),
    ] {
        let line = line(table, code)?;
        assert!(line.contains(part), "{line}");
    }
    // A wrong address, a wrong engine, wrong numbers.
    let missing = refused(
        &["partition", "postgres://127.0.0.1:1/x", "--table", "t"],
        3,
    )?;
    assert!(missing.contains("cannot connect"), "{missing}");
    for arguments in [
        &["partition", url][..],
        &["partition", url, "--table", "plain", "--by", "hour"],
        &["partition", url, "--table", "plain", "--keep", "0"],
        &["partition", url, "--table", "plain", "--scheme", "uuid_v99"],
    ] {
        assert_eq!(ordid(arguments)?.status.code(), Some(2));
    }
    Ok(())
}

fn becomes_partitioned(url: &str) -> Result {
    const ROWS: usize = 12;
    let long = "o".repeat(63);
    execute(
        url,
        &format!(
            "CREATE SCHEMA \"My app\";
             CREATE TABLE \"My app\".\"Order's\" (\"the key\" uuid PRIMARY KEY, note text NOT NULL DEFAULT 'none' CHECK (note <> ''));
             CREATE INDEX by_note ON \"My app\".\"Order's\" (note);
             CREATE TABLE ulids (id text COLLATE \"C\" PRIMARY KEY); CREATE TABLE {long} (id uuid PRIMARY KEY);
             CREATE TABLE numbers (id bigserial PRIMARY KEY); INSERT INTO numbers SELECT FROM generate_series(1, 9)"
        ),
    )?;
    for (table, scheme) in [
        ("\"My app\".\"Order's\"", "uuid_v7"),
        ("ulids", "ulid"),
        (&*long, "uuid_v7"),
    ] {
        for year in 0..ROWS {
            let at = format!("{}-05-01", 2013 + year);
            let key = printed(&["new", scheme, "--at", &at], 0)?;
            execute(
                url,
                &format!("INSERT INTO {table} VALUES ('{}')", key.trim_end()),
            )?;
        }
        // One of now, which is in the partition as well.
        let key = printed(&["new", scheme], 0)?;
        execute(
            url,
            &format!("INSERT INTO {table} VALUES ('{}')", key.trim_end()),
        )?;
        let line = refused(&["partition", url, "--table", table], 3)?;
        let sql = line.split_once("with its rows: ").ok_or("no statements")?.1;
        let (sql, _) = sql
            .split_once("; then run this command again")
            .ok_or("no end")?;
        execute(url, sql)?;
        let count = |expected: usize| -> Result {
            let rows = texts(url, &format!("SELECT count(*)::text FROM {table}"))?;
            assert_eq!(rows, [expected.to_string()], "{table}");
            Ok(())
        };
        count(ROWS + 1)?;
        if table == long {
            let line = refused(&["partition", url, "--table", table], 2)?;
            assert!(line.contains("rename the table"), "{line}");
            continue;
        }
        let arguments = [url, "--table", table];
        let applied = answer(&[&arguments[..], &["--apply"]].concat(), 0)?;
        // The first partition has what the current month and the next one have.
        assert_eq!(names_in(&applied["partitions"]).len(), 1, "{applied}");
        assert_eq!(names_in(&applied["create"]).len(), 2, "{applied}");
        let there = answer(&arguments, 0)?;
        assert_eq!(names_in(&there["create"]), [""; 0]);
        let next = texts(
            url,
            "SELECT to_char(now() AT TIME ZONE 'UTC' + interval '2 months', 'YYYY-MM-10')",
        )?;
        for at in ["2020-01-01", &next[0]] {
            let key = printed(&["new", scheme, "--at", at], 0)?;
            execute(
                url,
                &format!("INSERT INTO {table} VALUES ('{}')", key.trim_end()),
            )?;
        }
        count(ROWS + 3)?;
    }
    assert_eq!(
        texts(
            url,
            "SELECT DISTINCT note FROM \"My app\".\"Order's\" UNION ALL SELECT count(*)::text FROM pg_index WHERE indrelid = \
             '\"My app\".\"Order''s\"'::regclass"
        )?,
        ["none", "2"]
    );
    // Keys without a time come first.
    let line = refused(&["partition", url, "--table", "numbers"], 2)?;
    assert!(line.contains("--scheme"), "{line}");
    Ok(())
}

fn names(url: &str) -> Result {
    execute(
        url,
        "CREATE SCHEMA \"My \"\"app\";
         CREATE TABLE \"My \"\"app\".\"order's $ordid$\" (\"the key\" uuid PRIMARY KEY) PARTITION BY RANGE (\"the key\")",
    )?;
    let table = "\"My \"\"app\".\"order's $ordid$\"";
    let arguments = [url, "--table", table, "--scheme", "uuid_v7"];
    answer(&[&arguments[..], &["--apply"]].concat(), 0)?;
    let found = answer(&arguments, 0)?;
    assert_eq!(names_in(&found["partitions"]).len(), 4);
    assert_eq!(
        (&found["table"], &found["key"]),
        (&"order's $ordid$".into(), &"the key".into())
    );
    Ok(())
}
