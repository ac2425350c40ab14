use super::*;
use crate::{clock::ManualClock, layout::Comparison, storage::Found};

/// 2026-01-01, when each layout has time left but that of Baidu, whose default epoch is over.
const NOW: u64 = 1_767_225_600_000;

fn now() -> Timestamp {
    Timestamp::from_unix_millis(NOW).unwrap()
}

/// A key of each scheme that can be made, and its generator.
fn each(mut then: impl FnMut(&'static Entry, AnyGenerator)) -> usize {
    let mut made = 0;
    for entry in CATALOGUE {
        let clock = Arc::new(ManualClock::at_unix_millis(NOW));
        let generator = match entry.generator(None, clock.clone()) {
            Err(error) if error.to_string().contains("needs the number") => {
                entry.generator(Some(1), clock)
            }
            other => other,
        };
        match generator {
            Ok(_) if entry.name == "baidu_uid" => {}
            Ok(generator) => {
                made += 1;
                then(entry, generator);
            }
            Err(error) => assert!(error.is_unsupported(), "{error}"),
        }
    }
    made
}

#[test]
fn keys_of_each_scheme_survive_text_bytes_and_columns() {
    let made = each(|entry, generator| {
        let key = generator.generate().unwrap();
        assert_eq!(entry.parse(None, &key.to_string()), Ok(key));
        let prefixed = key.text(Some("order"));
        assert_eq!(entry.parse(Some("order"), &prefixed), Ok(key), "{prefixed}");
        assert_eq!(entry.key_of(key.as_bytes()), Ok(key));
        let columns = entry.columns();
        assert!(!columns.is_empty(), "{}", entry.name);
        for column in columns {
            let stored = column.stored(&key).unwrap();
            let found = match entry.raw() {
                RawForm::I64 => Found::Integer(i64::from_be_bytes(stored.try_into().unwrap())),
                RawForm::U64 => Found::Unsigned(u64::from_be_bytes(stored.try_into().unwrap())),
                _ => Found::Bytes(&stored),
            };
            assert_eq!(column.read(entry, found), Ok(key), "{}", column.name);
            let declared = column.primary_key("id");
            assert!(declared.contains(column.sql_type), "{declared}");
        }
    });
    assert_eq!(
        made,
        CATALOGUE.len() - 6,
        "all but names, counters, Medo's and Baidu's"
    );
}

#[test]
fn keys_rise_in_the_columns_that_keep_the_order() {
    each(|entry, generator| {
        let mut keys: Vec<AnyKey> = (0..50).map(|_| generator.generate().unwrap()).collect();
        // Those of a scheme that spreads them rise in each bucket.
        keys.sort_by_key(AnyKey::bucket);
        if entry.orders() == Orders::NONE {
            return;
        }
        assert!(keys.is_sorted(), "{}", entry.name);
        let columns = entry.columns();
        for column in columns.iter().filter(|column| column.keeps_order_of(entry)) {
            let sort_key = |key: &AnyKey| column.sort_key(key).unwrap();
            assert!(
                keys.is_sorted_by_key(sort_key),
                "{} in {}",
                entry.name,
                column.name
            );
        }
    });
}

#[test]
fn ranges_of_a_time_hold_its_keys_and_no_others() {
    let mut with_ranges = 0;
    each(|entry, generator| {
        let second = |seconds: u64| Timestamp::from_unix_millis(NOW + seconds * 1_000).unwrap();
        let Some(ranges) = entry.ranges(now()..second(10)) else {
            assert!(entry.highest_at(now()).is_none());
            return;
        };
        with_ranges += 1;
        let ranges = ranges.unwrap();
        let highest = entry.highest_at(now()).unwrap().unwrap();
        let key = generator.generate().unwrap();
        let holds = |key: &AnyKey| ranges.iter().any(|range| range.contains(key));
        assert!(holds(&key), "{}", entry.name);
        assert!(highest.iter().all(holds), "{}", entry.name);
        assert!(
            highest.iter().any(|highest| key <= *highest),
            "{}",
            entry.name
        );
        let buckets = usize::from(highest.iter().map(AnyKey::bucket).max().unwrap()) + 1;
        assert_eq!(ranges.len(), buckets);
        for range in &ranges {
            assert!(!holds(&range.end), "{}", entry.name);
        }
    });
    assert!(with_ranges > 30, "{with_ranges}");
}

#[test]
fn a_scheme_is_found_by_its_name_with_either_separator() {
    assert_eq!(find("uuid_v7").unwrap().name, "uuid_v7");
    assert_eq!(find("comb-rt-sql").unwrap().name, "comb_rt_sql");
    assert!(find("uuid_v9").is_none());
}

#[test]
fn a_node_that_is_missing_too_large_or_not_wanted_is_refused() {
    let clock = || Arc::new(ManualClock::at_unix_millis(NOW));
    let refused = |name: &str, node| {
        let generator = find(name).unwrap().generator(node, clock());
        generator.unwrap_err().to_string()
    };
    assert_eq!(
        refused("snowflake", None),
        "a generator of snowflake needs the number of its node, which no other generator may have"
    );
    assert_eq!(
        refused("uuid_v7", Some(3)),
        "keys of uuid_v7 have no node, found node 3"
    );
    assert!(refused("uuid_short", Some(256)).contains("256"));
    assert!(refused("newid", Some(1 << 48)).contains("48"));
    assert_eq!(
        refused("sequence", None),
        "keys of sequence are not made by a generator: a store counts them"
    );
}

#[test]
fn a_column_refuses_a_key_that_it_does_not_store() {
    let columns = AnyColumn::all();
    let bigint = columns
        .iter()
        .find(|column| column.name == "bigint")
        .unwrap();
    let key = find("uuid_v7").unwrap();
    let key = key
        .parse(None, "017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
        .unwrap();
    assert_eq!(
        bigint.literal(&key).unwrap_err().to_string(),
        "a `bigint` column of PostgreSQL does not store keys of uuid_v7"
    );
    // As long as another raw key, and of another type.
    let short = find("uuid_short")
        .unwrap()
        .parse(None, "92395783831158784")
        .unwrap();
    assert!(bigint.literal(&short).unwrap_err().is_unsupported());
}

#[test]
fn each_column_of_the_list_is_there_with_its_rule() {
    let columns = AnyColumn::all();
    let guid = columns
        .iter()
        .find(|column| column.name == "unique_identifier")
        .unwrap();
    assert_eq!(
        (guid.dialect, guid.comparison),
        ("SQL Server", Comparison::SqlServer)
    );
    assert!(columns.len() > 40, "{}", columns.len());
}
