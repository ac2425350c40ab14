//! Keys that change meanwhile, times that are none, sequences that others use, and tables whose rows are not their own.

use std::{
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Failed, Trial};

use super::{
    block,
    hostile::{Move, expect, expect_value},
    is_postgres,
};
use crate::place::{Result, Servers, execute, printed, refused};

/// A test's name, the test, and its servers.
type Test = (&'static str, fn(&str) -> Result, &'static [&'static str]);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let tests: [Test; 15] = [
        (
            "move::a_row_whose_old_key_is_updated_meanwhile_gets_its_new_key_and_keeps_its_references",
            updated_keys,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::a_foreign_key_that_sets_null_if_a_key_changes_is_refused_where_no_trigger_runs_for_it",
            updates_to_null,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::rows_of_infinite_times_and_of_the_future_are_counted_and_moved",
            times,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::rows_of_the_next_hours_are_counted_as_of_the_future",
            near_future,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::a_zero_date_changes_the_times_of_no_other_keys",
            zero_dates,
            &["mariadb", "mysql"],
        ),
        (
            "move::the_plan_says_what_becomes_of_the_sequence_of_the_old_key",
            sequences,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::tables_and_schemas_have_dots_in_their_names",
            dots,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::a_foreign_key_to_another_column_is_no_concern_of_a_move",
            other_columns,
            &["postgres", "mariadb", "mysql"],
        ),
        (
            "move::a_default_that_reads_a_moved_column_is_refused",
            defaults,
            &["mariadb", "mysql"],
        ),
        (
            "move::tables_with_generated_columns_are_moved_to_the_end_or_refused_by_the_plan",
            generated,
            &["mariadb", "mysql"],
        ),
        (
            "move::a_table_whose_name_differs_in_case_alone_is_another_one",
            alike,
            &["mariadb", "mysql"],
        ),
        (
            "move::a_row_written_without_checks_while_the_switch_waits_stops_it",
            unchecked,
            &["mariadb", "mysql"],
        ),
        (
            "move::a_table_that_takes_no_column_at_once_is_refused",
            not_instant,
            &["mariadb", "mysql"],
        ),
        (
            "move::an_index_with_a_collation_of_its_own_is_refused",
            collations,
            &["postgres"],
        ),
        (
            "move::tables_that_inherit_are_refused",
            inheritance,
            &["postgres"],
        ),
    ];
    for (name, test, names) in tests {
        for server in names {
            trials.push(servers.trial(server, name, test));
        }
    }
}

/// It comes first in the order of the times. A table has it from a time before strict mode.
fn zero_dates(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, created_at datetime NOT NULL);
         SET SESSION sql_mode = '';
         INSERT INTO orders (created_at) VALUES ('2020-01-01'), ('0000-00-00'), ('2019-03-01 12:00:00')",
    )?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("plan.json");
    let path = path.to_string_lossy();
    let plan = [
        "plan", url, "--table", "orders", "--to", "uuid_v7", "-o", &path,
    ];
    let shown = printed(&plan, 0)?;
    expect(
        &shown,
        "1 of 3 rows has a zero created_at: their keys get the time of the oldest row",
    )?;
    printed(&["apply", &path, url], 0)?;
    let years = block(
        url,
        "SELECT FROM_UNIXTIME(CONV(LEFT(HEX(id), 12), 16, 10) DIV 1000, '%Y') FROM orders ORDER BY id",
    )?;
    match years == [["2019"], ["2019"], ["2020"]] {
        true => Ok(()),
        false => Err(format!("{years:?}").into()),
    }
}

