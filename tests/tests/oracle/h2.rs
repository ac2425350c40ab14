//! H2 in its Oracle mode: an emulation. It tells whether the SQL that ordid writes is SQL, and that
//! `sort_key` is the order of values compared byte by byte or as numbers. That Oracle compares so is
//! said by its manual and shown only by the live tests.

use std::fmt::Write as _;

use libtest_mimic::Trial;
use ordid::{
    KeyType,
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, OrderedGenerator, Policy},
    scheme::SequentialGuidAsBinary,
    storage::{ColumnOn, Dialect, Found, StoredValue, Stores, dialect::Oracle},
    uuid::Uuid,
};
use ordid_oracle::StoredAs;
use ordid_tests::{
    dotnet::{self, NEWEST, StoredGuid},
    servers::Servers,
    snippets::{self, Tables},
};

use crate::{
    Outcome,
    keys::{DotNetId, NetworkId, each_column_keeps_order, edges},
    server_trial,
};

/// More in one statement takes H2 longer for each.
const ROWS_PER_STATEMENT: usize = 50;

pub fn trials(servers: &Servers, trials: &mut Vec<Trial>) {
    let mut add = |name: &str, test: fn(&str) -> Outcome| {
        let name = format!("h2_emulates_oracle::{name}");
        server_trial(trials, servers, "h2", &name, test);
    };
    each_column_keeps_order! { add, order }
    add("a_key_is_there_once", duplicates);
    add("the_sql_of_the_guide_runs", sql_of_the_guide);
    add("a_dotnet_table_of_raw16_goes_on", goes_on);
}

/// The rows of a script's queries, in the Oracle mode.
pub fn run(url: &str, script: &str) -> Result<Vec<String>, ordid_harness::Error> {
    ordid_harness::h2_script(&format!("{url};MODE=Oracle"), script)
}

/// `ORDER BY` of generated keys is their order and that of their sort keys, however they were
/// inserted; so it is of the values at the column's edges; and what is read is what was stored.
fn order<K>(url: &str, keys: Vec<K>) -> Outcome
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
/// Executes every block of the guide's page. A table with a foreign key then takes rows, has them in the order of their
/// keys, and refuses one without a parent.
fn sql_of_the_guide(url: &str) -> Outcome {
    for snippet in snippets::of_engine("oracle")? {
        let tables = snippet.tables();
        let mut script: Vec<String> = tables.iter().map(Tables::create_parent).collect();
        script.extend(snippet.statements());
        let Some(tables) = tables else {
            run(url, &(script.join(";\n") + ";"))?;
            continue;
        };
        let keys: Vec<Uuid> = (0..3).map(|_| Uuid::generate()).collect();
        script.extend(tables.insert(&[keys[2], keys[0], keys[1]]));
        script.extend(
            keys.iter()
                .map(|key| format!("SELECT COUNT(*) FROM {}", tables.below(*key))),
        );
        assert_eq!(run(url, &(script.join(";\n") + ";"))?, ["0", "1", "2"]);
        let orphan = tables.insert_orphan(Uuid::generate());
        assert!(run(url, &format!("{orphan};")).is_err(), "{orphan}");
    }
    Ok(())
}

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

/// `Guid.ToByteArray` in a `RAW(16)`, as .NET programs store SequentialGuid's keys: `ORDER BY` gives
/// them first, then those that a generator with a clock behind makes, in the order it made them.
fn goes_on(url: &str) -> Outcome {
    type Column = <DotNetId as StoredAs>::Column;
    let clock = ManualClock::at_unix_millis(NEWEST - 5_000);
    let generator = OrderedGenerator::<SequentialGuidAsBinary, _, _>::with_node(
        (),
        &clock,
        SeededEntropy::new(1),
        Policy::DEFAULT,
    );
    let mut script = "CREATE TABLE \"net\" (\"id\" RAW(16) PRIMARY KEY);\n".to_owned();
    let mut stored = dotnet::stored::<SequentialGuidAsBinary>("abp_AsBinary");
    for key in &stored {
        writeln!(
            script,
            "INSERT INTO \"net\" VALUES (HEXTORAW('{}'));",
            hex(&key.bytes)
        )?;
    }
    writeln!(script, "SELECT RAWTOHEX(MAX(\"id\")) FROM \"net\";")?;
    let newest: Uuid = run(url, &script)?.concat().parse()?;
    let newest = DotNetId::from_raw(Column::decode(newest.as_bytes())?)?;
    let last = stored.iter().find(|key| key.unix_millis == NEWEST);
    assert_eq!(Some(newest.to_raw()), last.map(StoredGuid::guid));

    generator.start_above(&newest.to_raw())?;
    stored.sort_by_key(|key| key.bytes);
    let mut expected: Vec<String> = stored.iter().map(|key| hex(&key.bytes)).collect();
    let mut script = String::new();
    for time in [NEWEST - 5_000, NEWEST, NEWEST + 60_000] {
        clock.set_unix_millis(time);
        for _ in 0..500 {
            let key: DotNetId = generator.try_generate_key()?;
            let literal = <Column as ColumnOn<Oracle>>::literal(key.to_raw());
            // The last is inserted first.
            script.insert_str(0, &format!("INSERT INTO \"net\" VALUES ({literal});\n"));
            expected.push(hex(&Column::encode(key.to_raw())));
        }
    }
    script.push_str("SELECT RAWTOHEX(\"id\") FROM \"net\" ORDER BY \"id\";");
    assert!(run(url, &script)? == expected);
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
