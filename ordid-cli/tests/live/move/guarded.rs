//! Moves on PostgreSQL that others try to turn to their use, and those that would lose something silently.

use super::{
    block, definitions_of,
    hostile::{Move, expect, expect_value},
    writers::Connection,
};
use crate::place::{Result, Servers, execute, printed};

/// A test's name, and the test.
type Test = (&'static str, fn(&str) -> Result);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<libtest_mimic::Trial>) {
    let tests: [Test; 11] = [
        (
            "move::nobody_else_attaches_the_trigger_function_and_everybody_runs_it",
            attached,
        ),
        (
            "move::names_that_have_sql_in_them_are_only_names",
            names_with_sql,
        ),
        (
            "move::an_insert_that_gives_the_old_reference_alone_keeps_it",
            old_references,
        ),
        (
            "move::rows_of_one_transaction_have_keys_in_the_order_of_the_old_ones",
            in_order,
        ),
        (
            "move::a_deferrable_unique_constraint_of_a_moved_column_is_refused",
            deferrable,
        ),
        (
            "move::a_foreign_key_that_is_not_valid_is_refused_with_the_rows_that_break_it",
            not_valid,
        ),
        (
            "move::lost_links_are_counted_by_an_index_while_the_tables_are_locked",
            counted_by_index,
        ),
        (
            "move::a_move_whose_way_back_is_refused_can_be_finished",
            refused_back,
        ),
        (
            "move::rows_without_a_time_and_of_1970_are_inserted_together",
            times_of_1970,
        ),
        (
            "move::the_plan_names_dangers_first_and_guesses_last",
            ranked,
        ),
        (
            "move::a_prepared_statement_that_returns_a_moved_column_fails_until_it_is_prepared_anew",
            prepared,
        ),
    ];
    for (name, test) in tests {
        trials.push(servers.trial("postgres", name, test));
    }
}

const TABLES: &str = "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int);
    CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders (id), kind int);
    CREATE INDEX remarks_order ON remarks (order_id);
    INSERT INTO orders (kind) VALUES (1), (2);
    INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders";

const PAIRS: &str =
    "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind";

/// A statement has to be refused with such a message.
fn expect_refused(url: &str, sql: &str, part: &str) -> Result {
    match execute(url, sql) {
        Ok(()) => Err(format!("it is accepted: {sql}").into()),
        Err(error) => expect(&format!("{error:?}"), part),
    }
}

fn attached(url: &str) -> Result {
    let database = &block(url, "SELECT current_database()")?[0][0];
    let role = format!("{database}_stranger");
    execute(
        url,
        &format!(
            "{TABLES}; CREATE ROLE {role}; GRANT CREATE, USAGE ON SCHEMA public TO {role};
             GRANT SELECT, INSERT ON orders, remarks TO {role}; GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {role};
             SET ROLE {role}; CREATE TABLE mine (LIKE remarks)"
        ),
    )?;
    let outcome = attached_by(url, &role);
    execute(url, &format!("DROP OWNED BY {role}; DROP ROLE {role}"))?;
    outcome
}

fn attached_by(url: &str, role: &str) -> Result {
    let attach = |function: &str| {
        expect_refused(
            url,
            &format!(
                "SET ROLE {role}; CREATE TRIGGER mine BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {function}()"
            ),
            &format!("permission denied for function {function}"),
        )
    };
    let both = || -> Result {
        attach("ordid_sync_orders")?;
        attach("ordid_sync_remarks")
    };
    let insert = |kind: u32| {
        execute(
            url,
            &format!(
                "SET ROLE {role}; INSERT INTO orders (kind) VALUES ({kind});
                 INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders WHERE kind = {kind}"
            ),
        )
    };
    // Who may attach it cannot use it for another table.
    let elsewhere = || {
        expect_refused(
            url,
            "CREATE TRIGGER mine BEFORE INSERT ON mine FOR EACH ROW EXECUTE FUNCTION ordid_sync_remarks();
             INSERT INTO mine (id) VALUES (1)",
            "is not made for the table",
        )
    };
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    both()?;
    elsewhere()?;
    insert(3)?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.ordid_new_id = r.ordid_new_order_id AND o.kind = r.kind",
        "3",
    )?;
    this.apply(&["--resume"])?;
    both()?;
    elsewhere()?;
    insert(4)?;
    expect_value(url, PAIRS, "4")?;
    this.apply(&["--rollback"])?;
    expect_value(url, PAIRS, "4")
}

