//! The rebuild of a SQLite file, beside a program that writes it.

use std::{
    cell::Cell,
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use libtest_mimic::Trial;
use sqlx::{
    AssertSqlSafe, Connection as _, Row as _, SqliteConnection, sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;

use crate::place::{Result, block_on, ordid, printed, refused};

type Test = fn() -> Result;

pub(crate) fn trials(trials: &mut Vec<Trial>) {
    let all: &[(&str, Test)] = &[
        ("plan_writes_a_report_for_a_browser", report),
        (
            "a_killed_rebuild_loses_no_row_and_is_rolled_back_and_finished",
            rebuilt,
        ),
        (
            "what_cannot_be_rebuilt_is_refused_with_the_reason",
            refusals,
        ),
        (
            "a_rollback_refuses_tables_that_changed_after_the_move",
            changed_after,
        ),
        (
            "a_change_made_while_apply_waits_for_the_file_stops_the_move",
            changed_while_waiting,
        ),
        ("foreign_keys_that_are_enforced_stop_the_rebuild", enforced),
        (
            "a_check_that_returns_no_number_stops_the_rebuild",
            no_number,
        ),
        ("rows_that_were_not_copied_stop_the_rebuild", not_copied),
        ("expressions_over_the_key_are_refused", expressions),
        (
            "a_foreign_key_to_a_moved_column_is_refused_however_it_is_written",
            keys_that_refer,
        ),
        (
            "a_foreign_key_to_another_column_is_no_concern_of_a_move",
            other_columns,
        ),
        (
            "a_key_that_ignores_case_is_found_as_its_references_write_it",
            ignored_case,
        ),
        ("julian_days_are_read_as_times", julian_days),
        (
            "a_key_that_was_deleted_is_not_given_out_again_after_a_rollback",
            sequences,
        ),
        (
            "new_rows_get_keys_of_the_old_type_in_a_rollback",
            fresh_keys,
        ),
        (
            "numbers_are_refused_in_the_columns_of_the_new_keys",
            numbers,
        ),
        ("dangling_references_are_shown_by_a_query", orphans),
        (
            "columns_that_refer_without_a_foreign_key_are_named_by_the_plan",
            unlinked,
        ),
        ("the_end_keeps_a_map_of_keys_if_it_is_asked_to", kept_map),
        (
            "apply_says_the_state_when_the_move_is_done_already",
            done_already,
        ),
        ("times_that_cannot_be_read_are_counted", times),
        ("times_that_no_key_can_have_are_refused", nanoseconds),
        ("rows_keep_their_rowids_both_ways", rowids),
        (
            "a_reference_that_is_compared_by_another_affinity_finds_its_row",
            affinities,
        ),
        ("the_statistics_of_the_tables_are_made_again", statistics),
        ("commands_that_are_printed_can_be_run", commands),
        ("a_locked_file_is_given_up_after_the_attempts", locked),
        ("a_finish_fails_if_a_rollback_was_faster", faster_rollback),
        (
            "what_a_move_without_a_journal_has_left_is_named",
            dropped_journal,
        ),
        ("readers_are_waited_for_at_the_commit", readers),
        (
            "rows_that_are_short_are_stored_in_the_order_of_the_key",
            without_rowid,
        ),
    ];
    for (name, test) in all {
        trials.push(Trial::test(format!("move::{name} [sqlite]"), *test));
    }
}

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
    let line = refused(
        &[
            "plan", &file, "--table", "orders", "--to", "uuid_v7", "-o", &plan,
        ],
        2,
    )?;
    match line.contains("1 row of order_lines has an order_id that is not in orders") {
        true => Ok(()),
        false => Err(line.into()),
    }
}

/// A file, and the plan of the move of its table `orders`.
struct Place {
    folder: TempDir,
    file: String,
    plan: String,
    is_edited: Cell<bool>,
}

impl Place {
    fn new(tables: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        let (file, plan) = (path("shop.sqlite"), path("plan.json"));
        script(&file, tables)?;
        Ok(Self {
            folder,
            file,
            plan,
            is_edited: Cell::new(false),
        })
    }

    /// Writes the plan, and returns what is shown.
    fn plan(&self) -> Result<String> {
        let arguments = [
            "--table", "orders", "--to", "uuid_v7", "-o", &self.plan, "--force",
        ];
        printed(&[&["plan", &self.file], &arguments[..]].concat(), 0)
    }

    /// Writes no plan, and returns the reason.
    fn no_plan(&self) -> Result<String> {
        let arguments = [
            "--table", "orders", "--to", "uuid_v7", "-o", &self.plan, "--force",
        ];
        refused(&[&["plan", &self.file], &arguments[..]].concat(), 2)
    }

    fn apply(&self, options: &[&str]) -> Result<String> {
        printed(&self.arguments(options), 0)
    }

    fn refused(&self, options: &[&str], code: i32) -> Result<String> {
        refused(&self.arguments(options), code)
    }

    fn arguments<'a>(&'a self, options: &[&'a str]) -> Vec<&'a str> {
        let edited: &[&str] = match self.is_edited.get() {
            true => &["--edited"],
            false => &[],
        };
        [&["apply", &self.plan, &self.file], options, edited].concat()
    }

    fn script(&self, sql: &str) -> Result {
        script(&self.file, sql)
    }

    /// Returns the first value of the first row.
    fn value(&self, sql: &str) -> Result<String> {
        let rows = rows(&self.file, sql)?;
        Ok(rows
            .first()
            .and_then(|row| row.first())
            .cloned()
            .ok_or("no row")?)
    }

    /// Replaces a part of the plan.
    fn edit(&self, part: &str, by: &str) -> Result {
        let text = std::fs::read_to_string(&self.plan)?;
        assert!(text.contains(part), "{part} is not in {text}");
        self.is_edited.set(true);
        Ok(std::fs::write(&self.plan, text.replace(part, by))?)
    }
}

/// Two tables without any decoration.
const SMALL: &str = "
    PRAGMA journal_mode = WAL;
    CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, ref TEXT);
    CREATE TABLE lines (id INTEGER PRIMARY KEY AUTOINCREMENT, order_id INTEGER REFERENCES orders (id), token TEXT);
    INSERT INTO orders (ref) VALUES ('a'), ('b'), ('c');
    INSERT INTO lines (order_id, token) VALUES (1, 'x'), (2, 'y'), (NULL, 'z');";

const STILL_OLD: &str = "SELECT count(*) FROM orders WHERE typeof(id) = 'integer'";

fn expect(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

fn changed_after() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.apply(&[])?;
    for (change, name, undo) in [
        (
            "ALTER TABLE orders ADD COLUMN note TEXT",
            "note TEXT",
            "ALTER TABLE orders DROP COLUMN note",
        ),
        (
            "CREATE INDEX extra ON lines (token)",
            "extra",
            "DROP INDEX extra",
        ),
        (
            "CREATE TRIGGER added AFTER INSERT ON orders BEGIN SELECT 1; END",
            "TRIGGER added",
            "DROP TRIGGER added",
        ),
        (
            "CREATE TABLE more (order_id BLOB REFERENCES orders (id))",
            "more",
            "DROP TABLE more",
        ),
    ] {
        place.script(change)?;
        let schema = rows(&place.file, "SELECT sql FROM sqlite_schema")?;
        expect(
            &place.refused(&["--rollback"], 2)?,
            &["changed since the move", name, "--finish"],
        );
        assert_eq!(rows(&place.file, "SELECT sql FROM sqlite_schema")?, schema);
        place.script(undo)?;
    }
    place.apply(&["--rollback"])?;
    assert_eq!(place.value(STILL_OLD)?, "3");
    assert_eq!(
        place.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ordid%'")?,
        "0"
    );
    Ok(())
}

/// When a file that is held is let go.
#[derive(Clone, Copy, PartialEq)]
enum LetGo {
    /// When the command has waited for it for a while.
    Soon,
    /// After that, when the command was sent a SIGINT.
    Interrupted,
    /// When the command has given up.
    GivenUp,
}

/// Holds the file with these statements while the command runs. Returns its code, and what it says.
fn beside(place: &Place, arguments: &[&str], sql: &str, end: LetGo) -> Result<(i32, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut connection = runtime.block_on(open(&place.file))?;
    runtime.block_on(sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut connection))?;
    let child = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(["apply", &place.plan, &place.file])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let let_go = || {
        runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut connection))?;
        runtime.block_on(connection.close())
    };
    let output = if end == LetGo::GivenUp {
        let output = child.wait_with_output()?;
        let_go()?;
        output
    } else {
        std::thread::sleep(Duration::from_millis(1500));
        if end == LetGo::Interrupted {
            Command::new("kill")
                .args(["-INT", &child.id().to_string()])
                .status()?;
            std::thread::sleep(Duration::from_millis(100));
        }
        let_go()?;
        child.wait_with_output()?
    };
    Ok((
        output.status.code().unwrap_or(-1),
        String::from_utf8(output.stderr)?,
    ))
}

