//! What concerns no single table: settings, prepared transactions, and what was not seen.

use super::{
    super::findings::{
        AUTOCOMMIT_OFF, Evidence, Finding, NOT_DURABLE, NOT_EXAMINED, NOT_STRICT, PREPARED_LIMIT,
        PREPARED_ORPHAN, READ_ONLY, READ_UNCOMMITTED, Rule, Severity,
    },
    Context, grouped,
};
use crate::engine::Engine;

/// A flush that is alive ends its prepared transactions within seconds.
const YOUNG_SECONDS: i64 = 60;

/// Returns what concerns no single table.
pub(super) fn findings(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = settings(context);
    findings.extend(prepared(context));
    let unseen = context.examined.unseen.iter().map(|unseen| Finding {
        rule: &NOT_EXAMINED,
        severity: NOT_EXAMINED.severity,
        table: Some(unseen.table.clone()),
        column: None,
        message: format!("{} were not seen: {}", unseen.what, unseen.why),
        evidence: Evidence {
            query: unseen.query.clone(),
            answer: Some(unseen.why.clone()),
        },
        cost: "nothing is said about what was not seen".to_owned(),
        fix: match unseen.why.starts_with("it took longer") {
            true => "-- give more time (--timeout) or read fewer rows (--sample)".to_owned(),
            false => format!("GRANT SELECT ON {} TO CURRENT_USER;", context.sql.table(&unseen.table)),
        },
    });
    findings.extend(unseen);
    findings
}

fn of_server(rule: &'static Rule, message: String, query: String, cost: &str, fix: String) -> Finding {
    Finding {
        rule,
        severity: rule.severity,
        table: None,
        column: None,
        message,
        evidence: Evidence { query, answer: None },
        cost: cost.to_owned(),
        fix,
    }
}

fn settings(context: &Context<'_>) -> Vec<Finding> {
    let sql = context.sql;
    let setting = |name: &str| context.examined.settings.get(name).map(String::as_str).unwrap_or_default();
    let mut findings = Vec::new();
    let mut found = |rule, name: &str, message: &str, cost, fix: String| {
        let query = match sql.0 {
            Engine::Postgres => format!("SHOW {name}"),
            _ => format!("SELECT @@GLOBAL.{name}"),
        };
        let message = format!("{name} is {}: {message}", setting(name));
        findings.push(of_server(rule, message, query, cost, fix));
    };
    if sql.is_mysql() {
        if setting("autocommit") == "0" {
            let message = "a session that only reads keeps its snapshot, and locks what it writes until it commits";
            let fix = "SET GLOBAL autocommit = 1;".to_owned();
            found(&AUTOCOMMIT_OFF, "autocommit", message, "ordid's flushes begin and commit by themselves", fix);
        }
        let isolation = match sql.0 {
            Engine::Mariadb => "tx_isolation",
            _ => "transaction_isolation",
        };
        if setting("transaction_isolation").replace('-', " ").eq_ignore_ascii_case("read uncommitted") {
            let query = format!("SELECT @@GLOBAL.{isolation}");
            let message = format!("{isolation} is READ-UNCOMMITTED: a parent may be read that is never committed");
            let fix = "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ;".to_owned();
            let cost = "rows that refer to it are refused, and what was read is wrong";
            findings.push(of_server(&READ_UNCOMMITTED, message, query, cost, fix));
        }
        let modes = setting("sql_mode");
        if !modes.contains("STRICT_TRANS_TABLES") && !modes.contains("STRICT_ALL_TABLES") {
            let message = format!("sql_mode is '{modes}': a text of 36 characters in BINARY(16) is cut to 16, with a warning");
            let query = "SELECT @@GLOBAL.sql_mode".to_owned();
            let fix = "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES');".to_owned();
            findings.push(of_server(&NOT_STRICT, message, query, "keys of one time become one key", fix));
        }
        if !matches!(setting("innodb_flush_log_at_trx_commit"), "1" | "") {
            let query = "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit".to_owned();
            let message = "innodb_flush_log_at_trx_commit is not 1: a COMMIT that was answered may be lost".to_owned();
            let fix = "SET GLOBAL innodb_flush_log_at_trx_commit = 1;".to_owned();
            findings.push(of_server(&NOT_DURABLE, message, query, "about a second of rows when the machine fails", fix));
        }
        return findings;
    }
    if setting("default_transaction_isolation") == "read uncommitted" {
        // PostgreSQL takes it for READ COMMITTED: nothing is wrong.
    }
    if setting("default_transaction_read_only") == "on" {
        let query = "SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only'".to_owned();
        let message = "default_transaction_read_only is on: flushes are refused".to_owned();
        let fix = "ALTER SYSTEM SET default_transaction_read_only = off; SELECT pg_reload_conf();".to_owned();
        findings.push(of_server(&READ_ONLY, message, query, "no row is written", fix));
    }
    if matches!(setting("synchronous_commit"), "off") || setting("fsync") == "off" {
        let query = "SELECT name, setting FROM pg_settings WHERE name IN ('synchronous_commit', 'fsync')".to_owned();
        let message = format!(
            "synchronous_commit is {} and fsync is {}: a COMMIT that was answered may be lost",
            setting("synchronous_commit"),
            setting("fsync")
        );
        let fix = "ALTER SYSTEM SET synchronous_commit = on; ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();";
        findings.push(of_server(&NOT_DURABLE, message, query, "the last rows when the machine fails", fix.to_owned()));
    }
    let limit = setting("max_prepared_transactions").parse::<usize>().unwrap_or(usize::MAX);
    let used = context.examined.prepared.len();
    if used > 0 && used * 10 >= limit * 9 {
        let message = format!("{used} of at most {limit} prepared transactions are taken: the next flush over several databases fails");
        let query = "SHOW max_prepared_transactions".to_owned();
        let fix = "-- end the orphans by recover_prepared, then\nALTER SYSTEM SET max_prepared_transactions = 64; -- and restart".to_owned();
        findings.push(of_server(&PREPARED_LIMIT, message, query, "flushes over several databases write nothing", fix));
    }
    findings
}

fn prepared(context: &Context<'_>) -> Option<Finding> {
    let prepared = &context.examined.prepared;
    let old = || prepared.iter().filter(|(_, seconds)| *seconds >= YOUNG_SECONDS);
    let (gid, seconds) = prepared.iter().max_by_key(|(_, seconds)| *seconds)?;
    let is_old = old().count() > 0;
    let count = grouped(prepared.len());
    let mut finding = of_server(
        &PREPARED_ORPHAN,
        format!("{count} prepared transactions of flushes wait for their end, the oldest ({gid}) for {} s", grouped(seconds)),
        "SELECT gid, prepared FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE 'ordid:%' \
         ORDER BY prepared"
            .to_owned(),
        "their rows stay locked, and VACUUM keeps every row version since",
        "-- recover_prepared of the adapter asks the marker table what was decided, and ends them; by hand, if no marker \
         row has committed:\nROLLBACK PREPARED "
            .to_owned()
            + &context.sql.text(gid)
            + ";",
    );
    if !is_old {
        // A flush may be about to end it.
        finding.severity = Severity::Note;
    }
    Some(finding)
}
