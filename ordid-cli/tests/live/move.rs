//! `ordid plan` and `ordid apply` on tables that others write the whole time.

mod columns;
mod ends;
mod guarded;
mod hostile;
mod kills;
mod limits;
mod postgres;
mod shared;
mod sqlite;
mod unusual;
mod writers;

use std::{
    hash::{BuildHasher as _, Hasher as _},
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use libtest_mimic::Trial;
use tempfile::TempDir;
use writers::{Connection, Model, Writers};

use crate::place::{Result, Servers, execute, printed, refused};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    sqlite::trials(trials);
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::a_killed_move_under_writers_loses_no_row_and_is_finished",
            finished,
        ));
        trials.push(servers.trial(
            server,
            "move::a_move_under_writers_is_rolled_back_before_and_after_its_switch",
            rolled_back,
        ));
        trials.push(servers.trial(
            server,
            "move::what_cannot_be_moved_is_refused_with_the_reason",
            refusals,
        ));
    }
    columns::trials(servers, trials);
    ends::trials(servers, trials);
    guarded::trials(servers, trials);
    hostile::trials(servers, trials);
    kills::trials(servers, trials);
    limits::trials(servers, trials);
    postgres::trials(servers, trials);
    shared::trials(servers, trials);
    unusual::trials(servers, trials);
}

/// The size of a test: `ORDID_TEST_SOAK=1` asks for the long form.
struct Size {
    rows: usize,
    writers: usize,
    kills: usize,
}

impl Size {
    fn new() -> Self {
        match std::env::var_os("ORDID_TEST_SOAK") {
            Some(_) => Self {
                rows: 1_000_000,
                writers: 8,
                kills: 10,
            },
            None => Self {
                rows: 20_000,
                writers: 4,
                kills: 5,
            },
        }
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres")
}

/// Creates the tables: a self-reference, a reference in a primary key, and one that may be NULL.
fn create(url: &str, rows: usize) -> Result {
    let is_mysql_9 = !is_postgres(url) && block(url, "SELECT version()")?[0][0].starts_with('9');
    // MySQL 9.7 does not delete rows of a table with two foreign keys to itself that set NULL.
    let own = if is_mysql_9 { "" } else { "ON DELETE SET NULL" };
    let tables = match is_postgres(url) {
        true => format!(
            "CREATE TABLE orders (id bigserial PRIMARY KEY, ref text NOT NULL UNIQUE, note text,
                parent_id bigint REFERENCES orders (id) {own}, created_at timestamptz NOT NULL DEFAULT now());
             CREATE INDEX orders_parent ON orders (parent_id);
             CREATE TABLE order_lines (order_id bigint NOT NULL REFERENCES orders (id) ON DELETE CASCADE, line_no int, token text,
                PRIMARY KEY (order_id, line_no));
             CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders (id) ON DELETE SET NULL,
                token text UNIQUE);
             CREATE INDEX remarks_order ON remarks (order_id, id);
             CREATE TABLE numbers AS SELECT generate_series(1, {rows}) AS n;
             INSERT INTO orders (ref, note, created_at, parent_id) SELECT 'r' || n, 'n',
                now() - interval '1 day' - ((n::bigint * 7919) % {rows}) * interval '1 millisecond', NULL FROM numbers ORDER BY n"
        ),
        false => format!(
            "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, ref varchar(60) NOT NULL UNIQUE, note varchar(60),
                parent_id bigint, created_at datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
                CONSTRAINT orders_parent FOREIGN KEY (parent_id) REFERENCES orders (id) {own}) DEFAULT CHARSET utf8mb4;
             CREATE TABLE order_lines (order_id bigint NOT NULL, line_no int NOT NULL, token varchar(60),
                PRIMARY KEY (order_id, line_no),
                CONSTRAINT lines_order FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE CASCADE) DEFAULT CHARSET utf8mb4;
             CREATE TABLE remarks (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id bigint, token varchar(60) UNIQUE,
                KEY remarks_order (order_id, id),
                CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE SET NULL) DEFAULT CHARSET utf8mb4;
             CREATE TABLE digits AS SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
                UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9;
             CREATE TABLE numbers (n bigint NOT NULL PRIMARY KEY) AS SELECT n FROM (SELECT 1 + a.d + 10 * b.d + 100 * c.d +
                1000 * d.d + 10000 * e.d + 100000 * f.d AS n FROM digits a, digits b, digits c, digits d, digits e, digits f) AS it
                WHERE n <= {rows};
             INSERT INTO orders (ref, note, created_at) SELECT concat('r', n), 'n',
                NOW(6) - INTERVAL 1 DAY - INTERVAL ((n * 7919) % {rows}) * 1000 MICROSECOND FROM numbers ORDER BY n"
        ),
    };
    let text = |prefix: &str| match is_postgres(url) {
        true => format!("'{prefix}' || o.id"),
        false => format!("concat('{prefix}', o.id)"),
    };
    execute(
        url,
        &format!(
            "{tables};
             INSERT INTO order_lines SELECT o.id, 0, {} FROM orders o;
             INSERT INTO order_lines SELECT o.id, 1, {} FROM orders o;
             INSERT INTO remarks (order_id, token) SELECT CASE WHEN o.id % 10 = 0 THEN NULL ELSE o.id END, {} FROM orders o;
             DROP TABLE numbers",
            text("a"),
            text("b"),
            text("m")
        ),
    )
}

