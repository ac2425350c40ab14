//! Moves that share tables, names that are cut, and keys that the server makes by its clock.

use libtest_mimic::Trial;

use super::{
    block,
    hostile::{Move, expect, expect_value},
    is_postgres,
};
use crate::place::{Result, Servers, execute, printed, refused};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::a_table_of_another_move_that_is_not_ended_is_refused",
            two_moves,
        ));
        trials.push(servers.trial(
            server,
            "move::what_a_move_without_a_journal_has_left_is_named_and_removed_by_a_rollback",
            dropped_journal,
        ));
        trials.push(servers.trial(
            server,
            "move::names_that_begin_alike_stay_distinct_where_they_are_cut",
            long_names,
        ));
    }
    for server in ["mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::keys_are_of_their_time_in_the_hour_that_comes_twice",
            summer,
        ));
    }
}

/// A type of keys that are counted.
fn counted(url: &str) -> &'static str {
    match is_postgres(url) {
        true => "bigserial",
        false => "bigint NOT NULL AUTO_INCREMENT",
    }
}

/// Creates orders, and customers and shops to which they refer.
fn create_shops(url: &str) -> Result {
    let key = counted(url);
    execute(
        url,
        &format!(
            "CREATE TABLE customers (id {key} PRIMARY KEY, name varchar(20));
             CREATE TABLE shops (id {key} PRIMARY KEY, name varchar(20));
             CREATE TABLE orders (id {key} PRIMARY KEY, customer_id bigint NOT NULL, shop_id bigint, kind int,
                CONSTRAINT orders_customer FOREIGN KEY (customer_id) REFERENCES customers (id),
                CONSTRAINT orders_shop FOREIGN KEY (shop_id) REFERENCES shops (id));
             CREATE INDEX orders_customers ON orders (customer_id);
             CREATE INDEX orders_shops ON orders (shop_id);
             INSERT INTO customers (name) VALUES ('a'), ('b');
             INSERT INTO shops (name) VALUES ('s');
             INSERT INTO orders (customer_id, shop_id, kind) VALUES (1, 1, 1), (2, 1, 2)"
        ),
    )
}

/// The schema of a test's tables.
fn schema_of(url: &str) -> String {
    match is_postgres(url) {
        true => "public".to_owned(),
        false => url.rsplit('/').next().unwrap_or_default().to_owned(),
    }
}

/// Plans the move of a table.
fn planned(url: &str, table: &str) -> Result<Move> {
    let this = Move::new(url)?;
    printed(&this.plan_of(table), 0)?;
    Ok(this)
}

fn dropped_journal(url: &str) -> Result {
    const TABLES: [&str; 3] = ["customers", "orders", "shops"];
    create_shops(url)?;
    let schema = schema_of(url);
    let before = super::definitions_of(url, &TABLES)?;
    let [customers, shops] = [planned(url, "customers")?, planned(url, "shops")?];
    let refused_with = |parts: &[String]| -> Result {
        for table in TABLES {
            let mut lines = vec![refused(&Move::new(url)?.plan_of(table), 2)?];
            match table {
                "customers" => lines.push(customers.refused(&["--resume"], 2)?),
                "shops" => {
                    lines.extend([shops.refused(&[], 2)?, shops.refused(&["--rollback"], 2)?])
                }
                _ => {}
            }
            for line in lines {
                expect(&line, "a move whose journal was dropped has left ")?;
                // The other plans have no table customers.
                for part in parts {
                    if table == "customers" || !part.contains("customers") {
                        expect(&line, part)?;
                    }
                }
            }
        }
        Ok(())
    };
    let column = |name: &str| format!("column {schema}.{name}");
    let drop_journal = || execute(url, "DROP TABLE ordid_move_customers");
    let triggers = match is_postgres(url) {
        true => [
            format!("trigger zzzz_ordid_sync of {schema}.orders"),
            format!("function {schema}.ordid_sync_orders"),
            format!("trigger zzzz_ordid_sync of {schema}.customers"),
            format!("function {schema}.ordid_sync_customers"),
        ],
        false => [
            "insert_orders",
            "update_orders",
            "insert_customers",
            "update_customers",
        ]
        .map(|name| {
            let (_, table) = name.split_once('_').unwrap_or_default();
            format!("trigger ordid_{name} of {schema}.{table}")
        }),
    };

    customers.apply(&["--no-switch"])?;
    drop_journal()?;
    let mut names = vec![
        column("orders.ordid_new_customer_id"),
        column("customers.ordid_new_id"),
    ];
    names.extend(triggers.clone());
    names.push("ordid apply PLAN --rollback".to_owned());
    refused_with(&names)?;
    customers.apply(&["--rollback"])?;
    let after = super::definitions_of(url, &TABLES)?;
    if before != after {
        return Err(format!("before: {before:?}, after: {after:?}").into());
    }

    // The way back of the customers drops a column of this name, but not this one.
    let customers = planned(url, "customers")?;
    execute(url, "ALTER TABLE orders ADD COLUMN ordid_new_id bigint")?;
    expect(
        &customers.refused(&["--rollback"], 2)?,
        &column("orders.ordid_new_id"),
    )?;
    execute(url, "ALTER TABLE orders DROP COLUMN ordid_new_id")?;

    // Only one column is left of another move, which is not in its way.
    let alter = match is_postgres(url) {
        true => "ALTER TABLE orders ADD COLUMN ordid_new_customer_id uuid",
        false => "ALTER TABLE orders ADD COLUMN ordid_new_customer_id binary(16)",
    };
    let customers = planned(url, "customers")?;
    execute(url, alter)?;
    expect(
        &customers.refused(&[], 2)?,
        &column("orders.ordid_new_customer_id"),
    )?;
    expect(
        &shops.refused(&["--rollback"], 2)?,
        &column("orders.ordid_new_customer_id"),
    )?;
    customers.apply(&["--rollback"])?;

    // After the switch old keys would be lost.
    customers.apply(&[])?;
    drop_journal()?;
    let mut names = vec![
        column("orders.ordid_old_customer_id"),
        column("customers.ordid_old_id"),
    ];
    // AUTO_INCREMENT goes on without a trigger.
    let own = if is_postgres(url) { 4 } else { 2 };
    names.extend(triggers.into_iter().take(own));
    names.push("have the old keys: if they are no longer needed, drop the triggers".to_owned());
    for table in TABLES {
        let line = refused(&Move::new(url)?.plan_of(table), 2)?;
        for part in &names {
            if table == "customers" || !part.contains("customers") {
                expect(&line, part)?;
            }
        }
    }
    for options in [&["--rollback"], &["--finish"], &["--resume"]] {
        expect(&customers.refused(options, 2)?, &names[0])?;
    }
    expect_value(
        url,
        "SELECT count(DISTINCT ordid_old_id) FROM customers",
        "2",
    )
}

