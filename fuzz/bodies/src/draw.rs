//! Values out of the fuzzer's bytes.

use arbitrary::{Arbitrary, Unstructured};
use ordid_core::{
    RawKey,
    key::{Key192, ObjectId, PushId},
    scheme::{
        comb, medo, newid, object_id, ordered_text, percona_64, push_id, sequential_guid,
        snowflake, snowflake_spread, ulid, uuid_short, uuid_v1, uuid_v4, uuid_v4_clustered,
        uuid_v5, uuid_v7, uuid_v7_spread, uuid_v7_sub_millis, uuid_v7_unguessable, uuid_v8_sha256,
        uuid_v8_sql_server,
    },
    uuid::Uuid,
};

/// A raw key that any bytes give: their first, with zeros after a short end.
pub(crate) trait FromStart: RawKey {
    /// Returns the key, and after it those that differ only in fixed bits of a scheme: most random
    /// values have another version, and would be refused at once.
    fn from_start(data: &[u8]) -> Vec<Self>;
}

fn start<const N: usize>(data: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (byte, given) in bytes.iter_mut().zip(data) {
        *byte = *given;
    }
    bytes
}

pub(crate) fn uuid(data: &[u8]) -> Uuid {
    Uuid::from_bytes(start(data))
}

/// The same with this version, and RFC 9562's variant.
pub(crate) fn with_version(raw: Uuid, version: u8) -> Uuid {
    let mut bytes = raw.into_bytes();
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Uuid::from_bytes(bytes)
}

impl FromStart for Uuid {
    fn from_start(data: &[u8]) -> Vec<Self> {
        let raw = uuid(data);
        let mut rearranged = with_version(raw, 6).into_bytes();
        rearranged[8] |= 0xe0;
        let mut keys = vec![raw, Self::from_bytes(rearranged)];
        keys.extend([1, 4, 5, 6, 7, 8].map(|version| with_version(raw, version)));
        keys
    }
}

macro_rules! from_start {
    ($($raw:ty: $from:path;)+) => {
        $(impl FromStart for $raw {
            fn from_start(data: &[u8]) -> Vec<Self> {
                vec![$from(start(data))]
            }
        })+
    };
}

from_start! {
    Key192: Key192::from_bytes;
    ObjectId: ObjectId::from_bytes;
    PushId: PushId::from_bytes;
    i64: i64::from_be_bytes;
    u64: u64::from_be_bytes;
}

/// A value made of the next bytes; of zeros at their end.
pub(crate) trait Draw: Sized {
    fn draw(data: &mut Unstructured<'_>) -> Self;
}

/// What `arbitrary` makes, or the default: numbers have no bytes that are wrong.
pub(crate) fn any<'d, T: Arbitrary<'d> + Default>(data: &mut Unstructured<'d>) -> T {
    data.arbitrary().unwrap_or_default()
}

macro_rules! draw_numbers {
    ($($number:ty)+) => {
        $(impl Draw for $number {
            /// A byte says how many of the bits are used: all lengths are as frequent.
            fn draw(data: &mut Unstructured<'_>) -> Self {
                let unused: u8 = any(data);
                any::<Self>(data) >> (u32::from(unused) % Self::BITS)
            }
        })+
    };
}

draw_numbers! { u8 u16 u32 u64 u128 i64 }

impl<const N: usize> Draw for [u8; N] {
    fn draw(data: &mut Unstructured<'_>) -> Self {
        std::array::from_fn(|_| any(data))
    }
}

macro_rules! draw_fields {
    ($($parts:ty { $($field:ident),+ })+) => {
        $(impl Draw for $parts {
            fn draw(data: &mut Unstructured<'_>) -> Self {
                Self { $($field: Draw::draw(data)),+ }
            }
        })+
    };
}

draw_fields! {
    comb::DateTimeParts { guid, days, units }
    comb::EfCoreParts { counter, guid }
    comb::UnixParts { unix_ts_ms, guid }
    medo::Parts { random, counter, unix_ts_ms }
    newid::Parts { ticks, worker, sequence }
    object_id::LegacyParts { seconds, machine, process, counter }
    object_id::Parts { seconds, random, counter }
    ordered_text::Parts22 { unix_ts_ms, random }
    ordered_text::Parts22Time64 { unix_time_ms, random }
    ordered_text::Parts32 { unix_time_ms, random }
    percona_64::Parts { seconds, node, counter }
    push_id::Parts { unix_ts_ms, random }
    sequential_guid::Parts { millis, random }
    snowflake::Parts { time, node, sequence }
    snowflake_spread::Parts { bucket, time, node, sequence }
    ulid::Parts { unix_ts_ms, random }
    uuid_short::Parts { server_id, seconds, counter }
    uuid_v1::Parts { ticks, clock_seq, node }
    uuid_v4::Parts { random_a, random_b, random_c }
    uuid_v4_clustered::Parts { prefix, random_a, random_b, random_c }
    uuid_v5::Parts { sha1_high, sha1_mid, sha1_low }
    uuid_v7::Parts { unix_ts_ms, rand_a, rand_b }
    uuid_v7_spread::Parts { bucket, unix_ts_ms, counter, random }
    uuid_v7_sub_millis::Parts { unix_ts_ms, fraction, counter, random }
    uuid_v7_unguessable::Parts { unix_ts_ms, counter, random }
    uuid_v8_sha256::Parts { custom_a, custom_b, custom_c }
    uuid_v8_sql_server::Parts { custom_a, custom_b, sequence, unix_ts_ms }
}
