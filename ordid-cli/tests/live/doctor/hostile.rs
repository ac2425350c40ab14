//! What the doctor does where things are odd: names, rights, time limits, settings, interruptions.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use libtest_mimic::{Completion, Trial};
use ordid_harness::Access;
use serde_json::Value;

use super::{
    by_table, examine,
    keys::{insert, native, v4, v7},
    run,
    wrong::Engine,
};
use crate::place::{Result, Servers, execute, ordid, printed, refused};

/// The rules that are broken here, and not by a table of [`wrong`](super::wrong): those about servers and rights.
pub(super) const OF_SERVERS: [&str; 7] = [
    "autocommit-off",
    "not-examined",
    "not-strict",
    "prepared-limit",
    "prepared-orphan",
    "read-only",
    "read-uncommitted",
];

/// Adds the tests of an engine.
pub(super) fn trials(server: &str, add: &mut impl FnMut(&str, fn(&str) -> Result)) {
    add("odd_names_are_quoted", odd_names);
    add("a_query_that_takes_too_long_is_said", too_long);
    add("a_table_that_is_not_there_is_wrong_use", |url| {
        let line = refused(&["doctor", url, "--table", "nowhere"], 2)?;
        demand(line.contains("no table nowhere"), || line.clone())?;
        run(url, "CREATE TABLE customers (id integer PRIMARY KEY)")?;
        let line = refused(&["doctor", url, "--table", "customer"], 2)?;
        let is_near =
            line.contains("no table customer") && line.ends_with("; did you mean `customers`?");
        demand(is_near, || line.clone())
    });
    add("sarif_and_html_are_written", sarif_and_html);
    add("ctrl_c_ends_it", interrupted);
    add("the_text_names_keys_and_findings", text);
    match server {
        "postgres" => {
            add("a_table_without_rights_is_said", |url| {
                rights(
                    url,
                    "CREATE ROLE doctor_nobody LOGIN",
                    "DROP ROLE doctor_nobody",
                )
            });
            add(
                "an_index_is_measured_without_pgstattuple_and_with_it",
                measured,
            );
        }
        "sqlite" => {
            add("the_file_is_not_changed", unchanged);
            add("a_file_that_is_none_is_refused", no_database);
        }
        _ => {}
    }
}

fn demand(right: bool, what: impl FnOnce() -> String) -> Result {
    if right { Ok(()) } else { Err(what().into()) }
}

fn engine(url: &str) -> Engine {
    if url.contains("://") {
        Engine::of(url)
    } else {
        Engine::Sqlite
    }
}

fn uuid(engine: Engine) -> &'static str {
    match engine {
        Engine::Postgres => "uuid",
        Engine::Sqlite => "BLOB",
        _ => "BINARY(16)",
    }
}

fn odd_names(url: &str) -> Result {
    let engine = engine(url);
    let (table, column, parent) = match engine {
        Engine::Postgres | Engine::Sqlite => (
            "\"a \"\"table\"\"\n\x1b[31m; DROP TABLE x'--\"",
            r#""the ""k'ey""#.to_owned(),
            r#""par'ent\""#,
        ),
        _ => (
            "`a \"table\"; DROP TABLE x'--`",
            "`the ``k'ey`".to_owned(),
            r"`par'ent\`",
        ),
    };
    let tail = if engine == Engine::Sqlite {
        " WITHOUT ROWID"
    } else {
        ""
    };
    let kind = uuid(engine);
    run(
        url,
        &format!(
            "CREATE TABLE {parent} (id {kind} NOT NULL PRIMARY KEY){tail};\n\
         CREATE TABLE {table} ({column} {kind} NOT NULL PRIMARY KEY, parent {kind}, \
         FOREIGN KEY (parent) REFERENCES {parent} (id)){tail};\n{}",
            insert(
                table,
                (0..50).map(|row| format!("{}, NULL", native(engine, v4(row))))
            )
        ),
    )?;
    let report = examine(url, &[], 1)?;
    let text = printed(&["doctor", url], 1)?;
    demand(!text.contains('\x1b'), || format!("{text:?}"))?;
    let rules: Vec<&str> = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finding| finding["rule"].as_str())
        .collect();
    let expected: &[&str] = match engine {
        Engine::Postgres => &["unindexed-foreign-key", "random-index"],
        Engine::Sqlite => &["clustered-v4", "unindexed-foreign-key"],
        _ => &["clustered-v4"],
    };
    let answers = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|finding| {
            finding["evidence"]["answer"]
                .as_str()
                .is_some_and(|answer| !answer.starts_with("no answer"))
        });
    demand(rules == expected && answers, || format!("{report:#}"))
}

