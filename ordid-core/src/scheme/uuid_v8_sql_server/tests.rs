use std::{thread, time::Duration};

use super::*;
use crate::{
    generator::{Generator, Policy, Rollback},
    key::StaticScheme as _,
    scheme::{Certainty, guid::INDEX_BITS, testing::*},
};

/// The count of 22 bits.
fn count(key: &Uuid) -> u32 {
    let Parts {
        sequence, custom_b, ..
    } = UuidV8SqlServer::unpack(key).unwrap();
    u32::from(sequence) << 8 | u32::from(custom_b & 0xff)
}

#[test]
fn keys_are_those_of_the_original() {
    for vector in vectors_of_kind("uuidnext_v8_sqlserver", 13) {
        let Vector { unix_millis, .. } = vector;
        let high = u64::from_be_bytes(vector.random(0));
        let sequence = u16::from_be_bytes(vector.random(8));
        let parts = Parts {
            custom_a: high >> 16,
            custom_b: u16::try_from(high & 0xfff).unwrap(),
            sequence: sequence & 0x3fff,
            unix_ts_ms: unix_millis.unwrap(),
        };
        meets::<UuidV8SqlServer>(&vector, parts);
        assert!(UuidV8SqlServer::check(&vector.guid));
    }
}

#[test]
fn the_count_goes_on_below_the_14_bits_beside_the_variant() {
    let keys = many(&scripted::<UuidV8SqlServer>(), 100_000);
    assert!(count(&keys[0]) < 1 << 21);
    for (key, n) in keys.iter().zip(0..) {
        assert_eq!(count(key), count(&keys[0]) + n);
        assert_eq!(
            UuidV8SqlServer::timestamp(key).unwrap().as_unix_millis(),
            START
        );
    }
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
}

#[test]
fn order_holds_in_the_cases_that_uuidnexts_test_leaves_out() {
    // A full millisecond, a clock that stands, and one that steps back.
    let generator = scripted::<UuidV8SqlServer>();
    let mut keys = many(&generator, 5);
    generator.reserve((1 << INDEX_BITS) - 10).unwrap();
    keys.extend(many(&generator, 1_000));
    for millis in [3, 2_000, 0, 1_999, 9_000] {
        generator.clock().set_unix_millis(START + millis);
        keys.extend(many(&generator, 100));
    }
    assert_eq!(descents(Comparison::SqlServer, &keys), 0);
}

#[test]
fn a_step_back_beyond_the_policy_is_an_error() {
    let rollback = Rollback::HoldThenError {
        max: Duration::from_secs(1),
    };
    let policy = Policy { rollback, ..STRICT };
    let generator = scripted_with::<UuidV8SqlServer>((), START, 1, policy);
    next(&generator);
    generator.clock().set_unix_millis(START - 1_001);
    assert!(generator.try_generate().unwrap_err().is_clock());
}

#[test]
fn keys_are_uuids_of_version_8_to_the_uuid_crate() {
    for key in many(&scripted::<UuidV8SqlServer>(), 1_000) {
        assert_eq!(key.get_version(), Some(uuid::Version::Custom));
        assert_eq!(key.get_variant(), uuid::Variant::RFC4122);
    }
}

#[test]
fn threads_share_one_order() {
    let mut keys: Vec<Uuid> = thread::scope(|scope| {
        let workers = [(); 4].map(|()| {
            scope.spawn(|| {
                let keys: Vec<_> = (0..20_000)
                    .map(|_| UuidV8SqlServer::generate().into_raw())
                    .collect();
                assert_eq!(descents(Comparison::SqlServer, &keys), 0);
                keys
            })
        });
        workers.map(|worker| worker.join().unwrap()).concat()
    });
    keys.sort_by(UuidV8SqlServer::cmp);
    assert_eq!(descents(Comparison::SqlServer, &keys), 0, "no key twice");
}

#[test]
fn fields_that_do_not_fit_are_named() {
    let parts = Parts {
        custom_a: (1 << 48) - 1,
        custom_b: 0xfff,
        sequence: 0x3fff,
        unix_ts_ms: (1 << 48) - 1,
    };
    let highest = UuidV8SqlServer::pack(parts).unwrap();
    assert_eq!(highest.to_string(), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    assert_eq!(UuidV8SqlServer::unpack(&highest).unwrap(), parts);
    let custom_a = 1 << 48;
    let custom_b = 0x1000;
    let sequence = 0x4000;
    let unix_ts_ms = 1 << 48;
    does_not_fit::<UuidV8SqlServer, _>([
        (Parts { custom_a, ..parts }, "custom_a 281474976710656", 48),
        (Parts { custom_b, ..parts }, "custom_b 4096", 12),
        (Parts { sequence, ..parts }, "sequence 16384", 14),
        (
            Parts {
                unix_ts_ms,
                ..parts
            },
            "unix_ts_ms 281474976710656",
            48,
        ),
    ]);
}

#[test]
fn a_likely_time_makes_the_scheme_likely() {
    let inspect = |text: &str| UuidV8SqlServer::inspect(&text.parse().unwrap());
    let inspection = inspect("66fb54f1-3cab-8620-8be0-016123485b40").unwrap();
    assert_eq!(inspection.certainty, Certainty::Likely);
    assert_eq!(inspection.counter, Some(0xbe0));
    assert_eq!(inspection.version, Some(8));
    // The RFC's own example of version 8 is of another layout.
    let inspection = inspect("2489e9ad-2ee2-8e00-8ec9-32d5f69181c0").unwrap();
    assert_eq!(inspection.certainty, Certainty::Possible);
    let error = inspect("017f22e2-79b0-7cc3-98c4-dc0c0c07398f").unwrap_err();
    assert!(error.is_layout());
}
