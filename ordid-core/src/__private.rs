//! What derived code calls. Not for others: exempt from semantic versioning.

use core::{fmt, marker::PhantomData};

pub use alloc::{borrow::Cow, string::String};
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
    primitive::{bool, i64, i128, str, u64, usize},
    result::Result::{self, Err, Ok},
    str::FromStr,
};

#[cfg(feature = "sqids04")]
pub use crate::key::short::{ShortKey, Sqids};
pub use crate::{
    __engine_otherwise as engine_otherwise, __engines_by_feature as engines_by_feature,
    __is_there as is_there, __keeps_order as keeps_order, __key_type_interop as key_type_interop,
    __native_columns as native_columns, __no_column as no_column, __short_key as short_key,
    __unknown_engine as unknown_engine, Error,
    entity::{
        AssignedField, Cell, ColumnOf, Fields, KeyOf, OrderedKey, Parent, Reads, Sink, Version,
    },
    key::{
        Generated, Key192, KeyBytes, KeyField, KeyFields, KeyType, LeadingField, ObjectId,
        PartField, PushId, RawKey, Scheme, TypedKey,
        scatter::{Scatter, ScatteredKey},
        text::check_prefix,
    },
    scheme,
    scheme::{UuidMask, masked::MaskedKey},
    storage::column::{
        Unordered,
        names::{NamedColumn, Native},
    },
};
pub use uuid::Uuid;

pub use crate::entropy::{Process, process};

use crate::key::{
    BinaryForm, KeyPart, SchemeText,
    text::{Room, pad},
};