/// Reads rows, as texts.
fn block(url: &str, sql: &str) -> Result<Vec<Vec<String>>> {
    crate::place::block_on(async { Connection::open(url).await?.rows(sql).await })
}

fn model(url: &str) -> Result<Model> {
    crate::place::block_on(async { Model::read(&mut Connection::open(url).await?).await })
}

/// A folder with a plan.
struct Plan {
    _folder: TempDir,
    path: String,
}

impl Plan {
    fn new(url: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = folder
            .path()
            .join("plan.json")
            .to_string_lossy()
            .into_owned();
        let shown = printed(
            &[
                "plan", url, "--table", "orders", "--to", "uuid_v7", "-o", &path,
            ],
            0,
        )?;
        for expected in [
            "orders gets keys of uuid_v7",
            "order_lines",
            "remarks",
            "created_at",
        ] {
            if !shown.contains(expected) {
                return Err(format!("the plan does not say {expected}: {shown}").into());
            }
        }
        Ok(Self {
            _folder: folder,
            path,
        })
    }

    fn apply(&self, url: &str, more: &[&str]) -> Result<String> {
        let output = Command::new(env!("CARGO_BIN_EXE_ordid"))
            .args(["apply", &self.path, url])
            .args(more)
            .env_remove("DATABASE_URL")
            .stdin(Stdio::null())
            .output()?;
        let stderr = String::from_utf8(output.stderr)?;
        match output.status.code() {
            Some(0) => Ok(String::from_utf8(output.stdout)?),
            _ => Err(format!("apply {more:?}: {}: {stderr}", output.status).into()),
        }
    }

    /// Starts it and kills it after some time, so often; whether the last one was still running.
    fn kill(
        &self,
        url: &str,
        kills: usize,
        longest: Duration,
        first: &[&str],
        next: &[&str],
    ) -> Result<usize> {
        let mut killed = 0;
        for number in 0..kills {
            let more = if number == 0 { first } else { next };
            let mut child = Command::new(env!("CARGO_BIN_EXE_ordid"))
                .args(["apply", &self.path, url, "--chunk", "500"])
                .args(more)
                .env_remove("DATABASE_URL")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            std::thread::sleep(random(longest));
            let ended = child.try_wait()?;
            if ended.is_none() {
                // The signal 9.
                child.kill()?;
                killed += 1;
            }
            child.wait()?;
        }
        Ok(killed)
    }
}

/// A random time, up to the longest.
fn random(longest: Duration) -> Duration {
    let random = std::hash::RandomState::new().build_hasher().finish();
    let millis = u64::try_from(longest.as_millis()).expect("a test is short");
    Duration::from_millis(20 + random % millis)
}

fn is_v7(hex: &str) -> bool {
    hex.len() == 32 && hex.as_bytes()[12] == b'7'
}

/// The new keys: of version 7, of the rows' own times, and in their order.
fn check_keys(url: &str) -> Result {
    let hex = match is_postgres(url) {
        true => "encode(uuid_send(id), 'hex')",
        false => "lower(hex(id))",
    };
    let keys = block(url, &format!("SELECT {hex} FROM orders"))?;
    if let Some(row) = keys.iter().find(|row| !is_v7(&row[0])) {
        return Err(format!("no key of version 7: {row:?}").into());
    }
    // Rows that were there before: their times are a millisecond apart.
    let falls = "SELECT count(*) FROM (SELECT id < lag(id) OVER (ORDER BY created_at) AS falls FROM orders WHERE ref LIKE 'r%') AS it \
                 WHERE falls";
    // All rows: a key has the millisecond of its row.
    let apart = match is_postgres(url) {
        true => {
            "SELECT count(*) FROM orders WHERE abs(('x' || lpad(substr(encode(uuid_send(id), 'hex'), 1, 12), 16, '0'))::bit(64)::bigint - \
             floor(extract(epoch FROM created_at) * 1000)::bigint) > 1000"
        }
        false => {
            "SELECT count(*) FROM orders WHERE abs(cast(conv(left(hex(id), 12), 16, 10) AS signed) - \
             timestampdiff(MICROSECOND, '1970-01-01 00:00:00', created_at) DIV 1000) > 1000"
        }
    };
    for (what, query) in [("falls", falls), ("is apart from its row's time", apart)] {
        let count = &block(url, query)?[0][0];
        if count != "0" {
            return Err(format!("{count} keys: it {what}").into());
        }
    }
    Ok(())
}

