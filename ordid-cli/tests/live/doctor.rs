//! `ordid doctor` on databases that are wrong on purpose, on clean ones, and on hostile ones.

mod fixes;
mod hostile;
mod keys;
mod wrong;

use std::collections::{BTreeMap, BTreeSet};

use libtest_mimic::Trial;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tempfile::TempDir;

use crate::place::{Result, Servers, block_on, execute, ordid};
use wrong::{Case, Engine};

/// Adds the tests.
pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        let mut add = |name: &str, test| {
            trials.push(servers.trial(server, &format!("doctor::{name}"), test));
        };
        add(
            "each_wrong_table_gives_exactly_its_finding_and_its_fix_ends_it",
            |url| wrong_tables(Engine::of(url), url),
        );
        add("ordids_own_tables_give_no_finding", |url| {
            clean_tables(Engine::of(url), url)
        });
        add("an_empty_database_gives_no_finding", |url| is_clean(url, 0));
        hostile::trials(server, &mut add);
    }
    let mut add = |name: &str, test: fn(&str) -> Result| {
        trials.push(Trial::test(format!("doctor::{name} [sqlite]"), move || {
            in_file(test)
        }));
    };
    add(
        "each_wrong_table_gives_exactly_its_finding_and_its_fix_ends_it",
        |url| wrong_tables(Engine::Sqlite, url),
    );
    add("ordids_own_tables_give_no_finding", |url| {
        clean_tables(Engine::Sqlite, url)
    });
    add("an_empty_database_gives_no_finding", |url| is_clean(url, 0));
    hostile::trials("sqlite", &mut add);
    trials.push(Trial::test(
        "doctor::each_rule_has_a_database_that_breaks_it",
        || in_file(each_rule_is_tried),
    ));
    fixes::trials(servers, trials);
    hostile::servers(servers, trials);
}

/// Runs a test on a SQLite file of its own.
fn in_file(test: fn(&str) -> Result) -> Result {
    let folder = TempDir::new()?;
    let path = folder.path().join("a database.sqlite");
    let path = path.to_str().ok_or("a path of Unicode")?;
    run(path, "PRAGMA user_version = 1")?;
    test(path)
}

/// Sends a script to any engine.
pub(super) fn run(url: &str, script: &str) -> Result {
    if url.contains("://") {
        return execute(url, script);
    }
    block_on(async {
        let options = SqliteConnectOptions::new()
            .filename(url)
            .create_if_missing(true)
            .foreign_keys(false);
        let mut connection = SqliteConnection::connect_with(&options).await?;
        sqlx::raw_sql(AssertSqlSafe(script))
            .execute(&mut connection)
            .await?;
        connection.close().await
    })
}

/// The id of the flush of which the tests prepare a transaction.
const PREPARED: &str = "017f22e279b07cc398c4dc0c0c07398f";

/// Examines a database, which has to end with this exit code.
pub(super) fn examine(url: &str, more: &[&str], code: i32) -> Result<Value> {
    let mut arguments = vec!["doctor", url, "--json"];
    arguments.extend(more);
    let output = ordid(&arguments)?;
    let stderr = String::from_utf8(output.stderr)?;
    if output.status.code() != Some(code) || !stderr.is_empty() {
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        return Err(format!("{}: {stderr}{:#}", output.status, report["findings"]).into());
    }
    let mut report: Value = serde_json::from_slice(&output.stdout)?;
    // MySQL and MariaDB list what is prepared in all databases of the server, on which other tests have flushes. It is a
    // note while it is young, which leaves the exit code alone.
    if url.contains("://")
        && !url.starts_with("postgres")
        && let Some(findings) = report["findings"].as_array_mut()
    {
        findings.retain(|finding| {
            finding["rule"] != "prepared-orphan"
                || finding["message"].to_string().contains(PREPARED)
        });
    }
    Ok(report)
}

fn is_clean(url: &str, tables: usize) -> Result {
    let report = examine(url, &[], 0)?;
    let findings = report["findings"].as_array().ok_or("findings")?;
    let examined = report["tables"].as_array().ok_or("tables")?.len();
    if !findings.is_empty() || examined != tables {
        return Err(format!("{examined} tables: {findings:#?}").into());
    }
    Ok(())
}

