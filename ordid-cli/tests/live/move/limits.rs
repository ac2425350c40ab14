//! Limits of servers and of a move: times, rights, sizes of chunks, and what a user is told of them.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use libtest_mimic::{Completion, Failed, Trial};

use super::{
    block,
    hostile::{Move, expect, expect_value},
    is_postgres,
    writers::Connection,
};
use crate::place::{Result, Servers, block_on, execute, is_step, ordid, refused};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::a_chunk_bounds_the_rows_that_refer_to_few_others",
            chunks,
        ));
        trials.push(servers.trial(
            server,
            "move::a_count_under_the_locks_that_takes_longer_than_others_may_wait_lets_them_go",
            slow_count,
        ));
        trials.push(servers.trial(
            server,
            "move::names_that_stand_for_something_else_in_a_plan_are_refused",
            placeholders,
        ));
        trials.push(servers.trial(
            server,
            "move::the_tables_whose_locks_others_hold_are_named",
            held_locks,
        ));
    }
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::an_old_reference_alone_is_looked_up_after_the_switch",
            old_references,
        ));
        trials.push(servers.trial(
            server,
            "move::a_user_who_may_create_no_triggers_can_go_back",
            no_triggers,
        ));
        trials.push(servers.trial(
            server,
            "move::the_line_of_a_step_is_written_when_it_is_done",
            lines,
        ));
    }
    trials.push(servers.trial(
        "postgres",
        "move::rows_that_are_elsewhere_when_they_are_written_are_listed_again",
        rewritten,
    ));
    trials.push(servers.trial(
        "postgres",
        "move::an_error_of_the_server_has_no_line_of_its_sources",
        |url| {
            let line = refused(&["doctor", &format!("{url}_nowhere")], 3)?;
            expect(&line, "_nowhere\" does not exist")?;
            match line.contains(" at line ") {
                true => Err(line.into()),
                false => Ok(()),
            }
        },
    ));
    private(
        servers,
        trials,
        "mariadb",
        "move::a_limit_of_the_server_for_statements_does_not_end_a_move",
        &["--max-statement-time=1"],
        limited_statements,
    );
    for server in ["mariadb", "mysql"] {
        private(
            servers,
            trials,
            server,
            "move::a_user_whose_triggers_a_binary_log_forbids_is_refused",
            &["--log-bin=log", "--server-id=1"],
            binary_log,
        );
    }
}

/// Adds a test of a server with other settings.
fn private(
    servers: &Servers,
    trials: &mut Vec<Trial>,
    server: &'static str,
    name: &str,
    options: &'static [&'static str],
    test: fn(&str) -> Result,
) {
    let reason = servers.url(server).err();
    trials.push(Trial::ignorable_test(
        format!("{name} [{server}]"),
        move || {
            if let Some(reason) = reason {
                return Ok(Completion::ignored_with(reason));
            }
            let server = match server {
                "mariadb" => ordid_harness::mariadb_with(options),
                _ => ordid_harness::mysql_with(options),
            };
            let server = server.map_err(|error| error.to_string())?;
            execute(&server.url(), "CREATE DATABASE moves")?;
            let url = server.url().replace("/mysql", "/moves");
            test(&url)?;
            Ok(Completion::Completed)
        },
    ));
}

/// Creates three orders, and an empty table of items that refer to them.
fn create(url: &str) -> Result {
    let key = match is_postgres(url) {
        true => "bigserial",
        false => "bigint NOT NULL AUTO_INCREMENT",
    };
    execute(
        url,
        &format!(
            "CREATE TABLE orders (id {key} PRIMARY KEY, parent_id bigint, kind int,
                CONSTRAINT orders_parent FOREIGN KEY (parent_id) REFERENCES orders (id));
             CREATE TABLE items (id {key} PRIMARY KEY, order_id bigint, kind int,
                CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES orders (id));
             CREATE INDEX items_orders ON items (order_id);
             INSERT INTO orders (kind) VALUES (1), (2), (3)"
        ),
    )
}

/// Inserts so many items that refer to an order, or to none.
fn insert(url: &str, count: u32, order: &str) -> Result {
    execute(
        url,
        &format!("INSERT INTO items (order_id, kind) VALUES ({order}, {order})"),
    )?;
    let mut there = 1;
    while there < count {
        let more = there.min(count - there);
        execute(
            url,
            &format!(
                "INSERT INTO items (order_id, kind) SELECT order_id, kind FROM items WHERE order_id {} ORDER BY id LIMIT {more}",
                match order {
                    "NULL" => "IS NULL".to_owned(),
                    order => format!("= {order}"),
                }
            ),
        )?;
        there += more;
    }
    Ok(())
}