fn changed_while_waiting() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    let change = "BEGIN IMMEDIATE; ALTER TABLE orders ADD COLUMN late TEXT";
    let (code, line) = beside(&place, &[], change, LetGo::Soon)?;
    expect(&line, &["changed since the plan was made", "late TEXT"]);
    assert_eq!((code, &*place.value(STILL_OLD)?), (2, "3"));
    assert_eq!(
        place.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ordid%'")?,
        "0"
    );
    // Ctrl-C while it waits: nothing is left, and the same command begins again.
    place.plan()?;
    let (code, line) = beside(&place, &[], "BEGIN IMMEDIATE", LetGo::Interrupted)?;
    expect(&line, &["interrupted; nothing was changed"]);
    assert_eq!((code, &*place.value(STILL_OLD)?), (3, "3"));
    assert_eq!(
        place.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ordid%'")?,
        "0"
    );
    place.apply(&[])?;
    Ok(())
}

fn enforced() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.edit("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON")?;
    expect(&place.refused(&[], 3)?, &["foreign keys are enforced"]);
    assert_eq!(place.value(STILL_OLD)?, "3");
    Ok(())
}

fn no_number() -> Result {
    for wrong in ["SELECT 'many'", "SELECT NULL", "SELECT 0 WHERE 0"] {
        let place = Place::new(SMALL)?;
        place.plan()?;
        let mut plan: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&place.plan)?)?;
        plan["steps"][0]["checks"][0]["sql"] = wrong.into();
        std::fs::write(&place.plan, plan.to_string())?;
        place.is_edited.set(true);
        expect(&place.refused(&[], 3)?, &["is no number", wrong]);
        assert_eq!(place.value(STILL_OLD)?, "3");
    }
    Ok(())
}

