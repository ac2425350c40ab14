//! Conversions of UUIDs to other forms: version 1 in all its byte orders.
//!
//! | from, and back | keeps | refuses |
//! |---|---|---|
//! | version 1, [`uuid_v6`](super::uuid_v6) | all | other versions |
//! | version 1 or 6, [`uuid_v1_rearranged`](super::uuid_v1_rearranged) | all but one bit, which is returned beside it | the way back without that bit |
//! | version 1, `UuidCreateSequential` shuffled for SQL Server | all | what is no version 1 after the shuffle |
//! | version 1, MySQL's `UUID_TO_BIN(x, 1)` | all | other versions, whose order the swap would destroy |
//!
//! Nothing is guessed. A value of another version gives an error that [`is_layout`](Error::is_layout). Bytes that are
//! not those of a version 1, and a bit that is unknown, give an error that [`is_conversion`](Error::is_conversion).
//!
//! # References
//!
//! RFC 9562 section 5.6; Microsoft Learn, "UuidCreateSequential function" and "NEWSEQUENTIALID";
//! MySQL 8.4 manual, `UUID_TO_BIN`.

use alloc::format;

use uuid::Uuid;

use super::{
    Layout, UuidV1, UuidV1Rearranged, UuidV6,
    gregorian::{Parts, from_time_low_first, time_low_first},
};
use crate::{
    error::Error,
    key::{RawKey as _, Scheme},
    layout::guid,
};

/// The highest bit of a clock sequence.
const TOP: u16 = 1 << 13;

/// The highest bit of a clock sequence. A [`uuid_v1_rearranged`](super::uuid_v1_rearranged) has no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClockSeqTop {
    /// The bit is 0: the fourth group of the original began with 8 or 9.
    Zero,
    /// The bit is 1: the fourth group of the original began with a or b.
    One,
    /// The bit is not known.
    Unknown,
}

/// Converts version 1 to version 6.
///
/// # Errors
///
/// Another version or variant gives an error that [`is_layout`](Error::is_layout).
///
/// # Example
///
/// ```
/// use ordid_core::scheme::convert;
///
/// let v1 = "c232ab00-9414-11ec-b3c8-9f6bdeced846".parse()?;
/// let v6 = convert::v1_to_v6(&v1)?;
/// assert_eq!(v6.to_string(), "1ec9414c-232a-6b00-b3c8-9f6bdeced846");
/// assert_eq!(convert::v6_to_v1(&v6)?, v1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn v1_to_v6(raw: &Uuid) -> Result<Uuid, Error> {
    UuidV6::pack(UuidV1::unpack(raw)?)
}

/// Converts version 6 to version 1.
///
/// # Errors
///
/// As [`v1_to_v6`].
pub fn v6_to_v1(raw: &Uuid) -> Result<Uuid, Error> {
    UuidV1::pack(UuidV6::unpack(raw)?)
}

/// Rearranges version 1, and also returns the bit that the conversion back needs.
///
/// # Errors
///
/// As [`v1_to_v6`].
///
/// # Example: the published pair
///
/// ```
/// use ordid_core::scheme::convert::{self, ClockSeqTop};
///
/// let v1 = "12adde00-f100-11e6-bc64-92361f002671".parse()?;
/// let (rearranged, top) = convert::v1_to_rearranged(&v1)?;
/// assert_eq!(rearranged.to_string(), "1e6f1001-2add-6e00-fc64-92361f002671");
/// assert_eq!(top, ClockSeqTop::One);
/// assert_eq!(convert::rearranged_to_v1(&rearranged, top)?, v1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn v1_to_rearranged(raw: &Uuid) -> Result<(Uuid, ClockSeqTop), Error> {
    without_top(UuidV1::unpack(raw)?)
}

/// As [`v1_to_rearranged`], but for version 6.
///
/// # Errors
///
/// As [`v1_to_v6`].
pub fn v6_to_rearranged(raw: &Uuid) -> Result<(Uuid, ClockSeqTop), Error> {
    without_top(UuidV6::unpack(raw)?)
}

/// Converts a rearranged version 1 back.
///
/// # Errors
///
/// As [`v1_to_v6`]. With [`ClockSeqTop::Unknown`], the error [`is_conversion`](Error::is_conversion): two originals
/// are possible, and one of them may be another row's key.
pub fn rearranged_to_v1(raw: &Uuid, top: ClockSeqTop) -> Result<Uuid, Error> {
    UuidV1::pack(with_top(raw, top)?)
}

