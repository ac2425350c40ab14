//! H2 in its Oracle mode: an emulation. It tells whether the SQL that ordid writes is SQL, and that
//! `sort_key` is the order of values compared byte by byte or as numbers. That Oracle compares so is
//! said by its manual and shown only by the live tests.

use std::fmt::Write as _;

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    storage::{ColumnOn, Dialect, Found, StoredValue, Stores, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::StoredAs;
use ordid_tests::servers::Servers;

use crate::{
    Outcome,
    keys::{
        DocumentId, DotNetId, LongId, NetworkId, SignedId, UnsignedId, edges, generated, signed,
        unsigned,
    },
    server_trial,
};

const KEYS: usize = 100_000;
/// More in one statement takes H2 longer for each.
const ROWS_PER_STATEMENT: usize = 50;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn(&str) -> Outcome| {
        let name = format!("h2_emulates_oracle::{name}");
        server_trial(trials, servers, "h2", &name, test);
    };
    add("raw16_keeps_order", |url| {
        order::<NetworkId>(url, &generated(KEYS))
    });
    add("raw16_dotnet_keeps_order", |url| {
        order::<DotNetId>(url, &generated(KEYS))
    });
    add("raw12_keeps_order", |url| {
        order::<DocumentId>(url, &generated(KEYS))
    });
    add("raw24_keeps_order", |url| {
        order::<LongId>(url, &generated(KEYS))
    });
    add("number19_keeps_order", |url| {
        order::<SignedId>(url, &signed(KEYS))
    });
    add("number20_keeps_order", |url| {
        order::<UnsignedId>(url, &unsigned(KEYS))
    });
    add("a_key_is_there_once", duplicates);
}

/// The rows of a script's queries, in the Oracle mode.
fn run(url: &str, script: &str) -> Result<Vec<String>, ordid_harness::Error> {
    ordid_harness::h2_script(&format!("{url};MODE=Oracle"), script)
}

/// `ORDER BY` of generated keys is their order and that of their sort keys, however they were
/// inserted; so it is of the values at the column's edges; and what is read is what was stored.
fn order<K>(url: &str, keys: &[K]) -> Outcome
where
    K: StoredAs,
{
    assert!(
        keys.is_sorted_by(|left, right| left < right),
        "keys rise as they are made"
    );
    let mut raws: Vec<K::Raw> = keys.iter().map(|key| key.to_raw()).collect();
    raws.extend(edges::<K::Raw>());
    let mut shuffled: Vec<usize> = (0..raws.len()).collect();
    shuffle(&mut shuffled);

    let table = Oracle::quote(K::NAME);
    let mut script = format!(
        "CREATE TABLE {table} ({}, \"position\" NUMBER(10) NOT NULL);\n",
        <K::Column as ColumnOn<Oracle>>::primary_key("id")
    );
    for positions in shuffled.chunks(ROWS_PER_STATEMENT) {
        // As Oracle takes many rows: several `VALUES` only from 23ai on.
        let rows: Vec<_> = positions
            .iter()
            .map(|&position| {
                let literal = <K::Column as ColumnOn<Oracle>>::literal(raws[position]);
                format!("SELECT {literal}, {position} FROM dual")
            })
            .collect();
        let rows = rows.join(" UNION ALL ");
        writeln!(script, "INSERT INTO {table} (\"id\", \"position\") {rows};")?;
    }
    let is_bytes = matches!(K::Column::encode(raws[0]).found(), Found::Bytes(_));
    let own = if is_bytes {
        "RAWTOHEX(\"id\")"
    } else {
        "\"id\""
    };
    writeln!(
        script,
        "SELECT {own}, \"position\" FROM {table} ORDER BY \"id\";"
    )?;
    let rows = run(url, &script)?;
    assert_eq!(rows.len(), raws.len());

    let mut expected: Vec<usize> = (0..raws.len()).collect();
    expected.sort_by_key(|&position| K::Column::sort_key(raws[position]));
    for (row, position) in rows.iter().zip(&expected) {
        let found = match K::Column::encode(raws[*position]).found() {
            Found::Bytes(bytes) => hex(bytes),
            Found::Integer(integer) => integer.to_string(),
            Found::Unsigned(integer) => integer.to_string(),
            _ => unreachable!("no other form"),
        };
        assert_eq!(*row, format!("{found} {position}"));
    }
    // The keys among them rise as they were made.
    let read = rows.iter().map(|row| row.rsplit(' ').next().unwrap_or(""));
    let read: Vec<usize> = read.map(str::parse).collect::<Result<_, _>>()?;
    let read = read.into_iter().filter(|position| *position < keys.len());
    assert!(read.eq(0..keys.len()));
    Ok(())
}

/// The constraint is a primary key's, and the literal of a key finds it.
fn duplicates(url: &str) -> Outcome {
    let id = NetworkId::generate().to_raw();
    type Column = <NetworkId as StoredAs>::Column;
    let key = <Column as ColumnOn<Oracle>>::primary_key("id");
    let literal = <Column as ColumnOn<Oracle>>::literal(id);
    let insert = format!("INSERT INTO \"once\" (\"id\") VALUES ({literal});");
    let found = run(
        url,
        &format!(
            "CREATE TABLE \"once\" ({key}); {insert}
             SELECT COUNT(*) FROM \"once\" WHERE \"id\" = {literal};"
        ),
    )?;
    assert_eq!(found, ["1"]);
    let error = run(url, &insert).unwrap_err().to_string();
    assert!(error.contains("primary key violation"), "{error}");
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shuffle<T>(rows: &mut [T]) {
    // Fisher and Yates, by random keys: no generator is wanted for the tests alone.
    for last in (1..rows.len()).rev() {
        let random = Uuid::new_v4().as_u128() % (last as u128 + 1);
        rows.swap(last, usize::try_from(random).expect("below a length"));
    }
}