fn not_copied() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.edit(
        r#"FROM \"lines\" AS it""#,
        r#"FROM \"lines\" AS it WHERE it.token <> 'z'""#,
    )?;
    expect(
        &place.refused(&[], 3)?,
        &["rows of lines", "3 before", "2 after"],
    );
    assert_eq!(place.value(STILL_OLD)?, "3");
    assert_eq!(place.value("SELECT count(*) FROM lines")?, "3");
    Ok(())
}

fn expressions() -> Result {
    for (tables, reason) in [
        (
            "CREATE TABLE orders (id TEXT PRIMARY KEY); INSERT INTO orders VALUES (NULL), ('a')",
            "rows of orders have no key",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY CHECK (id > 0), x)",
            "a CHECK of orders",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, x, CONSTRAINT c CHECK (x > \"ID\"))",
            "a CHECK of orders",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, x AS (id * 2))",
            "a generated column of orders",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, x); CREATE INDEX some ON orders (x) WHERE id > 100",
            "the index some",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, x); CREATE INDEX some ON orders (x, id % 16)",
            "the index some",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, x); CREATE VIRTUAL TABLE found USING fts5 (x, content='orders', \
             content_rowid='id')",
            "found",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY); CREATE TABLE lines (order_id INTEGER DEFAULT 0 REFERENCES orders)",
            "lines.order_id has a default",
        ),
    ] {
        expect(&Place::new(tables)?.no_plan()?, &[reason]);
    }
    // These have no expression over the key.
    let place = Place::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, x CHECK (x <> 'id'), y AS (x + 1)); CREATE INDEX some ON orders (x, id DESC) \
         WHERE x > 0; CREATE TABLE lines (order_id INTEGER DEFAULT NULL REFERENCES orders)",
    )?;
    place.plan()?;
    place.apply(&[])?;
    Ok(())
}

/// The key of a table that refers to the key is moved, too.
fn keys_that_refer() -> Result {
    for (reason, refers) in [
        (
            "notes.order_id, notes.n refers",
            "notes (order_id INTEGER, n INTEGER, FOREIGN KEY (order_id, n) REFERENCES lines)",
        ),
        (
            "notes.order_id refers",
            "notes (order_id INTEGER, n INTEGER, FOREIGN KEY (order_id, n) REFERENCES lines (ORDER_ID, n))",
        ),
        (
            "notes.order_id refers",
            "notes (order_id INTEGER REFERENCES single (Order_Id))",
        ),
        (
            "notes.order_id refers",
            "notes (order_id INTEGER REFERENCES single)",
        ),
    ] {
        let place = Place::new(&format!(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY);
             CREATE TABLE lines (order_id INTEGER NOT NULL REFERENCES orders, n INTEGER NOT NULL, PRIMARY KEY (order_id, n));
             CREATE TABLE single (order_id INTEGER PRIMARY KEY REFERENCES orders);
             CREATE TABLE {refers}"
        ))?;
        expect(&place.no_plan()?, &[reason, "that is moved itself"]);
    }
    Ok(())
}

fn other_columns() -> Result {
    let place = Place::new(SMALL)?;
    place.script(
        "CREATE UNIQUE INDEX refs ON orders (ref); CREATE TABLE labels (ref TEXT REFERENCES orders (ref));
         INSERT INTO labels VALUES ('b')",
    )?;
    place.plan()?;
    place.apply(&[])?;
    let joined =
        "SELECT count(*) FROM labels JOIN orders USING (ref) WHERE typeof(orders.id) = 'blob'";
    assert_eq!(place.value(joined)?, "1");
    place.apply(&["--rollback"])?;
    assert_eq!(place.value(STILL_OLD)?, "3");
    Ok(())
}