/// A table that no query of a millisecond reads.
fn large(url: &str) -> Result {
    let engine = engine(url);
    let tail = if engine == Engine::Sqlite {
        " WITHOUT ROWID"
    } else {
        ""
    };
    let kind = uuid(engine);
    run(
        url,
        &format!("CREATE TABLE large (id {kind} NOT NULL PRIMARY KEY, other VARCHAR(200)){tail}"),
    )?;
    let padding = "x".repeat(150);
    let rows = |from: u64| {
        (from..from + 10_000)
            .map(|row| format!("{}, '{padding}'", native(engine, v7(row))))
            .collect::<Vec<_>>()
    };
    for from in [0, 10_000] {
        run(url, &insert("large", rows(from)))?;
    }
    Ok(())
}

fn too_long(url: &str) -> Result {
    large(url)?;
    let not_examined = |report: &Value| {
        let found = by_table(report).remove("large").unwrap_or_default();
        found.iter().any(|line| line == "warning not-examined ")
    };
    let examined = || {
        ordid(&[
            "doctor",
            url,
            "--json",
            "--timeout",
            "0.001",
            "--sample",
            "1000000",
        ])
    };
    // On a busy machine MariaDB's timer may be late, and the query is faster.
    let mut report = Value::Null;
    for _ in 0..10 {
        report = serde_json::from_slice(&examined()?.stdout)?;
        if not_examined(&report) {
            break;
        }
    }
    demand(not_examined(&report), || format!("{report:#}"))?;
    let message = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .find_map(|finding| {
            (finding["rule"] == "not-examined")
                .then(|| finding["message"].as_str().unwrap_or_default().to_owned())
        });
    let message = message.unwrap_or_default();
    demand(
        message == "the values of its keys were not seen: it took longer than 0.001 s",
        || message.clone(),
    )
}

fn unchanged(path: &str) -> Result {
    run(path, "CREATE TABLE small (id INTEGER NOT NULL PRIMARY KEY)")?;
    let before = std::fs::read(path)?;
    examine(path, &[], 0)?;
    demand(before == std::fs::read(path)?, || {
        "the file has changed".to_owned()
    })
}

fn no_database(path: &str) -> Result {
    std::fs::write(
        path,
        "no database at all, but a text that is longer than the header of one, which has 100 bytes, and more",
    )?;
    let line = refused(&["doctor", path], 3)?;
    demand(line.contains("file is not a database"), || line.clone())
}