fn report(
    what: &str,
    url: &str,
    seen: &writers::Seen,
    rows: usize,
    begun: Instant,
    kills: usize,
) -> Result {
    let errors = seen.errors.lock().map_err(|_| "a writer panicked")?;
    if !errors.is_empty() {
        return Err(format!("{} errors of writers, such as {}", errors.len(), errors[0]).into());
    }
    let longest = Duration::from_micros(seen.longest.load(Ordering::Relaxed));
    writeln!(
        std::io::stderr(),
        "{what}, {}: {rows} rows, {:.1} s, killed {kills} times; writers: {} transactions, {} again, {} refused in a cut-off switch, longest \
         statement {longest:.0?}",
        url.split(':').next().unwrap_or_default(),
        begun.elapsed().as_secs_f64(),
        seen.committed.load(Ordering::Relaxed),
        seen.again.load(Ordering::Relaxed),
        seen.between.load(Ordering::Relaxed)
    )?;
    Ok(())
}

fn finished(url: &str) -> Result {
    let size = Size::new();
    if size.rows == 1_000_000 && !is_postgres(url) {
        // With the 128 MiB of the default it would read and write pages for an hour: the tables have about 800 MB, and the keys
        // are made in another order than the rows are stored.
        execute(url, "SET GLOBAL innodb_buffer_pool_size = 2147483648")?;
    }
    create(url, size.rows)?;
    let begun = Instant::now();
    let plan = Plan::new(url)?;
    let writers = Writers::start(url, &model(url)?, size.writers);
    let longest = Duration::from_millis(1500) * u32::try_from(size.rows / 20_000)?.min(20);
    let kills = plan.kill(url, size.kills, longest, &[], &["--resume"])?;
    plan.apply(url, &["--resume"])?;
    std::thread::sleep(Duration::from_millis(200));
    let done = plan.apply(url, &["--finish", "--json"])?;
    if !done.contains("\"state\": \"finished\"") {
        return Err(done.into());
    }
    let (expected, seen) = writers.end()?;
    model(url)?.check(&expected)?;
    check_keys(url)?;
    let left = match is_postgres(url) {
        true => {
            "SELECT attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relkind = 'r' AND attname LIKE 'ordid%' AND NOT attisdropped UNION ALL SELECT relname FROM pg_class WHERE \
                 relname LIKE 'ordid%' UNION ALL SELECT tgname FROM pg_trigger WHERE tgname LIKE '%ordid%' UNION ALL SELECT conname FROM \
                 pg_constraint WHERE conname LIKE 'ordid%'"
        }
        false => {
            "SELECT column_name FROM information_schema.columns WHERE table_schema = database() AND column_name LIKE 'ordid%' UNION ALL \
                  SELECT table_name FROM information_schema.tables WHERE table_schema = database() AND table_name LIKE 'ordid%' UNION ALL \
                  SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = database() UNION ALL SELECT constraint_name \
                  FROM information_schema.table_constraints WHERE table_schema = database() AND constraint_name LIKE 'ordid%' UNION ALL \
                  SELECT index_name FROM information_schema.statistics WHERE table_schema = database() AND index_name LIKE 'ordid%'"
        }
    };
    let left = block(url, left)?;
    if !left.is_empty() {
        return Err(format!("something is left of the move: {left:?}").into());
    }
    // What is done is not done again.
    let line = refused(
        &[
            "plan",
            url,
            "--table",
            "orders",
            "--to",
            "uuid_v7",
            "-o",
            "/nowhere/plan",
        ],
        2,
    )?;
    if !line.contains("already has keys of `uuid_v7`") {
        return Err(line.into());
    }
    report("finished", url, &seen, expected.len(), begun, kills)
}

/// The definitions of the tables.
fn definitions(url: &str) -> Result<Vec<Vec<String>>> {
    definitions_of(url, &["orders", "order_lines", "remarks"])
}