fn chunks(url: &str) -> Result {
    create(url)?;
    insert(url, 30, "1")?;
    // More than are listed at a time.
    insert(url, 2_500, "2")?;
    insert(url, 40, "3")?;
    if !is_postgres(url) {
        // One time for each statement.
        execute(
            url,
            "CREATE TABLE seen (at datetime(6));
             CREATE TRIGGER watch AFTER UPDATE ON items FOR EACH ROW INSERT INTO seen VALUES (NOW(6))",
        )?;
    }
    let this = Move::planned(url)?;
    if !is_postgres(url) {
        // A rebuild that gets no lock at its end is lost.
        let plan: serde_json::Value = serde_json::from_slice(&std::fs::read(&this.file)?)?;
        let steps = plan["steps"].as_array().into_iter().flatten();
        let mut rebuilds = steps.filter(|it| it["name"] == "primary_key");
        let waits = rebuilds.next().map(|it| &it["statements"][0]["waits"]);
        if waits != Some(&serde_json::Value::Bool(true)) {
            return Err(format!("{plan:#}").into());
        }
    }
    this.apply(&["--no-switch", "--chunk", "20"])?;
    let largest = match is_postgres(url) {
        true => "SELECT max(n) FROM (SELECT count(*) AS n FROM items GROUP BY xmin) AS it",
        false => "SELECT max(n) FROM (SELECT count(*) AS n FROM seen GROUP BY at) AS it",
    };
    expect_value(url, largest, "20")?;
    let pairs = "SELECT count(*) FROM items i JOIN orders o ON o.ordid_new_id = i.ordid_new_order_id AND o.kind = i.kind";
    expect_value(url, pairs, "2570")?;
    this.apply(&["--resume"])?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id AND o.kind = i.kind",
        "2570",
    )
}

/// Counts under the locks of a plan by another statement. Returns the one that stood there.
fn edit_count(plan: &str, sql: &str) -> Result<String> {
    let mut content: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(plan)?)?;
    let steps = content["steps"].as_array_mut().ok_or("no steps")?;
    let count = &mut steps.last_mut().ok_or("no switch")?["checks"][0]["sql"];
    let planned = count.as_str().ok_or("no count")?.to_owned();
    *count = sql.into();
    std::fs::write(plan, serde_json::to_string(&content)?)?;
    Ok(planned)
}

fn slow_count(url: &str) -> Result {
    create(url)?;
    insert(url, 1, "3")?;
    let this = Move::planned(url)?;
    // They would take minutes. A `SLEEP` of MySQL that is ended is no error, and other names of locked tables are.
    let slow = match is_postgres(url) {
        true => "SELECT count(*) FROM items WHERE pg_sleep(300)::text = 'slow'".to_owned(),
        false => {
            let ten = format!("(SELECT 1 AS one{})", " UNION ALL SELECT 1".repeat(9));
            let joined: Vec<String> = (0..10)
                .map(|number| format!("{ten} AS t{number}"))
                .collect();
            format!("SELECT count(*) FROM {}", joined.join(" JOIN "))
        }
    };
    let planned = edit_count(&this.file, &slow)?;
    this.apply(&["--edited", "--no-switch"])?;
    let begun = Instant::now();
    let options = ["--edited", "--resume", "--lock-timeout", "300"];
    let line = this.refused(&options, 3)?;
    expect(
        &line,
        "the counts under the lock took longer than the lock timeout in 3 attempts, and the locks were let go each time",
    )?;
    expect(
        &line,
        "go on with --resume, when the server has less to do, or with a longer --lock-timeout",
    )?;
    if begun.elapsed() > Duration::from_secs(60) {
        return Err(format!("it took {:?}", begun.elapsed()).into());
    }
    // Nothing is switched, and nobody is in the way.
    execute(url, "INSERT INTO items (order_id, kind) VALUES (2, 2)")?;
    edit_count(&this.file, &planned)?;
    this.apply(&["--resume"])?;
    expect_value(
        url,
        "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id AND o.kind = i.kind",
        "2",
    )
}

