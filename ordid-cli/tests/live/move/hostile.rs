//! Moves of tables whose users do what the plan did not expect.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Completion, Failed, Trial};
use ordid_harness::Policy;
use tempfile::TempDir;

use super::{block, is_postgres};
use crate::place::{Result, Servers, execute, printed, refused};

const ALL: &[&str] = &["postgres", "mariadb", "mysql"];

/// A test's name, the test, and its servers.
type Test = (&'static str, fn(&str) -> Result, &'static [&'static str]);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let tests: [Test; 16] = [
        (
            "move::columns_that_refer_without_a_foreign_key_are_named_by_the_plan",
            unlinked,
            ALL,
        ),
        (
            "move::a_column_that_has_the_name_or_the_values_of_a_key_of_any_type_is_named_by_the_plan",
            unlinked_types,
            ALL,
        ),
        (
            "move::a_link_to_a_row_that_is_committed_meanwhile_is_refused_and_not_lost",
            links,
            &["postgres"],
        ),
        (
            "move::a_referring_column_with_a_default_is_refused",
            defaults,
            ALL,
        ),
        (
            "move::links_are_counted_again_before_a_later_switch_and_on_the_way_back",
            broken_links,
            ALL,
        ),
        (
            "move::a_link_that_is_lost_while_the_switch_waits_is_found_under_its_lock",
            lost_links,
            ALL,
        ),
        (
            "move::what_comes_to_moved_columns_after_the_plan_is_named_and_never_dropped",
            unknown,
            ALL,
        ),
        (
            "move::an_index_of_an_expression_is_refused",
            expressions,
            &["mysql"],
        ),
        (
            "move::a_switch_that_was_cut_off_before_its_renames_is_rolled_back_or_completed",
            cut_off,
            &["mariadb", "mysql"],
        ),
        (
            "move::a_second_plan_is_refused_and_the_first_one_stops_if_its_journal_is_replaced",
            two_plans,
            ALL,
        ),
        (
            "move::a_trigger_that_changes_a_link_runs_before_that_of_the_move",
            triggers,
            &["postgres"],
        ),
        (
            "move::a_table_of_a_subscription_is_refused",
            subscribed,
            &["postgres"],
        ),
        (
            "move::a_server_that_is_not_strict_is_refused_and_the_journal_is_always_of_innodb",
            modes,
            &["mysql"],
        ),
        (
            "move::everyone_may_call_the_function_that_makes_keys",
            granted,
            &["postgres"],
        ),
        (
            "move::a_group_with_several_primaries_is_refused",
            group,
            &["mysql"],
        ),
        (
            "move::a_rollback_under_another_search_path_refers_to_the_same_table",
            search_path,
            &["postgres"],
        ),
    ];
    for (name, test, names) in tests {
        for server in names {
            trials.push(servers.trial(server, name, test));
        }
    }
    let name = "move::a_node_of_galera_is_refused";
    trials.push(match ordid_harness::policy("galera") {
        Ok(Policy::StartPrivate) => servers.trial("mariadb", name, galera),
        other => Trial::ignorable_test(name, move || {
            Ok(Completion::ignored_with(match other? {
                Policy::Skip(reason) => reason,
                _ => "only a private cluster is asked".to_owned(),
            }))
        }),
    });
    // Its mode is changed, so it is private whatever others there are.
    let name = "move::a_pooler_that_gives_each_transaction_another_session_is_refused";
    trials.push(Trial::ignorable_test(
        name,
        || match ordid_harness::policy("pgbouncer")? {
            Policy::Skip(reason) => Ok(Completion::ignored_with(reason)),
            _ => pooler().map(|()| Completion::Completed),
        },
    ));
}

/// A move of the table `orders`.
pub(crate) struct Move {
    _folder: TempDir,
    pub(crate) file: String,
    url: String,
}

impl Move {
    pub(crate) fn new(url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("plan.json");
        Ok(Self {
            file: file.to_string_lossy().into_owned(),
            _folder: folder,
            url: url.to_owned(),
        })
    }

    pub(crate) fn planned(url: &str) -> Result<Self> {
        let this = Self::new(url)?;
        printed(&this.plan(), 0)?;
        Ok(this)
    }

    pub(crate) fn plan(&self) -> [&str; 8] {
        self.plan_of("orders")
    }

