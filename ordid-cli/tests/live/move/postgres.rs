//! Moves of tables that have what only PostgreSQL has.

use std::{
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::{Completion, Failed, Trial};
use ordid_harness::Policy;

use super::{
    block,
    hostile::{Move, expect, expect_value},
};
use crate::place::{Result, Servers, execute, ordid, printed, refused};

/// A test's name, and the test.
type Test = (&'static str, fn(&str) -> Result);

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let tests: [Test; 16] = [
        ("move::statistics_targets_and_tablespaces_are_kept", kept),
        (
            "move::comments_and_options_of_indexes_and_constraints_are_kept",
            described,
        ),
        (
            "move::a_storage_option_that_a_new_column_does_not_get_is_noted",
            stored,
        ),
        (
            "move::work_indexes_of_names_that_look_alike_are_different",
            work_indexes,
        ),
        (
            "move::row_security_that_comes_after_the_plan_stops_the_move",
            secured_later,
        ),
        (
            "move::a_table_that_is_published_after_the_plan_is_not_moved",
            published_later,
        ),
        (
            "move::a_trigger_runs_for_the_rows_that_apply_changes_only_if_the_plan_says_so",
            enabled_triggers,
        ),
        (
            "move::a_time_that_no_key_can_have_is_refused_and_does_not_stop_writers",
            far_times,
        ),
        (
            "move::triggers_of_users_obey_the_policies_of_other_tables_as_for_any_writer",
            policies_in_triggers,
        ),
        (
            "move::the_index_by_which_a_table_is_clustered_keeps_its_mark",
            clustered,
        ),
        (
            "move::extended_statistics_of_a_moved_column_are_refused_by_name",
            extended_statistics,
        ),
        (
            "move::a_generated_column_that_is_made_before_the_switch_stops_it",
            generated,
        ),
        (
            "move::a_foreign_key_that_empties_named_columns_is_moved",
            emptied,
        ),
        (
            "move::an_index_with_an_operator_class_of_the_old_type_is_refused",
            classes,
        ),
        (
            "move::row_security_that_applies_to_the_user_is_refused",
            secured,
        ),
        (
            "move::a_column_whose_name_begins_that_of_an_indexed_one_has_no_index",
            alike,
        ),
    ];
    for (name, test) in tests {
        trials.push(servers.trial("postgres", name, test));
    }
    // It has a standby, so it is private whatever others there are.
    trials.push(Trial::ignorable_test(
        "move::a_user_who_may_not_see_how_far_replicas_are_behind_is_told_so",
        || match ordid_harness::policy("postgres")? {
            Policy::Skip(reason) => Ok(Completion::ignored_with(reason)),
            _ => hidden_lag().map(|()| Completion::Completed),
        },
    ));
}

const TABLES: &str = "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int);
    CREATE TABLE remarks (id bigserial PRIMARY KEY, order_id bigint, kind int);
    CREATE INDEX remarks_order ON remarks (order_id);
    INSERT INTO orders (kind) VALUES (1), (2);
    INSERT INTO remarks (order_id, kind) SELECT id, kind FROM orders";

/// Makes the remarks refer to the orders.
const LINK: &str = "ALTER TABLE remarks ADD FOREIGN KEY (order_id) REFERENCES orders (id)";

fn generated(url: &str) -> Result {
    execute(url, TABLES)?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(
        url,
        "ALTER TABLE orders ADD COLUMN twice bigint GENERATED ALWAYS AS (id * 2) STORED",
    )?;
    expect(&this.refused(&["--resume"], 2)?, "public.orders.twice")?;
    execute(url, "ALTER TABLE orders DROP COLUMN twice")?;
    this.apply(&["--resume"])?;
    // One of the old column would be dropped with it.
    execute(
        url,
        "ALTER TABLE orders ADD COLUMN twice bigint GENERATED ALWAYS AS (ordid_old_id * 2) STORED",
    )?;
    expect(&this.refused(&["--finish"], 2)?, "public.orders.twice")?;
    execute(url, "ALTER TABLE orders DROP COLUMN twice")?;
    this.apply(&["--finish"]).map(|_| ())
}

fn emptied(url: &str) -> Result {
    const LINKS: &str = "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id";
    execute(
        url,
        &format!(
            "{TABLES}; ALTER TABLE remarks ADD FOREIGN KEY (order_id) REFERENCES orders (id) ON DELETE SET NULL (order_id)"
        ),
    )?;
    let empty = |rest: &str| {
        execute(url, "DELETE FROM orders WHERE kind = 1")?;
        expect_value(url, LINKS, rest)?;
        expect_value(
            url,
            "SELECT count(*) FROM remarks WHERE order_id IS NULL AND kind = 1",
            "1",
        )?;
        execute(
            url,
            "INSERT INTO orders (kind) VALUES (1);
             UPDATE remarks r SET order_id = o.id FROM orders o WHERE o.kind = r.kind",
        )
    };
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    empty("1")?;
    this.apply(&["--resume"])?;
    empty("1")?;
    this.apply(&["--rollback"])?;
    empty("1")?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    this.apply(&["--finish"])?;
    empty("1")
}

fn classes(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; CREATE INDEX orders_ranges ON orders USING brin (kind int4_minmax_multi_ops, id int8_minmax_multi_ops)"
        ),
    )?;
    Move::unplanned(
        url,
        "the index orders_ranges of public.orders has an operator class of the old type (int8_minmax_multi_ops)",
    )?;
    // The operator class of another column does not matter.
    execute(
        url,
        "DROP INDEX orders_ranges; CREATE INDEX orders_ranges ON orders USING brin (kind int4_minmax_multi_ops, id)",
    )?;
    Move::planned(url)?.apply(&[]).map(|_| ())
}

