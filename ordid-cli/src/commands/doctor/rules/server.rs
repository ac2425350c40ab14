//! Rules that concern no single table: settings, prepared transactions, and parts that were not seen.

use super::{
    super::{
        findings::{
            AUTOCOMMIT_OFF, Evidence, Finding, NOT_DURABLE, NOT_EXAMINED, NOT_STRICT,
            PREPARED_LIMIT, PREPARED_ORPHAN, READ_ONLY, READ_UNCOMMITTED, Rule, Severity,
        },
        mysql::XA_RECOVER,
        postgres::PREPARED,
    },
    Context, grouped, plain,
};
use crate::engine::Engine;

/// A flush that is alive ends its prepared transactions within seconds.
const YOUNG_SECONDS: i64 = 60;

/// The guide to the remedy.
const RECOVERY: &str = "https://github.com/ordid/ordid/blob/main/docs/src/beyond-one-machine.md#write-to-all-of-several-databases-or-to-none";

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
        fix: match context.sql.0 {
            _ if unseen.why.starts_with("it took longer") => {
                "-- give more time (--timeout) or read fewer rows (--sample)".to_owned()
            }
            Engine::Sqlite => "-- mend the table or the foreign key that SQLite refuses".to_owned(),
            _ => format!(
                "GRANT SELECT ON {} TO CURRENT_USER;",
                context.sql.table(&unseen.table)
            ),
        },
        is_rebuild: false,
    });
    findings.extend(unseen);
    findings
}

fn of_server(
    rule: &'static Rule,
    message: String,
    query: String,
    cost: &str,
    fix: String,
) -> Finding {
    Finding {
        rule,
        severity: rule.severity,
        table: None,
        column: None,
        message,
        evidence: Evidence {
            query,
            answer: None,
        },
        cost: cost.to_owned(),
        fix,
        is_rebuild: false,
    }
}

fn settings(context: &Context<'_>) -> Vec<Finding> {
    let sql = context.sql;
    let setting = |name: &str| {
        context
            .examined
            .settings
            .get(name)
            .map(String::as_str)
            .unwrap_or_default()
    };
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
            found(
                &AUTOCOMMIT_OFF,
                "autocommit",
                message,
                "ordid's flushes begin and commit by themselves",
                fix,
            );
        }
        let isolation = match sql.0 {
            Engine::Mariadb => "tx_isolation",
            _ => "transaction_isolation",
        };
        if setting("transaction_isolation")
            .replace('-', " ")
            .eq_ignore_ascii_case("read uncommitted")
        {
            let query = format!("SELECT @@GLOBAL.{isolation}");
            let message = format!(
                "{isolation} is READ-UNCOMMITTED: a parent may be read that is never committed"
            );
            let fix = "SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ;".to_owned();
            let cost = "rows that refer to it are refused, and what was read is wrong";
            findings.push(of_server(&READ_UNCOMMITTED, message, query, cost, fix));
        }
        let modes = setting("sql_mode");
        if !modes.contains("STRICT_TRANS_TABLES") && !modes.contains("STRICT_ALL_TABLES") {
            let message = format!(
                "sql_mode is '{modes}': a text of 36 characters in BINARY(16) is cut to 16, with a warning"
            );
            let query = "SELECT @@GLOBAL.sql_mode".to_owned();
            let fix = "SET GLOBAL sql_mode = CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES');"
                .to_owned();
            findings.push(of_server(
                &NOT_STRICT,
                message,
                query,
                "keys of one time become one key",
                fix,
            ));
        }
        findings.extend(mysql_durability(&setting));
        return findings;
    }
    // READ UNCOMMITTED is READ COMMITTED here: nothing is wrong with it.
    if setting("default_transaction_read_only") == "on" {
        let query =
            "SELECT reset_val FROM pg_settings WHERE name = 'default_transaction_read_only'"
                .to_owned();
        let message = "default_transaction_read_only is on: flushes are refused".to_owned();
        let fix = "ALTER SYSTEM SET default_transaction_read_only = off; SELECT pg_reload_conf();"
            .to_owned();
        findings.push(of_server(
            &READ_ONLY,
            message,
            query,
            "no row is written",
            fix,
        ));
    }
    findings.extend(postgres_durability(&setting));
    let limit = setting("max_prepared_transactions")
        .parse::<usize>()
        .unwrap_or(usize::MAX);
    let own = context.examined.prepared.len();
    // The limit is for the transactions of all programs, in all databases of the server.
    let used = setting("prepared_transactions")
        .parse::<usize>()
        .map_or(own, |all| all.max(own));
    if own > 0 && used.saturating_mul(10) >= limit.saturating_mul(9) {
        let message = format!(
            "{used} of at most {limit} prepared transactions are taken: the next flush over several databases fails"
        );
        let query = "SHOW max_prepared_transactions".to_owned();
        let fix = "-- end the orphans by recover_prepared, then\nALTER SYSTEM SET max_prepared_transactions = 64; -- and restart".to_owned();
        findings.push(of_server(
            &PREPARED_LIMIT,
            message,
            query,
            "flushes over several databases write nothing",
            fix,
        ));
    }
    findings
}