    pub(crate) fn plan_of<'a>(&'a self, table: &'a str) -> [&'a str; 8] {
        [
            "plan", &self.url, "--table", table, "--to", "uuid_v7", "-o", &self.file,
        ]
    }

    /// Checks something before a move, when its columns are exchanged, when it is rolled back, and when it is finished.
    pub(crate) fn keeps(url: &str, check: impl Fn() -> Result) -> Result {
        check()?;
        let this = Self::planned(url)?;
        this.apply(&[])?;
        check()?;
        this.apply(&["--rollback"])?;
        check()?;
        let this = Self::planned(url)?;
        this.apply(&[])?;
        this.apply(&["--finish"])?;
        check()
    }

    /// The plan has to be refused with such a reason.
    pub(crate) fn unplanned(url: &str, reason: &str) -> Result {
        expect(&refused(&Self::new(url)?.plan(), 2)?, reason)
    }

    pub(crate) fn apply(&self, more: &[&str]) -> Result<String> {
        printed(&[&["apply", &self.file, &self.url], more].concat(), 0)
    }

    pub(crate) fn refused(&self, more: &[&str], code: i32) -> Result<String> {
        refused(&[&["apply", &self.file, &self.url], more].concat(), code)
    }
}

pub(crate) fn expect(line: &str, part: &str) -> Result {
    match line.contains(part) {
        true => Ok(()),
        false => Err(Failed::from(format!("no {part:?} in: {line}"))),
    }
}

/// The first value of a query has to be this one.
pub(crate) fn expect_value(url: &str, query: &str, value: &str) -> Result {
    let rows = block(url, query)?;
    let found = rows.first().and_then(|row| row.first());
    match found.is_some_and(|it| it == value) {
        true => Ok(()),
        false => Err(Failed::from(format!("{query}: {found:?} and not {value}"))),
    }
}

/// Creates orders and their remarks, with a reference that may be NULL.
pub(crate) fn create(url: &str) -> Result {
    let tables = match is_postgres(url) {
        true => {
            "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int NOT NULL DEFAULT 1, parent_id bigint REFERENCES orders (id),
                created_at timestamptz NOT NULL DEFAULT now());
             CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders (id) ON DELETE SET NULL, kind int);
             CREATE INDEX remarks_order ON remarks (order_id)"
        }
        false => {
            "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, kind int NOT NULL DEFAULT 1, parent_id bigint,
                created_at datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
                CONSTRAINT orders_parent FOREIGN KEY (parent_id) REFERENCES orders (id));
             CREATE TABLE remarks (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id bigint, kind int,
                KEY remarks_order (order_id),
                CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE SET NULL)"
        }
    };
    execute(
        url,
        &format!(
            "{tables};
             INSERT INTO orders (kind) VALUES (1), (2), (3), (4), (5);
             INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders;
             INSERT INTO remarks (order_id, kind) VALUES (NULL, 9)"
        ),
    )
}

