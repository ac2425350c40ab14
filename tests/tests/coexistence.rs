//! A table of SQL Server that a .NET program filled: its keys are read and continued by key types.
//!
//! No SQL Server takes part: the order is that of .NET's `SqlGuid`, whose bytes the vectors name and
//! which is, by Microsoft's documentation, the engine's.

use std::fmt::Debug;

use ordid::{
    KeyType,
    clock::ManualClock,
    entropy::SeededEntropy,
    generator::{Generator, OrderedGenerator, Policy, Slotted},
    scheme::{CombEfCore, CombNHibernate, CombRtSql, SequentialGuidAtEnd, UuidV8SqlServer},
    uuid::Uuid,
};
use ordid_tests::dotnet::{self, NEWEST};
use tiberius::{ColumnData, FromSql, ToSql};

macro_rules! key_types {
    ($($key:ident = $scheme:ident;)+) => {
        $(
            #[derive(KeyType)]
            #[ordid(scheme = $scheme, tiberius(sql_server = unique_identifier))]
            struct $key(Uuid);
        )+
    };
}

key_types! {
    EfCore = comb_efcore;
    NHibernate = comb_nhibernate;
    RtLegacy = comb_rt_legacy;
    RtSql = comb_rt_sql;
    AtEnd = sequential_guid_at_end;
    UuidNext = uuid_v8_sql_server;
    MassTransit = newid;
}

trait Column: KeyType<Raw = Uuid> + ToSql + for<'a> FromSql<'a> + Debug {}

impl<K: KeyType<Raw = Uuid> + ToSql + for<'a> FromSql<'a> + Debug> Column for K {}

/// What is in the table once tiberius has swapped the groups.
fn write<K: Column>(key: K) -> [u8; 16] {
    match key.to_sql() {
        ColumnData::Guid(Some(value)) => value.to_bytes_le(),
        other => panic!("{other:?}"),
    }
}

fn read<K: Column>(bytes: [u8; 16]) -> Result<K, tiberius::error::Error> {
    let value = ColumnData::Guid(Some(Uuid::from_bytes_le(bytes)));
    K::from_sql(&value).map(|key| key.expect("not NULL"))
}

/// Five seconds behind the newest key's.
fn behind() -> ManualClock {
    ManualClock::at_unix_millis(NEWEST - 5_000)
}

fn generator<S: Slotted>(
    node: S::Node,
    clock: &ManualClock,
) -> OrderedGenerator<S, &ManualClock, SeededEntropy> {
    OrderedGenerator::with_node(node, clock, SeededEntropy::new(1), Policy::DEFAULT)
}

/// The original's keys, in the order of SQL Server.
fn table<K: KeyType<Raw = Uuid>>(kind: &str) -> Vec<[u8; 16]> {
    let stored = dotnet::stored::<K::Scheme>(kind);
    let mut bytes: Vec<_> = stored.iter().map(|key| key.bytes).collect();
    dotnet::sort_as_sql_guid(&mut bytes);
    let last = stored.iter().find(|key| key.unix_millis == NEWEST);
    assert_eq!(
        bytes.last(),
        last.map(|key| &key.bytes),
        "the newest is last"
    );
    bytes
}

/// `ORDER BY` gives the original's keys, then the generated ones in the order they were made.
fn continues<K: Column<Scheme: Slotted>>(kind: &str, node: <K::Scheme as Slotted>::Node) {
    let old = table::<K>(kind);
    for bytes in &old {
        assert_eq!(write(read::<K>(*bytes).unwrap()), *bytes, "{kind}");
    }
    let newest: K = read(old[old.len() - 1]).unwrap();

    let clock = behind();
    let careless = generator::<K::Scheme>(node, &clock);
    assert!(
        careless.try_generate_key::<K>().unwrap() < newest,
        "{kind}: the clock alone is below"
    );

    let generator = generator::<K::Scheme>(node, &clock);
    generator.start_above(&newest.to_raw()).unwrap();
    let mut expected = old.clone();
    for time in [NEWEST - 5_000, NEWEST, NEWEST + 60_000] {
        clock.set_unix_millis(time);
        for _ in 0..3_000 {
            expected.push(write(generator.try_generate_key::<K>().unwrap()));
        }
    }
    let mut rows = expected.clone();
    // Not how they were made, nor how they end.
    rows.sort_unstable();
    assert_ne!(rows, expected, "{kind}");
    dotnet::sort_as_sql_guid(&mut rows);
    assert_eq!(rows.len(), old.len() + 9_000);
    assert!(rows == expected, "{kind}");
}

#[test]
fn a_table_of_ef_core_goes_on() {
    continues::<EfCore>("efcore_sequential", ());
}

#[test]
fn a_table_of_nhibernate_goes_on() {
    continues::<NHibernate>("nhibernate_guid_comb", ());
}

#[test]
fn tables_of_rt_comb_go_on() {
    continues::<RtLegacy>("rtcomb_legacy", ());
    continues::<RtSql>("rtcomb_unix_Sql", ());
}

#[test]
fn a_table_of_sequential_guid_at_end_goes_on() {
    continues::<AtEnd>("abp_AtEnd", ());
}

#[test]
fn a_table_of_uuid_next_goes_on() {
    continues::<UuidNext>("uuidnext_v8_sqlserver", ());
}

#[test]
fn a_table_of_newid_goes_on() {
    continues::<MassTransit>("newid_nextguid", [2, 3, 5, 7, 11, 13]);
}

/// Most of these tables hold version 4: what then tells the originals apart is the time.
#[test]
fn a_generator_of_another_originals_scheme_refuses_to_start_above() {
    fn starts<S: Slotted<Node = (), Raw = Uuid>>(newest: &Uuid) -> Result<(), ordid::Error> {
        generator::<S>((), &behind()).start_above(newest)
    }
    let tables = [
        table::<EfCore>("efcore_sequential"),
        table::<NHibernate>("nhibernate_guid_comb"),
        table::<RtSql>("rtcomb_unix_Sql"),
        table::<AtEnd>("abp_AtEnd"),
        table::<UuidNext>("uuidnext_v8_sqlserver"),
    ];
    let starts = [
        starts::<CombEfCore>,
        starts::<CombNHibernate>,
        starts::<CombRtSql>,
        starts::<SequentialGuidAtEnd>,
        starts::<UuidV8SqlServer>,
    ];
    for (table, keys) in tables.iter().enumerate() {
        let newest = Uuid::from_bytes_le(keys[keys.len() - 1]);
        for (scheme, starts) in starts.iter().enumerate() {
            let started = starts(&newest);
            assert_eq!(started.is_ok(), table == scheme, "{newest}: {started:?}");
        }
    }
    // These have one layout.
    let rt = table::<RtLegacy>("rtcomb_legacy");
    assert!(starts[1](&Uuid::from_bytes_le(rt[rt.len() - 1])).is_ok());
}

/// A key type refuses what only looks like the original's: here version 1 in a table of EF Core.
#[test]
fn a_row_of_no_original_is_refused_when_it_is_read() {
    let error =
        read::<EfCore>(*b"\x93\x33\xa9\xa2\xdc\xc8\xe7\x11\xb1\x33\x2c\x56\xdc\x49\x7a\x97");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("comb_efcore"), "{error}");
}
