//! Oracle itself, where `ORDID_TEST_ORACLE_URL` names one: `oracle://user:password@host:1521/service`.
//! The user needs the right to create tables; each test drops its own.

mod changes;
mod flush;
pub mod shop;

use libtest_mimic::Trial;
use oracle::{Connection, sql_type::FromSql};
use ordid::{
    KeyType as _,
    storage::{ColumnOn, Dialect, Found, StoredValue, Stores, column, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::{Stored, StoredAs};
use ordid_tests::{login, servers::Servers, snippets};

use crate::{
    Outcome,
    keys::{each_column_keeps_order, edges},
    server_trial,
};

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn(&Connection) -> Outcome| {
        let name = format!("oracle::{name}");
        server_trial(trials, servers, "oracle", &name, move |url| {
            test(&login::oracle(url)??)
        });
    };
    each_column_keeps_order! { add, order }
    add("raw16_is_what_uuid_to_raw_returns", uuid_to_raw);
    add("parents_first_in_chunks", flush::parents_first_in_chunks);
    add("failure_names_the_row", flush::failure_names_the_row);
    add("missing_parent", flush::a_missing_parent_is_told);
    add("open_transaction", flush::an_open_transaction_is_respected);
    add("tree", flush::a_tree_in_one_table_goes_in_root_first);
    add("all_in_one_flush", changes::all_in_one_flush);
    add("missing_row", changes::a_missing_row_is_named);
    add("circles", changes::circles_are_fixed_up_and_parted);
    add("deletes", changes::a_tree_goes_leaves_first);
    add("deferred", changes::deferred_keys_are_checked_at_commit);
    add("the_sql_of_the_guide_runs", sql_of_the_guide);
    let mut add = |name: &str, test: fn(&str) -> Outcome| {
        let name = format!("oracle::{name}");
        server_trial(trials, servers, "oracle", &name, test);
    };
    add("dead_connection", changes::a_dead_connection_is_replaced);
    add("waits", changes::a_key_that_another_holds_is_waited_for);
}

/// Executes every block of the guide's page. A table with a foreign key then takes rows, has them in the order of their
/// keys, and refuses one without a parent. The user must not have tables of these names.
fn sql_of_the_guide(connection: &Connection) -> Outcome {
    let outcome = run_sql_of_the_guide(connection);
    for table in ["\"ORDERS\"", "\"CUSTOMERS\"", "\"ordid_nodes\""] {
        let _ = connection.execute(&format!("DROP TABLE {table} PURGE"), &[]);
    }
    outcome
}

fn run_sql_of_the_guide(connection: &Connection) -> Outcome {
    for snippet in snippets::of_engine("oracle")? {
        let tables = snippet.tables();
        if let Some(tables) = &tables {
            connection.execute(&tables.create_parent(), &[])?;
        }
        for statement in snippet.statements() {
            connection.execute(&statement, &[])?;
        }
        let Some(tables) = tables else {
            continue;
        };
        let keys: Vec<Uuid> = (0..3).map(|_| Uuid::generate()).collect();
        for statement in tables.insert(&[keys[2], keys[0], keys[1]]) {
            connection.execute(&statement, &[])?;
        }
        for (below, key) in keys.iter().enumerate() {
            let sql = format!("SELECT COUNT(*) FROM {}", tables.below(*key));
            let found = connection.query_row_as::<i64>(&sql, &[])?;
            assert_eq!(found, i64::try_from(below)?);
        }
        let orphan = tables.insert_orphan(Uuid::generate());
        assert!(connection.execute(&orphan, &[]).is_err(), "{orphan}");
    }
    Ok(())
}

/// A table of a name that no other run has; dropped at the end.
struct Scratch<'c> {
    connection: &'c Connection,
    name: String,
}