fn kept(url: &str) -> Result {
    let separator = if url.contains('?') { '&' } else { '?' };
    // It needs no folder, and has the name of a column.
    execute(
        &format!("{url}{separator}options[allow_in_place_tablespaces]=on"),
        "CREATE TABLESPACE order_id LOCATION ''",
    )?;
    let outcome = kept_in(url);
    execute(url, "DROP TABLE IF EXISTS remarks, orders CASCADE")?;
    execute(url, "DROP TABLESPACE order_id")?;
    outcome
}

fn kept_in(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; {LINK};
             ALTER TABLE remarks ALTER COLUMN order_id SET STATISTICS 250; ALTER TABLE orders ALTER COLUMN id SET STATISTICS 0;
             ALTER INDEX remarks_order SET TABLESPACE order_id; ALTER INDEX orders_pkey SET TABLESPACE order_id"
        ),
    )?;
    let check = || -> Result {
        expect_value(
            url,
            "SELECT string_agg(attstattarget::text, ' ' ORDER BY attrelid::regclass::text) FROM pg_attribute WHERE attrelid IN \
             ('orders'::regclass, 'remarks'::regclass) AND (attrelid, attname) IN (VALUES ('orders'::regclass, 'id'::name), \
             ('remarks'::regclass, 'order_id'::name))",
            "0 250",
        )?;
        expect_value(
            url,
            "SELECT string_agg(indexname, ' ' ORDER BY indexname) FROM pg_indexes WHERE tablespace = 'order_id' AND indexname \
             NOT LIKE 'ordid%'",
            "orders_pkey remarks_order",
        )
    };
    Move::keeps(url, check)
}

/// Calls a function with the address of a user who owns the database and is no superuser.
fn as_owner(url: &str, test: fn(&str, &str) -> Result) -> Result {
    let (_, place) = url.split_once('@').ok_or("an address without a user")?;
    let database = url.rsplit('/').next().unwrap_or_default();
    let database = database.split('?').next().unwrap_or_default();
    let role = format!("{database}_owner");
    execute(
        url,
        &format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {database} OWNER TO {role}"),
    )?;
    let outcome = test(&format!("postgres://{role}@{place}"), &role);
    execute(
        url,
        &format!(
            "ALTER DATABASE {database} OWNER TO CURRENT_USER; DROP OWNED BY {role} CASCADE; DROP ROLE {role}"
        ),
    )?;
    outcome
}