fn two_moves(url: &str) -> Result {
    create_shops(url)?;
    let schema = schema_of(url);
    let reason = |shared: &str, other: &str| {
        format!(
            "{schema}.{shared} is also a table of the move of {schema}.{other}, which is not ended (its journal is \
             {schema}.ordid_move_{other}): end that move first, by --finish or --rollback"
        )
    };
    let plan = |table: &str| planned(url, table);
    let unplanned = |table: &str, shared: &str, other: &str| -> Result {
        let line = refused(&Move::new(url)?.plan_of(table), 2)?;
        expect(&line, &reason(shared, other))
    };
    let [customers, orders, shops] = [plan("customers")?, plan("orders")?, plan("shops")?];

    // A parent is moved, and then its child and the child's other parent are not.
    customers.apply(&["--no-switch"])?;
    for state in ["before the switch", "after it"] {
        unplanned("orders", "orders", "customers")?;
        unplanned("shops", "orders", "customers")?;
        for other in [&orders, &shops] {
            expect(&other.refused(&[], 2)?, &reason("orders", "customers"))?;
        }
        if state == "before the switch" {
            customers.apply(&["--resume"])?;
        }
    }
    let insert =
        "INSERT INTO orders (customer_id, kind) SELECT id, 3 FROM customers WHERE name = 'b'";
    execute(url, insert)?;
    customers.apply(&["--rollback"])?;
    expect_value(
        url,
        "SELECT count(*) FROM orders WHERE customer_id = 2",
        "2",
    )?;

    // The child is moved, and then its parent is not.
    orders.apply(&[])?;
    unplanned("customers", "orders", "orders")?;
    expect(&customers.refused(&[], 2)?, &reason("orders", "orders"))?;
    orders.apply(&["--finish"])?;
    // A move that is ended is in nobody's way.
    let customers = plan("customers")?;
    customers.apply(&[])?;
    customers.apply(&["--finish"])?;
    expect_value(
        url,
        "SELECT count(*) FROM orders o JOIN customers c ON c.id = o.customer_id AND c.name = 'b'",
        "2",
    )
}