fn placeholders(url: &str) -> Result {
    create(url)?;
    let quote = if is_postgres(url) { '"' } else { '`' };
    execute(
        url,
        &format!("ALTER TABLE items ADD COLUMN {quote}a{{limit}}{quote} int"),
    )?;
    let line = refused(&Move::new(url)?.plan(), 2)?;
    expect(
        &line,
        "has {limit}, which stands for something else in a plan: rename it",
    )
}

/// `VACUUM FULL` gives rows other places while `apply` has a list of them.
fn rewritten(url: &str) -> Result {
    const FILLED: &str = "SELECT count(*) FROM items WHERE ordid_new_order_id IS NOT NULL";
    create(url)?;
    insert(url, 40, "1")?;
    insert(url, 40, "2")?;
    execute(url, "DELETE FROM items WHERE id <= 20")?;
    let this = Move::planned(url)?;
    let slowly = ["--no-switch", "--chunk", "1", "--pause", "50"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["apply", &this.file, url, "--lock-timeout", "10000"])
        .args(slowly)
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?;
    // Before its first step there is no such column.
    let filled = || block(url, FILLED).map_or(0, |rows| rows[0][0].parse().unwrap_or(0));
    let begun = Instant::now();
    while filled() < 5 {
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill()?;
            return Err("no row is filled".into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = filled();
    execute(url, "VACUUM FULL items")?;
    let status = child.wait()?;
    if !status.success() || before > 50 {
        return Err(format!("{status}, {before} rows were filled before").into());
    }
    this.apply(&["--resume"])?;
    expect_value(
        url,
        "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id AND o.kind = i.kind",
        "60",
    )
}

fn held_locks(url: &str) -> Result {
    create(url)?;
    let this = Move::planned(url)?;
    let database = url.rsplit('/').next().unwrap_or_default();
    let (name, session) = match is_postgres(url) {
        true => ("public.orders".to_owned(), "SELECT pg_backend_pid()"),
        false => (format!("{database}.orders"), "SELECT CONNECTION_ID()"),
    };
    let (line, session) = block_on(async {
        let mut other = Connection::open(url).await?;
        let session = other.rows(session).await?[0][0].clone();
        other.execute("BEGIN").await?;
        other.rows("SELECT count(*) FROM orders").await?;
        Ok((this.refused(&["--attempts", "2"], 3), session))
    })?;
    let line = line?;
    expect(
        &line,
        &format!("others held the locks of {name} in 2 attempts"),
    )?;
    let is_told = is_postgres(url) || block(url, "SELECT version()")?[0][0].starts_with('9');
    match is_told {
        true => expect(&line, &format!("(sessions that use them now: {session})")),
        false => Ok(()),
    }?;
    this.apply(&["--resume"]).map(drop)
}

fn old_references(url: &str) -> Result {
    create(url)?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    execute(
        url,
        "INSERT INTO items (ordid_old_order_id, kind) VALUES (2, 2);
         INSERT INTO items (kind) VALUES (9);
         INSERT INTO orders (ordid_old_parent_id, kind) VALUES (3, 4);
         INSERT INTO orders (ordid_old_id, ordid_old_parent_id, kind) VALUES (50, 50, 5)",
    )?;
    for (table, column) in [
        ("items", "ordid_old_order_id"),
        ("orders", "ordid_old_parent_id"),
    ] {
        let insert = format!("INSERT INTO {table} ({column}, kind) VALUES (999, 0)");
        match execute(url, &insert) {
            Ok(()) => return Err(format!("{insert}: taken").into()),
            Err(error) => expect(
                &format!("{error:?}"),
                &format!("no row has the old key in {column}"),
            )?,
        }
    }
    let check = || -> Result {
        expect_value(
            url,
            "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id AND o.kind = 2 AND i.kind = 2",
            "1",
        )?;
        expect_value(
            url,
            "SELECT count(*) FROM items WHERE order_id IS NULL AND kind = 9",
            "1",
        )?;
        expect_value(
            url,
            "SELECT count(*) FROM orders c JOIN orders p ON p.id = c.parent_id AND (c.kind, p.kind) IN ((4, 3), (5, 5))",
            "2",
        )
    };
    check()?;
    this.apply(&["--rollback"])?;
    check()
}

/// Creates a user with these rights in the database; the address for it.
fn user(url: &str, rights: &str) -> Result<String> {
    let (head, place) = url.split_once('@').ok_or("a URL without a user")?;
    let (scheme, _) = head.split_once("://").ok_or("a URL without a scheme")?;
    let database = url.rsplit('/').next().unwrap_or_default();
    let name = format!(
        "mover_{}",
        database
            .rsplit_once("cli_")
            .map_or(database, |(_, end)| end)
    );
    execute(
        url,
        &format!(
            "CREATE USER {name} IDENTIFIED BY 'word'; GRANT {rights} ON {database}.* TO {name}"
        ),
    )?;
    Ok(format!("{scheme}://{name}:word@{place}"))
}

const RIGHTS: &str = "SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, ALTER, INDEX, REFERENCES, LOCK TABLES, CREATE TEMPORARY TABLES";

fn no_triggers(url: &str) -> Result {
    create(url)?;
    let tables = ["orders", "items"];
    let before = super::definitions_of(url, &tables)?;
    let this = Move::planned(&user(url, RIGHTS)?)?;
    let line = this.refused(&[], 3)?;
    expect(&line, "TRIGGER command denied")?;
    this.apply(&["--rollback"])?;
    let after = super::definitions_of(url, &tables)?;
    match before == after {
        true => Ok(()),
        false => Err(format!("before: {before:?}, after: {after:?}").into()),
    }
}

fn binary_log(url: &str) -> Result {
    create(url)?;
    let mover = user(url, &format!("{RIGHTS}, TRIGGER"))?;
    let trust = |value: u8| {
        execute(
            url,
            &format!("SET GLOBAL log_bin_trust_function_creators = {value}"),
        )
    };
    let reason = "(error 1419): SET GLOBAL log_bin_trust_function_creators = 1";
    Move::unplanned(&mover, reason)?;
    trust(1)?;
    let this = Move::planned(&mover)?;
    trust(0)?;
    expect(&this.refused(&[], 2)?, reason)?;
    trust(1)?;
    this.apply(&[])?;
    this.apply(&["--rollback"])?;
    // The server itself refuses, and takes all of a user with SUPER.
    trust(0)?;
    let create = "CREATE TRIGGER own BEFORE INSERT ON items FOR EACH ROW SET NEW.kind = 1";
    match execute(&mover, create) {
        Ok(()) => return Err("the server takes the trigger".into()),
        Err(error) => expect(&format!("{error:?}"), "log_bin_trust_function_creators")?,
    }
    Move::planned(url)?.apply(&[]).map(drop)
}

/// Creates a trigger under which each changed order takes some time.
fn slow_orders(url: &str) -> Result {
    create(url)?;
    execute(
        url,
        "INSERT INTO orders (kind) SELECT 1 FROM orders a, orders b, orders c;
         CREATE TRIGGER slow BEFORE UPDATE ON orders FOR EACH ROW SET NEW.kind = NEW.kind + SLEEP(0.1)",
    )
}

fn limited_statements(url: &str) -> Result {
    slow_orders(url)?;
    expect_value(url, "SELECT @@SESSION.max_statement_time", "1.000000")?;
    let this = Move::planned(url)?;
    // 30 rows of 0.1 s in one statement.
    this.apply(&[])?;
    this.apply(&["--rollback"])?;
    expect_value(url, "SELECT sum(kind) FROM orders", "33")
}

fn lines(url: &str) -> Result {
    slow_orders(url)?;
    let this = Move::planned(url)?;
    let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["apply", &this.file, url, "--no-switch"])
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().ok_or("no stdout")?;
    let mut stdout = BufReader::new(stdout);
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    let is_running = child.try_wait()?.is_none();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest)?;
    child.wait()?;
    if !line.starts_with("columns ") || !is_step(&line) || !is_running {
        return Err(format!("running: {is_running}: {line}{rest}").into());
    }
    let database = url.rsplit('/').next().unwrap_or_default();
    for column in ["orders.parent_id", "items.order_id"] {
        let end = format!(" s  {database}.{column}");
        let has = rest
            .lines()
            .any(|it| it.starts_with("references ") && it.ends_with(&end));
        if !has {
            return Err(Failed::from(format!("no {end:?} in: {rest}")));
        }
    }
    // The document of JSON is the only output.
    let output = ordid(&["apply", &this.file, url, "--resume", "--json"])?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    match document["steps"][0]["step"] == "switch" {
        true => Ok(()),
        false => Err(format!("{document:#}").into()),
    }
}
