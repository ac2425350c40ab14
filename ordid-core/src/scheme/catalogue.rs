//! The catalogue of all schemes, with an example key of each, what orders its keys and what breaks that order. It can
//! also tell which schemes an unknown value may belong to.
//!
//! [`__for_each_scheme`](crate::__for_each_scheme) is the list, with one line for each scheme. Beyond the scheme's
//! own constants, a line has texts that help people to choose.

use alloc::{string::String, vec::Vec};
#[cfg(all(feature = "std", not(loom)))]
use alloc::{string::ToString as _, sync::Arc};
use core::fmt;

use uuid::{Uuid, Variant};

use super::*;
#[cfg(all(feature = "std", not(loom)))]
use crate::{
    clock::SystemClock,
    entropy::{Entropy as _, ThreadEntropy},
    error::Error,
};
use crate::{
    clock::Timestamp,
    key::{BinaryForm, RawKey, TextForm},
    layout::Orders,
};

#[cfg(all(feature = "std", not(loom)))]
mod any;

#[cfg(all(feature = "std", not(loom)))]
pub use crate::storage::column::any::AnyColumn;
#[cfg(all(feature = "std", not(loom)))]
pub(crate) use any::raw_key;
#[cfg(all(feature = "std", not(loom)))]
pub use any::{AnyGenerator, AnyKey, RawForm, find};

#[cfg(all(feature = "std", not(loom)))]
use any::WithoutTime as _;

/// A scheme of the catalogue.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// The scheme's name.
    pub name: &'static str,
    /// The system that the keys come from.
    pub system: &'static str,
    /// What puts keys in order.
    pub ordered_by: &'static str,
    /// What breaks that order, or when it ends.
    pub broken_by: &'static str,
    /// The comparison rules under which keys rise; `None` for keys that are not 128-bit values, whose columns compare
    /// as the keys do.
    pub orders: Option<Orders>,
    /// How many bits of the next key somebody who knows one key has to guess.
    pub unknown_bits: u32,
    /// A key of a scheme without generator.
    #[cfg(all(feature = "std", not(loom)))]
    example: Option<fn() -> Result<any::Raw, Error>>,
    read: fn(Unknown<'_>) -> Option<Inspection>,
    form: Form,
    #[cfg(all(feature = "std", not(loom)))]
    scheme: &'static dyn any::AnyScheme,
    /// Or else who makes the keys.
    #[cfg(all(feature = "std", not(loom)))]
    generator: Result<any::MakeGenerator, &'static str>,
    #[cfg(all(feature = "std", not(loom)))]
    ranges: Option<any::MakeRanges>,
    #[cfg(all(feature = "std", not(loom)))]
    highest: Option<any::MakeHighest>,
    #[cfg(all(feature = "std", feature = "named", not(loom)))]
    named: Option<fn(&Uuid, &[u8]) -> Uuid>,
}

/// A fresh key, and the information in it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Specimen {
    /// The key's canonical text.
    pub text: String,
    /// The fields of the key; `None` if the text hides them.
    pub inspection: Option<Inspection>,
}

#[cfg(all(feature = "std", not(loom)))]
impl Entry {
    /// Makes a fresh key. Returns `None` for layouts that are only read.
    ///
    /// Schemes that need a node get the number 1 here, which another generator may have. So the key is only for
    /// display.
    ///
    /// # Errors
    ///
    /// As [`Generator::try_generate`](crate::generator::Generator::try_generate); for example, the layout may have no
    /// time left.
    pub fn make(&'static self) -> Option<Result<Specimen, Error>> {
        let key = match (self.generator, self.example) {
            (Ok(make), _) => make(None, Arc::new(SystemClock))
                .or_else(|_| make(Some(1), Arc::new(SystemClock)))
                .and_then(|make| make(None)),
            (Err(_), Some(example)) => example(),
            (Err(_), None) => return None,
        };
        Some(key.map(|raw| self.of(raw)).map(|key| Specimen {
            text: key.to_string(),
            inspection: key.inspect(),
        }))
    }
}

/// A key of no known name: a hash looks like random bits.
#[cfg(all(feature = "std", not(loom)))]
fn nameless<S: Layout<Raw = Uuid>>() -> Result<Uuid, Error> {
    Ok(S::coerce(Uuid::from_u128(ThreadEntropy.next_u128()?)))
}