fn ignored_case() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id TEXT COLLATE NOCASE PRIMARY KEY); CREATE TABLE lines (order_id TEXT REFERENCES orders (id));
         INSERT INTO orders VALUES ('ABC'), ('d'); INSERT INTO lines VALUES ('abc'), ('D'), (NULL)",
    )?;
    let linked = "SELECT count(*) FROM lines JOIN orders ON orders.id = order_id";
    for way in ["--finish", "--rollback"] {
        place.plan()?;
        place.apply(&[])?;
        assert_eq!(place.value(linked)?, "2");
        if way == "--finish" {
            place.apply(&[way])?;
            return Ok(());
        }
        place.apply(&[way])?;
        assert_eq!(place.value(linked)?, "2");
    }
    Ok(())
}

/// One of SQLite's three forms of a time.
fn julian_days() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, created_at REAL); INSERT INTO orders VALUES
         (1, julianday('2024-05-01 06:00')), (2, julianday('2023-05-01')), (3, 1700000000.5), (4, 1600000000)",
    )?;
    place.plan()?;
    place.apply(&[])?;
    let millis = "SELECT group_concat(substr(hex(id), 1, 12) || ' ' || CAST(created_at AS INTEGER), ', ') FROM (SELECT * FROM orders ORDER BY id)";
    assert_eq!(
        place.value(millis)?,
        "0174876E8000 1600000000, 0187D49BE800 2460065, 018BCFE569F4 1700000000, 018F32BD0700 2460431"
    );
    Ok(())
}

fn sequences() -> Result {
    let place = Place::new(SMALL)?;
    place.script("DELETE FROM lines WHERE id = 3; DELETE FROM orders WHERE id = 3")?;
    place.plan()?;
    place.apply(&[])?;
    place.script("INSERT INTO lines (token) VALUES ('after')")?;
    assert_eq!(place.value("SELECT max(id) FROM lines")?, "4");
    place.script(
        "DELETE FROM lines WHERE id = 4; UPDATE lines SET order_id = NULL; DELETE FROM orders WHERE ref = 'b';
         INSERT INTO orders (id, ref) VALUES (x'019a0000000070008000000000000001', 'new')",
    )?;
    place.apply(&["--rollback"])?;
    assert_eq!(place.value("SELECT id FROM orders WHERE ref = 'new'")?, "4");
    place.script("DELETE FROM orders WHERE id = 4; INSERT INTO orders (ref) VALUES ('d'); INSERT INTO lines (token) VALUES ('w')")?;
    assert_eq!(place.value("SELECT max(id) FROM orders")?, "5");
    assert_eq!(place.value("SELECT max(id) FROM lines")?, "5");
    // All rows are gone, and their keys are not.
    let place = Place::new(SMALL)?;
    place.script("DELETE FROM lines; DELETE FROM orders")?;
    place.plan()?;
    place.apply(&[])?;
    place.apply(&["--rollback"])?;
    place
        .script("INSERT INTO orders (ref) VALUES ('d'); INSERT INTO lines (token) VALUES ('w')")?;
    assert_eq!(place.value("SELECT max(id) FROM orders")?, "4");
    assert_eq!(place.value("SELECT max(id) FROM lines")?, "4");
    Ok(())
}

fn fresh_keys() -> Result {
    for (declared, old, expected) in [
        ("BLOB", "x'4b0e1a4c6f6b4c5f9a0b1c2d3e4f5a6b'", "blob 16"),
        ("UUID", "x'4b0e1a4c6f6b4c5f9a0b1c2d3e4f5a6b'", "blob 16"),
        ("TEXT", "'4b0e1a4c-6f6b-4c5f-9a0b-1c2d3e4f5a6b'", "text 36"),
        ("INT", "7", "integer 1"),
    ] {
        let place = Place::new(&format!(
            "CREATE TABLE orders (id {declared} NOT NULL PRIMARY KEY, ref TEXT); INSERT INTO orders VALUES ({old}, 'old')"
        ))?;
        place.plan()?;
        place.apply(&[])?;
        place.script(
            "INSERT INTO orders (id, ref) VALUES (x'019a0000000070008000000000000001', 'new')",
        )?;
        place.apply(&["--rollback"])?;
        let form = "SELECT typeof(id) || ' ' || length(id) FROM orders WHERE ref = 'new'";
        assert_eq!(place.value(form)?, expected, "{declared}");
    }
    Ok(())
}