fn links(url: &str) -> Result {
    const LOST: &str =
        "SELECT count(*) FROM remarks WHERE order_id IS NOT NULL AND ordid_new_order_id IS NULL";
    create(url)?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    // The order is committed after the remark's trigger has looked for it, and before its foreign key is checked.
    let race = |order: u32| -> Result<std::result::Result<(), String>> {
        let other = url.to_owned();
        let slow = thread::spawn(move || {
            let insert = format!(
                "INSERT INTO remarks (order_id) SELECT k FROM (VALUES ({order}), (NULL)) AS it (k), LATERAL (SELECT pg_sleep(CASE \
                 WHEN k IS NULL THEN 5 ELSE 0 END)) AS wait"
            );
            execute(&other, &insert).map_err(|error| format!("{error:?}"))
        });
        let sleeps = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()";
        while !slow.is_finished() && block(url, sleeps)?[0][0] == "0" {
            thread::sleep(Duration::from_millis(20));
        }
        execute(url, &format!("INSERT INTO orders (id) VALUES ({order})"))?;
        Ok(slow.join().map_err(|_| "the writer panicked")?)
    };
    // Without the trigger the foreign keys accept the remark, and its link is lost.
    execute(url, "ALTER TABLE remarks DISABLE TRIGGER zzzz_ordid_sync")?;
    race(900)??;
    expect_value(url, LOST, "1")?;
    execute(
        url,
        "DELETE FROM remarks WHERE order_id = 900; ALTER TABLE remarks ENABLE TRIGGER zzzz_ordid_sync",
    )?;
    let outcome = race(1000)?;
    expect_value(url, LOST, "0")?;
    match outcome {
        Ok(()) => return Err("the remark is accepted without its order's new key".into()),
        Err(error) => expect(&error, "is not there yet")?,
    }
    // A row before the row that it refers to, in one statement.
    let twisted = "INSERT INTO orders (id, parent_id) VALUES (2000, 2001), (2001, NULL)";
    match execute(url, twisted) {
        Ok(()) => return Err("a row before its parent is accepted".into()),
        Err(error) => expect(&format!("{error:?}"), "is not there yet")?,
    }
    // In the other order it is taken.
    execute(
        url,
        "INSERT INTO orders (id, parent_id) VALUES (2001, NULL), (2000, 2001)",
    )?;
    expect_value(
        url,
        "SELECT count(*) FROM orders WHERE parent_id IS NOT NULL AND ordid_new_parent_id IS NULL",
        "0",
    )?;
    this.apply(&["--resume"])?;
    // The same after the switch.
    let twisted = "INSERT INTO orders (id, parent_id) SELECT k, p FROM (VALUES ('018f0000-0000-7000-8000-000000000001'::uuid, \
                   '018f0000-0000-7000-8000-000000000002'::uuid), ('018f0000-0000-7000-8000-000000000002', NULL)) AS it (k, p)";
    match execute(url, twisted) {
        Ok(()) => return Err("a row before its parent is accepted".into()),
        Err(error) => expect(&format!("{error:?}"), "is not there yet")?,
    }
    this.apply(&["--finish"]).map(|_| ())
}

fn unlinked(url: &str) -> Result {
    create(url)?;
    let quote = |name: &str| match is_postgres(url) {
        true => format!("\"{name}\""),
        false => format!("`{name}`"),
    };
    execute(
        url,
        &format!(
            "CREATE TABLE mails (id int NOT NULL PRIMARY KEY, order_id int, subject varchar(40));
             CREATE TABLE visits (id int NOT NULL PRIMARY KEY, {} varchar(40), what bigint, small bigint, other bigint, few bigint);
             INSERT INTO orders (kind) SELECT a.kind FROM orders a, orders b",
            quote("OrdersId")
        ),
    )?;
    // Keys alone; keys, but few different ones; and numbers of which one is no key.
    execute(
        url,
        "INSERT INTO visits (id, what, small, other) SELECT id, id, 1, id FROM orders; UPDATE visits SET other = 999999 WHERE id = 7",
    )?;
    let shown = printed(&Move::new(url)?.plan(), 0)?;
    let line = |part: &str| {
        let found = shown.lines().find(|line| line.contains(part));
        found.ok_or_else(|| Failed::from(format!("no {part:?} in: {shown}")))
    };
    let named = line("no foreign key, and the name of a reference to orders")?;
    expect(named, "mails.order_id")?;
    expect(named, "visits.OrdersId")?;
    expect(named, "are not moved and keep old keys")?;
    let valued = line("no foreign key, and a sample of values that are all keys of orders")?;
    expect(valued, "visits.what;")?;
    for other in ["small", "other", "few", "remarks", "visits.id", "mails.id"] {
        if [named, valued]
            .iter()
            .any(|it| it.contains(&format!("{other},")) || it.contains(&format!("{other};")))
        {
            return Err(format!("{other}: {named}, {valued}").into());
        }
    }
    // References that are moved are not named.
    execute(url, "DROP TABLE mails; DROP TABLE visits")?;
    let shown = printed(&Move::new(url)?.plan(), 0)?;
    match shown.contains("no foreign key, and") {
        true => Err(shown.into()),
        false => Ok(()),
    }
}

