//! Conversions and their ways back.

use ordid_core::{
    Error, Scheme as _,
    scheme::{
        Ulid, UuidMask, UuidV1, UuidV1Rearranged, UuidV4, UuidV6, UuidV7,
        convert::{self as conversions, ClockSeqTop},
    },
    uuid::Uuid,
};

use crate::draw::{FromStart as _, uuid};

/// Takes the first 16 bytes for a UUID, and the next for the key of a mask.
pub fn convert(data: &[u8]) {
    let key = uuid(data.get(16..).unwrap_or_default());
    let (k0, k1) = key.as_u64_pair();
    let mask = UuidMask::new(k0, k1);
    for raw in Uuid::from_start(data) {
        masked(&mask, &raw);
        from_v1(&raw);
        from_v6(&raw);
        from_rearranged(&raw);
        from_other_forms(&raw);
        match Ulid::to_uuid_v7(raw) {
            Ok(same) => assert!(same == raw && UuidV7::check(&raw)),
            Err(error) => assert!(error.is_conversion() && !UuidV7::check(&raw)),
        }
    }
}

/// It is refused for the right reason.
fn is_another_version<T>(result: Result<T, Error>) -> bool {
    result.is_err_and(|error| error.is_layout())
}

fn masked(mask: &UuidMask, raw: &Uuid) {
    match mask.mask(raw) {
        Ok(outside) => {
            assert!(UuidV7::check(raw) && UuidV4::check(&outside));
            assert_eq!(mask.unmask(&outside).ok(), Some(*raw));
        }
        Err(error) => assert!(error.is_layout() && !UuidV7::check(raw)),
    }
    match mask.unmask(raw) {
        Ok(inside) => {
            assert!(UuidV4::check(raw) && UuidV7::check(&inside));
            assert_eq!(mask.mask(&inside).ok(), Some(*raw));
        }
        Err(error) => assert!(error.is_layout() && !UuidV4::check(raw)),
    }
}

fn from_v1(raw: &Uuid) {
    if !UuidV1::check(raw) {
        assert!(is_another_version(conversions::v1_to_v6(raw)));
        assert!(is_another_version(conversions::v1_to_rearranged(raw)));
        assert!(is_another_version(conversions::v1_to_sequential(raw)));
        assert!(is_another_version(conversions::v1_to_mysql_swapped(raw)));
        return;
    }
    let v6 = conversions::v1_to_v6(raw).expect("version 1 becomes version 6");
    assert!(UuidV6::check(&v6));
    assert_eq!(UuidV6::timestamp(&v6), UuidV1::timestamp(raw));
    assert_eq!(conversions::v6_to_v1(&v6).ok(), Some(*raw));

    let (rearranged, top) = conversions::v1_to_rearranged(raw).expect("version 1 is rearranged");
    assert!(UuidV1Rearranged::check(&rearranged));
    assert_eq!(
        conversions::rearranged_to_v1(&rearranged, top).ok(),
        Some(*raw)
    );
    assert_eq!(
        conversions::rearranged_to_v6(&rearranged, top).ok(),
        Some(v6)
    );

    let sequential = conversions::v1_to_sequential(raw).expect("version 1 is shuffled");
    assert_eq!(conversions::sequential_to_v1(&sequential).ok(), Some(*raw));
    let swapped = conversions::v1_to_mysql_swapped(raw).expect("version 1 is swapped");
    assert_eq!(conversions::mysql_swapped_to_v1(&swapped).ok(), Some(*raw));
}

fn from_v6(raw: &Uuid) {
    if !UuidV6::check(raw) {
        assert!(is_another_version(conversions::v6_to_v1(raw)));
        assert!(is_another_version(conversions::v6_to_rearranged(raw)));
        return;
    }
    let v1 = conversions::v6_to_v1(raw).expect("version 6 becomes version 1");
    assert_eq!(conversions::v1_to_v6(&v1).ok(), Some(*raw));
    let (rearranged, top) = conversions::v6_to_rearranged(raw).expect("version 6 is rearranged");
    assert_eq!(
        conversions::rearranged_to_v6(&rearranged, top).ok(),
        Some(*raw)
    );
}

fn from_rearranged(raw: &Uuid) {
    for top in [ClockSeqTop::Zero, ClockSeqTop::One] {
        if !UuidV1Rearranged::check(raw) {
            assert!(is_another_version(conversions::rearranged_to_v1(raw, top)));
            assert!(is_another_version(conversions::rearranged_to_v6(raw, top)));
            continue;
        }
        let v1 = conversions::rearranged_to_v1(raw, top).expect("the bit is given");
        assert_eq!(conversions::v1_to_rearranged(&v1).ok(), Some((*raw, top)));
        let v6 = conversions::rearranged_to_v6(raw, top).expect("the bit is given");
        assert_eq!(conversions::v6_to_rearranged(&v6).ok(), Some((*raw, top)));
    }
    assert!(conversions::rearranged_to_v1(raw, ClockSeqTop::Unknown).is_err());
}

/// Forms that show no version.
fn from_other_forms(raw: &Uuid) {
    match conversions::sequential_to_v1(raw) {
        Ok(v1) => assert_eq!(conversions::v1_to_sequential(&v1).ok(), Some(*raw)),
        Err(error) => assert!(error.is_conversion(), "{error}"),
    }
    match conversions::mysql_swapped_to_v1(raw.as_bytes()) {
        Ok(v1) => {
            let swapped = conversions::v1_to_mysql_swapped(&v1).ok();
            assert_eq!(swapped, Some(*raw.as_bytes()));
        }
        Err(error) => assert!(error.is_conversion(), "{error}"),
    }
}
