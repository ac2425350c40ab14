//! The place of the time in each scheme: its bits, its scale, and the bits that are the same in every key.

use ordid_core::{
    clock::{TimeScale, Timestamp},
    scheme::{
        Snowflake,
        catalogue::{self, AnyKey, CATALOGUE, Entry},
        instagram::InstagramLayout,
        snowflake::{
            BaiduUid, Discord, SnowflakeLayout, Sonyflake, SonyflakeV2, Twitter, WideSequence,
            Yitter,
        },
        snowflake_spread::Rest,
    },
};

/// So many bits of a raw key, from one on; bit 0 is the highest of the first byte.
pub(super) type Piece = (u32, u32);

/// Bits that have one value in each key of the scheme.
type Fixed = (u32, u32, u32);

/// Units of 1/300 second in a day.
pub(super) const UNITS_A_DAY: u64 = 86_400 * 300;

/// The time in a scheme's keys.
#[derive(Debug, Clone, Copy)]
struct Layout {
    scale: TimeScale,
    /// Its bits, the highest first: of one number, or of days and of units of a day.
    fields: &'static [&'static [Piece]],
    fixed: &'static [Fixed],
    bucket: Option<Piece>,
}

/// A scheme whose keys tell a time.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    pub(super) entry: &'static Entry,
    /// Bits of a raw key.
    pub(super) bits: u32,
    pub(super) scale: TimeScale,
    pub(super) fields: &'static [&'static [Piece]],
    pub(super) fixed: &'static [Fixed],
    pub(super) bucket: Option<Piece>,
    pub(super) bounds: Option<Bounds>,
}

/// The bits that the lowest and the highest keys of a time have besides the time.
#[derive(Debug, Clone)]
pub(super) struct Bounds {
    /// The first and the last millisecond that the layout has.
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    pub(super) lowest: Vec<u8>,
    pub(super) highest: Vec<u8>,
}

const UNIX: TimeScale = TimeScale::UNIX_MILLIS;
const SECONDS: TimeScale = TimeScale::UNIX_SECONDS;
const FIRST_48: &[&[Piece]] = &[&[(0, 48)]];
const LAST_48: &[&[Piece]] = &[&[(80, 48)]];
const FIRST_64: &[&[Piece]] = &[&[(0, 64)]];
/// Six bytes in .NET's order.
const WIRE_48: &[&[Piece]] = &[&[(24, 8), (16, 8), (8, 8), (0, 8), (40, 8), (32, 8)]];
/// Eight bytes, the last two of them first.
const LAST_64: &[&[Piece]] = &[&[(80, 48), (64, 16)]];

/// The version and the variant of RFC 9562.
const fn rfc(version: u32) -> [Fixed; 2] {
    [(48, 4, version), (64, 2, 0b10)]
}

const V1: [Fixed; 2] = rfc(1);
const V4: [Fixed; 2] = rfc(4);
const V6: [Fixed; 2] = rfc(6);
const V7: [Fixed; 2] = rfc(7);
const V8: [Fixed; 2] = rfc(8);

const fn layout(
    scale: TimeScale,
    fields: &'static [&'static [Piece]],
    fixed: &'static [Fixed],
) -> Layout {
    Layout {
        scale,
        fields,
        fixed,
        bucket: None,
    }
}

/// The bits of a layout of 63 bits or fewer in an integer of 64.
struct Of<L>(L);

impl<L: SnowflakeLayout> Of<L> {
    const FIELDS: &'static [&'static [Piece]] = &[&[(64 - <Snowflake<L>>::BITS, L::TIME_BITS)]];
    const FIXED: &'static [Fixed] = &[(0, 64 - <Snowflake<L>>::BITS, 0)];
    const LAYOUT: Layout = layout(<Snowflake<L>>::SCALE, Self::FIELDS, Self::FIXED);
}

