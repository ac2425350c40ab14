//! Programs that name no columns: `SELECT *` and `INSERT INTO t VALUES (..)`.

use libtest_mimic::Trial;

use super::{
    block,
    hostile::{Move, expect, expect_value},
    is_postgres,
};
use crate::place::{Result, Servers, execute, printed};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::a_program_that_names_no_columns_inserts_before_and_after_the_switch",
            without_columns,
        ));
    }
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::new_columns_keep_the_comments_of_old_ones",
            comments,
        ));
    }
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::indexes_keep_their_comments_and_stay_hidden",
            index_options,
        ));
    }
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::statistics_that_a_new_column_does_not_get_are_named_with_the_statement_that_collects_them",
            statistics,
        ));
    }
    trials.push(servers.trial(
        "mariadb",
        "move::columns_keep_their_definitions_on_a_server_with_ansi_quotes",
        ansi,
    ));
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::old_uuids_of_a_default_go_on_if_a_program_that_names_no_columns_inserts",
            defaults,
        ));
    }
}

/// The same on a server that writes and reads names between double quotes, and takes a backslash for itself.
fn ansi(_: &str) -> Result {
    let options = ["--sql-mode=ANSI,NO_BACKSLASH_ESCAPES,STRICT_TRANS_TABLES"];
    let server = ordid_harness::mariadb_with(&options).map_err(|error| error.to_string())?;
    execute(&server.url(), "CREATE DATABASE shop")?;
    let shop = server.url().replace("/mysql", "/shop");
    without_columns(&shop)?;
    execute(
        &shop,
        "DROP TABLE remarks, orders;
         CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY);
         CREATE TABLE remarks (id bigint NOT NULL PRIMARY KEY, order_id bigint, next bigint AS (order_id + 1),
            CONSTRAINT positive CHECK (order_id > 0), CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id))",
    )?;
    Move::unplanned(&shop, "remarks has generated columns (next)")?;
    Move::unplanned(&shop, "remarks has checks (positive)")?;
    // They come after the plan.
    execute(
        &shop,
        "ALTER TABLE remarks DROP COLUMN next, DROP CONSTRAINT positive",
    )?;
    let this = Move::planned(&shop)?;
    this.apply(&["--no-switch"])?;
    execute(
        &shop,
        "ALTER TABLE remarks ADD CONSTRAINT positive CHECK (order_id > 0)",
    )?;
    expect(&this.refused(&["--resume"], 2)?, "check positive")?;
    execute(&shop, "ALTER TABLE remarks DROP CONSTRAINT positive")?;
    this.apply(&["--resume"])?;
    this.apply(&["--finish"]).map(|_| ())
}

/// `SELECT *` has to have so many columns.
fn expect_width(url: &str, table: &str, width: usize) -> Result {
    let nulls = vec!["NULL"; width].join(", ");
    execute(
        url,
        &format!("SELECT * FROM {table} UNION ALL SELECT {nulls}"),
    )
}