/// Settings of MySQL and MariaDB with which a COMMIT that was answered may be lost, or pages may be damaged.
fn mysql_durability<'a>(setting: &impl Fn(&str) -> &'a str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !matches!(setting("innodb_flush_log_at_trx_commit"), "1" | "") {
        findings.push(Finding {
            severity: Severity::Note,
            ..of_server(
                &NOT_DURABLE,
                "innodb_flush_log_at_trx_commit is not 1: a COMMIT that was answered may be lost"
                    .to_owned(),
                "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit".to_owned(),
                "about a second of rows when the machine fails",
                "SET GLOBAL innodb_flush_log_at_trx_commit = 1;".to_owned(),
            )
        });
    }
    let writes_log = matches!(setting("log_bin"), "1" | "ON");
    let synced = setting("sync_binlog");
    if writes_log && !matches!(synced, "1" | "") {
        findings.push(Finding {
            severity: Severity::Note,
            ..of_server(
                &NOT_DURABLE,
                format!(
                    "sync_binlog is {synced}: when the machine fails, the binary log may lack transactions that were \
                     committed, and two-phase commits that were decided"
                ),
                "SELECT @@GLOBAL.log_bin, @@GLOBAL.sync_binlog".to_owned(),
                "replicas lack these rows, a decided transaction may be rolled back, and MariaDB may roll back what it has \
                 committed",
                "SET GLOBAL sync_binlog = 1;".to_owned(),
            )
        });
    }
    let doublewrite = match setting("innodb_doublewrite") {
        "0" | "OFF" => Some("is off"),
        // MySQL 8.0.30: the buffer has the pages' numbers, and not their content.
        "DETECT_ONLY" => Some("only detects"),
        _ => None,
    };
    if let Some(state) = doublewrite {
        findings.push(of_server(
            &NOT_DURABLE,
            format!("innodb_doublewrite {state}: a page that is half written when the machine fails is damaged for good"),
            "SELECT @@GLOBAL.innodb_doublewrite".to_owned(),
            "any table, unless the file system writes whole pages",
            "-- set innodb_doublewrite = ON in the server's file of options, and restart it".to_owned(),
        ));
    }
    findings
}

/// Settings of PostgreSQL with which a COMMIT that was answered may be lost, or the whole database may be damaged.
fn postgres_durability<'a>(setting: &impl Fn(&str) -> &'a str) -> Vec<Finding> {
    let query = |names: &str| {
        format!("SELECT name, setting, reset_val FROM pg_settings WHERE name IN ({names})")
    };
    let mut findings = Vec::new();
    if setting("fsync") == "off" {
        findings.push(of_server(
            &NOT_DURABLE,
            "fsync is off: a COMMIT that was answered may be lost, and the database may be damaged"
                .to_owned(),
            query("'fsync'"),
            "the whole database when the machine fails",
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();".to_owned(),
        ));
    }
    if setting("full_page_writes") == "off" {
        findings.push(of_server(
            &NOT_DURABLE,
            "full_page_writes is off: a page that is half written when the machine fails is damaged for good".to_owned(),
            query("'full_page_writes'"),
            "any table or index, unless the file system writes whole pages",
            "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();".to_owned(),
        ));
    }
    if setting("synchronous_commit") == "off" {
        findings.push(Finding {
            severity: Severity::Note,
            ..of_server(
                &NOT_DURABLE,
                "synchronous_commit is off: a COMMIT that was answered may be lost".to_owned(),
                query("'synchronous_commit'"),
                "the last rows when the server fails: up to three times wal_writer_delay, 0.6 s by default",
                "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();".to_owned(),
            )
        });
    }
    findings
}

