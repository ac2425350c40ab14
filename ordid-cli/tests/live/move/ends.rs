//! The end of a move, and plans that were edited.

use libtest_mimic::{Failed, Trial};

use super::{
    hostile::{Move, create, expect, expect_value},
    is_postgres,
};
use crate::place::{Result, Servers, execute, printed};

pub(crate) fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    for server in ["postgres", "mariadb", "mysql"] {
        trials.push(servers.trial(
            server,
            "move::the_end_keeps_a_map_of_old_and_new_keys_if_it_is_asked_to",
            map,
        ));
        trials.push(servers.trial(
            server,
            "move::a_plan_that_was_edited_is_applied_only_if_the_user_says_so",
            edited,
        ));
    }
}

fn map(url: &str) -> Result {
    const PAIRS: &str = "SELECT count(*) FROM orders_ordid_map m JOIN orders o ON o.id = m.new_key WHERE m.old_key = o.kind";
    create(url)?;
    // Each order has its key as its kind.
    let this = Move::new(url)?;
    let shown = printed(&this.plan(), 0)?;
    expect(&shown, "--finish drops the old keys: links with them")?;
    expect(&shown, "orders_ordid_map")?;
    let shown = this.apply(&[])?;
    expect(&shown, "with --keep-map they stay")?;
    expect(&shown, "orders_ordid_map")?;

    // A table of somebody else.
    execute(url, "CREATE TABLE orders_ordid_map (a int)")?;
    let line = this.refused(&["--finish", "--keep-map"], 2)?;
    expect(&line, "orders_ordid_map is there already")?;
    this.apply(&["--rollback"])?;
    expect_value(url, "SELECT count(*) FROM orders_ordid_map", "0")?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    this.refused(&["--finish", "--keep-map"], 2)?;
    execute(url, "DROP TABLE orders_ordid_map")?;

    // A process that is killed while it copies leaves this. It also leaves the table on engines whose DDL is no part of a
    // transaction.
    execute(
        url,
        "UPDATE ordid_move_orders SET phase = 'map', step = 1, place = 0",
    )?;
    if !is_postgres(url) {
        execute(url, "CREATE TABLE orders_ordid_map (old_key bigint)")?;
    }
    expect(&this.refused(&["--rollback"], 2)?, "go on with --finish")?;
    let shown = this.apply(&["--finish"])?;
    expect(&shown, "orders_ordid_map has old and new keys")?;
    expect_value(url, PAIRS, "5")?;
    expect_value(url, "SELECT count(*) FROM orders_ordid_map", "5")?;

    // The end is stopped after the map was made, and nothing else is changed yet.
    let make_again = |all: &str| {
        let cascade = if is_postgres(url) { " CASCADE" } else { "" };
        execute(url, &format!("DROP TABLE {all}remarks, orders{cascade}"))?;
        create(url)
    };
    make_again("orders_ordid_map, ")?;
    let of_table = if is_postgres(url) { "" } else { " ON orders" };
    let go_on = format!("DROP INDEX another{of_table}");
    let stopped = || -> Result<Move> {
        let this = Move::planned(url)?;
        this.apply(&[])?;
        execute(url, "CREATE INDEX another ON orders (ordid_old_id)")?;
        // The map is not made a second time.
        for _ in 0..2 {
            let line = this.refused(&["--finish", "--keep-map"], 2)?;
            expect(&line, "another")?;
        }
        execute(url, &go_on)?;
        Ok(this)
    };
    let shown = stopped()?.apply(&["--rollback"])?;
    expect(&shown, "orders_ordid_map is left, with old and new keys")?;
    execute(url, "DROP TABLE orders_ordid_map")?;
    // The way back is stopped, too, before its first step: the map is not forgotten.
    for (way, expected) in [
        (
            "--rollback",
            "orders_ordid_map is left, with old and new keys",
        ),
        ("--finish", "orders_ordid_map has old and new keys"),
    ] {
        let this = stopped()?;
        execute(
            url,
            "UPDATE ordid_move_orders SET phase = 'back_mapped', step = 0, place = 0",
        )?;
        expect(&this.apply(&[way])?, expected)?;
        make_again("orders_ordid_map, ")?;
    }
    let shown = stopped()?.apply(&["--finish"])?;
    expect(&shown, "orders_ordid_map has old and new keys")?;
    make_again("orders_ordid_map, ")?;
    // It is stopped later, when old keys are gone.
    let this = Move::planned(url)?;
    this.apply(&[])?;
    // Its first step changes nothing. On MySQL and MariaDB the second one enters its place when it has its locks.
    let place = if is_postgres(url) { 0 } else { -1 };
    execute(
        url,
        &format!(
            "CREATE TABLE orders_ordid_map AS SELECT ordid_old_id AS old_key, id AS new_key FROM orders;
             UPDATE ordid_move_orders SET phase = 'mapped', step = 1, place = {place}"
        ),
    )?;
    expect(&this.refused(&["--rollback"], 2)?, "go on with --finish")?;
    let shown = this.apply(&["--finish", "--keep-map"])?;
    expect(&shown, "orders_ordid_map has old and new keys")?;

    // A table of somebody else has the name of the map.
    make_again("orders_ordid_map, ")?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    execute(url, "CREATE TABLE orders_ordid_map (a int)")?;
    let shown = this.apply(&["--finish"])?;
    expect(&shown, "the old keys are gone")?;
    make_again("orders_ordid_map, ")?;

    // Without a map.
    execute(
        url,
        &format!(
            "DROP TABLE remarks, orders{}",
            if is_postgres(url) { " CASCADE" } else { "" }
        ),
    )?;
    create(url)?;
    let this = Move::planned(url)?;
    this.apply(&[])?;
    let shown = this.apply(&["--finish"])?;
    expect(&shown, "the old keys are gone")
}

fn edited(url: &str) -> Result {
    create(url)?;
    let this = Move::planned(url)?;
    let text = std::fs::read_to_string(&this.file)?;
    // Other spaces, and another order, are the same plan.
    let value: serde_json::Value = serde_json::from_str(&text)?;
    std::fs::write(&this.file, serde_json::to_string(&value)?)?;
    this.apply(&["--no-switch"])?;
    this.apply(&["--rollback"])?;

    let change = |from: &str, to: &str| match text.contains(from) {
        true => Ok(std::fs::write(&this.file, text.replace(from, to))?),
        false => Err(Failed::from(format!("no {from} in the plan"))),
    };
    let digest = value["digest"].as_str().ok_or("no digest")?;
    for (from, to) in [
        ("ordid_work_orders", "ordid_jobs_orders"),
        (digest, "0"),
        (&format!(",\n  \"digest\": \"{digest}\""), ""),
    ] {
        change(from, to)?;
        for more in [&[][..], &["--rollback"]] {
            let line = this.refused(more, 2)?;
            expect(&line, "was edited since `ordid plan` wrote it")?;
            expect(&line, "--edited")?;
        }
        this.apply(&["--edited", "--no-switch"])?;
        this.apply(&["--edited", "--rollback"])?;
    }
    Ok(())
}
