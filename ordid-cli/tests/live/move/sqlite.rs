//! The rebuild of a SQLite file, beside a program that writes it.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, Connection as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions,
};

use crate::place::{Result, block_on, printed, refused};

const TABLES: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE orders (
        id INTEGER PRIMARY KEY AUTOINCREMENT, -- the key, of course
        ref TEXT NOT NULL UNIQUE,
        parent INTEGER REFERENCES orders (id) ON DELETE SET NULL,
        created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
    );
    CREATE INDEX orders_created ON orders (created_at);
    CREATE TABLE order_lines (order_id INTEGER NOT NULL, line_no INTEGER NOT NULL, token TEXT,
        PRIMARY KEY (order_id, line_no), FOREIGN KEY (order_id) REFERENCES orders ON DELETE CASCADE) WITHOUT ROWID;
    CREATE TABLE log (what TEXT);
    CREATE TRIGGER orders_log AFTER UPDATE ON orders BEGIN INSERT INTO log VALUES (new.ref); END;
    CREATE VIEW names AS SELECT id, ref FROM orders;";

async fn open(file: &str) -> sqlx::Result<SqliteConnection> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .busy_timeout(Duration::from_secs(30));
    SqliteConnection::connect_with(&options).await
}

fn script(file: &str, sql: &str) -> Result {
    block_on(async {
        sqlx::raw_sql(AssertSqlSafe(sql))
            .execute(&mut open(file).await?)
            .await?;
        Ok(())
    })
}

fn rows(file: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    block_on(async {
        let rows = sqlx::raw_sql(AssertSqlSafe(sql))
            .fetch_all(&mut open(file).await?)
            .await?;
        rows.iter()
            .map(|row| {
                (0..row.len())
                    .map(|at| {
                        row.try_get_unchecked::<Option<String>, _>(at)
                            .map(Option::unwrap_or_default)
                    })
                    .collect()
            })
            .collect()
    })
}

fn create(file: &str, orders: u32) -> Result {
    script(
        file,
        &format!(
            "{TABLES} BEGIN;
             INSERT INTO orders (ref, created_at) SELECT 'r' || value, strftime('%Y-%m-%d %H:%M:%f', '2024-01-01', (((value * 7919) % \
             {orders}) / 100.0) || ' seconds') FROM generate_series(1, {orders});
             UPDATE orders SET parent = id / 10 WHERE id >= 10;
             INSERT INTO order_lines SELECT id, 0, 'a' || id FROM orders; INSERT INTO order_lines SELECT id, 1, 'b' || id FROM orders;
             DELETE FROM log; COMMIT;"
        ).replace(
            &format!("FROM generate_series(1, {orders})"),
            &format!("FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {orders}) SELECT value FROM n)"),
        ),
    )
}

/// What is in the tables, whatever the keys are.
fn content(file: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let orders = "SELECT o.ref, o.created_at, coalesce(p.ref, '') FROM orders o LEFT JOIN orders p ON p.id = o.parent";
    for row in rows(file, orders)? {
        all.insert(row[0].clone(), row[1..].to_vec());
    }
    let lines = "SELECT o.ref, l.line_no, l.token FROM order_lines l LEFT JOIN orders o ON o.id = l.order_id ORDER BY 1, 2";
    for row in rows(file, lines)? {
        all.get_mut(&row[0])
            .ok_or("a line of no order")?
            .extend_from_slice(&row[1..]);
    }
    Ok(all)
}