fn secured(url: &str) -> Result {
    as_owner(url, |own, _| {
        execute(
            own,
            &format!(
                "{TABLES}; {LINK};
                 ALTER TABLE remarks ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON remarks USING (kind = 1);
                 ALTER TABLE remarks FORCE ROW LEVEL SECURITY"
            ),
        )?;
        Move::unplanned(
            own,
            "public.remarks has row security, which applies to this user, too (FORCE ROW LEVEL SECURITY)",
        )?;
        // Without FORCE it does not apply to the owner.
        execute(own, "ALTER TABLE remarks NO FORCE ROW LEVEL SECURITY")?;
        Move::planned(own)?.apply(&[]).map(|_| ())
    })
}

const FORCED: &str =
    "public.remarks has row security, which applies to this user, too (FORCE ROW LEVEL SECURITY)";

fn secured_later(url: &str) -> Result {
    as_owner(url, |own, _| {
        execute(
            own,
            &format!(
                "{TABLES}; {LINK};
                 ALTER TABLE remarks ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON remarks USING (kind = 1);
                 ALTER TABLE orders ENABLE ROW LEVEL SECURITY; CREATE POLICY none ON orders USING (false);
                 INSERT INTO orders (kind) SELECT n FROM generate_series(3, 20) AS n"
            ),
        )?;
        let force = |table: &str, word: &str| {
            execute(
                own,
                &format!("ALTER TABLE {table} {word} ROW LEVEL SECURITY"),
            )
        };
        let links = |rows: &str| {
            expect_value(
                own,
                "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
                rows,
            )
        };
        let this = Move::planned(own)?;
        force("remarks", "FORCE")?;
        expect(&this.refused(&[], 2)?, FORCED)?;
        expect_value(own, "SELECT to_regclass('ordid_move_orders') IS NULL", "t")?;
        force("remarks", "NO FORCE")?;

        // While keys are made, a transaction that may have left rows out is rolled back.
        let failed = thread::scope(|scope| {
            let run = scope.spawn(|| {
                this.refused(&["--no-switch", "--chunk", "1", "--pause", "300"], 2)
                    .map_err(|error| format!("{error:?}"))
            });
            let begun = Instant::now();
            let has_keys = "SELECT 1 FROM information_schema.columns WHERE table_name = 'orders' AND column_name = 'ordid_new_id'";
            let is_made = || -> Result<bool> {
                let made = "SELECT 1 FROM orders WHERE ordid_new_id IS NOT NULL";
                Ok(!block(own, has_keys)?.is_empty() && !block(own, made)?.is_empty())
            };
            while !is_made()? {
                if begun.elapsed() > Duration::from_secs(60) {
                    return Err("no key is made".into());
                }
                thread::sleep(Duration::from_millis(20));
            }
            force("orders", "FORCE")?;
            Ok::<_, Failed>(run.join().map_err(|_| "apply panicked")??)
        })?;
        expect(&failed, &FORCED.replace("remarks", "orders"))?;
        force("orders", "NO FORCE")?;
        this.apply(&["--resume", "--no-switch"])?;

        force("remarks", "FORCE")?;
        expect(&this.refused(&["--resume"], 2)?, FORCED)?;
        force("remarks", "NO FORCE")?;
        links("2")?;
        // While the switch waits.
        let refused = thread::scope(|scope| {
            let slow = scope.spawn(|| {
                execute(
                    own,
                    "BEGIN; SELECT count(*) FROM orders; SELECT pg_sleep(4); COMMIT",
                )
                .map_err(|error| format!("{error:?}"))
            });
            thread::sleep(Duration::from_millis(500));
            let run = scope.spawn(|| {
                this.refused(&["--resume"], 2)
                    .map_err(|error| format!("{error:?}"))
            });
            thread::sleep(Duration::from_millis(1500));
            force("remarks", "FORCE")?;
            slow.join().map_err(|_| "the reader panicked")??;
            Ok::<_, Failed>(run.join().map_err(|_| "apply panicked")??)
        })?;
        expect(&refused, FORCED)?;
        force("remarks", "NO FORCE")?;
        this.apply(&["--resume"])?;
        links("2")?;

        // The way back and the map read all rows, too.
        force("remarks", "FORCE")?;
        expect(&this.refused(&["--rollback"], 2)?, FORCED)?;
        expect(&this.refused(&["--finish", "--keep-map"], 2)?, FORCED)?;
        // The end reads none.
        this.apply(&["--finish"])?;
        force("remarks", "NO FORCE")?;
        links("2")
    })
}