fn unlinked_types(url: &str) -> Result {
    let (key, column) = match is_postgres(url) {
        true => ("numeric(20,0) DEFAULT nextval('numbers')", "numeric(20,0)"),
        false => ("bigint NOT NULL AUTO_INCREMENT", "bigint"),
    };
    if is_postgres(url) {
        execute(url, "CREATE SEQUENCE numbers")?;
    }
    execute(
        url,
        &format!(
            "CREATE TABLE orders (order_no {key} PRIMARY KEY, kind int);
             CREATE TABLE visits (id int NOT NULL PRIMARY KEY, order_no {column}, what {column});
             CREATE TABLE words (id int NOT NULL PRIMARY KEY, order_no varchar(20));
             INSERT INTO orders (kind) VALUES (1), (2), (3), (4), (5);
             INSERT INTO orders (kind) SELECT a.kind FROM orders a, orders b;
             INSERT INTO visits (id, what) SELECT order_no, order_no FROM orders"
        ),
    )?;
    let shown = printed(&Move::new(url)?.plan(), 0)?;
    let lines: Vec<&str> = shown
        .lines()
        .filter(|line| line.contains("no foreign key, and"))
        .collect();
    let [named, valued] = lines[..] else {
        return Err(format!("{lines:?}").into());
    };
    expect(named, "visits.order_no;")?;
    expect(valued, "visits.what;")?;
    match named.contains("words") {
        true => Err(named.into()),
        false => Ok(()),
    }
}

fn defaults(url: &str) -> Result {
    create(url)?;
    // A default that is NULL is none.
    execute(
        url,
        "ALTER TABLE remarks ALTER COLUMN order_id SET DEFAULT NULL",
    )?;
    Move::planned(url)?;
    execute(
        url,
        "ALTER TABLE remarks ALTER COLUMN order_id SET DEFAULT 1",
    )?;
    Move::unplanned(
        url,
        "remarks.order_id has a default (1), which is an old key",
    )
}

fn broken_links(url: &str) -> Result {
    const NEW: &str = "UPDATE remarks SET ordid_new_order_id = (SELECT ordid_new_id FROM orders WHERE id = {}) WHERE id = 1";
    const OLD: &str = "UPDATE remarks SET ordid_old_order_id = {} WHERE id = 1";
    let set = |statement: &str, order: &str| execute(url, &statement.replace("{}", order));
    create(url)?;
    let this = Move::planned(url)?;
    // Someone writes the new column himself, when all rows have been counted.
    this.apply(&["--no-switch"])?;
    set(NEW, "2")?;
    let line = this.refused(&["--resume"], 3)?;
    expect(&line, "remarks whose new order_id is another row's")?;
    expect(&line, "still has its old keys")?;
    set(NEW, "1")?;
    this.apply(&["--resume"])?;

    // The same on the way back.
    set(OLD, "2")?;
    let line = this.refused(&["--rollback"], 3)?;
    expect(&line, "remarks whose old order_id is another row's")?;
    expect(&line, "keeps its new keys")?;
    set(OLD, "1")?;
    this.apply(&["--rollback"])?;

    // Instead of going back the move can be ended.
    let this = Move::planned(url)?;
    this.apply(&[])?;
    set(OLD, "2")?;
    this.refused(&["--rollback"], 3)?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
        "5",
    )
}

