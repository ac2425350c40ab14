//! What derived code calls. Not for others: exempt from semantic versioning.

use core::fmt;

pub use alloc::borrow::Cow;
pub use core::{
    clone::Clone,
    cmp::{Eq, Ord, Ordering, PartialEq, PartialOrd},
    convert::{From, TryFrom},
    fmt::{Debug, Display, Formatter, Result as FmtResult},
    hash::{Hash, Hasher},
    marker::{Copy, Sized},
    module_path,
    ops::FnMut,
    option::Option::{self, None, Some},
    primitive::{bool, i64, str, u64, usize},
    result::Result::{self, Err, Ok},
    str::FromStr,
};

pub use crate::{
    __key_type_interop as key_type_interop, Error,
    entity::{Fields, KeyOf, OrderedKey, Parent, Sink},
    key::{
        Generated, Key192, KeyBytes, KeyField, KeyType, ObjectId, PushId, RawKey, Scheme, TypedKey,
        scatter::{Scatter, ScatteredKey},
        text::check_prefix,
    },
    scheme,
    scheme::{UuidMask, masked::MaskedKey},
};
pub use uuid::Uuid;

/// What [`key_type_interop!`] calls: other crates' traits, and the bodies of their functions.
pub mod external {
    #[cfg(feature = "arbitrary")]
    pub use arbitrary::{Arbitrary, Result as ArbitraryResult, Unstructured};
    #[cfg(feature = "proptest")]
    pub use proptest::arbitrary::Arbitrary as ArbitraryStrategy;
    #[cfg(feature = "schemars")]
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};
    #[cfg(feature = "serde")]
    pub use serde_core::{Deserialize, Deserializer, Serialize, Serializer};
    #[cfg(feature = "utoipa")]
    pub use utoipa::{
        PartialSchema, ToSchema,
        openapi::{RefOr, schema::Schema as OpenApiSchema},
    };

    #[cfg(feature = "arbitrary")]
    pub use crate::external::arbitrary::{arbitrary, size_hint};
    #[cfg(feature = "proptest")]
    pub use crate::external::proptest::{KeyStrategy, strategy};
    #[cfg(any(feature = "schemars", feature = "utoipa"))]
    pub use crate::external::schema::schema_name;
    #[cfg(feature = "schemars")]
    pub use crate::external::schemars::{json_schema, schema_id};
    #[cfg(feature = "serde")]
    pub use crate::external::serde::{deserialize, serialize};
    #[cfg(feature = "utoipa")]
    pub use crate::external::utoipa::open_api_schema;
}

/// The raw key of a scheme, as the field of a key type: `S::Raw` and nothing else.
///
/// Derived code converts the field with it, so that a field of another type is one error.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the raw key of scheme `{S}`",
    label = "not the raw key",
    note = "the field is what the scheme makes: `ordid::uuid::Uuid` for all of 128 bits, `i64` for \
            `snowflake` and `instagram`, `u64` for `percona_64` and `uuid_short`, and a type of \
            `ordid::key` for the others",
    note = "if it has the right name, check the version of `uuid` in your `Cargo.toml`"
)]
pub trait RawOf<S: Scheme>: Sized {
    /// Returns the raw key.
    fn into_raw(self) -> S::Raw;

    /// Takes the raw key.
    fn from_raw(raw: S::Raw) -> Self;
}

#[diagnostic::do_not_recommend]
impl<R: RawKey, S: Scheme<Raw = R>> RawOf<S> for R {
    #[inline]
    fn into_raw(self) -> R {
        self
    }

    #[inline]
    fn from_raw(raw: R) -> R {
        raw
    }
}

/// Fails to compile unless the type is a source of nodes that can be one.
pub const fn check_node<N: scheme::node::NodeSource>() {
    scheme::node::refuse(N::MISTAKE);
}

/// Fails to compile unless the type is a period that can be one.
pub const fn check_period<P: scheme::uuid_v4_clustered::Clustering>() {
    scheme::node::refuse(P::MISTAKE);
}

/// Fails to compile unless the need has a layout.
pub const fn check_need(from_unix_millis: i64, years: u32, ids_per_second: u32, nodes: u32) {
    let _ = scheme::compact::CompactLayout::for_need(scheme::compact::Need {
        from_unix_millis,
        years,
        ids_per_second,
        nodes,
    });
}

/// Body of a key type's `from_raw`.
///
/// # Errors
///
/// A raw value that is not of the scheme.
#[inline]
pub fn from_raw<K: KeyType>(raw: K::Raw) -> Result<K, Error> {
    Generated::check(raw, K::NAME).map(K::from_generated)
}

/// Body of a key type's `PartialEq`.
#[inline]
pub fn eq<K: KeyType>(left: K, right: K) -> bool {
    left.to_raw() == right.to_raw()
}

/// Body of a key type's `Ord`: the order of the scheme.
#[inline]
pub fn cmp<K: KeyType>(left: K, right: K) -> Ordering {
    K::Scheme::cmp(&left.to_raw(), &right.to_raw())
}

/// Body of a key type's `Hash`.
#[inline]
pub fn hash<K: KeyType, H: Hasher>(key: K, state: &mut H) {
    key.to_raw().hash(state);
}

/// Body of a key type's `Display`.
///
/// # Errors
///
/// Only what the formatter returns.
#[inline]
pub fn fmt_display<K: KeyType>(key: K, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    K::Scheme::write_text(key.to_raw(), K::PREFIX, f)
}

/// Body of a key type's `Debug`: `OrderId(ord_01h455vb4pex5vsknk084sn02q)`.
///
/// # Errors
///
/// Only what the formatter returns.
pub fn fmt_debug<K: KeyType>(key: K, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    struct Text<K>(K);
    impl<K: KeyType> fmt::Debug for Text<K> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            fmt_display(self.0, f)
        }
    }
    f.debug_tuple(K::NAME).field(&Text(key)).finish()
}

/// Body of a key type's `FromStr`.
///
/// # Errors
///
/// Text that is not canonical, or whose value is not of the scheme.
#[inline]
pub fn parse<K: KeyType>(text: &str) -> Result<K, Error> {
    K::from_raw(K::Scheme::parse_text(K::PREFIX, text)?)
}

/// Shows a parent field's key, if it has one, with the field's position in `PARENTS`.
#[inline]
pub fn show_parent<F: KeyField>(
    field: &F,
    position: usize,
    visit: &mut dyn FnMut(usize, KeyBytes),
) {
    if let Some(key) = field.get() {
        visit(position, KeyBytes::of(key));
    }
}

/// Demands that a parent field tells its entity: derived for `#[ordid(parent)]`.
pub const fn assert_typed<F: KeyField<Key: TypedKey>>() {}

/// Demands that a field holds the named parent's key: derived for `#[ordid(parent = P)]`.
pub const fn assert_parent<F: KeyField<Key = KeyOf<P>>, P: OrderedKey>() {}