fn published_later(url: &str) -> Result {
    execute(url, &format!("{TABLES}; {LINK}"))?;
    let published =
        "is published, and its subscribers do not have the new columns: replication would stop";
    let database = block(url, "SELECT current_database()")?[0][0].clone();
    let publish = |table: &str| {
        execute(
            url,
            &format!("CREATE PUBLICATION {database}_all FOR TABLE {table}"),
        )
    };
    let unpublish = || execute(url, &format!("DROP PUBLICATION {database}_all"));
    let this = Move::planned(url)?;
    publish("remarks")?;
    expect(
        &this.refused(&[], 2)?,
        &format!("public.remarks {published}"),
    )?;
    expect_value(url, "SELECT to_regclass('ordid_move_orders') IS NULL", "t")?;
    unpublish()?;
    this.apply(&["--no-switch"])?;
    publish("orders")?;
    expect(
        &this.refused(&["--resume"], 2)?,
        &format!("public.orders {published}"),
    )?;
    unpublish()?;
    // While the switch waits for its locks.
    let refused = thread::scope(|scope| {
        let slow = scope.spawn(|| {
            execute(
                url,
                "BEGIN; SELECT count(*) FROM orders; SELECT pg_sleep(4); COMMIT",
            )
            .map_err(|error| format!("{error:?}"))
        });
        thread::sleep(Duration::from_millis(500));
        let run = scope.spawn(|| {
            this.refused(&["--resume"], 2)
                .map_err(|error| format!("{error:?}"))
        });
        thread::sleep(Duration::from_millis(1500));
        publish("remarks, orders")?;
        slow.join().map_err(|_| "the reader panicked")??;
        Ok::<_, Failed>(run.join().map_err(|_| "apply panicked")??)
    })?;
    expect(
        &refused,
        &format!("public.orders, public.remarks {published}"),
    )?;
    unpublish()?;
    this.apply(&["--resume"])?;
    expect_value(
        url,
        "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
        "2",
    )
}

/// By `pg_trigger.tgenabled`; `apply` turns ordinary ones off, which turns others on.
fn enabled_triggers(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; {LINK};
             CREATE TABLE log (name text);
             CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO log VALUES (TG_NAME); RETURN NEW; END $$;
             CREATE TRIGGER ordinary BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION note();
             CREATE TRIGGER second BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION note()"
        ),
    )?;
    const OFF: &str =
        "do not run for the rows that apply changes (session_replication_role = replica)";
    const RUN: &str = "also run for each row that apply changes";
    for (first, second, notes, none, ran) in [
        (
            "ENABLE",
            "ENABLE ALWAYS",
            vec![
                "triggers that are ENABLE ALWAYS also run for each row that apply changes, whoever applies: second of public.orders",
                "the other triggers of the tables do not run for the rows that apply changes",
            ],
            "turn on",
            "second",
        ),
        (
            "ENABLE",
            "ENABLE REPLICA",
            vec![
                "which also run for each row that apply changes (ordinary of public.orders): apply does not turn them off, as that would turn \
             on those that are ENABLE REPLICA (second of public.orders)",
            ],
            OFF,
            "ordinary",
        ),
        ("DISABLE", "ENABLE REPLICA", vec![], RUN, ""),
        (
            "DISABLE",
            "ENABLE ALWAYS",
            vec!["whoever applies: second of public.orders"],
            OFF,
            "second",
        ),
        (
            "ENABLE",
            "DISABLE",
            vec!["the tables have triggers: they do not run for the rows"],
            RUN,
            "",
        ),
    ] {
        execute(
            url,
            &format!(
                "ALTER TABLE orders {first} TRIGGER ordinary, {second} TRIGGER second; TRUNCATE log"
            ),
        )?;
        let this = Move::new(url)?;
        let shown = printed(&this.plan(), 0)?;
        for note in notes {
            expect(&shown, note)?;
        }
        if shown.contains(none) {
            return Err(format!("{none:?} is in {shown}").into());
        }
        this.apply(&["--no-switch"])?;
        expect_value(
            url,
            "SELECT coalesce(string_agg(DISTINCT name, ' '), '') FROM log",
            ran,
        )?;
        this.apply(&["--rollback"])?;
        std::fs::remove_file(&this.file)?;
    }
    Ok(())
}