fn updated_keys(url: &str) -> Result {
    let key = match is_postgres(url) {
        true => "bigserial PRIMARY KEY",
        false => "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
    };
    execute(
        url,
        &format!(
            "CREATE TABLE orders (id {key}, kind int NOT NULL);
             CREATE TABLE remarks (id {key}, order_id bigint NOT NULL, kind int,
                CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id) ON UPDATE CASCADE);
             CREATE INDEX remarks_order ON remarks (order_id);
             INSERT INTO orders (kind) VALUES (1), (2), (3), (4), (5), (6), (7), (8);
             INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders"
        ),
    )?;
    let this = Move::planned(url)?;
    let mut running = Command::new(env!("CARGO_BIN_EXE_ordid"))
        .args([
            "apply",
            &this.file,
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
    // When some rows have their keys: one of those, and one of the others.
    let begun = Instant::now();
    let some = loop {
        let count = "SELECT count(*) FROM orders WHERE ordid_new_id IS NOT NULL";
        // The column may not be there yet.
        if let Ok(rows) = block(url, count)
            && rows[0][0].as_str() >= "2"
        {
            break rows[0][0].clone();
        }
        if begun.elapsed() > Duration::from_secs(60) {
            running.kill()?;
            return Err("the keys are not made".into());
        }
        thread::sleep(Duration::from_millis(20));
    };
    execute(
        url,
        "UPDATE orders SET id = 1001 WHERE kind = 1; UPDATE orders SET id = 1007 WHERE kind = 7; UPDATE orders SET id = 1008 WHERE kind = 8",
    )?;
    if !running.wait()?.success() || some.as_str() >= "7" {
        return Err(format!("apply failed, or had made {some} keys already").into());
    }
    expect_value(url, "SELECT count(DISTINCT ordid_new_id) FROM orders", "8")?;
    this.apply(&["--resume"])?;
    const PAIRS: &str =
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind";
    expect_value(url, PAIRS, "8")?;
    // The new key changes, and the old one stays.
    let new = match is_postgres(url) {
        true => "'018f0000-0000-7000-8000-000000000001'",
        false => "UNHEX('018F0000000070008000000000000001')",
    };
    execute(url, &format!("UPDATE orders SET id = {new} WHERE kind = 2"))?;
    expect_value(url, PAIRS, "8")?;
    this.apply(&["--rollback"])?;
    expect_value(url, PAIRS, "8")?;
    expect_value(
        url,
        "SELECT count(*) FROM orders WHERE id = CASE WHEN kind IN (1, 7, 8) THEN 1000 + kind ELSE kind END",
        "8",
    )
}

fn updates_to_null(url: &str) -> Result {
    let key = match is_postgres(url) {
        true => "bigserial PRIMARY KEY",
        false => "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
    };
    execute(
        url,
        &format!(
            "CREATE TABLE orders (id {key}, kind int NOT NULL);
             CREATE TABLE remarks (id {key}, order_id bigint, kind int,
                CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id) ON UPDATE SET NULL);
             CREATE INDEX remarks_order ON remarks (order_id);
             INSERT INTO orders (kind) VALUES (1), (2);
             INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders"
        ),
    )?;
    if !is_postgres(url) {
        return Move::unplanned(url, "(ON UPDATE SET NULL)");
    }
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(url, "UPDATE orders SET id = 1001 WHERE kind = 1")?;
    this.apply(&["--resume"])?;
    let links =
        "SELECT string_agg(r.kind::text, '') FROM remarks r JOIN orders o ON o.id = r.order_id";
    expect_value(url, links, "2")?;
    this.apply(&["--rollback"])?;
    expect_value(url, links, "2")
}

fn times(url: &str) -> Result {
    let table = match is_postgres(url) {
        true => {
            "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int NOT NULL, created_at timestamptz);
             INSERT INTO orders (kind, created_at) VALUES (1, 'infinity'), (2, '2024-02-01'), (3, '-infinity'), (4, '9999-12-31'),
                (5, NULL), (6, '2024-02-02')"
        }
        false => {
            "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, kind int NOT NULL, created_at datetime(6));
             INSERT INTO orders (kind, created_at) VALUES (1, NULL), (2, '2024-02-01'), (3, NULL), (4, '9999-12-31'), (5, NULL),
                (6, '2024-02-02')"
        }
    };
    execute(url, table)?;
    let this = Move::new(url)?;
    let shown = printed(&this.plan(), 0)?;
    if is_postgres(url) {
        expect(
            &shown,
            "2 of 6 rows have an infinite created_at: their keys get the time of the oldest row",
        )?;
    }
    expect(
        &shown,
        "1 of 6 rows has a created_at in the future: their keys are above those of new rows",
    )?;
    this.apply(&["--no-switch"])?;
    // A trigger makes these.
    match is_postgres(url) {
        true => execute(
            url,
            "INSERT INTO orders (kind, created_at) VALUES (7, 'infinity'), (8, '-infinity'), (9, '9999-12-31')",
        )?,
        false => execute(
            url,
            "INSERT INTO orders (kind, created_at) VALUES (7, NULL), (8, NULL), (9, '9999-12-31')",
        )?,
    }
    this.apply(&["--resume"])?;
    let hex = match is_postgres(url) {
        true => "encode(uuid_send(id), 'hex')",
        false => "lower(hex(id))",
    };
    let keys = block(
        url,
        &format!("SELECT kind, {hex} FROM orders ORDER BY kind"),
    )?;
    let millis = |kind: usize| {
        u64::from_str_radix(&keys[kind - 1][1][..12], 16)
            .map_err(|error| Failed::from(error.to_string()))
    };
    const FIRST: u64 = 1_706_745_600_000;
    for kind in [1, 2, 3, 5] {
        if millis(kind)? != FIRST {
            return Err(format!("{kind}: {keys:?}").into());
        }
    }
    if millis(6)? != FIRST + 86_400_000 {
        return Err(format!("6: {keys:?}").into());
    }
    for kind in [7, 8] {
        if millis(kind)?.abs_diff(millis(7)?) > 60_000 || millis(kind)? < FIRST * 101 / 100 {
            return Err(format!("{kind}: {keys:?}").into());
        }
    }
    let future = [millis(4)?, millis(9)?];
    if future.iter().any(|it| *it < 10 * FIRST / 2)
        || keys.iter().any(|row| row[1].as_bytes()[12] != b'7')
    {
        return Err(format!("4, 9: {keys:?}").into());
    }
    this.apply(&["--finish"]).map(|_| ())
}