/// The form of the canonical text of a scheme's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The text of a UUID, the only one that JSON Schema has a format for.
    Uuid,
    /// A decimal number.
    Signed,
    Unsigned,
    /// Another text.
    Own,
}

impl Form {
    const fn of(text: TextForm, binary: BinaryForm) -> Self {
        match (text, binary) {
            (TextForm::Format(_), _) => Self::Uuid,
            (TextForm::Pattern(_), BinaryForm::I64) => Self::Signed,
            (TextForm::Pattern(_), BinaryForm::U64) => Self::Unsigned,
            (TextForm::Pattern(_), BinaryForm::Bytes) => Self::Own,
        }
    }
}

fn read<S: Layout>(unknown: Unknown<'_>) -> Option<Inspection> {
    let raw = match unknown {
        // Without the reason why not, which would cost more than all the rest.
        Unknown::Text(text) => S::read_text(None, text)?,
        Unknown::Bytes(found) => {
            let mut bytes = <S::Raw as crate::key::RawKey>::Bytes::default();
            if bytes.as_ref().len() != found.len() {
                return None;
            }
            bytes.as_mut().copy_from_slice(found);
            S::Raw::from_bytes(bytes)
        }
    };
    S::check(&raw).then(|| S::inspect(&raw).ok())?
}

