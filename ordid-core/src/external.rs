//! Traits of other crates, for key types that `#[derive(KeyType)]` makes, and conversions of times.
//!
//! Only the user's crate may implement them for its type, so derived code calls
//! [`key_type_interop!`](crate::__private::key_type_interop), which calls one macro per library. Each
//! exists twice: with the feature it implements, without it does nothing. (A `cfg` inside a macro's
//! body would ask for the features of the user's crate.) What the impls do stands in functions here.

#[cfg(feature = "arbitrary")]
pub(crate) mod arbitrary;
#[cfg(feature = "chrono")]
mod chrono;
#[cfg(feature = "jiff")]
mod jiff;
#[cfg(feature = "proptest")]
pub(crate) mod proptest;
#[cfg(any(feature = "schemars", feature = "utoipa"))]
pub(crate) mod schema;
#[cfg(feature = "schemars")]
pub(crate) mod schemars;
#[cfg(feature = "serde")]
pub(crate) mod serde;
#[cfg(feature = "time")]
mod time;
#[cfg(feature = "utoipa")]
pub(crate) mod utoipa;

/// All libraries' impls for a key type.
#[doc(hidden)]
#[macro_export]
macro_rules! __key_type_interop {
    ($key:ty) => {
        $crate::__interop_arbitrary! { $key }
        $crate::__interop_async_graphql! { $key }
        $crate::__interop_proptest! { $key }
        $crate::__interop_schemars! { $key }
        $crate::__interop_serde! { $key }
        $crate::__interop_utoipa! { $key }
    };
}

#[cfg(feature = "arbitrary")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_arbitrary {
    ($key:ty) => {
        #[automatically_derived]
        impl<'a> $crate::__private::external::Arbitrary<'a> for $key {
            fn arbitrary(
                source: &mut $crate::__private::external::Unstructured<'a>,
            ) -> $crate::__private::external::ArbitraryResult<Self> {
                $crate::__private::external::arbitrary(source)
            }

            fn size_hint(
                _: $crate::__private::usize,
            ) -> (
                $crate::__private::usize,
                $crate::__private::Option<$crate::__private::usize>,
            ) {
                $crate::__private::external::size_hint::<Self>()
            }
        }
    };
}

#[cfg(not(feature = "arbitrary"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_arbitrary {
    ($key:ty) => {};
}

// The scalar is what serde writes and reads. async-graphql's own macro implements it, since its feature `boxed-trait` changes
// the trait for all crates of the program. juniper has no such macro: a scalar has a dozen traits there.
#[cfg(feature = "async-graphql7")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_async_graphql {
    ($key:ty) => {
        $crate::__private::external::graphql_scalar! { $key }
    };
}

#[cfg(not(feature = "async-graphql7"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_async_graphql {
    ($key:ty) => {};
}

#[cfg(feature = "proptest")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_proptest {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::external::ArbitraryStrategy for $key {
            type Parameters = ();
            type Strategy = $crate::__private::external::KeyStrategy<Self>;

            fn arbitrary_with((): ()) -> $crate::__private::external::KeyStrategy<Self> {
                $crate::__private::external::strategy()
            }
        }
    };
}

#[cfg(not(feature = "proptest"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_proptest {
    ($key:ty) => {};
}

#[cfg(feature = "schemars")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_schemars {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::external::JsonSchema for $key {
            fn schema_name() -> $crate::__private::Cow<'static, $crate::__private::str> {
                $crate::__private::external::schema_name::<Self>()
            }

            fn schema_id() -> $crate::__private::Cow<'static, $crate::__private::str> {
                $crate::__private::external::schema_id::<Self>($crate::__private::module_path!())
            }

            fn json_schema(
                _: &mut $crate::__private::external::SchemaGenerator,
            ) -> $crate::__private::external::Schema {
                $crate::__private::external::json_schema::<Self>()
            }
        }
    };
}

#[cfg(not(feature = "schemars"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_schemars {
    ($key:ty) => {};
}

#[cfg(feature = "serde")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_serde {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::external::Serialize for $key {
            fn serialize<__S: $crate::__private::external::Serializer>(
                &self,
                serializer: __S,
            ) -> $crate::__private::Result<__S::Ok, __S::Error> {
                $crate::__private::external::serialize(*self, serializer)
            }
        }

        #[automatically_derived]
        impl<'de> $crate::__private::external::Deserialize<'de> for $key {
            fn deserialize<__D: $crate::__private::external::Deserializer<'de>>(
                deserializer: __D,
            ) -> $crate::__private::Result<Self, __D::Error> {
                $crate::__private::external::deserialize(deserializer)
            }
        }
    };
}

#[cfg(not(feature = "serde"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_serde {
    ($key:ty) => {};
}

#[cfg(feature = "utoipa")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_utoipa {
    ($key:ty) => {
        #[automatically_derived]
        impl $crate::__private::external::PartialSchema for $key {
            fn schema()
            -> $crate::__private::external::RefOr<$crate::__private::external::OpenApiSchema> {
                $crate::__private::external::open_api_schema::<Self>()
            }
        }

        #[automatically_derived]
        impl $crate::__private::external::ToSchema for $key {
            fn name() -> $crate::__private::Cow<'static, $crate::__private::str> {
                $crate::__private::external::schema_name::<Self>()
            }
        }
    };
}

#[cfg(not(feature = "utoipa"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_utoipa {
    ($key:ty) => {};
}

/// `#[ordid(short = SHORT)]`.
#[cfg(feature = "sqids04")]
#[doc(hidden)]
#[macro_export]
macro_rules! __short_key {
    ($key:ty, $sqids:path) => {
        #[automatically_derived]
        impl $crate::__private::ShortKey for $key {
            fn sqids() -> &'static $crate::__private::Sqids {
                &$sqids
            }
        }
    };
}

#[cfg(not(feature = "sqids04"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __short_key {
    ($key:ty, $sqids:path) => {
        ::core::compile_error!("`short` needs the feature `sqids04` of `ordid`");
    };
}

/// Makes a key of arbitrary bytes; `None` only where a scheme refuses what its
/// [`coerce`](crate::Scheme::coerce) made.
#[cfg(any(feature = "arbitrary", feature = "proptest"))]
fn key_of_bits<K: crate::KeyType>(fill: impl FnOnce(&mut [u8])) -> Option<K> {
    use crate::{RawKey, Scheme};

    let mut bytes = <K::Raw as RawKey>::Bytes::default();
    fill(bytes.as_mut());
    K::from_raw(K::Scheme::coerce(K::Raw::from_bytes(bytes))).ok()
}

/// How many bytes a key has.
#[cfg(any(feature = "arbitrary", feature = "proptest"))]
fn length_of<K: crate::KeyType>() -> usize {
    <K::Raw as crate::RawKey>::Bytes::default().as_ref().len()
}
