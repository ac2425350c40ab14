//! The statements of a unit of work, on H2 in its Oracle mode: an emulation, which tells whether they
//! are SQL and do what they are for. It takes scripts alone, so literals stand for the parameters.

use std::fmt::Write as _;

use libtest_mimic::Trial;
use ordid::{
    KeyType as _,
    storage::{ColumnOn, Dialect, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::{Action, FlushPlan, StoredAs, UnitOfWork, flushes_table};
use ordid_tests::servers::Servers;

use crate::{
    Outcome,
    h2::run,
    h2_trials,
    keys::{NetworkId, generated},
    live::shop::{Customer, Employee, customer, order_of},
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = h2_trials(trials, servers);
    add("rows_are_inserted_updated_and_deleted", changes);
    add("a_circle_is_set_and_unset", circle);
    add("flushes_are_recorded_once", record);
}

/// A key as a literal.
fn literal<K: StoredAs>(key: K) -> String {
    <K::Column as ColumnOn<Oracle>>::literal(key.to_raw())
}

/// A statement with literals in the place of its parameters, which are known by their columns.
fn filled(sql: &str, values: &[(&str, String)]) -> String {
    let mut sql = sql.to_owned();
    let columns: Vec<String> = match sql.split_once(") VALUES (") {
        Some((head, _)) => {
            let (_, names) = head.split_once('(').expect("names of columns");
            names.split(", ").map(str::to_owned).collect()
        }
        None => Vec::new(),
    };
    for (column, value) in values {
        let name = Oracle::quote(column);
        match columns.iter().position(|it| *it == name) {
            Some(position) => sql = replaced(&sql, &format!(":{}", position + 1), value),
            None => {
                let assigned = format!("{name} = ");
                let (_, behind) = sql
                    .split_once(&assigned)
                    .expect("a column of the statement");
                let end = behind.find([',', ' ']).unwrap_or(behind.len());
                let parameter = behind[..end].to_owned();
                sql = replaced(&sql, &parameter, value);
            }
        }
    }
    assert!(!sql.contains(':'), "a parameter is left: {sql}");
    sql + ";\n"
}

fn replaced(sql: &str, parameter: &str, value: &str) -> String {
    assert_eq!(sql.matches(parameter).count(), 1, "{parameter} of {sql}");
    sql.replace(parameter, value)
}

/// The one statement of an action on a table.
fn of<'p>(plan: &'p FlushPlan, action: Action, table: &str) -> &'p str {
    let mut found = plan.tables.iter();
    let found = found.find(|it| (it.action, it.table) == (action, table));
    &found.expect("a statement").statements[0].sql
}

fn row_of(customer: &Customer) -> Vec<(&'static str, String)> {
    let credit = customer.credit.map_or("NULL".into(), |it| it.to_string());
    vec![
        ("id", literal(customer.id)),
        ("name", format!("'{}'", customer.name)),
        ("credit", credit),
    ]
}