fn sarif_and_html(url: &str) -> Result {
    let engine = engine(url);
    let kind = uuid(engine);
    run(
        url,
        &format!(
            "CREATE TABLE \"<b>\" (id {kind} NOT NULL PRIMARY KEY);\n{}",
            insert("\"<b>\"", (0..50).map(|row| native(engine, v4(row))))
        )
        .replace(
            '"',
            if matches!(engine, Engine::Mariadb | Engine::Mysql) {
                "`"
            } else {
                "\""
            },
        ),
    )?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("report.html");
    let path = path.to_str().ok_or("a path of Unicode")?;
    let output = ordid(&["doctor", url, "--sarif", "--html", path])?;
    let document: Value = serde_json::from_slice(&output.stdout)?;
    let run = &document["runs"][0];
    let name_of = |result: &Value| {
        let name = &result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"];
        name.as_str().unwrap_or_default().to_owned()
    };
    // What another test has prepared on the same server may be a result, too.
    let result = run["results"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|result| name_of(result).ends_with("<b>.id"))
        .ok_or_else(|| format!("{document:#}"))?;
    let index = usize::try_from(result["ruleIndex"].as_u64().ok_or("an index")?)?;
    let rule = &run["tool"]["driver"]["rules"][index]["id"];
    let level = result["level"].as_str().unwrap_or_default();
    let is_right = document["version"] == "2.1.0"
        && *rule == result["ruleId"]
        && matches!(level, "warning" | "note")
        && result["message"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("uuid_v4"));
    demand(is_right, || format!("{document:#}"))?;
    let html = std::fs::read_to_string(path)?;
    let is_escaped = !html.contains("<b>.id") && html.contains("&lt;b&gt;.id");
    demand(html.starts_with("<!DOCTYPE html>") && is_escaped, || {
        html.clone()
    })
}

fn text(url: &str) -> Result {
    let engine = engine(url);
    let rows = (0..50).map(|row| native(engine, if row == 0 { 0 } else { v7(row) }));
    let tail = if engine == Engine::Sqlite {
        " WITHOUT ROWID"
    } else {
        ""
    };
    let table = format!(
        "CREATE TABLE t (id {} NOT NULL PRIMARY KEY){tail}",
        uuid(engine)
    );
    run(url, &format!("{table};\n{}", insert("t", rows)))?;
    let text = printed(&["doctor", url], 1)?;
    // What another test has prepared on the same server is a note, too.
    let notes = match text.contains("note prepared-orphan ") {
        true => "1 note",
        false => "0 notes",
    };
    let counts = format!("0 errors, 1 warning, {notes}");
    for part in [
        "warning nil-key ",
        "uuid_v7 98 %, nil 2 %",
        "2026-01-01",
        "=> 1\n",
        &counts,
    ] {
        demand(text.contains(part), || format!("no {part:?} in\n{text}"))?;
    }
    let text = printed(&["doctor", url, "--color", "always"], 1)?;
    demand(text.contains("\x1b[33mwarning\x1b[0m"), || text.clone())
}

fn interrupted(url: &str) -> Result {
    large(url)?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["doctor", url, "--sample", "10000000", "--timeout", "600"])
        .env_remove("DATABASE_URL")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Before it has a handler, the signal would end it as it ends any program.
    while !hears_ctrl_c(child.id())? {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_millis(60));
    let begun = Instant::now();
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()?;
    let status = child.wait()?;
    // It may have been done already.
    let is_right = match status.code() {
        Some(3) => true,
        Some(code) => code < 2,
        None => false,
    };
    // Long before its own time limit.
    let is_quick = begun.elapsed() < Duration::from_secs(60);
    demand(sent.success() && is_right && is_quick, || {
        format!("{status} after {:?}", begun.elapsed())
    })
}

/// Returns whether a child has a handler for SIGINT, or has ended already.
fn hears_ctrl_c(child: u32) -> Result<bool> {
    const SIGINT: u64 = 0x2;
    let status = std::fs::read_to_string(format!("/proc/{child}/status"))?;
    let of = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
            .ok_or_else(|| format!("no {name} in\n{status}"))
    };
    let caught = u64::from_str_radix(of("SigCgt:")?, 16)?;
    Ok(caught & SIGINT != 0 || of("State:")?.starts_with('Z'))
}