fn long_names(url: &str) -> Result {
    let key = counted(url);
    // Tables, columns, indexes and foreign keys of 55 characters, the last of which differs.
    let name = |word: &str, end: &str| format!("{word}{}_{end}", "_".repeat(53 - word.len()));
    let mut script = format!(
        "CREATE TABLE orders (id {key} PRIMARY KEY, kind int); INSERT INTO orders (kind) VALUES (1), (2);"
    );
    let tables = ["a", "b"].map(|end| name("remarks", end));
    for (number, table) in tables.iter().enumerate() {
        let mut parts = String::new();
        let mut indexes = String::new();
        for end in ["a", "b"] {
            let column = name("order", end);
            // The names of PostgreSQL's indexes and of MySQL's foreign keys are the schema's.
            let own = |word| name(word, &format!("{end}{number}"));
            parts.push_str(&format!(
                ", {column} bigint NOT NULL, CONSTRAINT {} FOREIGN KEY ({column}) REFERENCES orders (id)",
                own("link")
            ));
            indexes.push_str(&format!(
                " CREATE INDEX {} ON {table} ({column});",
                own("index")
            ));
        }
        script.push_str(&format!(
            "CREATE TABLE {table} (id {key} PRIMARY KEY{parts});{indexes}"
        ));
    }
    execute(url, &script)?;
    let [one, other] = ["a", "b"].map(|end| name("order", end));
    let write = || -> Result {
        for table in &tables {
            execute(
                url,
                &format!(
                    "INSERT INTO {table} ({one}, {other}) SELECT a.id, b.id FROM orders a, orders b WHERE a.kind = 1 AND b.kind = 2"
                ),
            )?;
        }
        Ok(())
    };
    let check = |rows: &str| -> Result {
        for table in &tables {
            let pairs = format!(
                "SELECT count(*) FROM {table} r JOIN orders a ON a.id = r.{one} AND a.kind = 1 JOIN orders b ON b.id = r.{other} AND \
                 b.kind = 2"
            );
            expect_value(url, &pairs, rows)?;
        }
        Ok(())
    };
    let all = |rows: [&str; 3]| -> Result<Move> {
        let this = Move::planned(url)?;
        write()?;
        this.apply(&["--no-switch"])?;
        write()?;
        check(rows[0])?;
        this.apply(&["--resume"])?;
        check(rows[1])?;
        write()?;
        check(rows[2])?;
        Ok(this)
    };
    all(["2", "2", "3"])?.apply(&["--rollback"])?;
    check("3")?;
    all(["5", "5", "6"])?.apply(&["--finish"])?;
    check("6")
}

fn summer(url: &str) -> Result {
    // 2026-10-25: the hour from 02:00 comes as summer time, and again.
    const BACK: u64 = 1_792_890_000;
    // Servers remember zones: each test has its own.
    let zone = format!("Ordid/{}", url.rsplit('/').next().unwrap_or_default());
    execute(
        url,
        &format!(
            "INSERT INTO mysql.time_zone (Use_leap_seconds) VALUES ('N'); SET @zone = LAST_INSERT_ID();
             INSERT INTO mysql.time_zone_name VALUES ('{zone}', @zone);
             INSERT INTO mysql.time_zone_transition_type VALUES (@zone, 0, 3600, 0, 'CET'), (@zone, 1, 7200, 1, 'CEST');
             INSERT INTO mysql.time_zone_transition VALUES (@zone, 0, 0), (@zone, {}, 1), (@zone, {BACK}, 0)",
            BACK - 210 * 86_400
        ),
    )?;
    let outcome = summer_in(url, &zone, BACK);
    execute(
        url,
        &format!(
            "SET @zone = (SELECT Time_zone_id FROM mysql.time_zone_name WHERE Name = '{zone}');
             DELETE FROM mysql.time_zone_transition WHERE Time_zone_id = @zone;
             DELETE FROM mysql.time_zone_transition_type WHERE Time_zone_id = @zone;
             DELETE FROM mysql.time_zone_name WHERE Time_zone_id = @zone;
             DELETE FROM mysql.time_zone WHERE Time_zone_id = @zone"
        ),
    )?;
    outcome
}

fn summer_in(url: &str, zone: &str, back: u64) -> Result {
    for time in [
        "",
        ", created_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
    ] {
        execute(
            url,
            &format!(
                "CREATE TABLE orders (id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, kind int{time}); INSERT INTO orders (kind) VALUES (0)"
            ),
        )?;
        let times = [back - 5400, back - 1800, back + 1800, back + 5400];
        let write = || -> Result {
            for at in times {
                let kind = at + 10_000 - back;
                execute(
                    url,
                    &format!(
                        "SET time_zone = '{zone}'; SET timestamp = {at}; INSERT INTO orders (kind) VALUES ({kind})"
                    ),
                )?;
            }
            Ok(())
        };
        let check = |key: &str, rows: usize| -> Result {
            let query = format!(
                "SELECT CONV(LEFT(HEX({key}), 12), 16, 10), kind FROM orders WHERE kind > 0"
            );
            let found = block(url, &query)?;
            let is_right = |row: &Vec<String>| {
                let kind: Option<u64> = row[1].parse().ok();
                kind.is_some_and(|it| row[0] == ((back + it - 10_000) * 1000).to_string())
            };
            match found.len() == rows && found.iter().all(is_right) {
                true => Ok(()),
                false => Err(format!("{time}: {found:?}").into()),
            }
        };
        let this = Move::planned(url)?;
        this.apply(&["--no-switch"])?;
        write()?;
        check("ordid_new_id", 4)?;
        this.apply(&["--resume"])?;
        write()?;
        check("id", 8)?;
        this.apply(&["--finish"])?;
        execute(url, "DROP TABLE orders")?;
    }
    Ok(())
}