/// Names that must be quoted, a foreign key that is checked, NULL and a value in its place.
fn changes(url: &str) -> Outcome {
    let (old, stays, new) = (customer("old"), customer("stays"), customer("new"));
    let mut order = order_of(old.id, 7);
    let mut script = "
        CREATE TABLE \"ordid customers\" (\"id\" RAW(16) NOT NULL PRIMARY KEY,
            \"name\" VARCHAR2(100) NOT NULL, \"credit\" NUMBER(19));
        CREATE TABLE \"ordid order\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"customer\" RAW(16) NOT NULL
            REFERENCES \"ordid customers\" (\"id\"), \"group\" NUMBER(10) NOT NULL);\n"
        .to_owned();
    let mut work = UnitOfWork::new();
    work.add(old.clone());
    work.add(stays.clone());
    work.add(order.clone());
    let plan = work.plan()?;
    for row in [&old, &stays] {
        let sql = of(&plan, Action::Insert, "ordid customers");
        script += &filled(sql, &row_of(row));
    }
    let row_of_order = |order: &crate::live::shop::Order| {
        vec![
            ("id", literal(order.id)),
            ("customer", literal(order.customer)),
            ("group", order.kind.to_string()),
        ]
    };
    script += &filled(
        of(&plan, Action::Insert, "ordid order"),
        &row_of_order(&order),
    );

    let mut work = UnitOfWork::new();
    let mut changed = stays.clone();
    (changed.name, changed.credit) = ("changed".into(), Some(-5));
    order.customer = work.add(new.clone());
    order.kind = 8;
    work.update(changed.clone());
    work.update(order.clone());
    work.delete(&old);
    let plan = work.plan()?;
    let turns: Vec<_> = plan.tables.iter().map(|it| (it.action, it.table)).collect();
    assert_eq!(
        turns,
        [
            (Action::Insert, "ordid customers"),
            (Action::Update, "ordid customers"),
            (Action::Update, "ordid order"),
            (Action::Delete, "ordid customers"),
        ]
    );
    script += &filled(of(&plan, Action::Insert, "ordid customers"), &row_of(&new));
    script += &filled(
        of(&plan, Action::Update, "ordid customers"),
        &row_of(&changed),
    );
    script += &filled(
        of(&plan, Action::Update, "ordid order"),
        &row_of_order(&order),
    );
    let delete = of(&plan, Action::Delete, "ordid customers");
    script += &filled(delete, &[("id", literal(old.id))]);
    script +=
        "SELECT RAWTOHEX(\"id\"), \"name\", \"credit\" FROM \"ordid customers\" ORDER BY \"id\";
        SELECT RAWTOHEX(\"id\"), RAWTOHEX(\"customer\"), \"group\" FROM \"ordid order\";";
    let read = run(url, &script)?;
    let hex = |raw: Uuid| raw.simple().to_string();
    let mut wanted: Vec<_> = [&changed, &new]
        .map(|it| {
            let credit = it.credit.map_or("null".into(), |it| it.to_string());
            format!("{} {} {credit}", hex(it.id.to_raw()), it.name)
        })
        .into();
    let (id, customer) = (order.id.to_raw(), order.customer.to_raw());
    wanted.push(format!("{} {} 8", hex(id), hex(customer)));
    assert_eq!(read, wanted);

    // A parent that is still referred to, to see that this is asked.
    let delete = filled(delete, &[("id", literal(new.id))]);
    let error = run(url, &delete).unwrap_err().to_string();
    assert!(error.contains("constraint violation"), "{error}");
    Ok(())
}

/// Two rows refer to each other: one goes in with NULL, which is set; before they go it is NULL again.
fn circle(url: &str) -> Outcome {
    let ids: Vec<NetworkId> = generated(2);
    let (first, second) = (ids[0], ids[1]);
    let mut work = UnitOfWork::new();
    let mut gone = UnitOfWork::new();
    for (id, boss) in [(first, second), (second, first)] {
        let boss = Some(boss);
        gone.delete(&Employee { id, boss });
        work.add(Employee { id, boss });
    }
    let (plan, gone) = (work.plan()?, gone.plan()?);
    let mut script = "
        CREATE TABLE \"ordid employee\" (\"id\" RAW(16) NOT NULL PRIMARY KEY, \"boss\" RAW(16)
            REFERENCES \"ordid employee\" (\"id\"));\n"
        .to_owned();
    let row = |id, boss: Option<NetworkId>| {
        let boss = boss.map_or("NULL".to_owned(), literal);
        [("id", literal(id)), ("boss", boss)]
    };
    let insert = of(&plan, Action::Insert, "ordid employee");
    script += &filled(insert, &row(first, None));
    script += &filled(insert, &row(second, Some(first)));
    let fix_up = of(&plan, Action::FixUp { parent: 0 }, "ordid employee");
    script += &filled(fix_up, &row(first, Some(second)));
    let select =
        "SELECT RAWTOHEX(\"id\"), RAWTOHEX(\"boss\") FROM \"ordid employee\" ORDER BY \"id\";\n";
    script += select;
    let unlink = of(&gone, Action::Unlink { parent: 0 }, "ordid employee");
    let delete = of(&gone, Action::Delete, "ordid employee");
    for (sql, id) in [(unlink, first), (delete, second), (delete, first)] {
        script += &filled(sql, &[("id", literal(id))]);
    }
    script += select;
    let hex = |key: NetworkId| key.to_raw().simple().to_string();
    let pair = |id, boss| format!("{} {}", hex(id), hex(boss));
    let wanted = [pair(first, second), pair(second, first)];
    assert_eq!(run(url, &script)?, wanted, "and nothing in the end");
    Ok(())
}

/// The table is as declared, and takes a flush's key once.
fn record(url: &str) -> Outcome {
    let id = literal(NetworkId::generate());
    let mut script = format!("{};\n", flushes_table());
    let insert = format!("INSERT INTO ordid_flushes (id) VALUES ({id});");
    writeln!(script, "{insert}")?;
    writeln!(script, "SELECT 1 FROM ordid_flushes WHERE id = {id};")?;
    let of_a_day = "DELETE FROM ordid_flushes WHERE flushed_at < SYSTIMESTAMP - INTERVAL '1' DAY;";
    writeln!(script, "{of_a_day}")?;
    writeln!(script, "SELECT COUNT(*) FROM ordid_flushes;")?;
    assert_eq!(run(url, &script)?, ["1", "1"]);
    let error = run(url, &insert).unwrap_err().to_string();
    assert!(error.contains("primary key violation"), "{error}");
    Ok(())
}
