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
#[cfg(feature = "juniper018")]
pub(crate) mod juniper;
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
        $crate::__interop_juniper! { $key }
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
                __source: &mut $crate::__private::external::Unstructured<'a>,
            ) -> $crate::__private::external::ArbitraryResult<Self> {
                $crate::__private::external::arbitrary(__source)
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
// the trait for all crates of the program.
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

// juniper's own macro names `::juniper`, which the user's crate may not depend on. The impls are those of its
// `#[derive(GraphQLScalar)]`.
#[cfg(feature = "juniper018")]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_juniper {
    ($key:ty) => {
        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::marker::IsInputType<__S> for $key
        {
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::marker::IsOutputType<__S> for $key
        {
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::GraphQLType<__S> for $key
        {
            fn name(
                _: &(),
            ) -> $crate::__private::Option<$crate::__private::external::juniper::ArcStr> {
                $crate::__private::external::scalar_name::<Self>()
            }

            fn meta(
                _: &(),
                __registry: &mut $crate::__private::external::juniper::Registry<__S>,
            ) -> $crate::__private::external::juniper::meta::MetaType<__S> {
                $crate::__private::external::scalar_meta::<Self, __S>(__registry)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::GraphQLValue<__S> for $key
        {
            type Context = ();
            type TypeInfo = ();

            fn type_name(
                &self,
                __info: &(),
            ) -> $crate::__private::Option<$crate::__private::external::juniper::ArcStr> {
                <Self as $crate::__private::external::juniper::GraphQLType<__S>>::name(__info)
            }

            fn resolve(
                &self,
                _: &(),
                _: $crate::__private::Option<
                    &[$crate::__private::external::juniper::Selection<'_, __S>],
                >,
                _: &$crate::__private::external::juniper::Executor<'_, '_, (), __S>,
            ) -> $crate::__private::external::juniper::ExecutionResult<__S> {
                $crate::__private::external::resolve(*self)
            }
        }

        #[automatically_derived]
        impl<
            __S: $crate::__private::external::juniper::ScalarValue
                + ::core::marker::Send
                + ::core::marker::Sync,
        > $crate::__private::external::juniper::GraphQLValueAsync<__S> for $key
        {
            fn resolve_async<'a>(
                &'a self,
                _: &'a (),
                _: $crate::__private::Option<
                    &'a [$crate::__private::external::juniper::Selection<'_, __S>],
                >,
                _: &'a $crate::__private::external::juniper::Executor<'_, '_, (), __S>,
            ) -> $crate::__private::external::juniper::BoxFuture<
                'a,
                $crate::__private::external::juniper::ExecutionResult<__S>,
            > {
                $crate::__private::external::resolve_async(*self)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::ToScalarValue<__S> for $key
        {
            fn to_scalar_value(&self) -> __S {
                $crate::__private::external::to_scalar(*self)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::ToInputValue<__S> for $key
        {
            fn to_input_value(&self) -> $crate::__private::external::juniper::InputValue<__S> {
                $crate::__private::external::to_input_value(*self)
            }
        }

        #[automatically_derived]
        impl<'s, __S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::FromScalarValue<'s, __S> for $key
        {
            type Error = $crate::__private::external::juniper::FieldError<__S>;

            fn from_scalar_value(
                __scalar: &'s __S,
            ) -> $crate::__private::Result<Self, Self::Error> {
                $crate::__private::external::of_scalar(__scalar)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::FromInputValue<__S> for $key
        {
            type Error = $crate::__private::external::juniper::FieldError<__S>;

            fn from_input_value(
                __value: &$crate::__private::external::juniper::InputValue<__S>,
            ) -> $crate::__private::Result<Self, Self::Error> {
                $crate::__private::external::of_input_value(__value)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::ParseScalarValue<__S> for $key
        {
            fn from_str(
                __token: $crate::__private::external::juniper::ScalarToken<'_>,
            ) -> $crate::__private::external::juniper::ParseScalarResult<__S> {
                $crate::__private::external::scalar_of_token(__token)
            }
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::macros::reflect::BaseType<__S> for $key
        {
            const NAME: $crate::__private::external::juniper::macros::reflect::Type =
                <$key as $crate::__private::KeyType>::NAME;
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::macros::reflect::BaseSubTypes<__S> for $key
        {
            const NAMES: $crate::__private::external::juniper::macros::reflect::Types =
                &[<$key as $crate::__private::KeyType>::NAME];
        }

        #[automatically_derived]
        impl<__S: $crate::__private::external::juniper::ScalarValue>
            $crate::__private::external::juniper::macros::reflect::WrappedType<__S> for $key
        {
            const VALUE: $crate::__private::external::juniper::macros::reflect::WrappedValue = 1;
        }
    };
}

#[cfg(not(feature = "juniper018"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __interop_juniper {
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
                __serializer: __S,
            ) -> $crate::__private::Result<__S::Ok, __S::Error> {
                $crate::__private::external::serialize(*self, __serializer)
            }
        }

        #[automatically_derived]
        impl<'de> $crate::__private::external::Deserialize<'de> for $key {
            fn deserialize<__D: $crate::__private::external::Deserializer<'de>>(
                __deserializer: __D,
            ) -> $crate::__private::Result<Self, __D::Error> {
                $crate::__private::external::deserialize(__deserializer)
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

/// Implements `ShortKey` for `#[ordid(short = SHORT)]`.
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