/// PostgreSQL's times end in the year 294276, and those of keys in 10889.
fn far_times(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY, kind int, created_at timestamptz);
         INSERT INTO orders (kind, created_at) VALUES (1, '2024-02-01Z'), (2, '20000-01-01'), (3, '10889-08-02 05:31:50.656Z')",
    )?;
    let line = refused(&Move::new(url)?.plan(), 2)?;
    expect(
        &line,
        "2 of 3 rows have a created_at after +10889-08-02T05:31:50.655Z, the last time that a key can have: find them by `SELECT",
    )?;
    let query = line.split('`').nth(1).ok_or("no query")?;
    if block(url, &format!("SELECT kind FROM ({query}) AS it ORDER BY 1"))? != [["2"], ["3"]] {
        return Err(format!("{query} finds other rows").into());
    }
    execute(
        url,
        "UPDATE orders SET created_at = '10889-08-02 05:31:50.655Z' WHERE kind = 3; DELETE FROM orders WHERE kind = 2",
    )?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    // A trigger makes these.
    execute(
        url,
        "INSERT INTO orders (kind, created_at) VALUES (4, '20000-01-01'), (5, '1000-01-01'), (6, '2024-02-02Z')",
    )?;
    this.apply(&["--resume"])?;
    let millis = block(
        url,
        "SELECT left(encode(uuid_send(id), 'hex'), 12) FROM orders ORDER BY kind",
    )?;
    let expected = [
        "018d61f71800",
        "ffffffffffff",
        "ffffffffffff",
        "000000000000",
        "018d671d7400",
    ];
    match millis.iter().flatten().eq(expected) {
        true => Ok(()),
        false => Err(format!("{millis:?}").into()),
    }
}

fn policies_in_triggers(url: &str) -> Result {
    // The table of limits is not the owner's, who sees one of its three rows.
    execute(
        url,
        "CREATE TABLE limits (kind int); INSERT INTO limits VALUES (1), (2), (3);
         ALTER TABLE limits ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON limits USING (kind = 1);
         GRANT SELECT ON limits TO PUBLIC",
    )?;
    as_owner(url, |own, _| {
        execute(
            own,
            &format!(
                "{TABLES}; {LINK};
                 ALTER TABLE remarks ENABLE ROW LEVEL SECURITY; CREATE POLICY few ON remarks USING (kind = 1);
                 CREATE TABLE seen (what text, limits bigint);
                 CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                    INSERT INTO public.seen SELECT TG_NAME, count(*) FROM public.limits; RETURN NEW; END $$;
                 CREATE TRIGGER orders_row BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION look();
                 CREATE TRIGGER remarks_statement AFTER UPDATE ON remarks FOR EACH STATEMENT EXECUTE FUNCTION look();
                 CREATE CONSTRAINT TRIGGER remarks_commit AFTER UPDATE ON remarks DEFERRABLE INITIALLY DEFERRED
                    FOR EACH ROW EXECUTE FUNCTION look()"
            ),
        )?;
        let this = Move::planned(own)?;
        this.apply(&["--no-switch"])?;
        const SEEN: &str = "SELECT string_agg(DISTINCT what || ' ' || limits, ', ') FROM seen";
        expect_value(
            own,
            SEEN,
            "orders_row 1, remarks_commit 1, remarks_statement 1",
        )?;
        this.apply(&["--resume"])?;
        this.apply(&["--rollback"])?;
        let this = Move::planned(own)?;
        this.apply(&[])?;
        this.apply(&["--finish", "--keep-map"])?;
        expect_value(
            own,
            "SELECT count(*) FROM remarks r JOIN orders o ON o.id = r.order_id AND o.kind = r.kind",
            "2",
        )?;
        expect_value(own, "SELECT count(*) FROM orders_ordid_map", "2")
    })?;
    execute(url, "DROP TABLE limits")
}