/// The findings of each table: rule, severity, column.
fn by_table(report: &Value) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for finding in report["findings"].as_array().into_iter().flatten() {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        let table = text("table")
            .rsplit('.')
            .next()
            .unwrap_or_default()
            .to_owned();
        let line = format!("{} {} {}", text("severity"), text("rule"), text("column"));
        found.entry(table).or_default().push(line);
    }
    found
}

fn wrong_tables(engine: Engine, url: &str) -> Result {
    let cases: Vec<Case> = wrong::cases()
        .into_iter()
        .filter(|case| case.engines.contains(&engine))
        .collect();
    for case in &cases {
        let script = (case.script)(engine);
        run(url, &script).map_err(|error| format!("{}: {error:?}", case.table))?;
    }
    wrong::settle(engine, url, &cases)?;
    let report = examine(url, &[], 1)?;
    let mut found = by_table(&report);
    let mut errors = Vec::new();
    for case in &cases {
        let found = found.remove(case.table).unwrap_or_default();
        if found != [case.finding] {
            errors.push(format!(
                "{}: {found:?} instead of {}",
                case.table, case.finding
            ));
        }
    }
    errors.extend(
        found
            .into_iter()
            .map(|(table, found)| format!("{table}: {found:?}")),
    );
    // What was found is to be seen by everyone.
    for finding in report["findings"].as_array().into_iter().flatten() {
        let answer = finding["evidence"]["answer"].as_str().unwrap_or_default();
        let is_told = ["cost", "fix", "message"]
            .iter()
            .all(|part| finding[*part].as_str().is_some_and(|text| !text.is_empty()));
        if !is_told || answer.is_empty() || answer.starts_with("no answer") {
            errors.push(format!("no evidence or remedy: {finding:#}"));
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n").into());
    }
    for case in cases.iter().filter(|case| case.is_fixed) {
        let finding = report["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|finding| {
                finding["table"]
                    .as_str()
                    .is_some_and(|table| table.rsplit('.').next() == Some(case.table))
            });
        let fix = finding
            .and_then(|finding| finding["fix"].as_str())
            .unwrap_or_default();
        // On servers each statement by itself: some of them refuse a transaction.
        let statements: Vec<&str> = match engine {
            Engine::Sqlite => vec![fix],
            _ => fix.split(";\n").collect(),
        };
        for statement in statements {
            run(url, statement)
                .map_err(|error| format!("{}: {statement}: {error:?}", case.table))?;
        }
        let table = examine_table(url, case.table)?;
        if !table.is_empty() {
            errors.push(format!("{} after its fix: {table:?}", case.table));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(errors.join("\n").into()),
    }
}

/// Holds the rules of the program against those that the tests break.
fn each_rule_is_tried(url: &str) -> Result {
    let document: Value = serde_json::from_slice(&ordid(&["doctor", url, "--sarif"])?.stdout)?;
    let rules = document["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .ok_or("rules")?;
    let rules: BTreeSet<&str> = rules
        .iter()
        .filter_map(|rule| rule["id"].as_str())
        .collect();
    let cases = wrong::cases();
    let tried = cases
        .iter()
        .filter_map(|case| case.finding.split(' ').nth(1))
        .chain(hostile::OF_SERVERS);
    let tried: BTreeSet<&str> = tried.collect();
    match rules == tried {
        true => Ok(()),
        false => Err(format!("rules: {rules:?}\ntried: {tried:?}").into()),
    }
}

/// Examines one table.
fn examine_table(url: &str, table: &str) -> Result<Vec<String>> {
    let output = ordid(&["doctor", url, "--json", "--table", table])?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    Ok(by_table(&report).remove(table).unwrap_or_default())
}

fn clean_tables(engine: Engine, url: &str) -> Result {
    run(url, &wrong::clean(engine))?;
    // Partitions do not count as tables of their own.
    let partitioned = usize::from(engine != Engine::Sqlite);
    is_clean(url, 6 + partitioned)?;
    // Read in parts, they are as clean, and the report says so.
    let report = examine(url, &["--sample", "100"], 0)?;
    let table = report["tables"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|table| {
            table["table"]
                .as_str()
                .is_some_and(|name| name.ends_with("orders"))
        });
    let how = table
        .and_then(|table| table["sampled_how"].as_str())
        .unwrap_or_default();
    if how == "all rows" || how.is_empty() {
        return Err(format!("{how}: {report:#}").into());
    }
    Ok(())
}