/// What [`key_type_interop!`] calls: other crates' traits, and the bodies of their functions.
pub mod external {
    #[cfg(feature = "arbitrary")]
    pub use arbitrary::{Arbitrary, Result as ArbitraryResult, Unstructured};
    #[cfg(feature = "async-graphql7")]
    pub use async_graphql::scalar as graphql_scalar;
    #[cfg(feature = "juniper018")]
    pub use juniper;
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
    #[cfg(feature = "juniper018")]
    pub use crate::external::juniper::{
        of_input_value, of_scalar, resolve, resolve_async, scalar_meta, scalar_name,
        scalar_of_token, to_input_value, to_scalar,
    };
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

/// A user's own layout of `snowflake`: itself and nothing else.
///
/// Derived code names it so: of a type that is none, the compiler then says so once, and looks at
/// nothing that is made of it.
pub trait OwnLayout {
    /// The layout.
    type Layout: scheme::snowflake::SnowflakeLayout;
}

impl<L: scheme::snowflake::SnowflakeLayout> OwnLayout for L {
    type Layout = L;
}

/// Returns `true`, and fails to compile unless the type is a source of nodes that can be one.
pub const fn check_node<N: scheme::node::NodeSource>() -> bool {
    scheme::node::refuse(N::MISTAKE);
    true
}

/// Returns `true`, and fails to compile unless the type is a period that can be one.
pub const fn check_period<P: scheme::uuid_v4_clustered::Clustering>() -> bool {
    scheme::node::refuse(P::MISTAKE);
    true
}

/// That the check of a scheme's parameter compiles.
#[derive(Debug)]
pub enum Checked<const IS_CHECKED: bool> {}

/// A scheme whose parameter is a user's own type.
///
/// Derived code names it so: where the check does not compile, the compiler says so once, and looks at
/// nothing that asks for the scheme.
pub trait CheckedScheme<S> {
    /// The scheme.
    type Scheme;
}

impl<S> CheckedScheme<S> for Checked<true> {
    type Scheme = S;
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

/// Fails to compile unless the need has a layout that leaves room for the bucket.
pub const fn check_need_beside(
    buckets: u16,
    from_unix_millis: i64,
    years: u32,
    ids_per_second: u32,
    nodes: u32,
) {
    let layout = scheme::compact::CompactLayout::for_need(scheme::compact::Need {
        from_unix_millis,
        years,
        ids_per_second,
        nodes,
    });
    assert!(
        layout.bits() + buckets.trailing_zeros() <= 63,
        "a key has at most 63 bits, those of the bucket and of the need together: need fewer years, ids, nodes or buckets"
    );
}

/// Fails to compile unless all keys are integers below 2^53, where they are to be JSON numbers.
pub const fn check_json_number<K: KeyType>() {
    assert!(
        !K::IS_JSON_NUMBER
            || K::Scheme::INTEGER_BITS <= 53 && !matches!(K::Raw::BINARY, BinaryForm::Bytes),
        "keys of this scheme may be 2^53 or more, and many readers of JSON round such numbers: take \
         `json = number` off, or take a scheme of at most 53 bits, such as `snowflake(epoch = \
         \"2026-01-01\", years = 20, ids_per_second = 1_000)`"
    );
}

/// Fails to compile if the parts of a key of several columns have more bytes together than a key.
pub const fn check_key_length(parts: &[usize]) {
    let (mut bytes, mut part) = (0, 0);
    while part < parts.len() {
        bytes += parts[part];
        part += 1;
    }
    assert!(
        bytes <= KeyBytes::MAX,
        "the columns of a key have at most 48 bytes together, as three UUIDs have"
    );
}

/// The number of bytes of a field of a key of several columns. The derive does not know whether its type is one of a
/// [`PartField`]: where it is not, the constant is that of [`NoPart`].
#[derive(Debug)]
pub struct PartOf<F>(PhantomData<F>);

impl<F: PartField> PartOf<F> {
    pub const BYTES: usize = <F::Part as KeyPart>::BYTES;
}

/// See [`PartOf`].
pub trait NoPart {
    const BYTES: usize = 0;
}

impl<F> NoPart for PartOf<F> {}

/// Body of a key type's `from_raw`.
///
/// # Errors
///
/// A raw value that is not of the scheme.
#[inline]
pub fn from_raw<K: KeyType>(raw: K::Raw) -> Result<K, Error> {
    match Generated::check(raw, K::NAME) {
        Ok(generated) => Ok(K::from_generated(generated)),
        Err(error) => Err(error),
    }
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
    let raw = key.to_outside();
    // In one piece: a string that takes it needs one allocation then.
    match text_in::<K>(raw, &mut Room::new()) {
        Some(text) => pad(text, f),
        None => K::Scheme::write_text(raw, K::PREFIX, f),
    }
}

/// Body of a key type's own `to_string`, without the formatter of the standard library's.
#[inline]
pub fn to_string<K: KeyType>(key: K) -> String {
    let raw = key.to_outside();
    match text_in::<K>(raw, &mut Room::new()) {
        Some(text) => String::from(text),
        None => alloc::format!(
            "{}",
            SchemeText::<K::Scheme> {
                raw,
                prefix: K::PREFIX,
            }
        ),
    }
}

/// Makes the text of a raw key on the stack, unless only the scheme's `write_text` knows it. A prefix that is not one does
/// not compile.
#[inline(always)]
pub(crate) fn text_in<K: KeyType>(raw: K::Raw, room: &mut Room) -> Option<&str> {
    const {
        if let Some(prefix) = K::PREFIX {
            check_prefix(prefix);
        }
    }
    K::Scheme::text_in(raw, K::PREFIX, room)
}

/// Body of a key type's `Debug`: `OrderId(ord_01h455vb4pex5vsknk084sn02q)`, or the masked text and `masked`.
///
/// # Errors
///
/// Only what the formatter returns.
pub fn fmt_debug<K: KeyType>(key: K, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // Of the scheme's text: what writes it is then not compiled for each key type.
    SchemeText::<K::Scheme> {
        raw: key.to_outside(),
        prefix: K::PREFIX,
    }
    .fmt_named(K::NAME, K::IS_MASKED, f)
}

/// Body of a key type's `FromStr`.
///
/// # Errors
///
/// Text that is not canonical, or whose value is not of the scheme.
#[inline]
pub fn parse<K: KeyType>(text: &str) -> Result<K, Error> {
    match K::Scheme::read_text(K::PREFIX, text) {
        Some(raw) => K::from_outside(raw),
        None => parse_with_reason(text),
    }
}

#[cold]
fn parse_with_reason<K: KeyType>(text: &str) -> Result<K, Error> {
    match K::Scheme::parse_text(K::PREFIX, text) {
        Ok(raw) => K::from_outside(raw),
        Err(error) => Err(error),
    }
}

/// The type of a parent field whose key type tells the parent.
#[diagnostic::on_unimplemented(
    message = "a parent cannot be found by `{Self}`: it is not one entity's key type",
    label = "not one entity's key type",
    note = "write the parent's key type, `CustomerId` or `Option<CustomerId>`, which is made with \
            `#[derive(ordid::KeyType)]`",
    note = "of a raw key such as `uuid::Uuid`, name the parent: `#[ordid(parent = Customer)]`"
)]
pub trait TellsParent: KeyField<Key: TypedKey> {}

#[diagnostic::do_not_recommend]
impl<F: KeyField<Key: TypedKey>> TellsParent for F {}

/// The type of a parent field that names its parent.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not hold the key of the parent `{P}`",
    label = "not the parent's key",
    note = "write the type of the key field of `{P}`, or an `Option` of it; of a key of several columns, that of the first"
)]
pub trait HoldsKeyOf<P: OrderedKey>: KeyField<Key = <P::Field as KeyField>::Leading> {}