fn prepared(context: &Context<'_>) -> Option<Finding> {
    let prepared = &context.examined.prepared;
    let old = || {
        prepared
            .iter()
            .filter(|(_, seconds)| *seconds >= YOUNG_SECONDS)
    };
    let (gid, seconds) = prepared.iter().max_by_key(|(_, seconds)| *seconds)?;
    let is_old = old().count() > 0;
    let count = grouped(prepared.len());
    let (query, keeps) = match context.sql.0 {
        Engine::Postgres => (PREPARED, "VACUUM keeps every row version since"),
        _ => (XA_RECOVER, "the undo log keeps every row version since"),
    };
    let mut finding = of_server(
        &PREPARED_ORPHAN,
        format!(
            "prepared transactions of flushes that wait for their end: {count}, the oldest ({}) for {} s",
            plain(gid),
            grouped(seconds)
        ),
        query.to_owned(),
        "their rows stay locked",
        // No statement: whoever runs one does not see the marker row, which may be in another database.
        format!(
            "-- call recover_prepared({}) of the adapter, with all databases of the set: {RECOVERY}\n-- do not end it by hand: it \
             may be decided to commit, by a marker row in another database, or its flush may still run",
            set_of(gid)
        ),
    );
    finding.cost = format!("their rows stay locked, and {keeps}");
    if !is_old {
        // A flush may be about to end it.
        finding.severity = Severity::Note;
    }
    Some(finding)
}