fn near_future(url: &str) -> Result {
    let (key, now, types): (_, _, &[&str]) = match is_postgres(url) {
        true => ("bigserial", "now()", &["timestamptz"]),
        false => (
            "bigint NOT NULL AUTO_INCREMENT",
            "UTC_TIMESTAMP(6)",
            &["datetime(6)", "timestamp(6)"],
        ),
    };
    for of_type in types {
        execute(
            url,
            &format!(
                "CREATE TABLE orders (id {key} PRIMARY KEY, created_at {of_type} NULL);
                 INSERT INTO orders (created_at) VALUES ({now} + INTERVAL '2' HOUR), ({now} - INTERVAL '2' HOUR), ({now}),
                    ({now} + INTERVAL '20' MINUTE)"
            ),
        )?;
        let shown = printed(&Move::new(url)?.plan(), 0)?;
        expect(&shown, "2 of 4 rows have a created_at in the future")?;
        execute(url, "DROP TABLE orders")?;
    }
    Ok(())
}

fn sequences(url: &str) -> Result {
    if !is_postgres(url) {
        execute(
            url,
            "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, kind int)",
        )?;
        let shown = printed(&Move::new(url)?.plan(), 0)?;
        return expect(
            &shown,
            "AUTO_INCREMENT makes old keys until --finish, which drops it",
        );
    }
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int); INSERT INTO orders (kind) VALUES (1)",
    )?;
    let this = Move::new(url)?;
    let shown = printed(&this.plan(), 0)?;
    expect(
        &shown,
        "the sequence public.orders_id_seq makes old keys until --finish, which drops it",
    )?;
    this.apply(&[])?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM pg_class WHERE relkind = 'S'",
        "0",
    )?;

    // Another table uses it, and goes on with it.
    execute(
        url,
        "DROP TABLE orders CASCADE; CREATE TABLE orders (id bigserial PRIMARY KEY, kind int);
         CREATE TABLE bills (number bigint NOT NULL DEFAULT nextval('orders_id_seq'), note text,
            again bigint NOT NULL DEFAULT nextval('orders_id_seq'));
         CREATE TABLE accounts (number bigint NOT NULL DEFAULT nextval('orders_id_seq'))",
    )?;
    let this = Move::new(url)?;
    let shown = printed(&this.plan(), 0)?;
    expect(
        &shown,
        "the sequence public.orders_id_seq stays after --finish",
    )?;
    expect(
        &shown,
        "defaults of public.accounts.number, public.bills.again, public.bills.number use it, too",
    )?;
    this.apply(&[])?;
    this.apply(&["--finish"])?;
    execute(url, "INSERT INTO bills (note) VALUES ('a'), ('b')")?;
    expect_value(url, "SELECT count(DISTINCT number) FROM bills", "2")?;

    // One of an identity cannot be taken from its column.
    execute(
        url,
        "DROP TABLE bills, accounts; DROP TABLE orders CASCADE; DROP SEQUENCE orders_id_seq;
         CREATE TABLE orders (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, kind int);
         CREATE TABLE bills (number bigint NOT NULL DEFAULT nextval('orders_id_seq'))",
    )?;
    Move::unplanned(
        url,
        "defaults of public.bills.number use the sequence public.orders_id_seq of the identity public.orders.id",
    )
}