impl<'c> Scratch<'c> {
    fn new(connection: &'c Connection, what: &str, columns: &str) -> Result<Self, oracle::Error> {
        let name = format!("ordid_{what}_{}", std::process::id());
        let sql = format!("CREATE TABLE {} ({columns})", Oracle::quote(&name));
        connection.execute(&sql, &[])?;
        Ok(Self { connection, name })
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let sql = format!(
            "DROP TABLE {} CASCADE CONSTRAINTS PURGE",
            Oracle::quote(&self.name)
        );
        let _ = self.connection.execute(&sql, &[]);
    }
}

/// As the test of the same name in H2, with array binds, and read as keys.
fn order<K>(connection: &Connection, keys: Vec<K>) -> Outcome
where
    K: StoredAs + FromSql + oracle::sql_type::ToSql,
{
    let declared = <K::Column as ColumnOn<Oracle>>::primary_key("id");
    let columns = format!("{declared}, \"position\" NUMBER(10) NOT NULL");
    let table = Scratch::new(connection, K::NAME, &columns)?;
    let name = Oracle::quote(&table.name);
    let insert = format!("INSERT INTO {name} (\"id\", \"position\") VALUES (:1, :2)");
    let mut batch = connection.batch(&insert, 1_000).build()?;
    // Neither rising nor falling.
    let mut shuffled: Vec<usize> = (0..keys.len()).collect();
    shuffled.sort_by_key(|position| Uuid::new_v4().as_u128() ^ *position as u128);
    for position in shuffled {
        batch.append_row(&[&keys[position], &i64::try_from(position)?])?;
    }
    batch.execute()?;
    drop(batch);

    let select = format!("SELECT \"id\", \"position\" FROM {name} ORDER BY \"id\"");
    let mut count = 0;
    for row in connection.query_as::<(K, usize)>(&select, &[])? {
        let (key, position) = row?;
        assert_eq!((key, position), (keys[count], count));
        count += 1;
    }
    assert_eq!(count, keys.len());

    // Values at the column's edges, by literals: in the order of their sort keys.
    connection.execute(&format!("DELETE FROM {name}"), &[])?;
    let mut raws = edges::<K::Raw>();
    for (position, raw) in raws.iter().enumerate() {
        let literal = <K::Column as ColumnOn<Oracle>>::literal(*raw);
        let insert =
            format!("INSERT INTO {name} (\"id\", \"position\") VALUES ({literal}, {position})");
        connection.execute(&insert, &[])?;
    }
    let mut expected: Vec<usize> = (0..raws.len()).collect();
    expected.sort_by_key(|&position| K::Column::sort_key(raws[position]));
    let select = format!("SELECT \"position\" FROM {name} ORDER BY \"id\"");
    let read: Vec<usize> = connection
        .query_as(&select, &[])?
        .collect::<Result<_, _>>()?;
    assert_eq!(read, expected);
    // What the database says a value is.
    let raw = raws.swap_remove(1);
    let (own, text) = match K::Column::encode(raw).found() {
        Found::Bytes(bytes) => (
            "RAWTOHEX(\"id\")",
            bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        ),
        Found::Integer(integer) => ("TO_CHAR(\"id\")", integer.to_string()),
        Found::Unsigned(integer) => ("TO_CHAR(\"id\")", integer.to_string()),
        _ => unreachable!("no other form"),
    };
    let select = format!("SELECT {own} FROM {name} WHERE \"position\" = 1");
    assert_eq!(connection.query_row_as::<String>(&select, &[])?, text);
    connection.rollback()?;
    Ok(())
}

/// `raw16` is the text's digits as bytes, and so from 23ai on what the database's own function makes
/// of the text.
fn uuid_to_raw(connection: &Connection) -> Outcome {
    let mut expressions = vec!["HEXTORAW(REPLACE(:1, '-'))"];
    let (version, _) = connection.server_version()?;
    if version.major() >= 23 {
        expressions.push("UUID_TO_RAW(:1)");
    }
    let key = Uuid::generate();
    for expression in expressions {
        let select = format!("SELECT {expression} FROM dual");
        let read: Stored<Uuid, column::Raw16> =
            connection.query_row_as(&select, &[&key.to_string()])?;
        assert_eq!(read.into_key(), key, "{expression}");
    }
    Ok(())
}
