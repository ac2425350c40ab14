use super::*;
use crate::scheme::testing::*;

#[test]
fn keys_are_those_of_the_original() {
    for vector in vectors_of_kind("medo_v7_mssql", 13) {
        let Vector { unix_millis, .. } = vector;
        let [c0, c1, c2] = vector.random(8);
        let parts = Parts {
            random: vector.random(0),
            counter: u32::from_be_bytes([0, c0, c1, c2]),
            unix_ts_ms: unix_millis.unwrap(),
        };
        meets::<Medo>(&vector, parts);
        assert!(Medo::check(&vector.guid));
    }
}

#[test]
fn keys_rise_in_sql_server_with_time_and_counter() {
    let counters = [
        0, 1, 0xff, 0x100, 0xfff, 0x1000, 0xf_ffff, 0x10_0000, 0x3ff_ffff,
    ];
    let mut keys = Vec::new();
    for unix_ts_ms in [0, 1, 0xff, 0x100, 0x017f_22e2_79b0, (1 << 48) - 1] {
        for (counter, random) in counters.into_iter().zip((0..=u8::MAX).rev()) {
            let parts = Parts {
                random: [random; 6],
                counter,
                unix_ts_ms,
            };
            keys.push(Medo::pack(parts).unwrap());
        }
    }
    assert_eq!(rules_that_hold(&keys), declared::<Medo>());
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let parts = |counter, unix_ts_ms| Parts {
        random: [0; 6],
        counter,
        unix_ts_ms,
    };
    does_not_fit::<Medo, _>([
        (parts(1 << 26, 0), "counter 67108864", 26),
        (parts(0, 1 << 48), "unix_ts_ms 281474976710656", 48),
    ]);
}

#[test]
fn the_version_is_not_where_the_text_has_it() {
    let key: Uuid = "de569066-6527-9d7e-8a15-016123485b40".parse().unwrap();
    assert!(Medo::check(&key));
    assert_eq!(key.get_version_num(), 9);
    let at = Medo::timestamp(&key).unwrap().as_unix_millis();
    assert_eq!(at, 1_516_715_400_000);
    let (lowest, highest) = Medo::bounds_at(Medo::timestamp(&key).unwrap()).unwrap();
    assert!(Medo::cmp(&lowest, &key).is_lt() && Medo::cmp(&key, &highest).is_lt());
}