fn clustered(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; {LINK};
             CLUSTER orders USING orders_pkey; ALTER TABLE remarks CLUSTER ON remarks_order"
        ),
    )?;
    let check = || {
        expect_value(
            url,
            "SELECT string_agg(indexrelid::regclass::text, ', ' ORDER BY indexrelid::regclass::text) FROM pg_index WHERE indisclustered \
             AND indrelid IN ('orders'::regclass, 'remarks'::regclass)",
            "orders_pkey, remarks_order",
        )
    };
    Move::keeps(url, check)?;
    execute(url, "CLUSTER orders; CLUSTER remarks")
}

fn extended_statistics(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; {LINK};
             CREATE STATISTICS remarks_both ON order_id, kind FROM remarks"
        ),
    )?;
    Move::unplanned(
        url,
        "statistics object public.remarks_both depends on public.remarks.order_id",
    )?;
    execute(url, "DROP STATISTICS remarks_both")?;
    let this = Move::planned(url)?;
    this.apply(&["--no-switch"])?;
    execute(
        url,
        "CREATE STATISTICS remarks_both ON order_id, kind FROM remarks",
    )?;
    expect(&this.refused(&["--resume"], 2)?, "remarks_both")
}

/// The comments of indexes and constraints, and the options of columns and indexes.
fn described(url: &str) -> Result {
    execute(
        url,
        &format!(
            "{TABLES}; ALTER TABLE remarks ADD CONSTRAINT remarks_fk FOREIGN KEY (order_id) REFERENCES orders (id);
             ALTER TABLE remarks ADD CONSTRAINT remarks_once UNIQUE (order_id, kind) WITH (fillfactor = 60);
             ALTER INDEX remarks_order SET (fillfactor = 70); ALTER INDEX orders_pkey SET (fillfactor = 80);
             ALTER TABLE remarks ALTER COLUMN order_id SET (n_distinct = -0.25, n_distinct_inherited = 12);
             COMMENT ON INDEX remarks_order IS 'it''s by order'; COMMENT ON INDEX orders_pkey IS 'the key''s index';
             COMMENT ON INDEX remarks_once IS 'the index of one'; COMMENT ON CONSTRAINT remarks_once ON remarks IS 'one of a kind';
             COMMENT ON CONSTRAINT orders_pkey ON orders IS 'the key'; COMMENT ON CONSTRAINT remarks_fk ON remarks IS 'its order'"
        ),
    )?;
    let check = || -> Result {
        expect_value(
            url,
            "SELECT string_agg(concat_ws(' ', relname, reloptions::text, obj_description(oid, 'pg_class')), '; ' ORDER BY relname COLLATE \"C\") \
             FROM pg_class WHERE relname IN ('orders_pkey', 'remarks_once', 'remarks_order')",
            "orders_pkey {fillfactor=80} the key's index; remarks_once {fillfactor=60} the index of one; remarks_order {fillfactor=70} it's by \
             order",
        )?;
        expect_value(
            url,
            "SELECT string_agg(concat_ws(' ', conname, obj_description(oid, 'pg_constraint')), '; ' ORDER BY conname COLLATE \"C\") FROM \
             pg_constraint WHERE conname IN ('orders_pkey', 'remarks_once', 'remarks_fk')",
            "orders_pkey the key; remarks_fk its order; remarks_once one of a kind",
        )?;
        expect_value(
            url,
            "SELECT attoptions::text FROM pg_attribute WHERE attrelid = 'remarks'::regclass AND attname = 'order_id'",
            "{n_distinct=-0.25,n_distinct_inherited=12}",
        )
    };
    Move::keeps(url, check)
}

fn stored(url: &str) -> Result {
    execute(
        url,
        "CREATE TABLE orders (id text DEFAULT gen_random_uuid()::text PRIMARY KEY, kind int);
         CREATE TABLE remarks (order_id text REFERENCES orders (id));
         CREATE INDEX remarks_order ON remarks (order_id)",
    )?;
    const NOTE: &str = "which its new column does not get";
    match printed(&Move::new(url)?.plan(), 0)? {
        shown if shown.contains(NOTE) => return Err("a column without options is noted".into()),
        _ => {}
    }
    execute(
        url,
        "ALTER TABLE orders ALTER COLUMN id SET STORAGE EXTERNAL; ALTER TABLE remarks ALTER COLUMN order_id SET COMPRESSION pglz",
    )?;
    let shown = printed(&Move::new(url)?.plan(), 0)?;
    expect(
        &shown,
        "public.orders.id has STORAGE EXTERNAL, which its new column does not get",
    )?;
    expect(
        &shown,
        "public.remarks.order_id has COMPRESSION pglz, which its new column does not get",
    )
}

