use super::*;
use crate::scheme::testing::*;

fn meets_vectors<S: Layout<Raw = Uuid, Parts = UnixParts>>(kind: &str, first: usize) {
    for vector in vectors_of_kind(kind, 13) {
        let Vector { unix_millis, .. } = vector;
        let parts = UnixParts {
            unix_ts_ms: unix_millis.unwrap(),
            guid: vector.random(first),
        };
        meets::<S>(&vector, parts);
    }
}

#[test]
fn keys_are_those_of_the_original() {
    meets_vectors::<CombRtSql>("rtcomb_unix_Sql", 0);
    meets_vectors::<CombRtPostgreSql>("rtcomb_unix_PostgreSql", 6);
    meets_vectors::<CombRtBinary>("rtcomb_unix_Binary", 6);
}

#[test]
fn rt_comb_5_and_9_keys_of_a_loop_rise_without_a_time_of_their_own() {
    fn of_a_loop<S: Slotted<Node = (), Raw = Uuid>>() {
        let keys = many(&scripted::<S>(), 70_000);
        for rule in Comparison::ALL {
            if S::ORDERS.contains(rule) {
                assert_eq!(descents(rule, &keys), 0);
            }
        }
        // Not 4 ms ahead a key: all in the clock's millisecond.
        assert!(
            keys.iter()
                .all(|key| S::timestamp(key) == S::timestamp(&keys[0]))
        );
    }
    of_a_loop::<CombRtSql>();
    of_a_loop::<CombRtPostgreSql>();
    of_a_loop::<CombRtBinary>();
}

#[test]
fn one_key_has_its_time_in_each_place() {
    let parts = UnixParts {
        unix_ts_ms: 0x0161_2348_5b40,
        guid: [0x66, 0xfb, 0x54, 0xf1, 0x3c, 0xab, 0x26, 0x40, 0x8b, 0xe0],
    };
    let text = |key: Result<Uuid, Error>| key.unwrap().to_string();
    assert_eq!(
        text(CombRtSql::pack(parts)),
        "f154fb66-ab3c-4026-8be0-016123485b40"
    );
    assert_eq!(
        text(CombRtPostgreSql::pack(parts)),
        "01612348-5b40-fb66-54f1-3cab26408be0"
    );
    assert_eq!(
        text(CombRtBinary::pack(parts)),
        "48236101-405b-fb66-54f1-3cab26408be0"
    );
}

#[test]
fn times_of_49_bits_are_refused() {
    let parts = |unix_ts_ms| UnixParts {
        unix_ts_ms,
        guid: [0x40; 10],
    };
    assert!(CombRtSql::pack(parts((1 << 48) - 1)).is_ok());
    does_not_fit::<CombRtSql, _>([(parts(1 << 48), "unix_ts_ms 281474976710656", 48)]);
}

#[test]
fn keys_of_the_original_are_within_the_bounds_of_their_time() {
    // All bits of the original are random, those that ordid keeps zero too.
    let highest: Uuid = "ffffffff-ffff-4fff-bfff-016123485b40".parse().unwrap();
    let at = CombRtSql::timestamp(&highest).unwrap();
    assert_eq!(CombRtSql::bounds_at(at).unwrap().1, highest);
}

#[test]
fn the_bits_beside_the_version_are_zero_where_mariadb_would_compare_them_too_early() {
    let keys = keys_over_time(&scripted::<CombRtSql>(), START);
    assert!(keys.iter().all(|key| key.as_bytes()[6] == 0x40));
    let keys = keys_over_time(&scripted::<CombRtPostgreSql>(), START);
    assert!(keys.iter().any(|key| key.as_bytes()[6] != 0x40));
}