fn rights(url: &str, create: &str, drop: &str) -> Result {
    run(
        url,
        "CREATE TABLE secret (id uuid PRIMARY KEY); CREATE TABLE shown (id uuid PRIMARY KEY); \
              REVOKE ALL ON secret FROM PUBLIC; \
              CREATE SCHEMA closed; CREATE TABLE closed.vault (id bigserial PRIMARY KEY)",
    )?;
    run(url, create)?;
    run(url, "GRANT SELECT ON shown TO doctor_nobody")?;
    let (_, rest) = url.split_once('@').ok_or("a user")?;
    let report = examine(&format!("postgres://doctor_nobody@{rest}"), &[], 1);
    run(url, &format!("DROP OWNED BY doctor_nobody; {drop}"))?;
    let report = report?;
    let found = by_table(&report);
    let is_right = found.len() == 2
        && found["secret"] == ["warning not-examined "]
        && found["vault"] == ["warning not-examined "];
    let messages: Vec<&str> = report["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|finding| finding["message"].as_str())
        .collect();
    demand(
        is_right
            && messages
                == [
                    "the rows were not seen: permission denied for schema closed",
                    "the rows were not seen: permission denied for table secret",
                ],
        || format!("{report:#}"),
    )
}

fn postgres_settings(url: &str) -> Result {
    let (_, name) = url.rsplit_once('/').ok_or("a database")?;
    let name = name.split('?').next().unwrap_or(name);
    run(
        url,
        &format!("ALTER DATABASE {name} SET synchronous_commit = off"),
    )?;
    run(url, "CREATE TABLE t (id uuid PRIMARY KEY)")?;
    // As a flush does; nobody ends it.
    let prepare = "BEGIN; INSERT INTO t VALUES ('017f22e2-79b0-7cc3-98c4-dc0c0c07398f'); \
                   PREPARE TRANSACTION 'ordid:test:017f22e279b07cc398c4dc0c0c07398f:0:1'";
    run(url, prepare)?;
    let report = examine(url, &[], 0);
    // The server takes 64, of whomever.
    let more = || (1..60).map(|number| format!("of_somebody_else_{name}_{number}"));
    for gid in more() {
        run(
            url,
            &format!("BEGIN; CREATE TABLE {gid} (n int); PREPARE TRANSACTION '{gid}'"),
        )?;
    }
    let crowded = examine(url, &[], 1);
    let own = "ordid:test:017f22e279b07cc398c4dc0c0c07398f:0:1".to_owned();
    for gid in more().chain([own]) {
        run(url, &format!("ROLLBACK PREPARED '{gid}'"))?;
    }
    let found = |report: &Value| by_table(report).remove("").unwrap_or_default();
    let (report, crowded) = (report?, crowded?);
    demand(
        found(&report) == ["note not-durable ", "note prepared-orphan "],
        || format!("{report:#}"),
    )?;
    demand(
        found(&crowded)
            == [
                "warning prepared-limit ",
                "note not-durable ",
                "note prepared-orphan ",
            ],
        || format!("{crowded:#}"),
    )?;
    run(
        url,
        &format!(
            "ALTER DATABASE {name} SET synchronous_commit = on; ALTER DATABASE {name} SET default_transaction_read_only = on"
        ),
    )?;
    let report = examine(url, &[], 0)?;
    let found = by_table(&report).remove("").unwrap_or_default();
    demand(found == ["note read-only "], || format!("{report:#}"))
}

fn measured(url: &str) -> Result {
    let rows = (0..22_000).map(|row| native(Engine::Postgres, v7(row)));
    run(
        url,
        &format!(
            "CREATE TABLE t (id uuid PRIMARY KEY); {}",
            insert("t", rows)
        ),
    )?;
    run(url, "VACUUM ANALYZE t")?;
    let fill = |report: &Value| report["tables"][0]["keys"][0]["leaf_fill"].as_f64();
    let computed = fill(&examine(url, &[], 0)?).ok_or("a fill")?;
    run(url, "CREATE EXTENSION pgstattuple")?;
    let read = fill(&examine(url, &[], 0)?).ok_or("a fill")?;
    let is_near = (computed - read).abs() < 0.03 && (0.85..0.95).contains(&read);
    demand(is_near, || format!("computed {computed}, read {read}"))
}

/// Adds the tests that need a server with other settings, or the most that it prepares.
pub(super) fn servers(servers: &Servers, trials: &mut Vec<Trial>) {
    let reason = servers.url("postgres").err();
    let name = "doctor::settings_and_prepared_transactions_are_found [postgres]";
    trials.push(Trial::ignorable_test(name, move || {
        if let Some(reason) = reason {
            return Ok(Completion::ignored_with(reason));
        }
        let server = ordid_harness::postgres().map_err(|error| error.to_string())?;
        postgres_settings(&server.url())?;
        Ok(Completion::Completed)
    }));
    for (name, options) in [
        (
            "mariadb",
            [
                "--autocommit=0",
                "--transaction-isolation=READ-UNCOMMITTED",
                "--sql-mode=NO_ENGINE_SUBSTITUTION",
                "--innodb-flush-log-at-trx-commit=2",
                "--log-bin=log",
                "--sync-binlog=0",
                "--innodb-doublewrite=0",
            ],
        ),
        (
            "mysql",
            [
                "--autocommit=0",
                "--transaction-isolation=READ-UNCOMMITTED",
                "--sql-mode=NO_ENGINE_SUBSTITUTION",
                "--innodb-flush-log-at-trx-commit=2",
                "--log-bin=log",
                "--sync-binlog=0",
                "--innodb-doublewrite=0",
            ],
        ),
    ] {
        let reason = servers.url(name).err();
        trials.push(Trial::ignorable_test(format!("doctor::settings_are_found [{name}]"), move || {
            if let Some(reason) = reason {
                return Ok(Completion::ignored_with(reason));
            }
            let server = match name {
                "mariadb" => ordid_harness::mariadb_with(&options),
                _ => ordid_harness::mysql_with(&options),
            };
            let server = Access::Private(server.map_err(|error| error.to_string())?);
            let url = server.url().ok_or("an address")?;
            let report = examine(&url, &[], 1)?;
            let found = by_table(&report).remove("").unwrap_or_default();
            let expected = [
                "warning read-uncommitted ", "warning not-strict ", "warning not-durable ", "note autocommit-off ",
                "note not-durable ", "note not-durable ",
            ];
            demand(found == expected, || format!("{report:#}"))?;
            // What such a server does to a key without strict mode.
            execute(&url, "CREATE DATABASE cut")?;
            let url = url.replace("/mysql", "/cut");
            let keys = (0..20).map(|row| format!("'{}'", super::keys::text(v4(row))));
            execute(&url, &format!("CREATE TABLE cut.t (id BINARY(16) PRIMARY KEY); {} COMMIT", insert("cut.t", keys)))?;
            let report = examine(&url, &[], 1)?;
            let found = by_table(&report).remove("t").unwrap_or_default();
            demand(found == ["error truncated-text id"], || format!("{report:#}"))?;
            // As a flush over several databases does, years ago; nobody ends it.
            let gid = "ordid:test:017f22e279b07cc398c4dc0c0c07398f:0:1";
            execute(&url, &format!("XA START '{gid}'; INSERT INTO cut.t VALUES ('0123456789abcdef'); XA END '{gid}'; XA PREPARE '{gid}'"))?;
            let report = examine(&url, &[], 1)?;
            let found = by_table(&report).remove("").unwrap_or_default();
            demand(found.first().is_some_and(|line| line == "error prepared-orphan "), || format!("{report:#}"))?;
            let all = report["findings"].as_array().into_iter().flatten();
            let mut fixes = all.filter(|it| it["rule"] == "prepared-orphan").filter_map(|it| it["fix"].as_str());
            let fix = fixes.next().unwrap_or_default();
            let is_a_call = fix.contains("recover_prepared(\"test\", ..)") && !fix.contains("XA ROLLBACK");
            demand(is_a_call, || format!("{report:#}"))?;
            Ok(Completion::Completed)
        }));
    }
}