/// Returns the first arguments of `recover_prepared` for a transaction: the name of its set, if the id has one.
fn set_of(gid: &str) -> String {
    let set = gid.split(':').nth(1).unwrap_or_default();
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !set.is_empty() && set.chars().all(is_letter) {
        true => format!("\"{set}\", .."),
        false => "..".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ordid_core::clock::Timestamp;

    use super::super::super::model::{Examined, TableName, Unseen};
    use super::*;

    fn found(engine: Engine, settings: &[(&str, &str)], prepared: &[(&str, i64)]) -> Vec<String> {
        all(engine, settings, prepared)
            .iter()
            .map(|finding| format!("{} {}", finding.severity.name(), finding.rule.id))
            .collect()
    }

    fn all(engine: Engine, settings: &[(&str, &str)], prepared: &[(&str, i64)]) -> Vec<Finding> {
        let name = TableName {
            schema: None,
            name: "t".to_owned(),
        };
        let examined = Examined {
            engine,
            version: String::new(),
            settings: settings
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            prepared: prepared
                .iter()
                .map(|(gid, age)| ((*gid).to_owned(), *age))
                .collect(),
            tables: Vec::new(),
            unseen: vec![Unseen {
                table: name,
                what: "the rows",
                why: "permission denied".to_owned(),
                query: String::new(),
            }],
        };
        let context = Context::of(&examined, Timestamp::saturating_from_unix_millis(0));
        findings(&context)
    }

    #[test]
    fn the_remedy_for_a_prepared_transaction_names_the_recovery_and_has_no_statement() {
        for engine in [Engine::Postgres, Engine::Mysql, Engine::Mariadb] {
            for (gid, call) in [
                ("ordid:bank:0:0:1", "recover_prepared(\"bank\", ..)"),
                ("ordid:b\nDROP TABLE t;:0:0:1", "recover_prepared(..)"),
                ("ordid:", "recover_prepared(..)"),
            ] {
                let findings = all(engine, &[], &[(gid, 1_000_000)]);
                let orphan = findings.iter().find(|it| it.rule == &PREPARED_ORPHAN);
                let fix = &orphan.expect("it is found").fix;
                assert!(fix.lines().all(|line| line.starts_with("-- ")), "{fix}");
                assert!(!fix.contains("ROLLBACK") && fix.contains(call), "{fix}");
            }
        }
    }

    #[test]
    fn an_old_prepared_transaction_is_an_error_and_a_young_one_is_not() {
        let gid = "ordid:test:0:0:1";
        let limit = [("max_prepared_transactions", "10")];
        assert_eq!(
            found(Engine::Postgres, &limit, &[(gid, 61)]),
            ["error prepared-orphan", "warning not-examined"]
        );
        assert_eq!(
            found(Engine::Postgres, &limit, &[(gid, 5)]),
            ["note prepared-orphan", "warning not-examined"]
        );
        assert_eq!(
            found(
                Engine::Postgres,
                &[("max_prepared_transactions", "1")],
                &[(gid, 5)]
            ),
            [
                "warning prepared-limit",
                "note prepared-orphan",
                "warning not-examined"
            ]
        );
    }

    #[test]
    fn settings_with_which_a_commit_may_be_lost_are_found() {
        let of = |engine, name, value| found(engine, &[(name, value)], &[]);
        let (warning, note) = ("warning not-durable", "note not-durable");
        for (engine, name, value, expected) in [
            (Engine::Postgres, "fsync", "off", warning),
            (Engine::Postgres, "full_page_writes", "off", warning),
            (Engine::Postgres, "synchronous_commit", "off", note),
            (Engine::Mysql, "innodb_flush_log_at_trx_commit", "2", note),
            (Engine::Mariadb, "innodb_flush_log_at_trx_commit", "0", note),
            (Engine::Mariadb, "innodb_doublewrite", "0", warning),
            (Engine::Mysql, "innodb_doublewrite", "OFF", warning),
            (Engine::Mysql, "innodb_doublewrite", "DETECT_ONLY", warning),
        ] {
            assert!(
                of(engine, name, value).contains(&expected.to_owned()),
                "{name}"
            );
        }
        // A server without a binary log has nothing to write to it.
        let logs = |value| {
            found(
                Engine::Mariadb,
                &[("log_bin", value), ("sync_binlog", "0")],
                &[],
            )
        };
        assert!(logs("1").contains(&note.to_owned()));
        assert!(!logs("0").contains(&note.to_owned()));
    }

    #[test]
    fn the_doublewrite_buffer_is_on_under_all_its_names() {
        for value in ["ON", "1", "DETECT_AND_RECOVER"] {
            let found = found(Engine::Mysql, &[("innodb_doublewrite", value)], &[]);
            assert!(
                !found.contains(&"warning not-durable".to_owned()),
                "{value}"
            );
        }
    }

    #[test]
    fn prepared_transactions_of_others_count_for_the_limit() {
        let settings = [
            ("max_prepared_transactions", "10"),
            ("prepared_transactions", "9"),
        ];
        let young = ("ordid:test:0:0:1", 5);
        let of = |prepared: &[(&str, i64)]| found(Engine::Postgres, &settings, prepared);
        assert!(of(&[young]).contains(&"warning prepared-limit".to_owned()));
        assert!(!of(&[]).contains(&"warning prepared-limit".to_owned()));
    }

    #[test]
    fn settings_of_the_servers_defaults_are_not_found() {
        let settings: BTreeMap<&str, &str> = [
            ("autocommit", "1"),
            ("transaction_isolation", "REPEATABLE-READ"),
            ("sql_mode", "STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION"),
            ("innodb_flush_log_at_trx_commit", "1"),
            ("default_transaction_isolation", "read uncommitted"),
            ("default_transaction_read_only", "off"),
            ("synchronous_commit", "on"),
            ("fsync", "on"),
            ("full_page_writes", "on"),
            ("log_bin", "1"),
            ("sync_binlog", "1"),
            ("innodb_doublewrite", "ON"),
            ("max_prepared_transactions", "0"),
        ]
        .into();
        let settings: Vec<(&str, &str)> = settings.into_iter().collect();
        for engine in [Engine::Postgres, Engine::Mysql, Engine::Mariadb] {
            assert_eq!(found(engine, &settings, &[]), ["warning not-examined"]);
        }
    }
}