fn without_columns(url: &str) -> Result {
    let tables = match is_postgres(url) {
        true => {
            "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int NOT NULL);
             CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders (id), kind int);
             CREATE INDEX remarks_order ON remarks (order_id)"
        }
        // Comments and AUTO_INCREMENT come back with their columns.
        false => {
            "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT COMMENT 'it''s the key' PRIMARY KEY, kind int NOT NULL);
             CREATE TABLE remarks (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, order_id bigint NOT NULL COMMENT 'its order', kind int,
                CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id))"
        }
    };
    let key = if is_postgres(url) { "DEFAULT" } else { "NULL" };
    execute(
        url,
        &format!(
            "{tables};
             INSERT INTO orders VALUES ({key}, 1), ({key}, 2);
             INSERT INTO remarks VALUES ({key}, 1, 1), ({key}, 2, 2)"
        ),
    )?;
    let before = super::definitions_of(url, &["orders", "remarks"])?;
    let old_program = |kind: u32| {
        execute(
            url,
            &format!(
                "INSERT INTO orders VALUES ({key}, {kind});
                 INSERT INTO remarks SELECT {key_of}, id, kind FROM orders WHERE kind = {kind}",
                key_of = match is_postgres(url) {
                    true => "nextval('remarks_id_seq')",
                    false => "NULL",
                }
            ),
        )
    };
    let widths = |orders: usize, remarks: usize| {
        expect_width(url, "orders", orders)?;
        expect_width(url, "remarks", remarks)
    };
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    old_program(3)?;
    match is_postgres(url) {
        true => widths(3, 4)?,
        false => widths(2, 3)?,
    }

    // From here on the key is the last column.
    this.apply(&["--resume"])?;
    match is_postgres(url) {
        // The old columns are still the first ones.
        true => execute(
            url,
            "INSERT INTO orders VALUES (DEFAULT, 4);
             INSERT INTO remarks SELECT nextval('remarks_id_seq'), NULL, 4, id FROM orders WHERE kind = 4",
        )?,
        false => execute(
            url,
            "INSERT INTO orders VALUES (4, DEFAULT);
             INSERT INTO remarks SELECT NULL, 4, id FROM orders WHERE kind = 4",
        )?,
    }
    match is_postgres(url) {
        true => widths(3, 4)?,
        false => widths(2, 3)?,
    }
    let pairs =
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind";
    expect_value(url, pairs, "4")?;

    this.apply(&["--rollback"])?;
    old_program(5)?;
    expect_value(url, pairs, "5")?;
    let after = super::definitions_of(url, &["orders", "remarks"])?;
    if before != after {
        return Err(format!("before: {before:?}, after: {after:?}").into());
    }

    let this = Move::planned(url)?;
    this.apply(&[])?;
    this.apply(&["--finish"])?;
    widths(2, 3)?;
    match is_postgres(url) {
        true => execute(url, "INSERT INTO orders VALUES (6)")?,
        false => execute(url, "INSERT INTO orders VALUES (6, DEFAULT)")?,
    }
    expect_value(url, "SELECT count(DISTINCT id) FROM orders", "6")?;
    expect_value(url, pairs, "5")
}

fn defaults(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id char(36) NOT NULL DEFAULT (uuid()) PRIMARY KEY, kind int NOT NULL);
         INSERT INTO orders (kind) VALUES (1), (2)",
    )?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    execute(
        url,
        "INSERT INTO orders VALUES (3, DEFAULT), (4, DEFAULT); INSERT INTO orders (kind) VALUES (5)",
    )?;
    expect_value(
        url,
        "SELECT count(DISTINCT ordid_old_id) FROM orders WHERE length(ordid_old_id) = 36",
        "5",
    )?;
    this.apply(&["--rollback"])?;
    expect_value(
        url,
        "SELECT count(DISTINCT id) FROM orders WHERE length(id) = 36",
        "5",
    )
}

fn index_options(url: &str) -> Result {
    let is_mariadb = !block(url, "SHOW VARIABLES LIKE 'aria_block_size'")?.is_empty();
    let hidden = if is_mariadb { "IGNORED" } else { "INVISIBLE" };
    execute(
        url,
        &format!(
            r"CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT, kind int, PRIMARY KEY (id) COMMENT 'the \\ key''s');
              CREATE TABLE remarks (order_id bigint NOT NULL, line int NOT NULL, kind int,
                 PRIMARY KEY (order_id, line) COMMENT 'both', UNIQUE KEY once (order_id, kind) COMMENT 'one',
                 KEY by_kind (kind, order_id) COMMENT 'not used' {hidden},
                 CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id))"
        ),
    )?;
    let shown = match is_mariadb {
        true => "ignored = 'NO'",
        false => "is_visible = 'YES'",
    };
    let query = format!(
        "SELECT group_concat(concat_ws(' ', table_name, index_name, index_comment, {shown}) ORDER BY table_name, index_name SEPARATOR '; ') \
         FROM information_schema.statistics WHERE table_schema = database() AND seq_in_index = 1 AND CONCAT('.', table_name, '.', \
         index_name) NOT LIKE '%.ordid%'"
    );
    let check = || {
        expect_value(
            url,
            &query,
            r"orders PRIMARY the \ key's 1; remarks by_kind not used 0; remarks once one 1; remarks PRIMARY both 1",
        )
    };
    Move::keeps(url, check)
}