/// The list of schemes, of which everything else is made or checked: [`CATALOGUE`], the laws that each
/// scheme obeys, the derive's options, the fuzz bodies, the conformance cells, the tables of the
/// documents. `__for_each_scheme! { my_macro { arguments } }` calls a macro with the arguments, if there
/// are any, and all lines; the caller's scope has the types (`use ordid_core::scheme::*`).
///
/// A line is `name: [kind] raw key, type, system, what orders the keys, what breaks that order;`. The
/// kind says how a key is made:
///
/// | kind | made by |
/// |---|---|
/// | `[counted]` | a generator that counts, without a node |
/// | `[spread]` | the same; keys rise in each of their buckets |
/// | `[spread_node]` | the same, with a `SnowflakeNode` |
/// | `[random_node]` | as `[counted]`, with a `UuidNode` |
/// | `[random_node_first]` | the same, but the node is compared before the time |
/// | `[snowflake_node]` | the same, with a `SnowflakeNode` |
/// | `[layout]` | the same; a layout of `Snowflake`, which the derive knows as `snowflake(layout = ..)` |
/// | `[node(example, last)]` | the same, with another node |
/// | `[drawn(bits)]` | randomness, so many bits of it |
/// | `[by_period(bits)]` | the same, in periods of time |
/// | `[named]` | a name |
/// | `[reserved]` | a store that counts |
/// | `[read_only]` | others: it is only read |
#[doc(hidden)]
#[macro_export]
macro_rules! __for_each_scheme {
    ($then:ident $($arguments:tt)?) => {
        $then! { $($arguments)?
            uuid_v7: [counted] Uuid, UuidV7, "RFC 9562 version 7", "millisecond, 42-bit counter",
                "a clock that steps back over the policy's bound";
            uuid_v7_unguessable: [counted] Uuid, UuidV7Unguessable, "RFC 9562 version 7",
                "millisecond, 18-bit counter",
                "a clock that steps back over the bound; 131,072 keys a millisecond";
            uuid_v7_sub_millis: [counted] Uuid, UuidV7SubMillis, "PostgreSQL 18 uuidv7()",
                "1/4096 millisecond, 8-bit counter", "a clock that steps back over the bound";
            uuid_v7_spread: [spread] Uuid, UuidV7Spread, "RFC 9562 version 8",
                "bucket, then millisecond and 42-bit counter",
                "another number of buckets; a clock that steps back over the bound";
            uuid_v6: [random_node] Uuid, UuidV6, "RFC 9562 version 6", "100 ns tick",
                "a followed clock; another generator's node at the same tick";
            uuid_v1: [random_node] Uuid, UuidV1, "RFC 9562 version 1",
                "100 ns tick, not where it is compared",
                "every comparison by bytes: the low bits of time come first";
            uuid_v1_rearranged: [random_node] Uuid, UuidV1Rearranged, "version 1 rearranged, 2017",
                "100 ns tick", "a followed clock; libraries that check the variant";
            uuid_v4: [drawn(122)] Uuid, UuidV4, "RFC 9562 version 4", "nothing",
                "it has no order: each insert hits another page";
            uuid_v4_clustered: [by_period(106)] Uuid, UuidV4Clustered, "Percona, pseudo-ordered",
                "nothing; keys of a week share their first 16 bits",
                "the next week's hash is anywhere";
            uuid_v4_clustered_compat: [by_period(108)] Uuid, UuidV4ClusteredCompat,
                "Percona, variant random", "nothing; keys of a week share their first 16 bits",
                "the next week's hash is anywhere; libraries that check the variant";
            uuid_v5: [named] Uuid, UuidV5, "RFC 9562 version 5", "nothing: SHA-1 of a name",
                "it has no order: each insert hits another page";
            uuid_v8_sha256: [named] Uuid, UuidV8Sha256, "RFC 9562 version 8, appendix B.2",
                "nothing: SHA-256 of a name", "it has no order: each insert hits another page";
            comb_nhibernate: [counted] Uuid, CombNHibernate, "NHibernate guid.comb",
                "1/300 second in the last six bytes, count",
                "bytes compared from the first; ends 2079-06-06";
            comb_rt_legacy: [counted] Uuid, CombRtLegacy, "RT.Comb, legacy",
                "1/300 second in the last six bytes, count",
                "bytes compared from the first; ends 2079-06-06";
            comb_rt_sql: [counted] Uuid, CombRtSql, "RT.Comb, SQL Server",
                "millisecond in the last six bytes, count", "bytes compared from the first";
            comb_rt_postgresql: [counted] Uuid, CombRtPostgreSql, "RT.Comb, PostgreSQL",
                "millisecond, count", "SQL Server; MariaDB's UUID";
            comb_rt_binary: [counted] Uuid, CombRtBinary, "RT.Comb, Guid.ToByteArray",
                "millisecond in .NET's byte order", "network order; SQL Server";
            comb_efcore: [counted] Uuid, CombEfCore, "EF Core sequential GUID",
                "100 ns tick, in SQL Server's order", "bytes compared from the first";
            sequential_guid_as_string: [counted] Uuid, SequentialGuidAsString,
                "SequentialGuid AsString", "millisecond since year 1, count",
                "SQL Server; MariaDB's UUID";
            sequential_guid_as_binary: [counted] Uuid, SequentialGuidAsBinary,
                "SequentialGuid AsBinary", "millisecond, in .NET's byte order",
                "network order; SQL Server";
            sequential_guid_at_end: [counted] Uuid, SequentialGuidAtEnd, "SequentialGuid AtEnd",
                "millisecond in the last six bytes", "bytes compared from the first";
            uuid_create_sequential: [random_node_first] Uuid, UuidCreateSequential,
                "UuidCreateSequential, NEWSEQUENTIALID()",
                "node, then 100 ns tick, in SQL Server's order",
                "bytes compared from the first; a new node";
            uuid_v8_sql_server: [counted] Uuid, UuidV8SqlServer, "RFC 9562 version 8",
                "millisecond in the last six bytes, count", "bytes compared from the first";
            newid: [node([2, 0, 0, 0, 0, 1], [2, 0x42, 0xac, 0x11, 0, 2])] Uuid, NewId,
                "MassTransit NewId", "100 ns tick, in SQL Server's order",
                "bytes compared from the first; a shared worker id";
            medo: [read_only] Uuid, Medo, "Medo.Uuid7 for SQL Server",
                "millisecond in the last six bytes", "only read here";
            ordered_text_22: [counted] Uuid, OrderedText22, "ordered text of 22 characters",
                "millisecond, count", "any collation but a binary one";
            ordered_text_22_push: [counted] Uuid, OrderedText22Push,
                "the same, push ids' alphabet", "millisecond, count",
                "any collation but a binary one";
            ordered_text_22_time64: [counted] Uuid, OrderedText22Time64,
                "64 bits of time, 64 random", "millisecond, count",
                "any collation but a binary one";
            ordered_text_22_time64_push: [counted] Uuid, OrderedText22Time64Push,
                "the same, push ids' alphabet", "millisecond, count",
                "any collation but a binary one";
            ordered_text_32: [counted] Key192, OrderedText32, "192 bits as 32 characters",
                "millisecond, count", "any collation but a binary one";
            ordered_text_32_push: [counted] Key192, OrderedText32Push,
                "the same, push ids' alphabet", "millisecond, count",
                "any collation but a binary one";
            ulid: [counted] Uuid, Ulid, "ULID", "millisecond, count",
                "a collation that puts letters before digits";
            push_id: [counted] PushId, FirebasePushId, "Firebase push id", "millisecond, count",
                "any collation but a binary one";
            object_id: [counted] ObjectId, ObjectIdScheme, "MongoDB ObjectId",
                "second, then process, then counter", "two processes in one second; ends 2106";
            snowflake: [snowflake_node] i64, Snowflake, "Twitter Snowflake",
                "millisecond, node, sequence", "a node used twice; ends 2080";
            snowflake_wide: [layout] i64, Snowflake<snowflake::WideSequence>, "41 + 4 + 18 bits",
                "millisecond, node, sequence", "a node used twice; ends 2093";
            discord: [layout] i64, Snowflake<snowflake::Discord>, "Discord",
                "millisecond, node, sequence", "a node used twice; ends 2084";
            sonyflake: [layout] i64, Snowflake<snowflake::Sonyflake>, "Sonyflake",
                "10 ms, sequence, node", "a node used twice; 25,600 keys a second";
            sonyflake_v2: [layout] i64, Snowflake<snowflake::SonyflakeV2>, "Sonyflake v2",
                "10 ms, sequence, node", "a node used twice; 25,600 keys a second";
            yitter: [layout] i64, Snowflake<snowflake::Yitter>, "yitter",
                "millisecond, node, sequence", "a node used twice; 32,000 keys a second";
            baidu_uid: [layout] i64, Snowflake<snowflake::BaiduUid>, "Baidu UidGenerator",
                "second, node, sequence", "its default epoch, which ended 2024-11-20";
            snowflake_spread: [spread_node] i64, SnowflakeSpread, "4 bits of bucket, 41 + 8 + 10",
                "bucket, then millisecond, node, sequence",
                "another number of buckets; a node used twice; ends 2093";
            instagram: [snowflake_node] i64, Instagram, "Instagram",
                "millisecond, shard, sequence", "a shard used twice; ends 2046";
            uuid_short: [node(1, 255)] u64, UuidShort, "MySQL UUID_SHORT()",
                "server, then second and counter", "a server's number used twice";
            percona_64: [node(1, 65_535)] u64, Percona64, "Percona's 64 bits",
                "second, node, counter", "a node used twice; ends 2106";
            sequence: [reserved] i64, Sequence, "a counter: sequence, row, Redis, ZooKeeper",
                "reservation", "a counter that went back; it tells how many keys there are";
            tickets: [reserved] i64, Tickets, "Flickr's ticket servers, TinyID",
                "reservation, within a segment", "two servers: they drift apart";
        }
    };
}