fn dots(url: &str) -> Result {
    let (quote, key, make, drop) = match is_postgres(url) {
        true => ('"', "bigserial PRIMARY KEY", "SCHEMA", "CASCADE"),
        false => (
            '`',
            "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
            "DATABASE",
            "",
        ),
    };
    let own = url.rsplit('/').next().unwrap_or_default();
    let schema = format!("{own}.old.shop");
    let names = format!("{quote}{schema}{quote}");
    let mark = |sql: &str| {
        sql.replace('"', &quote.to_string())
            .replace("names", &names)
    };
    execute(
        url,
        &mark(&format!(
            "CREATE {make} names;
             CREATE TABLE names.\"the.orders\" (id {key}, kind int NOT NULL);
             CREATE TABLE names.\"re.marks\" (id {key}, \"the.order\" bigint NOT NULL, kind int,
                CONSTRAINT marks_order FOREIGN KEY (\"the.order\") REFERENCES names.\"the.orders\" (id));
             CREATE INDEX marks ON names.\"re.marks\" (\"the.order\");
             CREATE TABLE names.\"a.link\" (id {key}, \"the.order_id\" bigint, other bigint);
             INSERT INTO names.\"the.orders\" (kind) SELECT kind FROM (SELECT 1 AS kind{}) AS it;
             INSERT INTO names.\"re.marks\" (\"the.order\", kind) SELECT id, kind FROM names.\"the.orders\";
             INSERT INTO names.\"a.link\" (other) SELECT id FROM names.\"the.orders\"",
            (2..=25).map(|kind| format!(" UNION ALL SELECT {kind}")).collect::<String>()
        )),
    )?;
    let moved = || -> Result {
        let this = Move::new(url)?;
        let table = format!("{schema}.the.orders");
        let plan = [
            "plan", url, "--table", &table, "--to", "uuid_v7", "-o", &this.file,
        ];
        let shown = printed(&plan, 0)?;
        for part in [
            format!("a reference to the.orders: {schema}.a.link.the.order_id;"),
            format!("keys of the.orders: {schema}.a.link.other;"),
            format!("in the table {schema}.the.orders_ordid_map"),
        ] {
            expect(&shown, &part)?;
        }
        this.apply(&["--no-switch"])?;
        this.apply(&["--resume"])?;
        let shown = this.apply(&["--finish", "--keep-map"])?;
        expect(
            &shown,
            &format!("{schema}.the.orders_ordid_map has old and new keys"),
        )?;
        let pairs = "SELECT count(*) FROM names.\"the.orders_ordid_map\" m JOIN names.\"re.marks\" r ON r.\"the.order\" = m.new_key \
                     WHERE r.kind = m.old_key";
        expect_value(url, &mark(pairs), "25")
    };
    let outcome = moved();
    execute(url, &mark(&format!("DROP {make} names {drop}")))?;
    outcome?;

    // The schema of one table is a part of the other's name.
    if !is_postgres(url) {
        return Ok(());
    }
    execute(
        url,
        "CREATE SCHEMA a; CREATE TABLE a.\"b.orders\" (id bigserial PRIMARY KEY);
         CREATE SCHEMA \"a.b\"; CREATE TABLE \"a.b\".orders (id bigserial PRIMARY KEY)",
    )?;
    let plan = [
        "plan",
        url,
        "--table",
        "a.b.orders",
        "--to",
        "uuid_v7",
        "-o",
        "-",
    ];
    expect(&refused(&plan, 2)?, "several tables are a.b.orders")
}

fn inheritance(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE things (id bigserial PRIMARY KEY, kind int);
         CREATE TABLE orders (PRIMARY KEY (id)) INHERITS (things)",
    )?;
    Move::unplanned(
        url,
        "public.orders is a partition, or inherits from a table",
    )?;
    execute(
        url,
        "DROP TABLE orders; CREATE TABLE orders (id bigserial PRIMARY KEY, kind int);
         CREATE TABLE old_orders (PRIMARY KEY (id)) INHERITS (orders)",
    )?;
    Move::unplanned(
        url,
        "public.orders is a partition, or inherits from a table",
    )?;
    execute(
        url,
        "DROP TABLE old_orders; CREATE TABLE remarks (order_id bigint REFERENCES orders (id));
         CREATE TABLE old_remarks () INHERITS (remarks)",
    )?;
    Move::unplanned(
        url,
        "public.remarks, which refers to the table, inherits from a table or is inherited from",
    )?;
    execute(
        url,
        "DROP TABLE old_remarks; DROP TABLE remarks; DROP TABLE orders;
         CREATE TABLE orders (id bigserial PRIMARY KEY, kind int) PARTITION BY HASH (id);
         CREATE TABLE orders_0 PARTITION OF orders FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
    )?;
    Move::unplanned(url, "public.orders is partitioned")
}