/// Converts a rearranged version 1 to version 6.
///
/// # Errors
///
/// As [`rearranged_to_v1`].
pub fn rearranged_to_v6(raw: &Uuid, top: ClockSeqTop) -> Result<Uuid, Error> {
    UuidV6::pack(with_top(raw, top)?)
}

fn without_top(parts: Parts) -> Result<(Uuid, ClockSeqTop), Error> {
    let raw = UuidV1Rearranged::pack(Parts {
        clock_seq: parts.clock_seq & !TOP,
        ..parts
    })?;
    let top = if parts.clock_seq & TOP == 0 {
        ClockSeqTop::Zero
    } else {
        ClockSeqTop::One
    };
    Ok((raw, top))
}

fn with_top(raw: &Uuid, top: ClockSeqTop) -> Result<Parts, Error> {
    let parts = UuidV1Rearranged::unpack(raw)?;
    let top = match top {
        ClockSeqTop::Zero => 0,
        ClockSeqTop::One => TOP,
        ClockSeqTop::Unknown => {
            return Err(Error::conversion(format!(
                "cannot turn {raw} back: its variant 111 covers the highest bit of the clock \
                 sequence; pass that bit, `ClockSeqTop::Zero` or `ClockSeqTop::One`"
            )));
        }
    };
    Ok(Parts {
        clock_seq: parts.clock_seq | top,
        ..parts
    })
}

/// Shuffles version 1 for SQL Server, as is recommended after `UuidCreateSequential`, and as `NEWSEQUENTIALID` does:
/// the bytes of each of the first three groups are reversed ([`guid::swap`]).
///
/// The result no longer shows its version and variant, or shows wrong ones. In SQL Server the shuffled keys of one
/// node and clock sequence rise with time; unshuffled keys fall back every 256 ticks.
///
/// # Errors
///
/// As [`v1_to_v6`].
pub fn v1_to_sequential(raw: &Uuid) -> Result<Uuid, Error> {
    UuidV1::unpack(raw)?;
    Ok(Uuid::from_bytes(guid::swap(raw.as_bytes())))
}

/// Converts a shuffled version 1 back.
///
/// # Errors
///
/// If the value is not a shuffled version 1; the error [`is_conversion`](Error::is_conversion).
pub fn sequential_to_v1(raw: &Uuid) -> Result<Uuid, Error> {
    let v1 = Uuid::from_bytes(guid::swap(raw.as_bytes()));
    checked(v1, || {
        format!("{raw} with the bytes of its groups reversed")
    })
}

/// Returns the bytes that MySQL's `UUID_TO_BIN(x, 1)` returns for version 1: `time_high` with the version,
/// `time_mid`, `time_low`, and the rest unchanged. They sort as the keys do.
///
/// # Errors
///
/// As [`v1_to_v6`]: for other versions the swap would destroy the order.
///
/// # Example: the manual's
///
/// ```
/// use ordid_core::scheme::convert;
///
/// let v1 = "6ccd780c-baba-1026-9564-5b8c656024db".parse()?;
/// let bytes = convert::v1_to_mysql_swapped(&v1)?;
/// assert_eq!(bytes, *b"\x10\x26\xba\xba\x6c\xcd\x78\x0c\x95\x64\x5b\x8c\x65\x60\x24\xdb");
/// assert_eq!(convert::mysql_swapped_to_v1(&bytes)?, v1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn v1_to_mysql_swapped(raw: &Uuid) -> Result<[u8; 16], Error> {
    let parts = UuidV1::unpack(raw)?;
    let (_, low) = raw.as_u64_pair();
    Ok(*Uuid::from_u64_pair(1 << 60 | parts.ticks, low).as_bytes())
}

/// Converts the bytes of MySQL's `UUID_TO_BIN(x, 1)` back, for version 1, as `BIN_TO_UUID(x, 1)` does.
///
/// # Errors
///
/// If they are not a swapped version 1; the error [`is_conversion`](Error::is_conversion).
pub fn mysql_swapped_to_v1(bytes: &[u8; 16]) -> Result<Uuid, Error> {
    let swapped = Uuid::from_bytes(*bytes);
    let (ticks, low) = swapped.as_u64_pair();
    // The version stands above the ticks.
    let high = time_low_first(ticks & !(0xf << 60)) & !0xf000 | ticks >> 48 & 0xf000;
    debug_assert_eq!(from_time_low_first(high), ticks & !(0xf << 60));
    checked(Uuid::from_u64_pair(high, low), || {
        format!("the bytes {} of `UUID_TO_BIN(x, 1)`", swapped.simple())
    })
}