/// Lets somebody lose a link in a transaction that ends when the switch already waits for its lock.
fn lost_links(url: &str) -> Result {
    create(url)?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    let (off, wait, on) = match is_postgres(url) {
        true => (
            "ALTER TABLE remarks DISABLE TRIGGER zzzz_ordid_sync",
            "SELECT pg_sleep(3)",
            "ALTER TABLE remarks ENABLE TRIGGER zzzz_ordid_sync; UPDATE remarks SET kind = 7 WHERE kind = 77",
        ),
        false => (
            "DROP TRIGGER ordid_insert_remarks",
            "DO SLEEP(3)",
            "UPDATE remarks SET kind = 7 WHERE kind = 77",
        ),
    };
    execute(url, off)?;
    let other = url.to_owned();
    let slow = thread::spawn(move || {
        let script =
            format!("BEGIN; INSERT INTO remarks (order_id, kind) VALUES (1, 77); {wait}; COMMIT");
        execute(&other, &script).map_err(|error| format!("{error:?}"))
    });
    thread::sleep(Duration::from_millis(800));
    let line = this.refused(&["--resume"], 3)?;
    slow.join().map_err(|_| "the writer panicked")??;
    expect(&line, "the validation has found 1 row of")?;
    expect(&line, "remarks without a new order_id")?;
    // Others are not kept waiting, and the trigger of UPDATE gives the row its link.
    execute(url, on)?;
    this.apply(&["--resume"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks WHERE order_id IS NULL",
        "1",
    )?;
    this.apply(&["--finish"]).map(|_| ())
}

fn unknown(url: &str) -> Result {
    let drop_index = |name: &str| match is_postgres(url) {
        true => execute(url, &format!("DROP INDEX {name}")),
        false => execute(url, &format!("DROP INDEX {name} ON remarks")),
    };
    create(url)?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    // What has nothing to do with the columns is no matter.
    execute(
        url,
        "ALTER TABLE remarks ADD COLUMN extra int; CREATE INDEX remarks_extra ON remarks (kind, extra)",
    )?;
    execute(
        url,
        "ALTER TABLE remarks ADD CONSTRAINT remarks_kind UNIQUE (order_id, kind)",
    )?;
    let line = this.refused(&["--resume"], 2)?;
    expect(&line, "remarks_kind")?;
    expect(&line, "would stay with the old column")?;
    let drop = match is_postgres(url) {
        true => "ALTER TABLE remarks DROP CONSTRAINT remarks_kind",
        false => "ALTER TABLE remarks DROP INDEX remarks_kind",
    };
    execute(url, drop)?;
    execute(
        url,
        "CREATE TABLE notes (order_id bigint, CONSTRAINT notes_fk FOREIGN KEY (order_id) REFERENCES orders (id))",
    )?;
    expect(&this.refused(&["--resume"], 2)?, "notes_fk")?;
    execute(url, "DROP TABLE notes")?;
    this.apply(&["--resume"])?;

    // After the switch: on a new column it would go on the way back.
    execute(url, "CREATE INDEX late ON remarks (order_id, kind)")?;
    let line = this.refused(&["--rollback"], 2)?;
    expect(&line, "late")?;
    expect(&line, "would be dropped with the new column")?;
    drop_index("late")?;
    this.apply(&["--rollback"])?;

    // And on an old one at the end.
    let this = Move::planned(url)?;
    this.apply(&[])?;
    execute(
        url,
        "CREATE INDEX late ON remarks (ordid_old_order_id, kind)",
    )?;
    let line = this.refused(&["--finish"], 2)?;
    expect(&line, "late")?;
    expect(&line, "would be dropped with the old column")?;
    drop_index("late")?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
        "5",
    )
}

fn expressions(url: &str) -> Result {
    create(url)?;
    execute(url, "CREATE INDEX buckets ON remarks ((order_id MOD 16))")?;
    Move::unplanned(url, "the index buckets of")?;
    execute(url, "DROP INDEX buckets ON remarks")?;
    // It comes after the plan.
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(url, "CREATE INDEX buckets ON remarks ((order_id MOD 16))")?;
    expect(&this.refused(&["--resume"], 2)?, "index buckets of")?;
    this.apply(&["--rollback"]).map(|_| ())
}

fn cut_off(url: &str) -> Result {
    const TRIGGERS: &str =
        "SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = database()";
    // As a process leaves it that is killed when it has dropped the triggers.
    let cut = || {
        execute(
            url,
            "UPDATE ordid_move_orders SET place = -1; DROP TRIGGER ordid_insert_orders; DROP TRIGGER ordid_update_orders;
             DROP TRIGGER ordid_insert_remarks; DROP TRIGGER ordid_update_remarks",
        )
    };
    let tables = || {
        let mut all = block(url, "SHOW CREATE TABLE orders")?;
        all.extend(block(url, "SHOW CREATE TABLE remarks")?);
        Ok::<_, Failed>(all)
    };
    create(url)?;
    let before = tables()?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    // The switch looks for all names before it drops anything.
    execute(
        url,
        "ALTER TABLE remarks RENAME INDEX ordid_new_remarks_order TO other",
    )?;
    let line = this.refused(&["--resume"], 2)?;
    expect(&line, "index ordid_new_remarks_order of")?;
    expect(&line, "is missing")?;
    expect_value(url, TRIGGERS, "4")?;
    execute(
        url,
        "ALTER TABLE remarks RENAME INDEX other TO ordid_new_remarks_order",
    )?;

    cut()?;
    this.apply(&["--rollback"])?;
    if tables()? != before {
        return Err(format!("before: {before:?}, after: {:?}", tables()?).into());
    }
    expect_value(url, TRIGGERS, "0")?;

    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    cut()?;
    // Without triggers.
    execute(url, "INSERT INTO remarks (order_id, kind) VALUES (3, 3)")?;
    let shown = this.apply(&["--resume", "--no-switch"])?;
    expect(&shown, "orders has its new keys")?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
        "6",
    )
}