/// The entries of the list.
macro_rules! entries {
    ($(
        $name:ident: [$($kind:tt)+] $raw:ident, $scheme:ty, $system:literal, $by:literal,
        $broken:literal;
    )+) => {
        &[$(Entry {
            name: <$scheme as crate::key::Scheme>::NAME,
            system: $system,
            ordered_by: $by,
            broken_by: $broken,
            orders: entries!(@orders $raw $scheme),
            unknown_bits: entries!(@unknown [$($kind)+] $scheme),
            #[cfg(all(feature = "std", not(loom)))]
            example: entries!(@example [$($kind)+] $scheme),
            read: read::<$scheme>,
            form: Form::of(
                <$scheme as crate::key::Scheme>::TEXT,
                <<$scheme as crate::key::Scheme>::Raw as crate::key::RawKey>::BINARY,
            ),
            #[cfg(all(feature = "std", not(loom)))]
            scheme: &any::Of::<$scheme>(core::marker::PhantomData),
            #[cfg(all(feature = "std", not(loom)))]
            generator: entries!(@generator [$($kind)+] $scheme),
            #[cfg(all(feature = "std", not(loom)))]
            ranges: entries!(@ranges [$($kind)+] $scheme),
            #[cfg(all(feature = "std", not(loom)))]
            highest: entries!(@highest [$($kind)+] $scheme),
            #[cfg(all(feature = "std", feature = "named", not(loom)))]
            named: entries!(@named [$($kind)+] $scheme),
        }),+]
    };
    // Others compare as they are.
    (@orders Uuid $scheme:ty) => { Some(<$scheme as crate::key::Scheme>::ORDERS) };
    (@orders $raw:ident $scheme:ty) => { None };
    (@unknown [drawn($bits:literal)] $scheme:ty) => { $bits };
    (@unknown [by_period($bits:literal)] $scheme:ty) => { $bits };
    (@unknown [named] $scheme:ty) => { 0 };
    (@unknown [reserved] $scheme:ty) => { 0 };
    (@unknown [read_only] $scheme:ty) => { 0 };
    // The random bits of a scheme that counts: the count itself goes on by one.
    (@unknown [$($kind:tt)+] $scheme:ty) => {
        <$scheme as crate::generator::Slotted>::RANDOM_BITS
    };
    (@example [named] $scheme:ty) => { Some(|| nameless::<$scheme>().map(any::raw_of)) };
    // The number 1, of a count that nobody keeps.
    (@example [reserved] $scheme:ty) => { Some(|| Ok(any::raw_of(1_i64))) };
    (@example [$($kind:tt)+] $scheme:ty) => { None };
    (@generator [drawn($bits:literal)] $scheme:ty) => { Ok(any::drawing::<$scheme>) };
    (@generator [by_period($bits:literal)] $scheme:ty) => { Ok(any::drawing::<$scheme>) };
    (@generator [named] $scheme:ty) => { Err("they are made of names") };
    (@generator [reserved] $scheme:ty) => { Err("a store counts them") };
    (@generator [read_only] $scheme:ty) => { Err("they are only read") };
    (@generator [$($kind:tt)+] $scheme:ty) => { Ok(any::counting::<$scheme>) };
    (@ranges [spread] $scheme:ty) => { Some(any::ranges_of_buckets::<$scheme>) };
    (@ranges [spread_node] $scheme:ty) => { Some(any::ranges_of_buckets::<$scheme>) };
    (@ranges [$($kind:tt)+] $scheme:ty) => { <any::Of<$scheme>>::RANGES };
    (@highest [spread] $scheme:ty) => { Some(any::highest_of_buckets::<$scheme>) };
    (@highest [spread_node] $scheme:ty) => { Some(any::highest_of_buckets::<$scheme>) };
    (@highest [$($kind:tt)+] $scheme:ty) => { <any::Of<$scheme>>::HIGHEST };
    (@named [named] $scheme:ty) => { Some(<$scheme as crate::scheme::FromName>::from_name) };
    (@named [$($kind:tt)+] $scheme:ty) => { None };
}