fn names_with_sql(url: &str) -> Result {
    const NAMES: [&str; 7] = [
        "x ON DELETE CASCADE;CREATE TABLE hacked()--",
        "x$ordid$;CREATE TABLE hacked();--",
        "x) NOT VALID;CREATE TABLE hacked()--",
        "x WITH (y);CREATE TABLE hacked()--",
        "x\"\"order\"\" USING (y)",
        "x SET DEFAULT ' y",
        "x\\'y",
    ];
    // A backslash before a quote takes it into a text.
    let database = &block(url, "SELECT current_database()")?[0][0];
    execute(
        url,
        &format!("ALTER DATABASE {database} SET standard_conforming_strings = off"),
    )?;
    let mut script = "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int, \"a\"\"id\" int);
        CREATE INDEX \"o ON t(id) USING\" ON orders (id, \"a\"\"id\");
        INSERT INTO orders (kind) VALUES (1), (2);"
        .to_owned();
    for (number, name) in NAMES.iter().enumerate() {
        script.push_str(&format!(
            "CREATE TABLE \"t{number} ON {name}\" (\"{name}\" bigint REFERENCES orders (id) ON UPDATE CASCADE, kind int);
             CREATE INDEX \"i{number} ON {name}\" ON \"t{number} ON {name}\" (kind, \"{name}\");
             INSERT INTO \"t{number} ON {name}\" SELECT id, kind FROM orders;"
        ));
    }
    execute(url, &script)?;
    let definitions = "SELECT string_agg(pg_get_constraintdef(oid), '; ' ORDER BY conname, conrelid) FROM pg_constraint WHERE contype = 'f'";
    let indexes = "SELECT string_agg(indexdef, '; ' ORDER BY indexname) FROM pg_indexes WHERE schemaname = 'public'";
    let before = [block(url, definitions)?, block(url, indexes)?];
    let check = || -> Result {
        expect_value(
            url,
            "SELECT count(*) FROM pg_class WHERE relname = 'hacked'",
            "0",
        )?;
        for (number, name) in NAMES.iter().enumerate() {
            expect_value(
                url,
                &format!(
                    "SELECT count(*) FROM \"t{number} ON {name}\" t JOIN orders o ON o.id = t.\"{name}\" AND o.kind = t.kind"
                ),
                "2",
            )?;
            // The trigger of the move is compiled in this session, whose setting is that of the database.
            execute(
                url,
                &format!(
                    "BEGIN; INSERT INTO \"t{number} ON {name}\" (\"{name}\", kind) SELECT id, kind FROM orders; ROLLBACK"
                ),
            )?;
        }
        Ok(())
    };
    let same = || -> Result {
        let after = [block(url, definitions)?, block(url, indexes)?];
        match before == after {
            true => Ok(()),
            false => Err(format!("before: {before:?}, after: {after:?}").into()),
        }
    };
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    check()?;
    this.apply(&["--resume"])?;
    check()?;
    this.apply(&["--rollback"])?;
    check()?;
    same()?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    this.apply(&["--finish"])?;
    check()?;
    same()
}

fn old_references(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, parent_id bigint REFERENCES orders (id), kind int);
         CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders (id) ON DELETE SET NULL, kind int);
         CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders (id), kind int);
         INSERT INTO orders (kind) VALUES (1), (2), (3)",
    )?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    // Old programs that name no columns insert so: the old columns are the first.
    execute(
        url,
        "INSERT INTO remarks VALUES (DEFAULT, 3, 3), (DEFAULT, NULL, 4); INSERT INTO lines VALUES (2, 2);
         INSERT INTO orders VALUES (DEFAULT, 1, 5), (100, 100, 6)",
    )?;
    expect_value(url, PAIRS, "1")?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks WHERE order_id IS NULL AND ordid_old_order_id IS NULL",
        "1",
    )?;
    expect_value(
        url,
        "SELECT count(*) FROM lines l JOIN orders o ON o.id = l.order_id AND o.kind = l.kind",
        "1",
    )?;
    const PARENTS: &str = "SELECT string_agg(o.kind || '<' || p.kind, ' ' ORDER BY o.kind) FROM orders o JOIN orders p ON p.id = o.parent_id";
    expect_value(url, PARENTS, "5<1 6<6")?;
    for insert in [
        "INSERT INTO remarks VALUES (DEFAULT, 77, 3)",
        "INSERT INTO lines VALUES (77, 3)",
        "INSERT INTO orders VALUES (DEFAULT, 77, 3)",
    ] {
        expect_refused(
            url,
            insert,
            "the old key 77 that was given instead is of no row",
        )?;
    }
    // The new column counts if both are given.
    execute(
        url,
        "INSERT INTO remarks SELECT nextval('remarks_id_seq'), 1, kind, id FROM orders WHERE kind = 2",
    )?;
    expect_value(url, PAIRS, "2")?;
    // A reference is still emptied by the foreign key.
    execute(url, "DELETE FROM orders WHERE kind = 3")?;
    expect_value(url, PAIRS, "1")?;
    this.apply(&["--rollback"])?;
    expect_value(url, PAIRS, "1")?;
    expect_value(url, PARENTS, "5<1 6<6")
}