fn definitions_of(url: &str, tables: &[&str]) -> Result<Vec<Vec<String>>> {
    if !is_postgres(url) {
        let mut all = Vec::new();
        for table in tables {
            let mut rows = block(url, &format!("SHOW CREATE TABLE {table}"))?;
            let text = rows[0][1]
                .split(" AUTO_INCREMENT=")
                .next()
                .unwrap_or_default()
                .to_owned();
            rows[0][1] = text;
            all.extend(rows);
        }
        return Ok(all);
    }
    let names: Vec<String> = tables
        .iter()
        .map(|it| format!("'{it}'::regclass"))
        .collect();
    let names = names.join(", ");
    block(
        url,
        &format!(
            "SELECT attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid) FROM pg_attribute \
         LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attrelid IN ({names}) AND attnum > 0 AND NOT attisdropped UNION ALL SELECT conrelid::regclass, conname, pg_get_constraintdef(oid), \
         convalidated, NULL FROM pg_constraint WHERE connamespace = 'public'::regnamespace UNION ALL SELECT indrelid::regclass, NULL, \
         pg_get_indexdef(indexrelid), indisvalid, NULL FROM pg_index WHERE indrelid IN ({names}) UNION ALL SELECT NULL, tgname, NULL, true, NULL FROM pg_trigger WHERE NOT tgisinternal UNION ALL SELECT NULL, \
         proname, NULL, true, NULL FROM pg_proc WHERE pronamespace = 'public'::regnamespace ORDER BY 1, 2, 3"
        ),
    )
}

fn rolled_back(url: &str) -> Result {
    let size = Size::new();
    // It is moved twice.
    create(url, size.rows / 4)?;
    let begun = Instant::now();
    let before = definitions(url)?;
    let plan = Plan::new(url)?;
    let writers = Writers::start(url, &model(url)?, size.writers);

    // Before the switch.
    plan.apply(url, &["--no-switch"])?;
    let mut kills = plan.kill(
        url,
        2,
        Duration::from_millis(300),
        &["--rollback"],
        &["--rollback"],
    )?;
    // It may have ended between two kills.
    let ended = plan.apply(url, &["--rollback"]);
    if let Err(error) = ended
        && !error
            .message()
            .is_some_and(|it| it.contains("has not begun, or was ended"))
    {
        return Err(error);
    }
    let after = definitions(url)?;
    if before != after {
        return Err(format!("before: {before:?}\nafter: {after:?}").into());
    }

    // After it.
    plan.apply(url, &[])?;
    std::thread::sleep(Duration::from_millis(300));
    kills += plan.kill(
        url,
        2,
        Duration::from_millis(300),
        &["--rollback"],
        &["--rollback"],
    )?;
    let ended = plan.apply(url, &["--rollback"]);
    if let Err(error) = ended
        && !error
            .message()
            .is_some_and(|it| it.contains("has not begun, or was ended"))
    {
        return Err(error);
    }
    let (expected, seen) = writers.end()?;
    let after = definitions(url)?;
    if before != after {
        return Err(format!("before: {before:?}\nafter: {after:?}").into());
    }
    model(url)?.check(&expected)?;
    report(
        "rolled back twice",
        url,
        &seen,
        expected.len(),
        begun,
        kills,
    )
}