/// Every scheme, grouped by family.
pub const CATALOGUE: &[Entry] = crate::__for_each_scheme! { entries };

/// A value whose scheme is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unknown<'a> {
    /// A text, without a prefix.
    Text(&'a str),
    /// Bytes, most significant first: 16 of a UUID, 8 of an integer, 12 of an ObjectId.
    Bytes(&'a [u8]),
}

/// The schemes that a value may belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detection {
    /// What each scheme reads in the value. The most certain ones come first, and equals are in the catalogue's
    /// order.
    pub candidates: Vec<Inspection>,
}

impl Detection {
    /// Returns the scheme of the value, if the value itself states exactly one.
    ///
    /// Variants of one UUID version do not count as different schemes, because a key does not state which of them
    /// made it.
    pub fn certain(&self) -> Option<&Inspection> {
        let mut stated = self
            .candidates
            .iter()
            .filter(|candidate| candidate.certainty == Certainty::Stated);
        stated.next().filter(|_| stated.next().is_none())
    }
}

/// A short answer: the scheme that the value states, the names of all candidates, or that no known scheme makes such
/// values.
impl fmt::Display for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.candidates[..], self.certain()) {
            ([], _) => f.write_str("no known scheme makes such values"),
            (_, Some(certain)) => write!(f, "it is {}", certain.scheme),
            (candidates, None) => {
                f.write_str("it cannot be told; it may be of ")?;
                for (position, candidate) in candidates.iter().enumerate() {
                    let separator = if position == 0 { "" } else { ", " };
                    write!(f, "{separator}{}", candidate.scheme)?;
                }
                Ok(())
            }
        }
    }
}