fn in_order(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz DEFAULT now(), kind int);
         INSERT INTO orders (kind) VALUES (1), (2)",
    )?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    const MANY: &str = "INSERT INTO orders (kind) SELECT generate_series(1, 400)";
    execute(
        url,
        &format!(
            "BEGIN; {MANY}; SAVEPOINT one; INSERT INTO orders (kind) VALUES (0); ROLLBACK TO one; {MANY}; COMMIT"
        ),
    )?;
    execute(
        url,
        &format!(
            "{MANY};
             INSERT INTO orders (created_at, kind) SELECT '2020-01-01', generate_series(1, 400);
             INSERT INTO orders (created_at, kind) VALUES (NULL, 1), ('infinity', 2)"
        ),
    )?;
    expect_value(
        url,
        "SELECT count(*) FROM (SELECT ordid_new_id < lag(ordid_new_id) OVER (PARTITION BY created_at ORDER BY id) AS falls FROM orders) \
         AS it WHERE falls",
        "0",
    )?;
    // They still have the time of their rows.
    expect_value(
        url,
        "SELECT count(*) FROM orders WHERE isfinite(created_at) AND abs(('x' || lpad(substr(encode(uuid_send(ordid_new_id), 'hex'), 1, \
         12), 16, '0'))::bit(64)::bigint - floor(extract(epoch FROM created_at) * 1000)::bigint) > 2",
        "0",
    )?;
    this.apply(&["--resume"])?;
    this.apply(&["--rollback"]).map(|_| ())
}

fn deferrable(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; ALTER TABLE remarks ADD CONSTRAINT once UNIQUE (order_id, kind) DEFERRABLE"
        ),
    )?;
    Move::unplanned(
        url,
        "the constraint once of public.remarks is deferrable and has a moved column",
    )?;
    execute(
        url,
        "ALTER TABLE remarks DROP CONSTRAINT once, DROP CONSTRAINT remarks_pkey;
         ALTER TABLE remarks ADD PRIMARY KEY (order_id, kind) DEFERRABLE INITIALLY DEFERRED",
    )?;
    Move::unplanned(
        url,
        "the constraint remarks_pkey of public.remarks is deferrable and has a moved column",
    )?;
    // Those of other columns stay as they are.
    execute(
        url,
        "ALTER TABLE remarks DROP CONSTRAINT remarks_pkey; ALTER TABLE remarks ADD PRIMARY KEY (id) DEFERRABLE",
    )?;
    Move::planned(url)?.apply(&[])?;
    expect_value(
        url,
        "SELECT condeferrable FROM pg_constraint WHERE conname = 'remarks_pkey'",
        "t",
    )
}

fn not_valid(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int);
         CREATE TABLE remarks (order_id bigint, kind int);
         INSERT INTO orders (kind) VALUES (1), (2);
         INSERT INTO remarks VALUES (1, 1), (2, 2), (77, 3), (78, 4), (NULL, 5);
         ALTER TABLE remarks ADD FOREIGN KEY (order_id) REFERENCES orders (id) NOT VALID",
    )?;
    let line = crate::place::refused(&Move::new(url)?.plan(), 2)?;
    expect(
        &line,
        "2 rows of public.remarks have an order_id that is not in public.orders: find them by `SELECT ",
    )?;
    // The query finds them.
    let query = line.split('`').nth(1).unwrap_or_default();
    let found: Vec<String> = block(url, query)?.into_iter().flatten().collect();
    if found != ["77", "3", "78", "4"] {
        return Err(format!("{query}: {found:?}").into());
    }
    execute(url, "DELETE FROM remarks WHERE order_id > 76")?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    expect_value(url, PAIRS, "2")?;
    this.apply(&["--rollback"])?;
    expect_value(url, PAIRS, "2")
}