fn refusals(url: &str) -> Result {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let plan = |table: &str, to: &str| {
        refused(
            &[
                "plan",
                url,
                "--table",
                table,
                "--to",
                to,
                "-o",
                &path("plan.json"),
            ],
            2,
        )
    };
    let expect = |line: String, part: &str| match line.contains(part) {
        true => Ok(()),
        false => Err(libtest_mimic::Failed::from(format!(
            "no {part:?} in: {line}"
        ))),
    };
    let key = match is_postgres(url) {
        true => "bigserial PRIMARY KEY",
        false => "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
    };
    execute(
        url,
        &format!(
            "CREATE TABLE customers (id {key}, name varchar(40));
             CREATE TABLE pairs (a int NOT NULL, b int NOT NULL, PRIMARY KEY (a, b));
             CREATE TABLE keyless (a int);
             CREATE TABLE given (id int NOT NULL PRIMARY KEY)"
        ),
    )?;
    expect(
        plan("customer", "uuid_v7")?,
        "there is no table customer; did you mean `customers`?",
    )?;
    expect(plan("pairs", "uuid_v7")?, "the primary key of")?;
    expect(plan("keyless", "uuid_v7")?, "has no primary key")?;
    expect(plan("given", "uuid_v7")?, "nobody would make the old keys")?;
    if is_postgres(url) {
        execute(
            url,
            "CREATE EXTENSION citext; CREATE DOMAIN word AS citext;
             CREATE TABLE words (id citext PRIMARY KEY DEFAULT gen_random_uuid()::text);
             CREATE TABLE domains (id word PRIMARY KEY DEFAULT gen_random_uuid()::text)",
        )?;
        for table in ["words", "domains"] {
            expect(
                plan(table, "uuid_v7")?,
                "operators are not PostgreSQL's own",
            )?;
        }
    }
    expect(
        plan("customers", "uuid_v4")?,
        "`uuid_v4` keys lose their order in the column `",
    )?;
    expect(
        plan("customers", "uuid_v8")?,
        "there is no scheme `uuid_v8`",
    )?;
    expect(plan("customers", "snowflake")?, "cannot make such keys")?;

    // The plan's file.
    let file = path("customers.json");
    printed(
        &[
            "plan",
            url,
            "--table",
            "customers",
            "--to",
            "uuid_v7",
            "-o",
            &file,
        ],
        0,
    )?;
    let again = [
        "plan",
        url,
        "--table",
        "customers",
        "--to",
        "uuid_v7",
        "-o",
        &file,
    ];
    expect(refused(&again, 2)?, "is there already")?;
    let text = std::fs::read_to_string(&file)?;
    if text.contains(url) || text.contains("127.0.0.1") {
        return Err("the plan has the address in it".into());
    }
    expect(
        refused(&["apply", &file, url, "--rollback"], 2)?,
        "has not begun",
    )?;
    expect(
        refused(&["apply", &file, url, "--finish"], 2)?,
        "has not begun",
    )?;
    expect(
        refused(&["apply", &path("none.json"), url], 2)?,
        "cannot be read",
    )?;
    let write = |name: &str, text: &str| std::fs::write(Path::new(&path(name)), text);
    write("no.json", "no plan")?;
    expect(
        refused(&["apply", &path("no.json"), url], 2)?,
        "is not JSON",
    )?;
    write("other.json", "{\"a\": 1}")?;
    expect(
        refused(&["apply", &path("other.json"), url], 2)?,
        "is not a plan",
    )?;
    write("newer.json", "{\"ordid_plan\": 9}")?;
    expect(
        refused(&["apply", &path("newer.json"), url], 2)?,
        "has the version 9",
    )?;
    write("older.json", "{\"ordid_plan\": 1, \"table\": \"orders\"}")?;
    expect(
        refused(&["apply", &path("older.json"), url], 2)?,
        "has the version 1, and this program knows 3: make it again, or go on with the `ordid` that has made it if it has begun",
    )?;
    write("damaged.json", "{\"ordid_plan\": 3}")?;
    expect(
        refused(&["apply", &path("damaged.json"), url], 2)?,
        "is damaged",
    )?;

    // A table that has changed.
    execute(url, "ALTER TABLE customers ADD COLUMN extra int")?;
    let line = refused(&["apply", &file, url], 2)?;
    expect(
        line.clone(),
        "the tables have changed since the plan was made",
    )?;
    expect(line, "extra")?;
    execute(url, "ALTER TABLE customers DROP COLUMN extra")?;
    printed(&["apply", &file, url, "--no-switch"], 0)?;
    expect(plan("customers", "uuid_v7")?, "is being moved already")?;
    expect(refused(&["apply", &file, url], 2)?, "go on with --resume")?;
    printed(&["apply", &file, url, "--rollback"], 0)?;

    if is_postgres(url) {
        execute(
            url,
            "CREATE VIEW names AS SELECT id, name FROM customers;
             CREATE TABLE parts (id bigserial, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
             CREATE TABLE late (id bigserial PRIMARY KEY, customer bigint REFERENCES customers (id) DEFERRABLE);
             CREATE TABLE published (id bigserial PRIMARY KEY);
             CREATE PUBLICATION ordid_test_publication FOR TABLE published",
        )?;
        let line = plan("customers", "uuid_v7")?;
        expect(
            line.clone(),
            "view public.names depends on public.customers.id",
        )?;
        expect(line, "is deferrable")?;
        expect(
            plan("parts", "uuid_v7")?,
            "the primary key of public.parts has 2 columns",
        )?;
        expect(
            plan("published", "uuid_v7")?,
            "is published by ordid_test_publication",
        )?;
    } else {
        execute(
            url,
            "CREATE TABLE parts (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 4;
             CREATE TABLE texts (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, t text, FULLTEXT (t)) ENGINE=InnoDB;
             CREATE TABLE old_engine (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE=MyISAM",
        )?;
        expect(plan("parts", "uuid_v7")?, "is partitioned")?;
        expect(plan("texts", "uuid_v7")?, "FULLTEXT")?;
        expect(plan("old_engine", "uuid_v7")?, "is not a table of InnoDB")?;
    }
    Ok(())
}