#[diagnostic::do_not_recommend]
impl<F: KeyField<Key = <P::Field as KeyField>::Leading>, P: OrderedKey> HoldsKeyOf<P> for F {}

/// A parent field: its foreign key, and how a row shows it.
///
/// Both are made by one call, so that what is wrong with the field's type is said once.
#[derive(Debug)]
pub struct ParentField<F> {
    /// The foreign key.
    pub parent: Parent,
    /// Shows the field's key, if it has one, with the field's position in `PARENTS`.
    pub show: fn(&F, usize, &mut dyn FnMut(usize, KeyBytes)),
}

impl<F: KeyField> ParentField<F> {
    const fn new(parent: Parent) -> Self {
        Self {
            parent,
            show: show::<F>,
        }
    }
}

fn show<F: KeyField>(field: &F, position: usize, visit: &mut dyn FnMut(usize, KeyBytes)) {
    if let Some(key) = field.get() {
        visit(position, KeyBytes::of_raw(key.to_raw()));
    }
}

/// Of `#[ordid(parent)]`.
pub const fn by_key<F: TellsParent>(column: &'static str) -> ParentField<F> {
    ParentField::new(Parent::by_key::<F>(column))
}

/// Of `#[ordid(parent = P)]`.
pub const fn by_entity<F: HoldsKeyOf<P>, P: OrderedKey + 'static>(
    column: &'static str,
) -> ParentField<F> {
    ParentField::new(Parent::by_entity::<F, P>(column))
}

/// The fields that together hold the key of a parent, which has several columns.
#[diagnostic::on_unimplemented(
    message = "these fields do not hold the key of the parent `{P}`",
    label = "not the parent's key",
    note = "name as many fields as the key of `{P}` has, in its order and of its types, or `Option`s of them"
)]
pub trait HoldKeyOf<P: OrderedKey>: KeyField<Key = <P::Field as KeyField>::Key> {}

#[diagnostic::do_not_recommend]
impl<F: KeyField<Key = <P::Field as KeyField>::Key>, P: OrderedKey> HoldKeyOf<P> for F {}