/// Returns where the scheme of a name has its time; `None` where its keys tell none.
fn layout_of(scheme: &str) -> Option<Layout> {
    Some(match scheme {
        "uuid_v7" | "uuid_v7_unguessable" | "uuid_v7_sub_millis" => layout(UNIX, FIRST_48, &V7),
        "uuid_v7_spread" => Layout {
            bucket: Some((0, 4)),
            ..layout(UNIX, &[&[(4, 44), (52, 4)]], &[(48, 4, 8), (64, 3, 0b101)])
        },
        "uuid_v6" => layout(TimeScale::GREGORIAN_TICKS, &[&[(0, 48), (52, 12)]], &V6),
        "uuid_v1_rearranged" => layout(
            TimeScale::GREGORIAN_TICKS,
            &[&[(0, 48), (52, 12)]],
            &[(48, 4, 6), (64, 3, 0b111)],
        ),
        "uuid_v1" => layout(
            TimeScale::GREGORIAN_TICKS,
            &[&[(52, 12), (32, 16), (0, 32)]],
            &V1,
        ),
        "uuid_create_sequential" => layout(
            TimeScale::GREGORIAN_TICKS,
            &[&[
                (60, 4),
                (48, 8),
                (40, 8),
                (32, 8),
                (24, 8),
                (16, 8),
                (8, 8),
                (0, 8),
            ]],
            &[(56, 4, 1), (64, 2, 0b10)],
        ),
        "comb_nhibernate" | "comb_rt_legacy" => layout(
            TimeScale::SQL_SERVER_DATETIME,
            &[&[(80, 16)], &[(96, 32)]],
            &V4,
        ),
        "comb_rt_sql" => layout(UNIX, LAST_48, &V4),
        "comb_rt_postgresql" => layout(UNIX, FIRST_48, &V4),
        "comb_rt_binary" => layout(UNIX, WIRE_48, &V4),
        "comb_efcore" => layout(TimeScale::DOTNET_TICKS, LAST_64, &[(48, 4, 4)]),
        "sequential_guid_as_string" => layout(TimeScale::DOTNET_MILLIS, FIRST_48, &[]),
        "sequential_guid_as_binary" => layout(TimeScale::DOTNET_MILLIS, WIRE_48, &[]),
        "sequential_guid_at_end" => layout(TimeScale::DOTNET_MILLIS, LAST_48, &[]),
        "uuid_v8_sql_server" => layout(UNIX, LAST_48, &V8),
        "newid" => layout(TimeScale::DOTNET_TICKS, LAST_64, &[]),
        "medo" => layout(UNIX, LAST_48, &[(56, 4, 7), (64, 2, 0b10)]),
        "ordered_text_22" | "ordered_text_22_push" | "ulid" | "push_id" => {
            layout(UNIX, FIRST_48, &[])
        }
        "ordered_text_22_time64"
        | "ordered_text_22_time64_push"
        | "ordered_text_32"
        | "ordered_text_32_push" => layout(UNIX, FIRST_64, &[]),
        "object_id" | "percona_64" => layout(SECONDS, &[&[(0, 32)]], &[]),
        "uuid_short" => layout(SECONDS, &[&[(8, 32)]], &[]),
        "snowflake" => Of::<Twitter>::LAYOUT,
        "snowflake_wide" => Of::<WideSequence>::LAYOUT,
        "discord" => Of::<Discord>::LAYOUT,
        "sonyflake" => Of::<Sonyflake>::LAYOUT,
        "sonyflake_v2" => Of::<SonyflakeV2>::LAYOUT,
        "yitter" => Of::<Yitter>::LAYOUT,
        "baidu_uid" => <Of<BaiduUid>>::LAYOUT,
        "instagram" => Of::<InstagramLayout>::LAYOUT,
        "snowflake_spread" => Layout {
            bucket: Some((1, 4)),
            ..layout(<Snowflake<Rest>>::SCALE, Of::<Rest>::FIELDS, &[(0, 1, 0)])
        },
        _ => return None,
    })
}

impl Shape {
    /// Returns the shape of a scheme; `None` where its keys tell no time.
    pub(super) fn of(entry: &'static Entry) -> Option<Self> {
        let Layout {
            scale,
            fields,
            fixed,
            bucket,
        } = layout_of(entry.name)?;
        let bits = match entry.raw() {
            catalogue::RawForm::I64 | catalogue::RawForm::U64 => 64,
            catalogue::RawForm::Bytes12 => 96,
            catalogue::RawForm::Bytes15 => 120,
            catalogue::RawForm::Bytes24 => 192,
            _ => 128,
        };
        Some(Self {
            entry,
            bits,
            scale,
            fields,
            fixed,
            bucket,
            bounds: Bounds::of(entry, scale),
        })
    }