fn statistics(url: &str) -> Result {
    let is_mariadb = !block(url, "SHOW VARIABLES LIKE 'aria_block_size'")?.is_empty();
    let (collect, count) = match is_mariadb {
        true => (
            "PERSISTENT FOR COLUMNS (order_id, kind) INDEXES ()",
            "SELECT count(*) FROM mysql.column_stats WHERE db_name = database() AND table_name = 'remarks' AND column_name = 'order_id'",
        ),
        false => (
            "UPDATE HISTOGRAM ON order_id, kind WITH 17 BUCKETS",
            "SELECT count(*) FROM information_schema.column_statistics WHERE schema_name = database() AND table_name = 'remarks' AND \
             column_name = 'order_id' AND histogram->>'$.\"number-of-buckets-specified\"' = '17'",
        ),
    };
    execute(
        url,
        "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, kind int);
         CREATE TABLE remarks (id bigint NOT NULL PRIMARY KEY, order_id bigint, kind int, KEY remarks_order (order_id),
            CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id));
         INSERT INTO orders (kind) VALUES (1), (2); INSERT INTO remarks SELECT id, id, kind FROM orders",
    )?;
    const NOTE: &str =
        "which its new column does not get: after the switch, and after a rollback, run ";
    match printed(&Move::new(url)?.plan(), 0)? {
        shown if shown.contains(NOTE) => {
            return Err("statistics that are not there are named".into());
        }
        _ => {}
    }
    execute(url, &format!("ANALYZE TABLE remarks {collect}"))?;
    expect_value(url, count, "1")?;
    let this = Move::new(url)?;
    let shown = printed(&this.plan(), 0)?;
    // Another column keeps its own.
    let notes: Vec<&str> = shown.lines().filter(|line| line.contains(NOTE)).collect();
    let [note] = notes[..] else {
        return Err(format!("{notes:?}").into());
    };
    expect(note, "remarks.order_id has ")?;
    let again = note.split_once(NOTE).ok_or("no statement")?.1;
    for option in [&[][..], &["--rollback"]] {
        this.apply(option)?;
        // On the way back MariaDB gives the old column those that it had before, or none.
        if option.is_empty() || !is_mariadb {
            expect_value(url, count, "0")?;
        }
        execute(url, again)?;
        expect_value(url, count, "1")?;
    }
    Ok(())
}

fn comments(url: &str) -> Result {
    const COMMENT: &str = r"the order's \ number: NULL";
    let of = |column: &str| match is_postgres(url) {
        true => format!(
            "SELECT col_description('{0}'::regclass, attnum) FROM pg_attribute WHERE attrelid = '{0}'::regclass AND attname = '{1}'",
            column.split_once('.').unwrap_or_default().0,
            column.split_once('.').unwrap_or_default().1
        ),
        false => format!(
            "SELECT column_comment FROM information_schema.columns WHERE table_schema = database() AND \
             CONCAT(table_name, '.', column_name) = '{column}'"
        ),
    };
    let columns = [
        "orders.id",
        "remarks.order_id",
        "notes.order_id",
        "lines.order_id",
    ];
    let literal = COMMENT.replace('\'', "''");
    let mut script = String::new();
    let (key, comment) = match is_postgres(url) {
        true => {
            for column in columns {
                script.push_str(&format!("; COMMENT ON COLUMN {column} IS '{literal}'"));
            }
            ("bigserial", String::new())
        }
        false => (
            "bigint NOT NULL AUTO_INCREMENT",
            format!(" COMMENT '{}'", literal.replace('\\', r"\\")),
        ),
    };
    execute(
        url,
        &format!(
            "CREATE TABLE orders (id {key} PRIMARY KEY{comment}, kind int);
             CREATE TABLE remarks (order_id bigint NOT NULL{comment}, CONSTRAINT a FOREIGN KEY (order_id) REFERENCES orders (id));
             CREATE TABLE notes (order_id bigint{comment}, CONSTRAINT b FOREIGN KEY (order_id) REFERENCES orders (id));
             CREATE TABLE `lines` (order_id bigint NOT NULL{comment}, line int NOT NULL, PRIMARY KEY (order_id, line),
                CONSTRAINT c FOREIGN KEY (order_id) REFERENCES orders (id)){script}"
        )
        .replace('`', if is_postgres(url) { "\"" } else { "`" }),
    )?;
    let check = || -> Result {
        for column in columns {
            expect_value(url, &of(column), COMMENT)?;
        }
        Ok(())
    };
    Move::keeps(url, check)
}