fn numbers() -> Result {
    for to in ["ulid:blob", "uuid_v7:text"] {
        let place = Place::new(SMALL)?;
        let shown = printed(
            &[
                "plan",
                &place.file,
                "--table",
                "orders",
                "--to",
                to,
                "-o",
                &place.plan,
            ],
            0,
        )?;
        expect(
            &shown,
            &["note: programs that compare the key with numbers"],
        );
        place.apply(&[])?;
        for wrong in [
            "INSERT INTO orders (id, ref) VALUES (7, 'old program')",
            "PRAGMA foreign_keys = OFF; INSERT INTO lines (order_id, token) VALUES (7, 'old program')",
        ] {
            let error = format!("{:?}", place.script(wrong).expect_err("it is a number"));
            expect(&error, &["CHECK constraint failed"]);
        }
        place.script(
            "INSERT INTO lines (order_id, token) SELECT id, 'right' FROM orders; INSERT INTO lines (token) VALUES ('none')",
        )?;
        place.apply(&["--finish"])?;
        if to == "ulid:blob" {
            // It can be moved again: what the move has added is no expression of the user's.
            place.plan()?;
            place.apply(&[])?;
            let sql = place.value("SELECT sql FROM sqlite_schema WHERE name = 'orders'")?;
            assert_eq!(sql.matches("CHECK").count(), 1, "{sql}");
        }
    }
    Ok(())
}

fn orphans() -> Result {
    let place = Place::new(SMALL)?;
    place.script(
        "CREATE TABLE others (a INTEGER REFERENCES unrelated (b)); CREATE TABLE unrelated (b INTEGER PRIMARY KEY);
         PRAGMA foreign_keys = OFF; INSERT INTO others VALUES (5); INSERT INTO lines (order_id) VALUES (77), (88)",
    )?;
    let query =
        |line: &str| -> Result<String> { Ok(line.split('`').nth(1).ok_or("no query")?.to_owned()) };
    let line = place.no_plan()?;
    expect(
        &line,
        &["2 rows of lines have an order_id that is not in orders"],
    );
    assert_eq!(rows(&place.file, &query(&line)?)?.len(), 2);
    place.script("DELETE FROM lines WHERE order_id > 70")?;
    place.plan()?;
    place.script("PRAGMA foreign_keys = OFF; INSERT INTO lines (order_id) VALUES (99)")?;
    let line = place.refused(&[], 3)?;
    expect(
        &line,
        &["1 row of lines", "nothing was changed", "--resume"],
    );
    assert_eq!(rows(&place.file, &query(&line)?)?.len(), 1);
    place.script("DELETE FROM lines WHERE order_id = 99")?;
    place.apply(&["--resume"])?;
    // The other table is as it was.
    assert_eq!(place.value("SELECT a FROM others")?, "5");
    Ok(())
}

fn done_already() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.apply(&[])?;
    let shown = place.apply(&["--resume"])?;
    expect(
        &shown,
        &["orders has its new keys", "--finish", "--rollback"],
    );
    assert!(!shown.contains("is finished"), "{shown}");
    let document: serde_json::Value = serde_json::from_str(&place.apply(&["--resume", "--json"])?)?;
    assert_eq!(document["state"], "switched");
    Ok(())
}

fn unlinked() -> Result {
    let place = Place::new(SMALL)?;
    place.script(
        "CREATE TABLE mails (order_id INTEGER, subject TEXT); CREATE TABLE visits (what INTEGER, other INTEGER);
         INSERT INTO orders (ref) SELECT 'n' FROM orders a, orders b, orders c;
         INSERT INTO visits SELECT id, id + 5 FROM orders",
    )?;
    let shown = place.plan()?;
    expect(
        &shown,
        &[
            "no foreign key, and the name of a reference to orders: mails.order_id; such columns",
            "no foreign key, and a sample of values that are all keys of orders: visits.what; if",
        ],
    );
    Ok(())
}

fn kept_map() -> Result {
    let place = Place::new(SMALL)?;
    let shown = place.plan()?;
    expect(
        &shown,
        &[
            "--finish drops the old keys: links",
            "table orders_ordid_map",
        ],
    );
    place.apply(&[])?;
    place.script("CREATE TABLE orders_ordid_map (a)")?;
    let line = place.refused(&["--finish", "--keep-map"], 2)?;
    expect(&line, &["orders_ordid_map is there already"]);
    place.script("DROP TABLE orders_ordid_map")?;
    let shown = place.apply(&["--finish", "--keep-map"])?;
    expect(&shown, &["orders_ordid_map has old and new keys"]);
    let query = "SELECT group_concat(m.old_key || o.ref, ' ') FROM orders_ordid_map m JOIN orders o ON o.id = m.new_key";
    assert_eq!(place.value(query)?, "1a 2b 3c");
    assert_eq!(
        place.value("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'ordid%'")?,
        "0"
    );

    let place = Place::new(SMALL)?;
    place.plan()?;
    place.apply(&[])?;
    expect(&place.apply(&["--finish"])?, &["the old keys are gone"]);
    Ok(())
}