    /// Returns those of all schemes that tell a time.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        CATALOGUE.iter().filter_map(Self::of)
    }

    /// Whether the time is days, and units of a day.
    pub(super) fn has_days(&self) -> bool {
        self.fields.len() == 2
    }

    /// Returns the highest number that the bits of the time have.
    pub(super) fn last_ticks(&self) -> u64 {
        let bits = self.fields.iter().flat_map(|pieces| pieces.iter());
        let bits = bits.map(|(_, bits)| bits).sum::<u32>();
        match self.has_days() {
            true => (UNITS_A_DAY << 16) - 1,
            false => u64::MAX >> (64 - bits),
        }
    }

    /// Returns how many ticks a millisecond has and how many milliseconds a tick; one of them is 1. Those of 1/300
    /// second are 3 in 10.
    pub(super) fn ratio(&self) -> (u64, u64) {
        const MILLI: u64 = 1_000_000;
        match self.scale.tick_nanos() {
            _ if self.has_days() => (3, 10),
            tick if tick < MILLI => (MILLI / tick, 1),
            tick => (1, tick / MILLI),
        }
    }
}

impl Bounds {
    fn of(entry: &'static Entry, scale: TimeScale) -> Option<Self> {
        let lowest = |time: Timestamp| -> Option<AnyKey> {
            let ranges = entry.ranges(time..time)?.ok()?;
            ranges.first().map(|range| range.start)
        };
        let at = |millis| Timestamp::saturating_from_unix_millis(millis);
        // A time after the epoch of each layout, and before the end of each.
        let begin = u64::try_from(scale.epoch_unix_millis()).unwrap_or(0) + 1_000;
        lowest(at(begin))?;
        // The layout's first and last time: no time below or above has a key.
        let has = |millis| lowest(at(millis)).is_some();
        let first = search(0, begin, has);
        let end = Timestamp::MAX.as_unix_millis();
        let last = search(begin, end + 1, |millis| millis > end || !has(millis)) - 1;
        let highest = entry.highest_at(at(begin))?.ok()?;
        Some(Self {
            first: at(first),
            last: at(last),
            lowest: lowest(at(begin))?.as_bytes().to_vec(),
            highest: highest.first()?.as_bytes().to_vec(),
        })
    }
}

/// Returns the first number from `low` on of which the test is true; it is of all above that, and of `high`.
fn search(mut low: u64, mut high: u64, test: impl Fn(u64) -> bool) -> u64 {
    while low < high {
        let middle = low + (high - low) / 2;
        match test(middle) {
            true => high = middle,
            false => low = middle + 1,
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_whose_keys_tell_a_time_has_a_shape_and_no_other() {
        for entry in CATALOGUE {
            let tells = match entry.make() {
                Some(Ok(made)) => made.inspection.is_some_and(|it| it.moment.is_some()),
                // A layout that is only read, and one that has ended.
                _ => ["medo", "baidu_uid"].contains(&entry.name),
            };
            let shape = Shape::of(entry);
            assert_eq!(shape.is_some(), tells, "{}", entry.name);
            let Some(shape) = shape else { continue };
            let now = Timestamp::from_unix_millis(1_700_000_000_000).unwrap();
            let has_ranges = entry.ranges(now..now).is_some();
            assert_eq!(shape.bounds.is_some(), has_ranges, "{}", entry.name);
        }
    }

    #[test]
    fn the_first_and_the_last_time_are_those_of_the_layout() {
        let bounds = |name: &str| {
            let shape = Shape::of(catalogue::find(name).unwrap()).unwrap();
            let bounds = shape.bounds.unwrap();
            (bounds.first.to_string(), bounds.last.to_string())
        };
        let texts = |first: &str, last: &str| (first.to_owned(), last.to_owned());
        assert_eq!(
            bounds("snowflake"),
            texts("2010-11-04T01:42:54.657Z", "2080-07-10T17:30:30.208Z")
        );
        assert_eq!(
            bounds("uuid_v7"),
            texts("1970-01-01T00:00:00.000Z", "+10889-08-02T05:31:50.655Z")
        );
        assert_eq!(
            bounds("baidu_uid"),
            texts("2016-05-19T16:00:00.000Z", "2024-11-20T13:24:15.999Z")
        );
    }
}