/// Returns the schemes that a value may belong to, with what each of them reads in it.
///
/// `now` is the present, or the latest time at which the value may have been made. If a scheme reads a time before
/// 1990, or more than a day after `now`, its certainty is at most [`Possible`](Certainty::Possible), unless the value
/// states the scheme.
///
/// Integers show nothing but the times that each layout reads in them, and most GUIDs without a version show no more
/// than that. Integers below 2^32 are more likely counters.
///
/// # Example
///
/// ```
/// use ordid_core::{clock::Timestamp, scheme::catalogue::{Unknown, detect}};
///
/// let now = Timestamp::from_unix_millis(1_767_225_600_000)?; // 2026-01-01
/// let detection = detect(Unknown::Text("017f22e2-79b0-7cc3-98c4-dc0c0c07398f"), now);
/// assert_eq!(detection.certain().unwrap().scheme, "uuid_v7");
///
/// // A Snowflake, an ObjectId's text, or anything else that counts from some epoch.
/// let detection = detect(Unknown::Text("759517997340696579"), now);
/// assert!(detection.certain().is_none());
/// assert!(detection.candidates.iter().any(|candidate| candidate.scheme == "snowflake"));
/// # Ok::<(), ordid_core::Error>(())
/// ```
pub fn detect(unknown: Unknown<'_>, now: Timestamp) -> Detection {
    const DAY_NANOS: i128 = 86_400_000_000_000;
    const EARLIEST: i128 = 631_152_000_000_000_000; // 1990-01-01
    /// Below it, an integer tells a time in the first minutes of any layout, and is more likely a count.
    const COUNTS: u64 = 1 << 32;
    let latest = i128::from(now.as_unix_millis()) * 1_000_000 + DAY_NANOS;
    // Many schemes have the text of a UUID or of an integer, which is read once for all of them.
    let (uuid, signed, unsigned) = match unknown {
        Unknown::Text(text) => (
            Uuid::read_text(None, text).map(Uuid::into_bytes),
            i64::read_text(None, text).map(RawKey::to_bytes),
            u64::read_text(None, text).map(RawKey::to_bytes),
        ),
        Unknown::Bytes(_) => (None, None, None),
    };
    let read = CATALOGUE.iter().filter_map(|entry| {
        let bytes: Option<&[u8]> = match (unknown, entry.form) {
            (Unknown::Bytes(_), _) => return (entry.read)(unknown),
            (Unknown::Text(_), Form::Own) if uuid.is_some() => None,
            (Unknown::Text(_), Form::Own) => return (entry.read)(unknown),
            (Unknown::Text(_), Form::Uuid) => uuid.as_ref().map(AsRef::as_ref),
            (Unknown::Text(_), Form::Signed) => signed.as_ref().map(AsRef::as_ref),
            (Unknown::Text(_), Form::Unsigned) => unsigned.as_ref().map(AsRef::as_ref),
        };
        (entry.read)(Unknown::Bytes(bytes?))
    });
    let foreign = match (&uuid, unknown) {
        (Some(bytes), _) => foreign(Uuid::from_bytes(*bytes)),
        // Another text is no UUID.
        (None, Unknown::Text(_)) => None,
        (None, Unknown::Bytes(bytes)) => Uuid::from_slice(bytes).ok().and_then(foreign),
    };
    // A UUID has up to six candidates.
    let mut candidates: Vec<Inspection> = Vec::with_capacity(8);
    candidates.extend(read.chain(foreign));
    let is_count = match unknown {
        Unknown::Text(text) => text.parse().is_ok_and(|number: u64| number < COUNTS),
        Unknown::Bytes(bytes) => {
            <[u8; 8]>::try_from(bytes).is_ok_and(|bytes| u64::from_be_bytes(bytes) < COUNTS)
        }
    };
    for candidate in &mut candidates {
        let is_of_its_time = candidate
            .moment
            .is_some_and(|moment| (EARLIEST..=latest).contains(&moment.unix_nanos));
        candidate.certainty = match candidate.certainty {
            Certainty::Stated => Certainty::Stated,
            _ if is_count && candidate.moment.is_none() => Certainty::Likely,
            _ if is_of_its_time && !is_count => Certainty::Likely,
            _ => Certainty::Possible,
        };
    }
    // Stable: the catalogue's order among equals.
    candidates.sort_by_key(|candidate| core::cmp::Reverse(candidate.certainty));
    Detection { candidates }
}