fn other_columns(url: &str) -> Result {
    let tables = match is_postgres(url) {
        true => {
            "CREATE TABLE orders (id bigserial PRIMARY KEY, code varchar(9) UNIQUE);
             CREATE TABLE labels (code varchar(9) REFERENCES orders (code))"
        }
        false => {
            "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, code varchar(9) UNIQUE);
             CREATE TABLE labels (code varchar(9), FOREIGN KEY (code) REFERENCES orders (code))"
        }
    };
    let rows = "INSERT INTO orders (code) VALUES ('a'), ('b'); INSERT INTO labels VALUES ('b')";
    execute(url, &format!("{tables}; {rows}"))?;
    Move::keeps(url, || {
        expect_value(
            url,
            "SELECT count(*) FROM orders JOIN labels USING (code)",
            "1",
        )
    })
}

/// Its column is renamed at the switch.
fn defaults(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY);
         CREATE TABLE `lines` (id int PRIMARY KEY, order_id bigint NOT NULL, tag varchar(40) DEFAULT (CONCAT('o-', order_id)),
            FOREIGN KEY (order_id) REFERENCES orders (id))",
    )?;
    Move::unplanned(url, "lines has defaults (tag) that depend on order_id")?;
    // One that comes after the plan is seen before the switch.
    let default = "ALTER TABLE `lines` MODIFY tag varchar(40) DEFAULT";
    execute(url, &format!("{default} 'order_id'"))?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(url, &format!("{default} (CONCAT('o-', order_id))"))?;
    expect(&this.refused(&["--resume"], 2)?, "default of tag")?;
    execute(url, &format!("{default} 'order_id'"))?;
    this.apply(&["--resume"])?;
    this.apply(&["--finish"])?;
    Ok(())
}