fn times() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, created_at TEXT); INSERT INTO orders (created_at) VALUES ('yesterday'), (NULL), \
         ('01.02.2024'), ('2024-02-01 10:00:00'), ('2999-01-01')",
    )?;
    let shown = place.plan()?;
    expect(
        &shown,
        &[
            "note: 3 of 5 rows have no readable created_at: their keys get the time 1970-01-01",
            "note: 1 of 5 rows has a created_at in the future",
        ],
    );
    let query = shown
        .lines()
        .find(|line| line.contains("3 of 5"))
        .and_then(|line| line.split('`').nth(1));
    assert_eq!(rows(&place.file, query.ok_or("no query")?)?.len(), 3);
    Ok(())
}

/// Go's `UnixNano` is read as microseconds, of a year that no key has room for.
fn nanoseconds() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, created_at INTEGER); INSERT INTO orders (created_at) VALUES (1700000000), \
         (1700000000000000000), (1700000000000000001)",
    )?;
    let line = place.no_plan()?;
    expect(
        &line,
        &[
            "2 of 3 rows have a created_at after +10889-08-02T05:31:50.655Z, the last time that a key can have",
            "or name another column by --created (a number is read as seconds, milliseconds or microseconds by its size)",
        ],
    );
    let query = line.split('`').nth(1).ok_or("no query")?;
    assert_eq!(rows(&place.file, query)?.len(), 2);
    // The last time that a key can have is no reason.
    place.script("UPDATE orders SET created_at = iif(id = 1, 281474976710655999, 1700000000)")?;
    place.plan()?;
    place.apply(&[])?;
    let last = "SELECT max(substr(hex(id), 1, 12)) FROM orders";
    assert_eq!(place.value(last)?, "FFFFFFFFFFFF");
    Ok(())
}

/// A full-text index has its rows by the rowids of those that it was made of.
fn rowids() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, title TEXT);
         CREATE VIRTUAL TABLE orders_fts USING fts5 (title);
         CREATE TRIGGER orders_title AFTER INSERT ON orders BEGIN INSERT INTO orders_fts (rowid, title) VALUES (new.rowid, new.title); END;
         CREATE TABLE lines (rowid TEXT, _rowid_ TEXT, order_id INTEGER REFERENCES orders (id), title TEXT);
         CREATE TABLE heads (order_id INTEGER PRIMARY KEY REFERENCES orders (id), title TEXT);
         CREATE TABLE others (id TEXT PRIMARY KEY, order_id INTEGER REFERENCES orders (id)) WITHOUT ROWID;
         INSERT INTO orders VALUES (9, 'nine'), (2, 'two'), (5, 'five'), (1, 'one');
         INSERT INTO lines (oid, order_id, title) VALUES (7, 9, 'seven'), (3, NULL, 'three'), (8, 1, 'eight');
         INSERT INTO heads VALUES (5, 'five'), (9, 'nine');
         INSERT INTO others VALUES ('a', 2)",
    )?;
    let found = "SELECT group_concat(o.title || o.rowid, ' ') FROM (SELECT rowid, title FROM orders ORDER BY rowid) o JOIN orders_fts f \
                 ON f.rowid = o.rowid AND f.title = o.title";
    let lines =
        "SELECT group_concat(title || oid, ' ') FROM (SELECT oid, title FROM lines ORDER BY oid)";
    let heads = "SELECT group_concat(title || rowid, ' ') FROM (SELECT rowid, title FROM heads ORDER BY rowid)";
    let expected = [
        (found, "one1 two2 five5 nine9"),
        (lines, "three3 seven7 eight8"),
        (heads, "five5 nine9"),
    ];
    expect(
        &place.plan()?,
        &[
            "orders_title uses a rowid: rowids stay what they are until a VACUUM, which may change them",
        ],
    );
    place.apply(&[])?;
    for (query, rows) in expected {
        assert_eq!(place.value(query)?, rows, "after the move: {query}");
    }
    place.script("INSERT INTO orders VALUES (x'ffff8c1fb09171d68b0e4b8e1f2d3c4b', 'ten')")?;
    place
        .script("UPDATE lines SET title = 'late' WHERE oid = 8; DELETE FROM lines WHERE oid = 3")?;
    assert_eq!(place.value(found)?, "one1 two2 five5 nine9 ten10");
    place.apply(&["--rollback"])?;
    assert_eq!(place.value(found)?, "one1 two2 five5 nine9 ten10");
    assert_eq!(place.value(lines)?, "seven7 late8");
    assert_eq!(place.value(heads)?, "five5 nine9");
    assert_eq!(
        place.value(
            "SELECT group_concat(id || title, ' ') FROM (SELECT * FROM orders ORDER BY id)"
        )?,
        "1one 2two 5five 9nine 10ten"
    );
    Ok(())
}