fn counted_by_index(url: &str) -> Result {
    // Most rows refer to none, so the index of the references is of no use.
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int, parent_id bigint REFERENCES orders (id));
         CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint REFERENCES orders (id), kind int);
         CREATE INDEX remarks_order ON remarks (order_id);
         CREATE TABLE lines (order_id bigint NOT NULL REFERENCES orders (id));
         INSERT INTO orders (kind) SELECT generate_series(1, 20000);
         INSERT INTO remarks (order_id, kind) SELECT CASE WHEN id < 3 THEN id END, kind FROM orders",
    )?;
    let before = definitions_of(url, &["orders", "remarks", "lines"])?;
    let uses_index = |table: &str, column: &str, other: &str| -> Result {
        let explain = format!(
            "EXPLAIN SELECT count(*) FROM {table} WHERE {other} IS NULL AND {column} IS NOT NULL"
        );
        let plan = format!("{:?}", block(url, &explain)?);
        expect(&plan, &format!("ordid_lost_{table}_{column}"))
    };
    let both = |prefix: &str| -> Result {
        uses_index("remarks", "order_id", &format!("{prefix}order_id"))?;
        uses_index("orders", "parent_id", &format!("{prefix}parent_id"))
    };
    let indexes = |count: &str| {
        expect_value(
            url,
            "SELECT count(*) FROM pg_class WHERE relname LIKE 'ordid\\_lost\\_%'",
            count,
        )
    };
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    both("ordid_new_")?;
    indexes("2")?;
    this.apply(&["--resume"])?;
    indexes("0")?;
    // A way back that is refused under the lock leaves its own.
    execute(url, "CREATE INDEX later ON remarks (order_id)")?;
    expect(
        &this.refused(&["--rollback"], 2)?,
        "public.later depends on a moved column",
    )?;
    both("ordid_old_")?;
    execute(url, "DROP INDEX later")?;
    this.apply(&["--rollback"])?;
    let after = definitions_of(url, &["orders", "remarks", "lines"])?;
    match before == after {
        true => Ok(()),
        false => Err(format!("before: {before:?}, after: {after:?}").into()),
    }
}

/// The way back has built its indexes by then, which the end drops.
fn refused_back(url: &str) -> Result {
    const LOST: &str = "SELECT count(*) FROM pg_class WHERE relname LIKE 'ordid\\_lost\\_%'";
    execute(url, TABLES)?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    execute(url, "CREATE VIEW seen AS SELECT id FROM orders")?;
    let line = this.refused(&["--rollback"], 2)?;
    expect(&line, "or end the move with --finish")?;
    expect_value(url, LOST, "1")?;
    this.apply(&["--finish"])?;
    expect_value(url, LOST, "0")?;
    expect_value(url, PAIRS, "2")
}

fn times_of_1970(url: &str) -> Result {
    execute(
        url,
        &format!("{TABLES}; ALTER TABLE orders ADD created_at timestamptz DEFAULT now()"),
    )?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(
        url,
        "INSERT INTO orders (kind, created_at) VALUES (7, NULL), (7, '1970-01-01 00:00Z'), (7, 'infinity'), \
         (7, '1970-01-01 00:00Z'), (7, DEFAULT)",
    )?;
    this.apply(&["--resume"])?;
    expect_value(
        url,
        "SELECT count(DISTINCT id) FROM orders WHERE kind = 7",
        "5",
    )
}

fn ranked(url: &str) -> Result {
    let database = block(url, "SELECT current_database()")?[0][0].clone();
    let role = format!("{database}_mover");
    execute(
        url,
        &format!("CREATE ROLE {role} LOGIN; GRANT CREATE, USAGE ON SCHEMA public TO {role}"),
    )?;
    let outcome = ranked_for(url, &role);
    execute(
        url,
        &format!("DROP OWNED BY {role} CASCADE; DROP ROLE {role}"),
    )?;
    outcome
}