/// Returns the parent for `#[ordid(parent = P(one, other))]` at the field of type `F`, which is one of those fields.
pub const fn by_fields<F: PartField, K: HoldKeyOf<P>, P: OrderedKey + 'static>(
    column: &'static str,
) -> ParentField<K> {
    ParentField::new(Parent::by_part::<F, P>(column))
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use alloc::{format, string::ToString as _};

    use super::*;
    use crate::{clock::Timestamp, layout::Orders, scheme::UuidV7};

    macro_rules! key_type {
        ($name:ident, $prefix:expr) => {
            key_type!($name, $prefix, UuidV7);
        };
        ($name:ident, $prefix:expr, $scheme:ty) => {
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            struct $name(Uuid);

            impl Display for $name {
                fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
                    fmt_display(*self, f)
                }
            }

            impl KeyType for $name {
                type Raw = Uuid;
                type Scheme = $scheme;

                const NAME: &'static str = stringify!($name);
                const PREFIX: Option<&'static str> = $prefix;

                fn from_generated(generated: Generated<$scheme>) -> Self {
                    Self(generated.into_raw())
                }

                fn to_raw(self) -> Uuid {
                    self.0
                }

                fn from_raw(raw: Uuid) -> Result<Self, Error> {
                    from_raw(raw)
                }
            }
        };
    }

    key_type!(Plain, None);
    key_type!(Bare, Some(""));
    key_type!(Named, Some("line_item"));
    key_type!(
        Longest,
        Some("abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijk")
    );

    /// TypeID 0.3.0's example.
    const RAW: Uuid = Uuid::from_u128(0x0188_bac7_4afa_78aa_bc3b_bd1e_ef28_d881);

    #[test]
    fn a_key_type_writes_its_prefix_once_and_reads_it_back() {
        assert_eq!(
            Plain(RAW).to_string(),
            "0188bac7-4afa-78aa-bc3b-bd1eef28d881"
        );
        assert_eq!(Bare(RAW).to_string(), "01h2xcejqtf2nbrexx3vqjhp41");
        assert_eq!(
            Named(RAW).to_string(),
            "line_item_01h2xcejqtf2nbrexx3vqjhp41"
        );
        assert_eq!(
            Longest(RAW).to_string(),
            format!("{}_01h2xcejqtf2nbrexx3vqjhp41", Longest::PREFIX.unwrap())
        );
        assert_eq!(
            parse::<Longest>(&Longest(RAW).to_string()),
            Ok(Longest(RAW))
        );
        assert_eq!(parse::<Named>(&Named(RAW).to_string()), Ok(Named(RAW)));
        for text in [
            "line_item01h2xcejqtf2nbrexx3vqjhp41",
            "line_01h2xcejqtf2nbrexx3vqjhp41",
        ] {
            assert!(parse::<Named>(text).unwrap_err().is_parse(), "{text}");
        }
    }

    /// The text of the type and of the trait, each in one allocation of its length.
    fn assert_one_text<K: KeyType + Display>(key: K, expected: &str) {
        let own = super::to_string(key);
        let of_trait = key.to_string();
        assert_eq!([&*own, &*of_trait], [expected; 2]);
        assert_eq!([own.capacity(), of_trait.capacity()], [expected.len(); 2]);
    }

    #[test]
    fn a_text_is_one_allocation_of_its_length() {
        assert_one_text(Plain(RAW), "0188bac7-4afa-78aa-bc3b-bd1eef28d881");
        assert_one_text(Bare(RAW), "01h2xcejqtf2nbrexx3vqjhp41");
        assert_one_text(Named(RAW), "line_item_01h2xcejqtf2nbrexx3vqjhp41");
        let longest = format!("{}_01h2xcejqtf2nbrexx3vqjhp41", Longest::PREFIX.unwrap());
        assert_one_text(Longest(RAW), &longest);
    }

    /// A scheme that somebody else may write. Its text is not that of its raw key.
    #[derive(Debug)]
    enum Numbered {}

    impl Scheme for Numbered {
        type Raw = Uuid;

        const NAME: &'static str = "numbered";
        const ORDERS: Orders = Orders::BYTES;
        const EXPECTED: &'static str = "any 128 bits";

        fn check(_: &Uuid) -> bool {
            true
        }

        fn timestamp(_: &Uuid) -> Option<Timestamp> {
            None
        }

        fn write_text(raw: Uuid, prefix: Option<&str>, f: &mut Formatter<'_>) -> FmtResult {
            write!(f, "{}#{}", prefix.unwrap_or_default(), raw.as_u128())
        }

        fn parse_text(prefix: Option<&str>, text: &str) -> Result<Uuid, Error> {
            Self::read_text(prefix, text).ok_or_else(|| Error::parse("no number"))
        }

        fn read_text(prefix: Option<&str>, text: &str) -> Option<Uuid> {
            let number = text.strip_prefix(prefix?)?.strip_prefix('#')?;
            number.parse().ok().map(Uuid::from_u128)
        }
    }

    key_type!(Foreign, Some("page"), Numbered);

    #[test]
    fn a_scheme_that_writes_its_text_itself_is_asked_for_it() {
        let key = Foreign(Uuid::from_u128(17));
        assert_eq!(super::to_string(key), "page#17");
        assert_eq!(key.to_string(), "page#17");
        assert_eq!(parse::<Foreign>("page#17"), Ok(key));
        #[cfg(feature = "serde")]
        {
            let serialized = crate::external::serde::serialize(key, serde_json::value::Serializer);
            assert_eq!(serialized.unwrap(), "page#17");
        }
    }

    /// The text that is made on the stack is the one that a formatter gets.
    fn assert_same_text<S: Scheme>(raw: S::Raw) {
        for prefix in [None, Some(""), Some("line_item")] {
            let written = format!("{}", SchemeText::<S> { raw, prefix });
            let mut room = Room::new();
            assert_eq!(
                S::text_in(raw, prefix, &mut room),
                Some(&*written),
                "{}",
                S::NAME
            );
        }
    }

    #[test]
    fn schemes_make_their_text_on_the_stack() {
        use crate::scheme::*;

        assert_same_text::<CombEfCore>(RAW);
        assert_same_text::<NewId>(RAW);
        assert_same_text::<OrderedText22>(RAW);
        assert_same_text::<Ulid>(RAW);
        assert_same_text::<UuidCreateSequential>(RAW);
        assert_same_text::<UuidV1Rearranged>(RAW);
        assert_same_text::<UuidV4>(RAW);
        assert_same_text::<UuidV7>(RAW);
        assert_same_text::<UuidV7Spread<16>>(RAW);
        assert_same_text::<UuidV8SqlServer>(RAW);
    }

    #[test]
    fn a_width_and_a_precision_meet_prefix_and_suffix_as_one() {
        assert_eq!(
            format!("{:>38}|{:.12}|{:.6}", Named(RAW), Named(RAW), Plain(RAW)),
            "  line_item_01h2xcejqtf2nbrexx3vqjhp41|line_item_01|0188ba"
        );
    }
}