/// SQLite compares a reference by the affinity of the key: the number 7 refers to `'7'`, and not to `'007'`.
fn affinities() -> Result {
    let place = Place::new(
        "CREATE TABLE orders (id TEXT PRIMARY KEY, name TEXT);
         CREATE TABLE lines (n INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders (id));
         CREATE TABLE notes (n INTEGER PRIMARY KEY, order_id REFERENCES orders (id));
         INSERT INTO orders VALUES ('007', 'long'), ('7', 'short'), ('08', 'eight');
         INSERT INTO lines VALUES (1, 7);
         INSERT INTO notes VALUES (1, '007'), (2, 7);
         PRAGMA foreign_key_check",
    )?;
    let names = |table: &str| {
        format!(
            "SELECT group_concat(name, ' ') FROM (SELECT o.name FROM {table} t JOIN orders o ON o.id = t.order_id ORDER BY t.n)"
        )
    };
    place.plan()?;
    place.apply(&[])?;
    assert_eq!(place.value(&names("lines"))?, "short");
    assert_eq!(place.value(&names("notes"))?, "long short");
    place.apply(&["--rollback"])?;
    assert_eq!(
        place.value("SELECT group_concat(order_id) FROM lines")?,
        "7"
    );
    assert_eq!(
        place.value("SELECT group_concat(order_id, ' ') FROM notes")?,
        "007 7"
    );
    // A number that no row has: SQLite's own check finds it, too.
    let wrong = Place::new(
        "PRAGMA foreign_keys = OFF; CREATE TABLE orders (id TEXT PRIMARY KEY); CREATE TABLE lines (order_id INTEGER REFERENCES orders \
         (id)); INSERT INTO orders VALUES ('08'); INSERT INTO lines VALUES (8)",
    )?;
    assert_eq!(rows(&wrong.file, "PRAGMA foreign_key_check")?.len(), 1);
    let line = wrong.no_plan()?;
    expect(
        &line,
        &["1 row of lines has an order_id that is not in orders"],
    );
    let query = line.split('`').nth(1).ok_or("no query")?;
    assert_eq!(rows(&wrong.file, query)?.len(), 1);
    Ok(())
}

fn statistics() -> Result {
    let tables =
        "SELECT group_concat(tbl, ' ') FROM (SELECT DISTINCT tbl FROM sqlite_stat1 ORDER BY 1)";
    let place = Place::new(&format!(
        "{SMALL} CREATE INDEX lines_token ON lines (token); CREATE TABLE others (n INTEGER PRIMARY KEY, order_id INTEGER REFERENCES \
         orders (id)); CREATE INDEX others_order ON others (order_id); INSERT INTO others VALUES (1, 1); ANALYZE orders; ANALYZE lines"
    ))?;
    assert_eq!(place.value(tables)?, "lines orders");
    place.plan()?;
    place.apply(&[])?;
    assert_eq!(place.value(tables)?, "lines orders");
    place.apply(&["--rollback"])?;
    assert_eq!(place.value(tables)?, "lines orders");
    // If a file has no statistics, the move makes none.
    let none = Place::new(SMALL)?;
    none.plan()?;
    none.apply(&[])?;
    let has = "SELECT count(*) FROM sqlite_schema WHERE name = 'sqlite_stat1'";
    assert_eq!(none.value(has)?, "0");
    Ok(())
}