fn ranked_for(url: &str, role: &str) -> Result {
    const RUN: &str = "which also run for each row that apply changes";
    let (_, place) = url.split_once('@').ok_or("an address without a user")?;
    let own = &format!("postgres://{role}@{place}");
    execute(
        own,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, created_at timestamptz);
         CREATE TABLE remarks (order_id bigint REFERENCES orders (id));
         CREATE TABLE mails (order_id bigint);
         INSERT INTO orders (created_at) VALUES (now()), (NULL), (NULL);
         CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.seen VALUES (1); RETURN NEW; END $$;
         CREATE TABLE seen (it int); INSERT INTO remarks VALUES (1);
         CREATE TRIGGER audit AFTER UPDATE ON remarks FOR EACH ROW EXECUTE FUNCTION look();
         CREATE FUNCTION total(a bigint) RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM Orders WHERE id > a';
         CREATE FUNCTION other() RETURNS bigint LANGUAGE sql AS 'SELECT count(*) FROM (SELECT 1 AS reorders, 2 AS orders2) AS it'",
    )?;
    let notes = || -> Result<Vec<String>> {
        let this = Move::new(own)?;
        printed(&this.plan(), 0)?;
        let plan: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&this.file)?)?;
        Ok(serde_json::from_value(plan["notes"].clone())?)
    };
    let found = notes()?;
    let expected = [
        "--finish drops the old keys",
        RUN,
        "after the switch orders.id is uuid, and so are the columns that refer to it: trigger audit of public.remarks, function \
         public.total(bigint)",
        "there is no table ordid_flushes",
        "2 of 3 rows have no created_at: their keys get the time of the oldest row",
        "until --finish a row has to be there before",
        "public.remarks.order_id has no index",
        "the sequence public.orders_id_seq",
        "pg_read_all_stats",
        "no foreign key, and the name of a reference to orders: public.mails.order_id",
    ];
    let is_right = |(note, part): (&String, &&str)| note.contains(*part);
    if found.len() != expected.len() || !found.iter().zip(&expected).all(is_right) {
        return Err(format!("{found:#?}").into());
    }
    if found[2].contains("other()") {
        return Err(format!("a part of a word is taken for the table: {}", found[2]).into());
    }
    execute(own, "CREATE TABLE ordid_flushes (id uuid PRIMARY KEY)")?;
    if notes()?.iter().any(|it| it.contains("ordid_flushes")) {
        return Err("the table is there, and is missed".into());
    }
    let version = &block(url, "SHOW server_version_num")?[0][0];
    if version.as_str() >= "150000" {
        let grant = |what: &str| execute(url, &format!("{what} {role}"));
        grant("GRANT SET ON PARAMETER session_replication_role TO")?;
        let found = notes();
        let this = Move::planned(own)?;
        let moved = this.apply(&[]);
        grant("REVOKE SET ON PARAMETER session_replication_role FROM")?;
        moved?;
        if found?.iter().any(|it| it.contains(RUN)) {
            return Err("the grant is not seen".into());
        }
        expect_value(own, "SELECT count(*) FROM seen", "0")?;
    }
    Ok(())
}

/// The guide says so.
fn prepared(url: &str) -> Result {
    const CHANGED: &str = "cached plan must not change result type";
    execute(url, TABLES)?;
    let this = Move::planned(url)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut session = runtime.block_on(Connection::open(url))?;
    let mut send = |sql: &str| runtime.block_on(session.rows(sql));
    for (name, columns) in [("everything", "*"), ("keys", "id"), ("kinds", "kind")] {
        send(&format!("PREPARE {name} AS SELECT {columns} FROM orders"))?;
    }
    for (options, changed) in [
        (&["--no-switch"][..], &["everything"][..]),
        (&["--resume"], &["everything", "keys"]),
        (&["--finish"], &["everything"]),
    ] {
        let execute = |name| format!("EXECUTE {name}");
        for name in ["everything", "keys", "kinds"] {
            send(&execute(name))?;
        }
        this.apply(options)?;
        for name in ["everything", "keys", "kinds"] {
            match (send(&execute(name)), changed.contains(&name)) {
                (Err(error), true) => expect(&error.to_string(), CHANGED)?,
                (Ok(_), false) => {}
                (outcome, _) => return Err(format!("{options:?} {name}: {outcome:?}").into()),
            }
        }
        send("DEALLOCATE ALL")?;
        for (name, columns) in [("everything", "*"), ("keys", "id"), ("kinds", "kind")] {
            send(&format!("PREPARE {name} AS SELECT {columns} FROM orders"))?;
        }
    }
    Ok(())
}