pub(crate) fn rebuilt() -> Result {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (file, plan) = (path("shop.sqlite"), path("plan.json"));
    create(&file, 20_000)?;
    // A table that was renamed has its name quoted.
    let schema = "SELECT name, replace(sql, '\"', '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name";
    let (before, definition) = (content(&file)?, rows(&file, schema)?);
    let keys = rows(&file, "SELECT ref, id FROM orders ORDER BY ref")?;
    let shown = printed(
        &[
            "plan", &file, "--table", "orders", "--to", "uuid_v7", "-o", &plan,
        ],
        0,
    )?;
    for part in ["order_lines", "created_at", "others wait to write"] {
        if !shown.contains(part) {
            return Err(format!("no {part} in {shown}").into());
        }
    }

    // Somebody writes another table, and it is killed in between.
    let stop = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut written = 0;
            while !stop.load(Ordering::Relaxed) {
                script(&file, "INSERT INTO log VALUES ('beside')")?;
                written += 1;
            }
            Ok(written)
        });
        let moved = (|| {
            for number in 0..6 {
                let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
                    .args(["apply", &plan, &file, "--resume"])
                    .stdin(Stdio::null())
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()?;
                std::thread::sleep(Duration::from_millis(30 + 60 * number));
                if child.try_wait()?.is_none() {
                    child.kill()?;
                }
                child.wait()?;
            }
            printed(&["apply", &plan, &file, "--resume"], 0)
        })();
        stop.store(true, Ordering::Relaxed);
        let written: Result<u32> = writer.join().map_err(|_| "the writer panicked")?;
        moved.and(written)
    })?;
    let beside = rows(&file, "SELECT count(*) FROM log")?;
    if beside[0][0] != written.to_string() {
        return Err(format!("{beside:?} rows of {written} beside the move").into());
    }
    if content(&file)? != before {
        return Err("the tables have other rows".into());
    }
    for (what, query) in [
        (
            "keys that are no UUID of version 7",
            "SELECT count(*) FROM orders WHERE typeof(id) <> 'blob' OR substr(hex(id), 13, 1) <> '7'",
        ),
        (
            "keys that fall",
            "SELECT count(*) FROM (SELECT id < lag(id) OVER (ORDER BY created_at) AS falls FROM orders) WHERE falls",
        ),
        (
            "dangling references",
            "SELECT count(*) FROM pragma_foreign_key_check",
        ),
        (
            "keys of another time",
            "SELECT count(*) FROM orders WHERE substr(hex(id), 1, 6) <> '018CC2'",
        ),
    ] {
        let count = rows(&file, query)?;
        if count[0][0] != "0" {
            return Err(format!("{count:?} {what}").into());
        }
    }

    // Back: the old keys, and one for a row that is new.
    script(
        &file,
        "DELETE FROM orders WHERE ref = 'r77'; INSERT INTO orders (id, ref) VALUES (x'019a0000000070008000000000000001', 'new')",
    )?;
    let now = content(&file)?;
    printed(&["apply", &plan, &file, "--rollback"], 0)?;
    if rows(&file, schema)? != definition {
        return Err(format!("{:?} is not {definition:?}", rows(&file, schema)?).into());
    }
    if content(&file)? != now {
        return Err("the tables have other rows after the rollback".into());
    }
    let mut expected: Vec<Vec<String>> = keys.into_iter().filter(|row| row[0] != "r77").collect();
    expected.push(vec!["new".to_owned(), "20001".to_owned()]);
    expected.sort();
    if rows(&file, "SELECT ref, id FROM orders ORDER BY ref")? != expected {
        return Err("rows have other old keys".into());
    }

    // Once more, to the end.
    let again = path("again.json");
    printed(
        &[
            "plan",
            &file,
            "--table",
            "orders",
            "--to",
            "uuid_v7:text",
            "-o",
            &again,
        ],
        0,
    )?;
    printed(&["apply", &again, &file], 0)?;
    printed(&["apply", &again, &file, "--finish"], 0)?;
    if content(&file)? != now {
        return Err("the tables have other rows at the end".into());
    }
    let left = rows(
        &file,
        "SELECT name FROM sqlite_schema WHERE name LIKE 'ordid%'",
    )?;
    match left.is_empty() {
        true => Ok(()),
        false => Err(format!("{left:?} is left").into()),
    }
}

/// A report for a browser has each step of the plan with its SQL, and names of the user's are escaped.
pub(crate) fn report() -> Result {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (file, plan, html) = (path("odd.sqlite"), path("plan.json"), path("plan.html"));
    script(
        &file,
        r#"CREATE TABLE "<b>" (id INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO "<b>" DEFAULT VALUES"#,
    )?;
    let arguments = [
        "plan", &file, "--table", "<b>", "--to", "uuid_v7", "-o", &plan, "--html", &html,
    ];
    printed(&arguments, 0)?;
    let html = std::fs::read_to_string(html)?;
    for words in [
        "The move, 1: ",
        "The way back after the switch, 1: ",
        "DROP TABLE &quot;&lt;b&gt;&quot;",
    ] {
        assert!(html.contains(words), "{words} is not in {html}");
    }
    assert!(!html.contains("<b>"), "{html}");
    // A file that cannot be written is told before anything is planned.
    let nowhere = path("no/folder.html");
    let line = refused(
        &[
            "plan", &file, "--table", "<b>", "--to", "uuid_v7", "--html", &nowhere,
        ],
        3,
    )?;
    assert!(line.contains("folder.html"), "{line}");
    Ok(())
}

pub(crate) fn refusals() -> Result {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (file, plan) = (path("shop.sqlite"), path("plan.json"));
    create(&file, 10)?;
    script(
        &file,
        "CREATE TABLE pairs (a, b, PRIMARY KEY (a, b)); CREATE TABLE none (a);
         CREATE TABLE deep (order_id INTEGER PRIMARY KEY REFERENCES orders (id));
         CREATE TABLE deeper (x INTEGER REFERENCES deep (order_id))",
    )?;
    for (table, to, reason) in [
        (
            "order",
            "uuid_v7",
            "there is no table order; did you mean `orders`?",
        ),
        ("pairs", "uuid_v7", "has 2 columns"),
        ("none", "uuid_v7", "has no primary key"),
        (
            "orders",
            "uuid_v7",
            "deeper.x refers to a column of deep that is moved itself",
        ),
        ("orders", "uuid_v4", "lose their order"),
    ] {
        let line = refused(
            &["plan", &file, "--table", table, "--to", to, "-o", &plan],
            2,
        )?;
        if !line.contains(reason) {
            return Err(format!("no {reason:?} in: {line}").into());
        }
    }
    // A reference to nothing would be lost: nothing changes.
    script(
        &file,
        "DROP TABLE deeper; DROP TABLE deep; PRAGMA foreign_keys = OFF; INSERT INTO order_lines VALUES (99, 0, 'dangling')",
    )?;
    printed(
        &[
            "plan", &file, "--table", "orders", "--to", "uuid_v7", "-o", &plan,
        ],
        0,
    )?;
    let line = refused(&["apply", &plan, &file], 3)?;
    let ids = rows(
        &file,
        "SELECT count(*) FROM orders WHERE typeof(id) = 'integer'",
    )?;
    match line.contains("references to rows that are not there") && ids[0][0] == "10" {
        true => Ok(()),
        false => Err(format!("{line}; {ids:?}").into()),
    }
}