fn checked(v1: Uuid, what: impl FnOnce() -> alloc::string::String) -> Result<Uuid, Error> {
    if UuidV1::check(&v1) {
        return Ok(v1);
    }
    Err(Error::conversion(format!(
        "cannot turn {} into version 1: found {}",
        what(),
        v1.describe()
    )))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{
        layout::Comparison,
        scheme::{
            UuidNode, UuidV7,
            testing::{day, hex, uuid, vectors},
        },
    };

    const V1: &str = "c232ab00-9414-11ec-b3c8-9f6bdeced846";

    #[test]
    fn version_1_and_6_of_the_rfc_and_of_the_uuid_crate_are_one_another() {
        for file in ["rfc9562", "uuid_rs"] {
            let json = vectors(file);
            let (v1, v6) = (uuid(&json["v1"][0]["uuid"]), uuid(&json["v6"][0]["uuid"]));
            assert_eq!(v1_to_v6(&v1).unwrap(), v6, "{file}");
            assert_eq!(v6_to_v1(&v6).unwrap(), v1, "{file}");
        }
    }

    #[test]
    fn both_bits_round_trip_and_an_unknown_one_is_refused() {
        for (v1, expected) in [
            ("12adde00-f100-11e6-bc64-92361f002671", ClockSeqTop::One),
            ("12adde00-f100-11e6-9c64-92361f002671", ClockSeqTop::Zero),
        ] {
            let v1: Uuid = v1.parse().unwrap();
            let (rearranged, top) = v1_to_rearranged(&v1).unwrap();
            assert_eq!(
                rearranged.to_string(),
                "1e6f1001-2add-6e00-fc64-92361f002671"
            );
            assert_eq!(top, expected);
            assert_eq!(rearranged_to_v1(&rearranged, top).unwrap(), v1);
            let v6 = v1_to_v6(&v1).unwrap();
            assert_eq!(v6_to_rearranged(&v6).unwrap(), (rearranged, top));
            assert_eq!(rearranged_to_v6(&rearranged, top).unwrap(), v6);
            let error = rearranged_to_v1(&rearranged, ClockSeqTop::Unknown).unwrap_err();
            assert!(error.is_conversion());
            assert_eq!(
                error.to_string(),
                "cannot turn 1e6f1001-2add-6e00-fc64-92361f002671 back: its variant 111 covers \
                 the highest bit of the clock sequence; pass that bit, `ClockSeqTop::Zero` or \
                 `ClockSeqTop::One`"
            );
        }
    }

    #[test]
    fn the_shuffle_meets_its_vectors_over_all_carries() {
        let json = vectors("uuid_create_sequential");
        for list in ["uuidcreatesequential", "uuidcreatesequential_overflow"] {
            let rows = json[list].as_array().unwrap();
            assert!(rows.len() >= 10);
            let mut last: Option<(Uuid, Uuid)> = None;
            for row in rows {
                let raw = uuid(&row["raw_guid"]);
                let shuffled = uuid(&row["shuffled_guid"]);
                assert_eq!(v1_to_sequential(&raw).unwrap(), shuffled);
                assert_eq!(sequential_to_v1(&shuffled).unwrap(), raw);
                let wire: Uuid = row["shuffled_wire"].as_str().unwrap().parse().unwrap();
                assert_eq!(guid::swap(shuffled.as_bytes()), *wire.as_bytes());
                if row["v1_timestamp"].is_string() {
                    let ticks = UuidV1::unpack(&raw).unwrap().ticks;
                    assert_eq!(ticks, hex(&row["v1_timestamp"]));
                }
                let key = |raw: &Uuid| Comparison::SqlServer.sort_key(raw.as_bytes());
                if let Some((last_raw, last_shuffled)) = last {
                    assert!(key(&last_shuffled) < key(&shuffled), "{shuffled}");
                    if let Some(order) = row["raw_cmp_previous_to_this"].as_i64() {
                        assert_eq!(key(&last_raw).cmp(&key(&raw)) as i64, order, "{raw}");
                    }
                }
                last = Some((raw, shuffled));
            }
        }
    }

    #[test]
    fn keys_of_a_day_rise_shuffled_in_sql_server_and_swapped_as_bytes() {
        let keys = day::<UuidV1>(UuidNode::RANDOM);
        let shuffled = keys.iter().map(|key| {
            let shuffled = v1_to_sequential(key).unwrap();
            Comparison::SqlServer.sort_key(shuffled.as_bytes())
        });
        assert!(shuffled.is_sorted_by(|a, b| a < b));
        let swapped = keys.iter().map(|key| v1_to_mysql_swapped(key).unwrap());
        assert!(swapped.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_value_of_another_version_is_refused_by_name() {
        let v7: Uuid = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f".parse().unwrap();
        assert!(UuidV7::check(&v7));
        for error in [
            v1_to_v6(&v7).unwrap_err(),
            v6_to_v1(&v7).unwrap_err(),
            v1_to_rearranged(&v7).unwrap_err(),
            v6_to_rearranged(&v7).unwrap_err(),
            rearranged_to_v1(&v7, ClockSeqTop::One).unwrap_err(),
            rearranged_to_v6(&v7, ClockSeqTop::Unknown).unwrap_err(),
            v1_to_sequential(&v7).unwrap_err(),
            v1_to_mysql_swapped(&v7).unwrap_err(),
        ] {
            assert!(error.is_layout(), "{error}");
        }
        // Not shuffled, or shuffled twice.
        let v1: Uuid = V1.parse().unwrap();
        let error = sequential_to_v1(&v1).unwrap_err();
        assert!(error.is_conversion());
        assert_eq!(
            error.to_string(),
            "cannot turn c232ab00-9414-11ec-b3c8-9f6bdeced846 with the bytes of its groups \
             reversed into version 1: found version 14 and variant RFC 9562 in \
             00ab32c2-1494-ec11-b3c8-9f6bdeced846"
        );
        let error = mysql_swapped_to_v1(v1.as_bytes()).unwrap_err();
        assert!(error.is_conversion());
        assert_eq!(
            error.to_string(),
            "cannot turn the bytes c232ab00941411ecb3c89f6bdeced846 of `UUID_TO_BIN(x, 1)` into \
             version 1: found version 12 and variant RFC 9562 in \
             941411ec-ab00-c232-b3c8-9f6bdeced846"
        );
    }

    proptest! {
        #[test]
        fn every_form_round_trips(
            ticks in 0..1_u64 << 60,
            clock_seq in 0..1_u16 << 14,
            node: [u8; 6],
        ) {
            let v1 = UuidV1::pack(Parts { ticks, clock_seq, node }).unwrap();
            let v6 = v1_to_v6(&v1).unwrap();
            prop_assert_eq!(v6_to_v1(&v6).unwrap(), v1);
            let (rearranged, top) = v1_to_rearranged(&v1).unwrap();
            prop_assert_eq!(rearranged_to_v1(&rearranged, top).unwrap(), v1);
            prop_assert_eq!(sequential_to_v1(&v1_to_sequential(&v1).unwrap()).unwrap(), v1);
            let bytes = v1_to_mysql_swapped(&v1).unwrap();
            let groups = v1.as_bytes();
            // Groups 3, 2, 1, 4, 5.
            let order = [6, 7, 4, 5, 0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15];
            prop_assert_eq!(bytes, order.map(|at: usize| groups[at]));
            prop_assert_eq!(mysql_swapped_to_v1(&bytes).unwrap(), v1);
        }

        #[test]
        fn the_orders_of_version_1_6_and_swapped_bytes_are_one(
            left in (0..1_u64 << 60, 0..1_u16 << 14),
            right in (0..1_u64 << 60, 0..1_u16 << 14),
        ) {
            let [a, b] = [left, right].map(|(ticks, clock_seq)| {
                UuidV1::pack(Parts { ticks, clock_seq, node: [7; 6] }).unwrap()
            });
            let order = UuidV1::cmp(&a, &b);
            prop_assert_eq!(v1_to_v6(&a).unwrap().cmp(&v1_to_v6(&b).unwrap()), order);
            let swapped = |raw| v1_to_mysql_swapped(raw).unwrap();
            prop_assert_eq!(swapped(&a).cmp(&swapped(&b)), order);
        }

        #[test]
        fn any_bytes_are_turned_back_or_refused(bytes: [u8; 16]) {
            let raw = Uuid::from_bytes(bytes);
            if let Ok(v1) = mysql_swapped_to_v1(&bytes) {
                prop_assert_eq!(v1_to_mysql_swapped(&v1).unwrap(), bytes);
            }
            if let Ok(v1) = sequential_to_v1(&raw) {
                prop_assert_eq!(v1_to_sequential(&v1).unwrap(), raw);
            }
        }
    }
}