fn work_indexes(url: &str) -> Result {
    // The first work index would also have the name of the work list.
    execute(
        url,
        "CREATE TABLE a_b (id bigserial PRIMARY KEY, c bigint REFERENCES a_b (id));
         CREATE TABLE a (b bigint REFERENCES a_b (id), b_c bigint REFERENCES a_b (id));
         INSERT INTO a_b (c) VALUES (NULL), (1);
         INSERT INTO a (b, b_c) VALUES (1, 2), (2, NULL)",
    )?;
    let this = Move::new(url)?;
    printed(&this.plan_of("a_b"), 0)?;
    this.apply(&["--no-switch"])?;
    expect_value(
        url,
        "SELECT string_agg(it, '; ' ORDER BY it) FROM (SELECT substring(indexdef FROM 'ON public\\.(.*)') AS it FROM pg_indexes WHERE \
         indexname LIKE 'ordid\\_work%' AND indexname NOT LIKE '%pkey') AS them",
        "a USING btree (b); a USING btree (b_c); a_b USING btree (c)",
    )?;
    this.apply(&["--resume"])?;
    this.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM pg_class WHERE relname LIKE 'ordid%'",
        "0",
    )
}

fn alike(url: &str) -> Result {
    const NOTE: &str = "public.remarks.account has no index";
    execute(
        url,
        "CREATE TABLE orders (id bigserial PRIMARY KEY);
         CREATE TABLE remarks (account_status int, account bigint REFERENCES orders (id));
         CREATE INDEX remarks_status ON remarks (account_status, account)",
    )?;
    expect(&printed(&Move::new(url)?.plan(), 0)?, NOTE)?;
    execute(url, "CREATE INDEX remarks_account ON remarks (account)")?;
    match printed(&Move::new(url)?.plan(), 0)? {
        shown if shown.contains(NOTE) => Err("an index is not seen".into()),
        _ => Ok(()),
    }
}

fn hidden_lag() -> Result {
    const NOTE: &str =
        "this user may not see how far replicas are behind, so --max-lag does nothing";
    let server = ordid_harness::postgres()?;
    let url = server.url();
    let (_, place) = url.split_once('@').ok_or("an address without a user")?;
    let own = format!("postgres://mover@{place}");
    execute(
        &url,
        "CREATE ROLE mover LOGIN; GRANT ALL ON SCHEMA public TO mover",
    )?;
    execute(&own, TABLES)?;
    let planned = || -> Result<(Move, bool)> {
        let this = Move::new(&own)?;
        let shown = printed(&this.plan(), 0)?;
        Ok((this, shown.contains(NOTE)))
    };
    let is_told = |this: &Move, option: &str| -> Result<bool> {
        let output = ordid(&["apply", &this.file, &own, option])?;
        let stderr = String::from_utf8(output.stderr)?;
        match output.status.success() {
            true => Ok(stderr.contains(NOTE)),
            false => Err(stderr.into()),
        }
    };
    let (this, is_noted) = planned()?;
    // Nobody is told while there is no replica.
    let alone = is_told(&this, "--no-switch")?;
    let standby = ordid_harness::postgres_standby(&server)?;
    // It may still be connecting.
    let streaming = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'";
    let begun = Instant::now();
    while block(&url, streaming)?.is_empty() {
        if begun.elapsed() > Duration::from_secs(60) {
            return Err("the standby does not follow".into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let beside = is_told(&this, "--resume")?;
    this.apply(&["--rollback"])?;
    execute(&url, "GRANT pg_read_all_stats TO mover")?;
    let (this, is_noted_still) = planned()?;
    let granted = is_told(&this, "--no-switch")?;
    drop(standby);
    match [is_noted, alone, beside, is_noted_still, granted] {
        [true, false, true, false, false] => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}