/// A plan of the single server, and a new one, have to be refused on the other server.
fn refused_on(server: &str, url: &str, reason: &str) -> Result {
    create(url)?;
    let this = Move::planned(url)?;
    expect(&refused(&["apply", &this.file, server], 2)?, reason)?;
    Move::unplanned(server, reason)
}

fn galera(url: &str) -> Result {
    let nodes = ordid_harness::galera().map_err(|error| error.to_string())?;
    refused_on(&nodes[0].url(), url, "a node of a Galera cluster")
}

/// Only the mode `session` gives a client one session.
fn pooler() -> Result {
    let bouncer = |settings: &[&str]| {
        ordid_harness::pgbouncer_with(settings).map_err(|error| Failed::from(error.to_string()))
    };
    let tables =
        "CREATE TABLE orders (id bigserial PRIMARY KEY); INSERT INTO orders DEFAULT VALUES";
    let good = bouncer(&["pool_mode = session"])?;
    execute(&good.url(), tables)?;
    let this = Move::planned(&good.url())?;

    // Sessions in turn, the one that was let go last, which a lone client always gets, and a single one.
    for (mode, turns, size) in [
        ("transaction", "1", "3"),
        ("transaction", "0", "3"),
        ("transaction", "0", "1"),
        ("statement", "0", "3"),
        ("statement", "0", "1"),
    ] {
        let settings = [
            format!("pool_mode = {mode}"),
            format!("server_round_robin = {turns}"),
            format!("default_pool_size = {size}"),
        ];
        let bouncer = bouncer(&settings.each_ref().map(String::as_str))?;
        let url = bouncer.url();
        for _ in 0..5 {
            execute(&url, "SELECT pg_sleep(0.01)")?;
        }
        let line = refused(&["apply", &this.file, &url], 2)?;
        expect(&line, "is of a pooler")?;
        expect(&line, "name the address of the server itself")?;
        Move::unplanned(&url, "is of a pooler")?;
        expect(&refused(&["doctor", &url], 2)?, "is of a pooler")?;
        // Nothing is set in a session that others get.
        for _ in 0..6 {
            expect_value(&url, "SHOW default_transaction_read_only", "off")?;
        }
    }

    let narrow = bouncer(&["pool_mode = session", "default_pool_size = 1"])?;
    let line = refused(&["apply", &this.file, &narrow.url()], 3)?;
    expect(&line, "two connections do not get a session each")?;

    this.apply(&[])?;
    this.apply(&["--finish"])?;
    expect_value(&good.url(), "SELECT pg_typeof(id) FROM orders", "uuid")
}

fn group(url: &str) -> Result {
    let options = [
        "--server-id=1",
        "--gtid-mode=ON",
        "--enforce-gtid-consistency=ON",
        "--log-bin=changes",
    ];
    let server = ordid_harness::mysql_with(&options).map_err(|error| error.to_string())?;
    let name = "6f1d2c1e-7a1b-4c8e-9d55-0d7f3f0a9c11";
    let local = ordid_harness::free_port().map_err(|error| error.to_string())?;
    execute(
        &server.url(),
        &format!(
            "INSTALL PLUGIN group_replication SONAME 'group_replication.so';
             SET GLOBAL group_replication_group_name = '{name}';
             SET GLOBAL group_replication_local_address = '127.0.0.1:{local}';
             SET GLOBAL group_replication_single_primary_mode = OFF;
             SET GLOBAL group_replication_bootstrap_group = ON"
        ),
    )?;
    // It is no member yet.
    execute(&server.url(), "CREATE DATABASE shop")?;
    let shop = server.url().replace("/mysql", "/shop");
    create(&shop)?;
    Move::planned(&shop)?;
    execute(&server.url(), "START GROUP_REPLICATION")?;
    refused_on(&server.url(), url, "in a group with several primaries")
}

fn search_path(url: &str) -> Result {
    let database = &block(url, "SELECT current_database()")?[0][0];
    let path = |schemas: &str| {
        execute(
            url,
            &format!("ALTER DATABASE {database} SET search_path = {schemas}"),
        )
    };
    execute(url, "CREATE SCHEMA app; CREATE SCHEMA other")?;
    path("app")?;
    create(url)?;
    // The same rows, so that a foreign key to them would be valid.
    execute(
        url,
        "CREATE TABLE other.orders AS TABLE app.orders; ALTER TABLE other.orders ADD PRIMARY KEY (id)",
    )?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    path("other, app")?;
    this.apply(&["--rollback"])?;
    expect_value(
        url,
        "SELECT string_agg(DISTINCT confrelid::regclass::text, ',') FROM pg_constraint WHERE contype = 'f'",
        "app.orders",
    )?;
    // A plan of one path is known under another.
    path("app")?;
    let this = Move::planned(url)?;
    path("other")?;
    this.apply(&[])?;
    this.apply(&["--finish"]).map(|_| ())
}