/// MariaDB changes some tables in place no more if they have a generated column, and MySQL changes all of them.
fn generated(url: &str) -> Result {
    let is_mariadb = block(url, "SELECT version()")?[0][0].contains("MariaDB");
    let create = |main: &str, child: &str| {
        execute(
            url,
            &format!(
                "DROP TABLE IF EXISTS items, orders;
                 CREATE TABLE orders (id int AUTO_INCREMENT PRIMARY KEY, n int{main});
                 CREATE TABLE items (line int NOT NULL, n int, order_id {child},
                    CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES orders (id));
                 INSERT INTO orders (n) VALUES (1), (2); INSERT INTO items (line, n, order_id) VALUES (1, 1, 1), (2, 2, 2)"
            ),
        )
    };
    let check = || {
        expect_value(
            url,
            "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id AND o.n = i.n",
            "2",
        )
    };
    let of = |kind: &str| format!(", plus int AS (n + 1) {kind}");
    let [virtually, stored] = ["VIRTUAL", "STORED"].map(of);
    let not_null = |rest: &str| format!("int NOT NULL{rest}");
    let nullable = |rest: &str| format!("int, PRIMARY KEY (line){rest}");
    for (main, child) in [
        (&virtually[..], not_null("")),
        (&stored, nullable("")),
        ("", not_null(&virtually)),
        (
            "",
            not_null(&format!("{stored}, PRIMARY KEY (order_id, line)")),
        ),
        ("", nullable(&format!("{virtually}, KEY (plus)"))),
    ] {
        create(main, &child)?;
        match is_mariadb {
            true => {
                let table = if main.is_empty() { "items" } else { "orders" };
                Move::unplanned(
                    url,
                    &format!(
                        "{table} is there, and MariaDB does not change its table in place then: drop it until the move is done"
                    ),
                )?;
            }
            false => Move::keeps(url, check)?,
        }
    }
    for child in [
        nullable(&virtually),
        nullable(&format!("{stored}, KEY (plus), KEY (order_id, line)")),
    ] {
        create("", &child)?;
        Move::keeps(url, check)?;
    }
    if !is_mariadb {
        return Ok(());
    }
    // Those that are made after the plan.
    create("", &not_null(""))?;
    let add = |kind: &str| {
        execute(
            url,
            &format!("ALTER TABLE orders ADD COLUMN plus int AS (n + 1) {kind}"),
        )
    };
    let drop = || execute(url, "ALTER TABLE orders DROP COLUMN plus");
    const MADE: &str =
        "orders is there, and MariaDB does not change its table in place then; drop it and";
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    add("VIRTUAL")?;
    let line = this.refused(&["--resume"], 2)?;
    expect(
        &line,
        &format!("{MADE} go on with --resume, or go back with --rollback"),
    )?;
    drop()?;
    this.apply(&["--resume"])?;
    add("STORED")?;
    let line = this.refused(&["--finish"], 2)?;
    expect(
        &line,
        &format!("{MADE} repeat --finish, or go back with --rollback"),
    )?;
    check()?;
    drop()?;
    this.apply(&["--finish"])?;
    check()?;
    // A unique index of long texts is a hash, in a virtual column that nobody sees.
    for (main, child) in [
        (", t TEXT, UNIQUE KEY long_t (t)", nullable("")),
        ("", nullable(", t TEXT, UNIQUE KEY long_t (t)")),
    ] {
        create(main, &child)?;
        let line = refused(&Move::new(url)?.plan(), 2)?;
        expect(&line, "the hash of the unique index long_t of ")?;
        expect(
            &line,
            &format!(
                "{} is there, and MariaDB",
                if main.is_empty() { "items" } else { "orders" }
            ),
        )?;
    }
    Ok(())
}

/// On a server with `lower_case_table_names = 0`, as it is on Linux.
fn alike(url: &str) -> Result {
    if block(url, "SELECT concat(@@lower_case_table_names)")?[0][0] != "0" {
        return Ok(());
    }
    execute(
        url,
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, n int);
         CREATE TABLE Orders (id bigint AUTO_INCREMENT PRIMARY KEY, n int);
         CREATE TABLE items (id int PRIMARY KEY, order_id bigint, n int, CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES
            orders (id));
         CREATE TABLE others (id int PRIMARY KEY, order_id bigint, n int, CONSTRAINT others_order FOREIGN KEY (order_id) REFERENCES
            Orders (id));
         CREATE TABLE Items (id int PRIMARY KEY, order_id varchar(9), n int);
         INSERT INTO orders (id, n) VALUES (1, 1), (2, 2); INSERT INTO Orders (id, n) VALUES (1, 11), (2, 12);
         INSERT INTO items VALUES (1, 1, 1), (2, 2, 2); INSERT INTO others VALUES (1, 1, 11), (2, 2, 12)",
    )?;
    // The move of one is no reason to refuse that of the other.
    let this = Move::new(url)?;
    printed(&this.plan_of("Orders"), 0)?;
    this.apply(&["--no-switch"])?;
    printed(&Move::new(url)?.plan(), 0)?;
    this.apply(&["--rollback"])?;
    let type_of = "SELECT column_type FROM information_schema.columns WHERE table_schema = database() AND table_name = 'others' AND \
                   column_name = 'order_id'";
    Move::keeps(url, || {
        for (child, parent) in [("items", "orders"), ("others", "Orders")] {
            let links = format!(
                "SELECT count(*) FROM {child} c JOIN {parent} p ON p.id = c.order_id AND p.n = c.n"
            );
            expect_value(url, &links, "2")?;
        }
        let of_type = block(url, type_of)?;
        match of_type[0][0].starts_with("bigint") {
            true => Ok(()),
            false => Err(format!("others.order_id is {of_type:?}").into()),
        }
    })?;
    // Both refer to the table that moves.
    execute(
        url,
        "DROP TABLE items, Items, orders; CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY, n int);
         CREATE TABLE items (id int PRIMARY KEY, order_id bigint, n int, CONSTRAINT one FOREIGN KEY (order_id) REFERENCES orders (id));
         CREATE TABLE Items (id int PRIMARY KEY, order_id bigint, n int, CONSTRAINT two FOREIGN KEY (order_id) REFERENCES orders (id));
         INSERT INTO orders (n) VALUES (1), (2); INSERT INTO items VALUES (1, 1, 1), (2, 2, 2); INSERT INTO Items VALUES (1, 2, 2)",
    )?;
    match block(url, "SELECT version()")?[0][0].contains("MariaDB") {
        true => Move::keeps(url, || {
            for (child, count) in [("items", "2"), ("Items", "1")] {
                let links = format!(
                    "SELECT count(*) FROM {child} c JOIN orders p ON p.id = c.order_id AND p.n = c.n"
                );
                expect_value(url, &links, count)?;
            }
            Ok(())
        }),
        false => Move::unplanned(
            url,
            "differ in case alone, and MySQL takes the names of their triggers for one",
        ),
    }
}

