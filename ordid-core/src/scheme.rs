//! Key schemes. Each module describes one scheme: its layout, its generator and its source.

/// Names a generator. With `std` clock and entropy have defaults; without it there are none to have.
macro_rules! generator_alias {
    ($(#[$attribute:meta])* $name:ident<C, E> = $generator:ty) => {
        #[cfg(feature = "std")]
        $(#[$attribute])*
        pub type $name<C = crate::clock::SystemClock, E = crate::entropy::ThreadEntropy> =
            $generator;

        #[cfg(not(feature = "std"))]
        $(#[$attribute])*
        pub type $name<C, E> = $generator;
    };
}

/// Gives schemes a generator for the process: the system's clock, the default policy.
macro_rules! process_wide {
    ($($scheme:ty),+ $(,)?) => {
        $(
            #[cfg(all(feature = "std", not(loom)))]
            impl crate::generator::ProcessWide for $scheme {
                fn process_wide() -> &'static crate::generator::OrderedGenerator<
                    Self,
                    crate::clock::SystemClock,
                    crate::entropy::ThreadEntropy,
                > {
                    static GENERATOR: crate::generator::OrderedGenerator<
                        $scheme,
                        crate::clock::SystemClock,
                        crate::entropy::ThreadEntropy,
                    > = crate::generator::OrderedGenerator::of_process(
                        crate::clock::SystemClock,
                        crate::entropy::ThreadEntropy,
                        crate::generator::Policy::DEFAULT,
                    );
                    &GENERATOR
                }
            }
        )+
    };
}

/// Names a scheme's generator, and makes the one for the process.
macro_rules! generator {
    ($(#[$docs:meta])* $generator:ident: $scheme:ident) => {
        generator_alias! {
            $(#[$docs])*
            $generator<C, E> = $crate::generator::OrderedGenerator<$scheme, C, E>
        }
        process_wide!($scheme);
    };
}

/// The begin of [`Scheme`](crate::key::Scheme) for UUIDs of one version of RFC 9562.
macro_rules! rfc_9562 {
    ($name:literal, version $version:literal, $orders:expr) => {
        type Raw = uuid::Uuid;

        const NAME: &'static str = $name;
        const ORDERS: crate::layout::Orders = $orders;
        const EXPECTED: &'static str = concat!("version ", $version, " and variant RFC 9562");
        const TEXT_IS_RAW: bool = true;

        fn check(raw: &uuid::Uuid) -> bool {
            crate::scheme::anatomy::has_version(raw, $version)
        }

        fn coerce(raw: uuid::Uuid) -> uuid::Uuid {
            crate::scheme::anatomy::with_version(raw, $version)
        }
    };
}

/// [`Scheme`](crate::key::Scheme) of UUIDs of one version that have neither order nor time, of this
/// variant.
macro_rules! without_order {
    ($variant:ident!($name:literal, version $($version:tt)+)) => {
        $variant!($name, version $($version)+, crate::layout::Orders::NONE);

        fn timestamp(_: &uuid::Uuid) -> Option<crate::clock::Timestamp> {
            None
        }
    };
}

/// As [`rfc_9562`], of any variant.
macro_rules! version_of_any_variant {
    ($name:literal, version $version:literal: $expected:literal, $orders:expr) => {
        type Raw = uuid::Uuid;

        const NAME: &'static str = $name;
        const ORDERS: crate::layout::Orders = $orders;
        const EXPECTED: &'static str = $expected;
        const TEXT_IS_RAW: bool = true;

        fn check(raw: &uuid::Uuid) -> bool {
            raw.get_version_num() == $version
        }

        fn coerce(raw: uuid::Uuid) -> uuid::Uuid {
            let mut bytes = raw.into_bytes();
            bytes[6] = $version << 4 | bytes[6] & 0x0f;
            uuid::Uuid::from_bytes(bytes)
        }
    };
}

/// The begin of [`Scheme`](crate::key::Scheme) for a scheme that any value may be a key of: its layout
/// has no bit that is the same in all keys.
macro_rules! any_value {
    ($name:expr, $raw:ty: $expected:literal, $orders:expr) => {
        type Raw = $raw;

        const NAME: &'static str = $name;
        const ORDERS: crate::layout::Orders = $orders;
        const EXPECTED: &'static str = $expected;
        const TEXT_IS_RAW: bool = true;

        /// Always.
        fn check(_: &$raw) -> bool {
            true
        }
    };
}

/// The begin of [`Layout`](crate::scheme::Layout) for keys that are their fields: each with its bits,
/// the first on top.
macro_rules! fields {
    ($parts:ident: $($field:ident = $bits:expr),+) => {
        type Parts = $parts;

        fn pack(parts: $parts) -> Result<Self::Raw, crate::error::Error> {
            crate::scheme::anatomy::pack::<Self, _>([
                $((stringify!($field), parts.$field.into(), $bits)),+
            ])
        }

        fn unpack(raw: &Self::Raw) -> Result<$parts, crate::error::Error> {
            let [$($field),+] = crate::scheme::anatomy::unpack::<Self, _>(raw, [$($bits),+])?;
            Ok($parts { $($field: crate::scheme::anatomy::narrowed($field)),+ })
        }
    };
}

/// Does the same as [`fields`] for UUIDs of one version of RFC 9562, whose fields go around version and variant.
macro_rules! fields_around_version {
    ($version:literal: $($field:ident = $bits:expr),+) => {
        type Parts = Parts;

        fn pack(parts: Parts) -> Result<uuid::Uuid, crate::error::Error> {
            const { assert!(0 $(+ $bits)+ == 122, "all but version and variant") };
            crate::scheme::anatomy::pack_around_version::<Self, _>(
                $version,
                [$((stringify!($field), parts.$field.into(), $bits)),+],
            )
        }

        fn unpack(raw: &uuid::Uuid) -> Result<Parts, crate::error::Error> {
            let [$($field),+] =
                crate::scheme::anatomy::unpack_around_version::<Self, _>(raw, [$($bits),+])?;
            Ok(Parts { $($field: crate::scheme::anatomy::narrowed($field)),+ })
        }
    };
}

/// The bits of slots without a node: keys of a unit of time as a power of two, unpredictable bits
/// that the counter starts with, random bits of each key. The counter has one bit more, which begins
/// as zero.
macro_rules! counter_bits {
    (index: $index:expr, seed: $seed:expr, random: $random:expr) => {
        type Node = ();

        const INDEX_BITS: u32 = $index;
        const SEED_BITS: u32 = $seed;
        const RANDOM_BITS: u32 = $random;
    };
}

/// The bits of slots, which are another scheme's.
macro_rules! slot_bits_of {
    ($scheme:ty) => {
        const SCALE: $crate::clock::TimeScale = <$scheme>::SCALE;
        const TICK_BITS: u32 = <$scheme>::TICK_BITS;
        const LAST_TICK: u64 = <$scheme>::LAST_TICK;
        const INDEX_BITS: u32 = <$scheme>::INDEX_BITS;
        const FRACTION_BITS: u32 = <$scheme>::FRACTION_BITS;
        const SEED_BITS: u32 = <$scheme>::SEED_BITS;
        const RANDOM_BITS: u32 = <$scheme>::RANDOM_BITS;
        const IDENTITY: bool = <$scheme>::IDENTITY;
        const RENEWS: bool = <$scheme>::RENEWS;
    };
}

/// The text of a scheme whose keys have one of their own, unless a prefix makes them a TypeID.
macro_rules! own_text_without_prefix {
    (text: $text:expr, parse: $parse:expr, read: $read:expr) => {
        #[inline]
        fn write_text(
            raw: uuid::Uuid,
            prefix: Option<&str>,
            f: &mut core::fmt::Formatter<'_>,
        ) -> core::fmt::Result {
            match prefix {
                None => $crate::key::text::write_prefixed(None, &$text(raw), f),
                Some(_) => $crate::key::RawKey::write_text(raw, prefix, f),
            }
        }

        #[inline]
        fn text_in<'r>(
            raw: uuid::Uuid,
            prefix: Option<&str>,
            room: &'r mut $crate::key::text::Room,
        ) -> Option<&'r str> {
            match prefix {
                None => room.join(None, &$text(raw)),
                Some(_) => $crate::key::RawKey::text_in(raw, prefix, room),
            }
        }

        fn parse_text(
            prefix: Option<&str>,
            text: &str,
        ) -> Result<uuid::Uuid, $crate::error::Error> {
            match prefix {
                None => $parse(text.as_bytes()),
                Some(_) => <uuid::Uuid as $crate::key::RawKey>::parse_text(prefix, text),
            }
        }

        #[inline]
        fn read_text(prefix: Option<&str>, text: &str) -> Option<uuid::Uuid> {
            match prefix {
                None => $read(text.as_bytes()),
                Some(_) => <uuid::Uuid as $crate::key::RawKey>::read_text(prefix, text),
            }
        }
    };
}

/// A raw key that is a key type itself, of one scheme.
macro_rules! own_key_type {
    ($(#[$docs:meta])* $raw:ident: $scheme:ident) => {
        $(#[$docs])*
        impl crate::key::KeyType for $raw {
            type Raw = $raw;
            type Scheme = $scheme;

            const NAME: &'static str = stringify!($raw);
            const PREFIX: Option<&'static str> = None;

            #[inline]
            fn from_generated(generated: crate::key::Generated<$scheme>) -> Self {
                generated.into_raw()
            }

            #[inline]
            fn to_raw(self) -> $raw {
                self
            }

            fn from_raw(raw: $raw) -> Result<Self, crate::error::Error> {
                Ok(raw)
            }
        }
    };
}

/// A scheme whose generator parameters are fixed by a type. It makes the same keys, under the same name. The
/// requirements on the type are checked only where a generator is made, so that a wrong type gives one error.
macro_rules! settled {
    ($(#[$attribute:meta])* $wrapper:ident) => {
        $(#[$attribute])*
        pub enum $wrapper<S, P> {
            /// There are no values: a scheme is a type.
            #[doc(hidden)]
            Never(
                core::convert::Infallible,
                core::marker::PhantomData<fn() -> (S, P)>,
            ),
        }

        impl<S: crate::key::Scheme, P: 'static> crate::key::Scheme for $wrapper<S, P> {
            type Raw = S::Raw;

            const NAME: &'static str = S::NAME;
            const ORDERS: crate::layout::Orders = S::ORDERS;
            const EXPECTED: &'static str = S::EXPECTED;
            const TEXT: crate::key::TextForm = S::TEXT;
            const SUFFIX: crate::key::TextForm = S::SUFFIX;
            const BUCKETS: u16 = S::BUCKETS;

            fn bucket(raw: &S::Raw) -> u16 {
                S::bucket(raw)
            }

            #[inline]
            fn check(raw: &S::Raw) -> bool {
                S::check(raw)
            }

            fn coerce(raw: S::Raw) -> S::Raw {
                S::coerce(raw)
            }

            fn timestamp(raw: &S::Raw) -> Option<crate::clock::Timestamp> {
                S::timestamp(raw)
            }

            #[inline]
            fn cmp(left: &S::Raw, right: &S::Raw) -> core::cmp::Ordering {
                S::cmp(left, right)
            }

            fn write_text(
                raw: S::Raw,
                prefix: Option<&str>,
                f: &mut core::fmt::Formatter<'_>,
            ) -> core::fmt::Result {
                S::write_text(raw, prefix, f)
            }

            #[inline]
            fn text_in<'r>(
                raw: S::Raw,
                prefix: Option<&str>,
                room: &'r mut crate::key::text::Room,
            ) -> Option<&'r str> {
                S::text_in(raw, prefix, room)
            }

            fn parse_text(
                prefix: Option<&str>,
                text: &str,
            ) -> Result<S::Raw, crate::error::Error> {
                S::parse_text(prefix, text)
            }

            #[inline]
            fn read_text(prefix: Option<&str>, text: &str) -> Option<S::Raw> {
                S::read_text(prefix, text)
            }
        }

        impl<S: crate::scheme::Layout, P: 'static> crate::scheme::Layout for $wrapper<S, P> {
            type Parts = S::Parts;

            fn pack(parts: S::Parts) -> Result<S::Raw, crate::error::Error> {
                S::pack(parts)
            }

            fn unpack(raw: &S::Raw) -> Result<S::Parts, crate::error::Error> {
                S::unpack(raw)
            }

            fn inspect(raw: &S::Raw) -> Result<crate::scheme::Inspection, crate::error::Error> {
                S::inspect(raw)
            }
        }
    };
}

mod anatomy;
// The module is declared twice, so that the compiler names the feature if it is missing.
#[cfg(feature = "catalogue")]
pub mod catalogue;
#[cfg(all(test, not(feature = "catalogue")))]
pub mod catalogue;
pub mod comb;
pub mod compact;
pub mod convert;
pub mod counted;
mod gregorian;
mod guid;
pub mod instagram;
#[cfg(test)]
#[cfg(not(loom))]
mod laws;
pub mod masked;
pub mod medo;
pub mod named;
pub mod newid;
pub mod node;
pub mod object_id;
pub mod ordered_text;
pub mod percona_64;
pub mod push_id;
mod random;
pub mod sequential_guid;
pub mod snowflake;
pub mod snowflake_spread;
pub mod spread;
#[cfg(test)]
#[cfg(not(loom))]
mod testing;
pub mod ulid;
pub mod uuid_create_sequential;
pub mod uuid_short;
pub mod uuid_v1;
pub mod uuid_v1_rearranged;
pub mod uuid_v4;
pub mod uuid_v4_clustered;
pub mod uuid_v5;
pub mod uuid_v6;
pub mod uuid_v7;
pub mod uuid_v7_spread;
pub mod uuid_v7_sub_millis;
pub mod uuid_v7_unguessable;
pub mod uuid_v8_sha256;
pub mod uuid_v8_sql_server;

pub use anatomy::{Certainty, Inspection, Layout, TimeOrdered};
pub use comb::{
    CombEfCore, CombNHibernate, CombRtBinary, CombRtLegacy, CombRtPostgreSql, CombRtSql,
};
pub use compact::Compact;
pub use counted::{Sequence, Tickets};
pub use instagram::Instagram;
pub use masked::UuidMask;
pub use medo::Medo;
pub use named::FromName;
pub use newid::NewId;
pub use node::UuidNode;
pub use object_id::ObjectIdScheme;
pub use ordered_text::{
    OrderedText22, OrderedText22Push, OrderedText22Time64, OrderedText22Time64Push, OrderedText32,
    OrderedText32Push,
};
pub use percona_64::Percona64;
pub use push_id::FirebasePushId;
pub use random::{Drawn, Random, RandomGenerator};
pub use sequential_guid::{SequentialGuidAsBinary, SequentialGuidAsString, SequentialGuidAtEnd};
pub use snowflake::Snowflake;
pub use snowflake_spread::SnowflakeSpread;
pub use spread::{Spread, SpreadKey};
pub use ulid::Ulid;
pub use uuid_create_sequential::UuidCreateSequential;
pub use uuid_short::UuidShort;
pub use uuid_v1::UuidV1;
pub use uuid_v1_rearranged::UuidV1Rearranged;
pub use uuid_v4::UuidV4;
pub use uuid_v4_clustered::{UuidV4Clustered, UuidV4ClusteredCompat};
pub use uuid_v5::UuidV5;
pub use uuid_v6::UuidV6;
pub use uuid_v7::UuidV7;
pub use uuid_v7_spread::UuidV7Spread;
pub use uuid_v7_sub_millis::UuidV7SubMillis;
pub use uuid_v7_unguessable::UuidV7Unguessable;
pub use uuid_v8_sha256::UuidV8Sha256;
pub use uuid_v8_sql_server::UuidV8SqlServer;
