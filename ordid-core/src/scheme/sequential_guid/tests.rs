use super::*;
use crate::{
    generator::Generator,
    scheme::{Certainty, testing::*},
};

fn meets_vectors<S: Layout<Raw = Uuid, Parts = Parts>>(kind: &str) {
    for vector in vectors_of_kind(kind, 14) {
        let Vector { dotnet_ticks, .. } = vector;
        let parts = Parts {
            millis: dotnet_ticks / 10_000,
            random: vector.random(0),
        };
        meets::<S>(&vector, parts);
    }
}

#[test]
fn keys_are_those_of_the_original() {
    meets_vectors::<SequentialGuidAsString>("abp_AsString");
    meets_vectors::<SequentialGuidAsBinary>("abp_AsBinary");
    meets_vectors::<SequentialGuidAtEnd>("abp_AtEnd");
}

#[test]
fn keys_of_one_millisecond_rise() {
    fn of_one_millisecond<S: Slotted<Node = (), Raw = Uuid>>(rule: Comparison) {
        let keys = many(&scripted::<S>(), 100_000);
        assert_eq!(descents(rule, &keys), 0);
        assert!(
            keys.iter()
                .all(|key| S::timestamp(key) == S::timestamp(&keys[0]))
        );
    }
    of_one_millisecond::<SequentialGuidAsString>(Comparison::Bytes);
    of_one_millisecond::<SequentialGuidAsBinary>(Comparison::DotNetBytes);
    of_one_millisecond::<SequentialGuidAtEnd>(Comparison::SqlServer);
}

#[test]
fn the_text_of_as_string_rises() {
    let generator = scripted::<SequentialGuidAsString>();
    let texts: Vec<_> = many(&generator, 1_000)
        .iter()
        .map(Uuid::to_string)
        .collect();
    assert!(texts.is_sorted_by(|left, right| left < right));
}

#[test]
fn times_of_49_bits_are_refused() {
    let parts = |millis| Parts {
        millis,
        random: [0; 10],
    };
    assert!(SequentialGuidAtEnd::pack(parts((1 << 48) - 1)).is_ok());
    does_not_fit::<SequentialGuidAtEnd, _>([(parts(1 << 48), "millis 281474976710656", 48)]);
    let at = |millis| Timestamp::from_unix_millis(millis).unwrap();
    assert!(SequentialGuidAtEnd::bounds_at(at(LAST)).is_ok());
    let error = SequentialGuidAtEnd::bounds_at(at(LAST + 1)).unwrap_err();
    assert!(error.is_clock());
}

#[test]
fn only_the_time_speaks_for_the_scheme() {
    let certainty = |key: &Uuid| SequentialGuidAsString::inspect(key).unwrap().certainty;
    let key = next(&scripted::<SequentialGuidAsString>());
    assert_eq!(certainty(&key), Certainty::Likely);
    assert_eq!(certainty(&Uuid::nil()), Certainty::Possible);
    assert_eq!(certainty(&Uuid::max()), Certainty::Possible);
    assert_eq!(SequentialGuidAsString::timestamp(&Uuid::nil()), None);
    let inspection = SequentialGuidAsString::inspect(&key).unwrap();
    assert_eq!(inspection.version, None);
}

#[test]
fn the_time_is_the_clocks() {
    let generator = scripted::<SequentialGuidAtEnd>();
    let parts = SequentialGuidAtEnd::unpack(&next(&generator)).unwrap();
    assert_eq!(parts.millis, START + EPOCH);
    let at = Timestamp::from_unix_millis(0).unwrap();
    let key = generator.generate_at(at).unwrap().into_raw();
    assert_eq!(SequentialGuidAtEnd::unpack(&key).unwrap().millis, EPOCH);
}

#[test]
fn a_time_that_48_bits_do_not_have_is_an_error() {
    fn refuses_a_later_time<S: Slotted<Node = (), Raw = Uuid>>() {
        let generator = scripted::<S>();
        let last = Timestamp::from_unix_millis(LAST).unwrap();
        let key = generator.generate_at(last).unwrap().into_raw();
        assert_eq!(S::timestamp(&key), Some(last));
        let next = Timestamp::from_unix_millis(LAST + 1).unwrap();
        let error = generator.generate_at(next).unwrap_err();
        assert!(error.is_clock(), "{error}");
        assert!(
            error
                .to_string()
                .contains(&alloc::format!("ends at {LAST} ms")),
            "{error}"
        );
    }
    refuses_a_later_time::<SequentialGuidAsString>();
    refuses_a_later_time::<SequentialGuidAsBinary>();
    refuses_a_later_time::<SequentialGuidAtEnd>();
}