fn commands() -> Result {
    let place = Place::new(SMALL)?;
    let shown = place.plan()?;
    let command = format!("ordid apply {} {}", place.plan, place.file);
    expect(
        &shown,
        &[
            &command,
            &format!("{command} --rollback"),
            &format!("{command} --finish"),
        ],
    );
    expect(
        &place.apply(&[])?,
        &[
            &format!("{command} --rollback"),
            &format!("{command} --finish"),
        ],
    );
    place.apply(&["--rollback"])?;
    // Whoever has the variable needs no argument.
    let output = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args([
            "plan",
            "--table",
            "orders",
            "--to",
            "uuid_v7",
            "--force",
            "-o",
            &place.plan,
        ])
        .env("DATABASE_URL", &place.file)
        .output()?;
    expect(
        &String::from_utf8(output.stdout)?,
        &[&format!("ordid apply {}\n", place.plan)],
    );

    let missing = ordid(&["apply", &place.plan])?;
    assert_eq!(missing.status.code(), Some(2));
    expect(
        &String::from_utf8(missing.stderr)?,
        &["<URL>", "or set DATABASE_URL"],
    );
    let line = refused(&["apply", &place.plan, ""], 2)?;
    expect(&line, &["the URL of the database is empty", "DATABASE_URL"]);

    // A plan for stdout is the document alone, and no file.
    let arguments = [
        "plan",
        &place.file,
        "--table",
        "orders",
        "--to",
        "uuid_v7",
        "-o",
        "-",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args(arguments)
        .current_dir(place.folder.path())
        .output()?;
    let document: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(document["table"], "orders");
    assert!(!place.folder.path().join("-").exists());
    Ok(())
}

fn locked() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    let (code, line) = beside(
        &place,
        &["--lock-timeout", "50", "--attempts", "3"],
        "BEGIN IMMEDIATE",
        LetGo::GivenUp,
    )?;
    assert_eq!(code, 3, "{line}");
    expect(
        &line,
        &["in 3 attempts", "database is locked", "--lock-timeout"],
    );
    // With more attempts it waits until the file is free.
    let (code, line) = beside(
        &place,
        &["--lock-timeout", "50"],
        "BEGIN IMMEDIATE",
        LetGo::Soon,
    )?;
    assert_eq!(code, 0, "{line}");
    for end in ["--rollback", "--finish"] {
        if end == "--finish" {
            place.plan()?;
            place.apply(&[])?;
        }
        let (code, line) = beside(
            &place,
            &[end, "--lock-timeout", "50", "--attempts", "3"],
            "BEGIN IMMEDIATE",
            LetGo::GivenUp,
        )?;
        assert_eq!(code, 3, "{line}");
        expect(
            &line,
            &["in 3 attempts", "database is locked", "--lock-timeout"],
        );
        let (code, line) = beside(
            &place,
            &[end, "--lock-timeout", "50"],
            "BEGIN IMMEDIATE",
            LetGo::Soon,
        )?;
        assert_eq!(code, 0, "{line}");
    }
    Ok(())
}

fn readers() -> Result {
    // Without WAL a COMMIT waits for those who read.
    let place = Place::new(&SMALL.replace("WAL", "DELETE"))?;
    place.plan()?;
    let reads = "BEGIN; SELECT * FROM orders";
    let (code, line) = beside(
        &place,
        &["--lock-timeout", "50", "--attempts", "3"],
        reads,
        LetGo::GivenUp,
    )?;
    assert_eq!((code, &*place.value(STILL_OLD)?), (3, "3"), "{line}");
    expect(
        &line,
        &["in 3 attempts", "database is locked", "--lock-timeout"],
    );
    let (code, line) = beside(&place, &["--lock-timeout", "50"], reads, LetGo::Soon)?;
    assert_eq!((code, &*place.value(STILL_OLD)?), (0, "0"), "{line}");
    Ok(())
}

fn faster_rollback() -> Result {
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.apply(&[])?;
    // The map is gone with the transaction of a rollback.
    let rollback = "BEGIN IMMEDIATE; DROP TABLE ordid_map_orders";
    let (code, line) = beside(&place, &["--finish"], rollback, LetGo::Soon)?;
    assert_eq!(code, 3, "{line}");
    expect(&line, &["no such table: ordid_map_orders"]);
    Ok(())
}

fn dropped_journal() -> Result {
    const LEFT: &str = "a move whose journal was dropped has left table ordid_map_orders, table ordid_sequences_orders, table \
                        ordid_tables_orders; drop these tables";
    let place = Place::new(SMALL)?;
    place.plan()?;
    place.apply(&[])?;
    place.script("DROP TABLE ordid_move_orders")?;
    expect(&place.no_plan()?, &[LEFT]);
    for options in [&[][..], &["--finish"], &["--rollback"]] {
        expect(&place.refused(options, 2)?, &[LEFT]);
    }
    place.script("DROP TABLE ordid_map_orders; DROP TABLE ordid_sequences_orders; DROP TABLE ordid_tables_orders")?;
    expect(&place.no_plan()?, &["already has keys of `uuid_v7`"]);
    Ok(())
}

fn without_rowid() -> Result {
    let is_rowid = "SELECT count(*) FROM pragma_table_list WHERE name = 'orders' AND wr = 0";
    for (tables, expected, note) in [
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ref TEXT) STRICT; INSERT INTO orders VALUES (1, 'short')",
            "0",
            "WITHOUT ROWID",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ref TEXT); INSERT INTO orders VALUES (1, hex(zeroblob(1000)))",
            "1",
            "rows are long",
        ),
        (
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, ref TEXT); CREATE VIEW numbers AS SELECT rowid FROM orders",
            "1",
            "rowid",
        ),
    ] {
        let place = Place::new(tables)?;
        expect(&place.plan()?, &[note]);
        place.apply(&[])?;
        assert_eq!(place.value(is_rowid)?, expected, "{tables}");
        place.apply(&["--rollback"])?;
        assert_eq!(place.value(is_rowid)?, "1", "{tables}");
    }
    Ok(())
}