/// A loader turns the checks off, and writes a row before the one that it refers to. The trigger finds nothing, so the
/// new column of the reference stays NULL. The rows come while the switch waits, so only the count under the lock sees it.
fn unchecked(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY);
         CREATE TABLE items (id bigint AUTO_INCREMENT PRIMARY KEY, order_id bigint NOT NULL,
            CONSTRAINT items_order FOREIGN KEY (order_id) REFERENCES orders (id));
         INSERT INTO orders VALUES (1), (2); INSERT INTO items (order_id) VALUES (1), (2)",
    )?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    let refused = thread::scope(|scope| {
        let slow = scope.spawn(|| {
            execute(url, "BEGIN; SELECT * FROM orders; SELECT SLEEP(7); COMMIT")
                .map_err(|error| format!("{error:?}"))
        });
        thread::sleep(Duration::from_millis(500));
        let run = scope.spawn(|| {
            this.refused(&["--resume"], 3)
                .map_err(|error| format!("{error:?}"))
        });
        thread::sleep(Duration::from_millis(2500));
        execute(
            url,
            "SET foreign_key_checks = 0; INSERT INTO items (order_id) VALUES (777); INSERT INTO orders VALUES (777)",
        )?;
        slow.join().map_err(|_| "the reader panicked")??;
        Ok::<_, Failed>(run.join().map_err(|_| "apply panicked")??)
    })?;
    expect(&refused, "the validation has found 1 row of ")?;
    expect(&refused, ".items without a new order_id")?;
    // Its trigger finds the row now.
    execute(url, "UPDATE items SET order_id = order_id")?;
    this.apply(&["--resume"])?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM items i JOIN orders o ON o.id = i.order_id",
        "3",
    )
}

fn not_instant(url: &str) -> Result {
    let create = "CREATE TABLE orders (id bigint AUTO_INCREMENT PRIMARY KEY)";
    execute(url, &format!("{create} ROW_FORMAT=COMPRESSED"))?;
    Move::unplanned(url, "has the row format COMPRESSED")?;
    if block(url, "SELECT version() LIKE '%MariaDB%'")?[0][0] == "1" {
        return Ok(());
    }
    execute(url, &format!("DROP TABLE orders; {create}"))?;
    let add = |number| {
        let add = format!("ALTER TABLE orders ADD COLUMN c{number} int, ALGORITHM=INSTANT");
        execute(url, &add)
    };
    // MySQL 9.1 and later.
    for number in 0..254 {
        add(number)?;
    }
    Move::planned(url)?;
    add(254)?;
    assert!(add(255).is_err(), "the server takes one more");
    Move::unplanned(url, "has had 255 changes of columns at once")?;
    execute(url, "OPTIMIZE TABLE orders")?;
    Move::planned(url)?.apply(&[])?;
    Ok(())
}

/// The new keys are UUIDs, which have none.
fn collations(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id text PRIMARY KEY DEFAULT gen_random_uuid()::text);
         CREATE INDEX by_c ON orders (id COLLATE \"C\")",
    )?;
    Move::unplanned(
        url,
        "the index by_c of public.orders has a collation of its own",
    )?;
    let text = Move::new(url)?;
    let mut plan = text.plan();
    plan[5] = "uuid_v7:text";
    printed(&plan, 0)?;
    text.apply(&[])?;
    text.apply(&["--finish"])?;
    let definition = "SELECT indexdef FROM pg_indexes WHERE indexname = 'by_c'";
    // The new column has that collation itself.
    expect(&block(url, definition)?[0][0], "(id)")
}