fn two_plans(url: &str) -> Result {
    create(url)?;
    let (first, second) = (Move::planned(url)?, Move::planned(url)?);
    let mut running = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args([
            "apply",
            &first.file,
            url,
            "--no-switch",
            "--chunk=1",
            "--pause=600",
        ])
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    thread::sleep(Duration::from_millis(1500));
    let began = Instant::now();
    let line = second.refused(&[], 2);
    let waited = began.elapsed();
    // Someone replaces the entry: the first plan does not go on over it.
    let is_running = running.try_wait()?.is_none();
    let replaced = execute(url, "UPDATE ordid_move_orders SET plan = 'another'");
    let ended = running.wait()?;
    replaced?;
    if !is_running {
        return Err("the first plan has ended too early".into());
    }
    expect(&line?, "is being moved by another plan")?;
    if waited > Duration::from_secs(20) {
        return Err("the second plan has waited for the first one".into());
    }
    if ended.code() != Some(3) {
        return Err(format!("the first plan goes on over another journal: {ended}").into());
    }
    expect(
        &first.refused(&["--resume"], 2)?,
        "is being moved by another plan, another",
    )
}

fn triggers(url: &str) -> Result {
    create(url)?;
    execute(
        url,
        "CREATE FUNCTION redirect() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.order_id := (SELECT id FROM orders WHERE kind = 2); \
         RETURN NEW; END $$;
         CREATE TRIGGER redirect BEFORE INSERT ON remarks FOR EACH ROW EXECUTE FUNCTION redirect()",
    )?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    let insert = "INSERT INTO remarks (order_id, kind) SELECT id, 2 FROM orders WHERE kind = 1";
    execute(url, insert)?;
    this.apply(&["--resume"])?;
    execute(url, insert)?;
    this.apply(&["--rollback"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
        "7",
    )
}

fn subscribed(url: &str) -> Result {
    create(url)?;
    // As a subscription has it that is copied.
    let name = &block(url, "SELECT current_database()")?[0][0];
    execute(
        url,
        &format!(
            "CREATE SUBSCRIPTION {name} CONNECTION 'dbname=none' PUBLICATION none WITH (connect = false, slot_name = NONE);
             INSERT INTO pg_subscription_rel SELECT oid, 'remarks'::regclass, 'r' FROM pg_subscription WHERE subname = '{name}'"
        ),
    )?;
    let refused = Move::unplanned(url, "remarks gets rows from a subscription");
    execute(url, &format!("DROP SUBSCRIPTION {name}"))?;
    refused
}

fn modes(_: &str) -> Result {
    let server = ordid_harness::mysql_with(&["--sql-mode="]).map_err(|error| error.to_string())?;
    execute(&server.url(), "CREATE DATABASE shop")?;
    let shop = server.url().replace("/mysql", "/shop");
    create(&shop)?;
    Move::unplanned(&shop, "is not strict")?;
    execute(
        &shop,
        "SET GLOBAL sql_mode = 'STRICT_TRANS_TABLES'; SET GLOBAL default_storage_engine = MyISAM",
    )?;
    let this = Move::new(&shop)?;
    let shown = printed(&this.plan(), 0)?;
    expect(
        &shown,
        "change every program at the switch that compares keys with numbers",
    )?;
    this.apply(&["--no-switch"])?;
    expect_value(
        &shop,
        "SELECT engine FROM information_schema.tables WHERE table_schema = database() AND table_name = 'ordid_move_orders'",
        "InnoDB",
    )?;
    // The note is right.
    this.apply(&["--resume"])?;
    expect_value(&shop, "SELECT count(*) FROM orders WHERE id = 0", "5")
}

fn granted(url: &str) -> Result {
    create(url)?;
    execute(
        url,
        "ALTER DEFAULT PRIVILEGES REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC",
    )?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    expect_value(
        url,
        "SELECT has_function_privilege('public', 'ordid_key_of_orders(timestamptz)', 'EXECUTE')",
        "t",
    )
}