/// UUIDs of versions and variants that no scheme here makes.
fn foreign(uuid: Uuid) -> Option<Inspection> {
    let (scheme, certainty) = if uuid.is_nil() {
        ("nil", Certainty::Stated)
    } else if uuid.is_max() {
        ("max", Certainty::Stated)
    } else {
        match (uuid.get_variant(), uuid.get_version_num()) {
            (Variant::RFC4122, 2) => ("uuid_v2", Certainty::Stated),
            (Variant::RFC4122, 3) => ("uuid_v3", Certainty::Stated),
            (Variant::RFC4122, 8) => ("uuid_v8", Certainty::Stated),
            (Variant::NCS, _) => ("ncs", Certainty::Possible),
            (Variant::Microsoft, _) => ("microsoft_guid", Certainty::Possible),
            _ => return None,
        }
    };
    Some(Inspection {
        scheme,
        moment: None,
        bucket: None,
        node: None,
        counter: None,
        version: u8::try_from(uuid.get_version_num()).ok(),
        certainty,
    })
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::generator::Slotted;

    const NOW: u64 = 1_795_000_000_000; // 2026-11-18

    fn detected(text: &str) -> Detection {
        detect(
            Unknown::Text(text),
            Timestamp::from_unix_millis(NOW).unwrap(),
        )
    }

    #[test]
    fn each_scheme_has_one_entry_and_is_detected_by_its_own_key() {
        for (position, entry) in CATALOGUE.iter().enumerate() {
            let others = CATALOGUE.iter().skip(position + 1);
            assert!(others.clone().all(|other| other.name != entry.name));
            let Some(made) = entry.make() else {
                assert_eq!(entry.name, "medo");
                continue;
            };
            let made = match made {
                Ok(made) => made,
                Err(error) => {
                    // Its default epoch is over.
                    assert!(entry.name == "baidu_uid" && error.is_clock(), "{error}");
                    continue;
                }
            };
            // A point ends the key in a cursor.
            assert!(!made.text.contains('.'), "{}", made.text);
            let now = Timestamp::try_from(std::time::SystemTime::now()).unwrap();
            let detection = detect(Unknown::Text(&made.text), now);
            let found = detection
                .candidates
                .iter()
                .find(|candidate| candidate.scheme == entry.name);
            let found = found.unwrap_or_else(|| panic!("{} is not detected", entry.name));
            if found.moment.is_some() {
                assert!(found.certainty >= Certainty::Likely, "{found:?}");
            }
        }
    }

    /// A text that many schemes have in common is read once for all of them.
    #[test]
    fn each_scheme_that_reads_a_text_is_a_candidate() {
        for text in [
            "0",
            "-5",
            "+5",
            "007",
            "759517997340696579",
            "9223372036854775808",
            "18446744073709551616",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
            "01FWHE4YDGFK1SHH6W1G60EECF",
            "507f1f77bcf86cd799439011",
            "-Nabcdefghijklmnopqr",
            "12345678901234567890",
            "",
        ] {
            let readers = CATALOGUE
                .iter()
                .filter(|it| (it.read)(Unknown::Text(text)).is_some());
            let mut readers: Vec<_> = readers.map(|it| it.name).collect();
            let candidates = detected(text).candidates.into_iter();
            let mut candidates: Vec<_> = candidates.map(|it| it.scheme).collect();
            candidates.sort_unstable();
            readers.sort_unstable();
            assert_eq!(candidates, readers, "{text}");
        }
    }

    #[test]
    fn unknown_bits_are_those_that_the_layout_leaves() {
        let bits = |name: &str| {
            let entry = CATALOGUE.iter().find(|entry| entry.name == name);
            entry.unwrap().unknown_bits
        };
        assert_eq!(bits("uuid_v7"), 32);
        assert_eq!(bits("uuid_v7_unguessable"), 56);
        assert_eq!(bits("uuid_v4"), 122);
        assert_eq!(bits("snowflake"), 0);
    }

    #[test]
    fn versions_that_no_scheme_makes_are_detected_too() {
        for (text, scheme) in [
            ("00000000-0000-0000-0000-000000000000", "nil"),
            ("ffffffff-ffff-ffff-ffff-ffffffffffff", "max"),
            ("000003e8-2dd1-21ef-9900-325096b39f47", "uuid_v2"),
            ("5df41881-3aed-3515-88a7-2f4a814cf09e", "uuid_v3"),
            ("2ed6657d-e927-568b-95e1-2665a8aea6a2", "uuid_v5"),
            ("c232ab00-9414-11ec-b3c8-9f6bdeced846", "uuid_v1"),
            ("919108f7-52d1-4320-9bac-f847db4148a8", "uuid_v4"),
            ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "uuid_v6"),
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "uuid_v7"),
        ] {
            let detection = detected(text);
            let stated = &detection.candidates[0];
            assert_eq!(stated.certainty, Certainty::Stated, "{text}: {detection}");
            assert_eq!(stated.scheme, scheme, "{detection}");
        }
    }

    #[test]
    fn detect_says_what_it_cannot_decide() {
        let detection = detected("1671372309237077023"); // Instagram's sample
        assert!(detection.certain().is_none());
        let text = detection.to_string();
        assert!(
            text.starts_with("it cannot be told; it may be of "),
            "{text}"
        );
        assert!(
            text.contains("instagram") && text.contains("snowflake"),
            "{text}"
        );
        assert_eq!(
            detected("no key").to_string(),
            "no known scheme makes such values"
        );
        let megabyte = "0".repeat(1 << 20);
        assert!(detected(&megabyte).candidates.is_empty());
    }

    #[test]
    fn a_small_integer_is_more_likely_a_count_than_a_time() {
        for number in ["1", "123", "4294967295"] {
            let detection = detected(number);
            assert_eq!(detection.candidates[0].scheme, "sequence", "{detection}");
            let snowflake = detection
                .candidates
                .iter()
                .find(|it| it.scheme == "snowflake");
            assert_eq!(snowflake.unwrap().certainty, Certainty::Possible);
        }
        assert_eq!(
            detected("759517997340696579").candidates[0].scheme,
            "snowflake"
        );
    }

    #[test]
    fn a_time_in_the_future_is_at_most_possible() {
        // 2016 as ULID.
        let detection = detected("01ARYZ6S41TSV4RRFFQ69G5FAV");
        assert_eq!(detection.candidates[0].certainty, Certainty::Likely);
        // 10889.
        let detection = detected("7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(detection.candidates[0].certainty, Certainty::Possible);
    }

    #[test]
    fn the_documented_last_years_of_layouts_are_right() {
        fn end<S: Slotted>() -> (&'static str, i16) {
            let last = S::SCALE.unix_nanos_at((1 << S::TICK_BITS) - 1);
            let last = jiff::Timestamp::from_nanosecond(last).unwrap();
            (S::NAME, last.to_zoned(jiff::tz::TimeZone::UTC).year())
        }
        let ends = [
            end::<CombNHibernate>(),
            end::<CombRtLegacy>(),
            end::<ObjectIdScheme>(),
            end::<Snowflake>(),
            end::<Snowflake<snowflake::WideSequence>>(),
            end::<Snowflake<snowflake::Discord>>(),
            end::<SnowflakeSpread>(),
            end::<Instagram>(),
            end::<Percona64>(),
        ];
        let said = CATALOGUE.iter().filter_map(|entry| {
            let (_, rest) = entry.broken_by.split_once("ends ")?;
            Some((entry.name, rest[..4].parse().unwrap()))
        });
        assert_eq!(said.collect::<Vec<(&str, i16)>>(), ends);
    }
}
