//! Keys of several columns, for example of a table that links two others.

use alloc::{
    format,
    string::{String, ToString as _},
    vec::Vec,
};
use core::{cmp::Ordering, fmt, hash::Hash, marker::PhantomData};

use super::{Generated, KeyField, KeyType, RawKey, Scheme, StaticScheme, TextForm, text::excerpt};
use crate::{__private, clock::Timestamp, error::Error, layout::Orders};

/// The most bytes that the columns of a key have together: those of three UUIDs.
const MAX: usize = 48;

/// A column of a key of several columns: a key type or an integer.
pub trait KeyPart: Copy + Ord + Hash + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// The number of bytes of the value.
    const BYTES: usize;

    /// Writes as many bytes.
    #[doc(hidden)]
    fn write(self, bytes: &mut [u8]);

    /// Reads what [`write`](Self::write) wrote.
    #[doc(hidden)]
    fn read(bytes: &[u8]) -> Result<Self, Error>;

    /// Compares what [`write`](Self::write) wrote of two.
    #[doc(hidden)]
    fn compare(left: &[u8], right: &[u8]) -> Ordering;

    /// Reads the text that `Display` writes, and no other.
    #[doc(hidden)]
    fn parse(text: &str) -> Result<Self, Error>;

    /// Returns the seal of a key that has a mask, in a cursor of this text.
    #[doc(hidden)]
    fn seal(self, _text: &str) -> Option<u64> {
        None
    }
}

impl<K: KeyType> KeyPart for K {
    const BYTES: usize = size_of::<<K::Raw as RawKey>::Bytes>();

    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(self.to_raw().to_bytes().as_ref());
    }

    fn read(bytes: &[u8]) -> Result<Self, Error> {
        K::from_raw(raw::<K>(bytes))
    }

    fn compare(left: &[u8], right: &[u8]) -> Ordering {
        K::Scheme::cmp(&raw::<K>(left), &raw::<K>(right))
    }

    fn parse(text: &str) -> Result<Self, Error> {
        __private::parse(text)
    }

    fn seal(self, text: &str) -> Option<u64> {
        self.__cursor_seal(text)
    }
}

fn raw<K: KeyType>(bytes: &[u8]) -> K::Raw {
    let mut raw = <K::Raw as RawKey>::Bytes::default();
    raw.as_mut().copy_from_slice(bytes);
    K::Raw::from_bytes(raw)
}

macro_rules! integers {
    ($($integer:ty: $flip:expr;)+) => {
        $(impl KeyPart for $integer {
            const BYTES: usize = size_of::<Self>();

            // Flipped, so that the bytes have the order of the numbers.
            fn write(self, bytes: &mut [u8]) {
                let flipped = self ^ $flip;
                bytes.copy_from_slice(&flipped.to_be_bytes());
            }

            fn read(bytes: &[u8]) -> Result<Self, Error> {
                let mut number = [0; size_of::<Self>()];
                number.copy_from_slice(bytes);
                Ok(Self::from_be_bytes(number) ^ $flip)
            }

            fn compare(left: &[u8], right: &[u8]) -> Ordering {
                left.cmp(right)
            }

            fn parse(text: &str) -> Result<Self, Error> {
                // `+7` and `07` are numbers, too: a key has one text.
                let number = text.parse().ok().filter(|number: &Self| number.to_string() == text);
                number.ok_or_else(|| {
                    Error::parse(format!(
                        concat!("expected a number (`", stringify!($integer), "`), found {}"),
                        excerpt(text.as_bytes())
                    ))
                })
            }
        }

        #[diagnostic::do_not_recommend]
        impl EnsuredPart for Option<$integer> {
            fn ensured(&self) -> Option<$integer> {
                *self
            }
        })+
    };
}

integers! {
    i16: Self::MIN;
    i32: Self::MIN;
    i64: Self::MIN;
    u16: 0;
    u32: 0;
    u64: 0;
}

/// The raw key of several columns: the bytes of the columns one after the other, padded with zeros to 48 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CompositeRaw(CompositeBytes);

/// The bytes of a [`CompositeRaw`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompositeBytes([u8; MAX]);

impl Default for CompositeBytes {
    fn default() -> Self {
        Self([0; MAX])
    }
}

impl AsRef<[u8]> for CompositeBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for CompositeBytes {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Debug for CompositeBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl RawKey for CompositeRaw {
    type Bytes = CompositeBytes;

    const TEXT: TextForm = TextForm::Pattern("[0-9a-f]{96}");

    fn to_bytes(self) -> CompositeBytes {
        self.0
    }

    fn from_bytes(bytes: CompositeBytes) -> Self {
        Self(bytes)
    }

    fn write_text(self, _prefix: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }

    fn parse_text(_prefix: Option<&str>, _text: &str) -> Result<Self, Error> {
        Err(Error::parse(
            "a key of several columns is not read from one text",
        ))
    }

    fn describe(self) -> String {
        format!("the columns {:?}", self.0)
    }
}

/// The values of a key's columns: a tuple of two to four [`KeyPart`]s.
pub trait KeyParts: Copy + Ord + Hash + fmt::Debug + Send + Sync + 'static {
    #[doc(hidden)]
    fn write(self, bytes: &mut CompositeBytes);

    #[doc(hidden)]
    fn read(bytes: &CompositeBytes) -> Result<Self, Error>;

    /// Compares what [`write`](Self::write) wrote of two, part by part.
    #[doc(hidden)]
    fn compare(left: &CompositeBytes, right: &CompositeBytes) -> Ordering;

    #[doc(hidden)]
    fn write_text(self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Reads what [`write_text`](Self::write_text) wrote, and nothing else.
    #[doc(hidden)]
    fn parse(text: &str) -> Result<Self, Error>;

    /// Returns the seals of the parts together, if there is one. Each is of the text of the whole key: a part without a mask
    /// is not replaced either.
    #[doc(hidden)]
    fn seal(self, text: &str) -> Option<u64>;
}

/// Cuts the text of a key into the texts of its columns.
fn split<const COLUMNS: usize>(text: &str) -> Result<[&str; COLUMNS], Error> {
    let inside = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let values = inside.and_then(|text| text.split(", ").collect::<Vec<_>>().try_into().ok());
    values.ok_or_else(|| {
        Error::parse(format!(
            "expected a key of {COLUMNS} columns, in parentheses and with `, ` between them, found {}",
            excerpt(text.as_bytes())
        ))
    })
}

/// The key of an entity whose key has several columns. It is a tuple of their values.
///
/// Its text is for messages and [cursors](crate::page::Cursor): `(order_01j5a7fhyze1br93g3fp8y9vr0, 3)`. With the
/// feature `serde`, it is serialized as an array of its columns: `["order_01j5a7fhyze1br93g3fp8y9vr0", 3]`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CompositeKey<P>(pub P);

impl<P: KeyParts> fmt::Display for CompositeKey<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_text(f)
    }
}

/// The scheme of a [`CompositeKey`]. It has no generator, because the schemes of its parts make the parts.
#[derive(Debug)]
pub struct CompositeScheme<P>(PhantomData<fn() -> P>);

impl<P: KeyParts> Scheme for CompositeScheme<P> {
    type Raw = CompositeRaw;

    const NAME: &'static str = "composite";
    const ORDERS: Orders = Orders::NONE;
    const EXPECTED: &'static str = "the values of all columns of the key";

    fn check(raw: &CompositeRaw) -> bool {
        P::read(&raw.0).is_ok()
    }

    fn timestamp(_raw: &CompositeRaw) -> Option<Timestamp> {
        None
    }

    fn write_text(
        raw: CompositeRaw,
        _prefix: Option<&str>,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        match P::read(&raw.0) {
            Ok(parts) => parts.write_text(f),
            Err(_) => raw.write_text(None, f),
        }
    }

    /// The order of the parts, of which a key type's is not always that of its bytes.
    fn cmp(left: &CompositeRaw, right: &CompositeRaw) -> Ordering {
        P::compare(&left.0, &right.0)
    }

    fn parse_text(_prefix: Option<&str>, text: &str) -> Result<CompositeRaw, Error> {
        P::parse(text).map(|parts| CompositeKey(parts).to_raw())
    }

    fn read_text(prefix: Option<&str>, text: &str) -> Option<CompositeRaw> {
        Self::parse_text(prefix, text).ok()
    }
}

impl<P: KeyParts> KeyType for CompositeKey<P> {
    type Raw = CompositeRaw;
    type Scheme = CompositeScheme<P>;

    const NAME: &'static str = "a key of several columns";
    const PREFIX: Option<&'static str> = None;

    fn from_generated(generated: Generated<CompositeScheme<P>>) -> Self {
        match P::read(&generated.into_raw().0) {
            Ok(parts) => Self(parts),
            Err(_) => unreachable!("a raw key is checked before it is taken for one of the scheme"),
        }
    }

    fn to_raw(self) -> CompositeRaw {
        let mut bytes = CompositeBytes::default();
        self.0.write(&mut bytes);
        CompositeRaw(bytes)
    }

    fn from_raw(raw: CompositeRaw) -> Result<Self, Error> {
        P::read(&raw.0).map(Self)
    }

    fn __cursor_seal(self, text: &str) -> Option<u64> {
        self.0.seal(text)
    }
}

/// The first values of a key of several columns, which all rows of a list share. It is the value of the first column,
/// or a tuple of the values of the first columns, but not of all.
#[diagnostic::on_unimplemented(
    message = "a key with the columns `{P}` does not begin with `{Self}`",
    label = "not the first values of the key",
    note = "give the value of the first column, or a tuple of the first ones, in the order of the fields with `#[ordid(key)]`"
)]
pub trait KeyStart<P: KeyParts>: Copy + PartialEq + fmt::Debug {
    /// Returns the first values of a key.
    #[doc(hidden)]
    fn of(parts: P) -> Self;
}

macro_rules! starts {
    ($([$($common:ident $position:tt),+] $($other:ident)+;)+) => {
        $(#[diagnostic::do_not_recommend]
        #[allow(unused_parens, reason = "one value is no tuple")]
        impl<$($common: KeyPart,)+ $($other: KeyPart),+> KeyStart<($($common,)+ $($other),+)>
            for ($($common),+)
        {
            fn of(parts: ($($common,)+ $($other),+)) -> Self {
                ($(parts.$position),+)
            }
        })+
    };
}

starts! {
    [A 0] B;
    [A 0] B C;
    [A 0] B C D;
    [A 0, B 1] C;
    [A 0, B 1] C D;
    [A 0, B 1, C 2] D;
}

/// A field of a key of several columns: a [`KeyPart`], or an `Option` of one if it may be unassigned.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a part of a key of several columns",
    label = "not a part of a key",
    note = "the parts are key types and integers (`i16` to `i64`, `u16` to `u64`); for other columns give the table a key \
            of its own, and these a unique index"
)]
pub trait PartField: Copy + 'static {
    /// The part inside.
    type Part: KeyPart;
    /// Whether the field can be without a value.
    const OPTIONAL: bool;

    /// Returns the value, if there is one.
    fn part(&self) -> Option<Self::Part>;

    /// Makes a field with this value.
    fn of_part(part: Self::Part) -> Self;
}

#[diagnostic::do_not_recommend]
impl<P: KeyPart> PartField for P {
    type Part = P;
    const OPTIONAL: bool = false;

    fn part(&self) -> Option<P> {
        Some(*self)
    }

    fn of_part(part: P) -> Self {
        part
    }
}

#[diagnostic::do_not_recommend]
impl<P: KeyPart> PartField for Option<P> {
    type Part = P;
    const OPTIONAL: bool = true;

    fn part(&self) -> Option<P> {
        *self
    }

    fn of_part(part: P) -> Self {
        Some(part)
    }
}

/// The first field of a key of several columns: a key type, or an `Option` of one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the first part of a key of several columns",
    label = "not a key type",
    note = "rows are sent in the order of the first part, which has a key type: put a field with one before it, or make \
            a key type of an integer, `#[derive(ordid::KeyType)] #[ordid(scheme = sequence)] struct TenantId(i64);`"
)]
pub trait LeadingField: PartField<Part = Self::Key> {
    /// The key type inside.
    type Key: KeyType;
}

#[diagnostic::do_not_recommend]
impl<K: KeyType> LeadingField for K {
    type Key = K;
}

#[diagnostic::do_not_recommend]
impl<K: KeyType> LeadingField for Option<K> {
    type Key = K;
}

/// A field of a key of several columns that can always get a value: a [`KeyPart`], or an `Option<K>` of a key type
/// that has a generator for the process. An `Option` of an integer has the trait, too, but no value is made for it.
#[diagnostic::on_unimplemented(
    message = "nothing makes the part `{Self}` of a key: it has no generator for the process",
    label = "assign it before the row is added",
    note = "`issue.id = Some(generator.try_generate_key()?)`, then `work.try_add(issue)?`"
)]
pub trait EnsuredPart: PartField {
    /// Returns the value, or a new one if it can be made.
    #[doc(hidden)]
    fn ensured(&self) -> Option<Self::Part>;
}

#[diagnostic::do_not_recommend]
impl<P: KeyPart> EnsuredPart for P {
    fn ensured(&self) -> Option<P> {
        Some(*self)
    }
}

#[diagnostic::do_not_recommend]
impl<K: KeyType<Scheme: StaticScheme>> EnsuredPart for Option<K> {
    fn ensured(&self) -> Option<K> {
        Some(self.unwrap_or_else(K::generate))
    }
}

/// The fields of a key of several columns: a tuple of a [`LeadingField`] and one to three [`PartField`]s.
#[derive(Clone, Copy, Debug)]
pub struct KeyFields<F>(pub F);

macro_rules! tuples {
    ($($first:ident $first_position:tt $(, $part:ident $position:tt)+;)+) => {
        $(
            impl<$first: KeyPart $(, $part: KeyPart)+> KeyParts for ($first, $($part),+) {
                fn write(self, bytes: &mut CompositeBytes) {
                    const {
                        assert!(
                            $first::BYTES $(+ $part::BYTES)+ <= MAX,
                            "the columns of a key have at most 48 bytes together"
                        );
                    }
                    let (first, mut rest) = bytes.0.split_at_mut($first::BYTES);
                    self.$first_position.write(first);
                    $(
                        let (part, behind) = rest.split_at_mut($part::BYTES);
                        self.$position.write(part);
                        rest = behind;
                    )+
                    rest.fill(0);
                }

                fn read(bytes: &CompositeBytes) -> Result<Self, Error> {
                    let mut rest = &bytes.0[..];
                    let mut next = |length| {
                        let (part, behind) = rest.split_at(length);
                        rest = behind;
                        part
                    };
                    let parts = (
                        $first::read(next($first::BYTES))?,
                        $($part::read(next($part::BYTES))?),+
                    );
                    match rest.iter().all(|byte| *byte == 0) {
                        true => Ok(parts),
                        false => Err(Error::parse("there are bytes behind the columns of the key")),
                    }
                }

                fn compare(left: &CompositeBytes, right: &CompositeBytes) -> Ordering {
                    let (mut left, mut right) = (&left.0[..], &right.0[..]);
                    let mut next = |length, compare: fn(&[u8], &[u8]) -> Ordering| {
                        let ((one, rest), (other, other_rest)) =
                            (left.split_at(length), right.split_at(length));
                        (left, right) = (rest, other_rest);
                        compare(one, other)
                    };
                    next($first::BYTES, $first::compare)
                        $(.then_with(|| next($part::BYTES, $part::compare)))+
                }

                fn write_text(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    write!(f, "({}", self.$first_position)?;
                    $(write!(f, ", {}", self.$position)?;)+
                    f.write_str(")")
                }

                fn parse(text: &str) -> Result<Self, Error> {
                    #[expect(non_snake_case, reason = "each text has the name of its type")]
                    let [$first, $($part),+] = split(text)?;
                    Ok(($first::parse($first)?, $($part::parse($part)?),+))
                }

                fn seal(self, text: &str) -> Option<u64> {
                    let seals = [self.$first_position.seal(text), $(self.$position.seal(text)),+];
                    let seals = seals.into_iter().flatten();
                    seals.reduce(|before, seal| before.rotate_left(1) ^ seal)
                }
            }

            #[diagnostic::do_not_recommend]
            impl<$first, $($part),+> KeyField for KeyFields<($first, $($part),+)>
            where
                $first: LeadingField,
                $($part: PartField,)+
            {
                type Key = CompositeKey<($first::Key, $($part::Part),+)>;
                type Leading = $first::Key;

                const OPTIONAL: bool = $first::OPTIONAL $(|| $part::OPTIONAL)+;

                fn get(&self) -> Option<Self::Key> {
                    Some(CompositeKey((
                        self.0.$first_position.part()?,
                        $(self.0.$position.part()?),+
                    )))
                }

                fn set(&mut self, key: Self::Key) {
                    *self = Self::with(key);
                }

                fn with(key: Self::Key) -> Self {
                    Self((
                        $first::of_part(key.0.$first_position),
                        $($part::of_part(key.0.$position)),+
                    ))
                }

                fn leading(raw: CompositeRaw) -> <$first::Key as KeyType>::Raw {
                    let mut bytes = <<$first::Key as KeyType>::Raw as RawKey>::Bytes::default();
                    bytes.as_mut().copy_from_slice(&raw.0.0[..$first::Key::BYTES]);
                    RawKey::from_bytes(bytes)
                }
            }

            impl<$first, $($part),+> EnsuredFields for KeyFields<($first, $($part),+)>
            where
                $first: LeadingField + EnsuredPart,
                $($part: EnsuredPart,)+
            {
                fn ensured(&self) -> Result<Self::Key, usize> {
                    Ok(CompositeKey((
                        self.0.$first_position.ensured().ok_or::<usize>($first_position)?,
                        $(self.0.$position.ensured().ok_or::<usize>($position)?),+
                    )))
                }
            }
        )+
    };
}

/// The fields of a key of several columns, each of which can always get a value.
pub trait EnsuredFields: KeyField {
    /// Returns the key, with new values where there were none; or the position of a part that has no value, and for which
    /// none can be made.
    #[doc(hidden)]
    fn ensured(&self) -> Result<Self::Key, usize>;
}

tuples! {
    A 0, B 1;
    A 0, B 1, C 2;
    A 0, B 1, C 2, D 3;
}

#[cfg(feature = "serde")]
mod serde {
    use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

    use super::CompositeKey;

    impl<P: Serialize> Serialize for CompositeKey<P> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.serialize(serializer)
        }
    }

    impl<'de, P: Deserialize<'de>> Deserialize<'de> for CompositeKey<P> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            P::deserialize(deserializer).map(Self)
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use uuid::Uuid;

    use super::*;
    use crate::key::KeyBytes;

    type Line = CompositeKey<(Uuid, i32)>;

    fn line(id: u128, number: i32) -> Line {
        CompositeKey((Uuid::from_u128(id), number))
    }

    #[test]
    fn raw_keys_have_the_order_of_their_columns() {
        let lines = [
            line(1, i32::MIN),
            line(1, -1),
            line(1, 0),
            line(1, 1),
            line(1, i32::MAX),
            line(2, -5),
        ];
        assert!(lines.is_sorted());
        assert!(lines.map(KeyType::to_raw).is_sorted());
        for line in lines {
            let raw = line.to_raw();
            assert_eq!(Line::from_raw(raw).ok(), Some(line));
            assert_eq!(KeyBytes::of(line).to_key(), Some(line));
            let leading = KeyFields::<(Uuid, i32)>::leading(raw);
            assert_eq!(leading, line.0.0);
        }
        assert_eq!(
            line(1, -7).to_string(),
            format!("({}, -7)", Uuid::from_u128(1))
        );
    }

    /// SQL Server compares the last bytes of a UUID first. Rows are sent in this order.
    #[test]
    fn raw_keys_have_the_order_of_their_first_columns_scheme() {
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        struct Id(Uuid);

        impl KeyType for Id {
            type Raw = Uuid;
            type Scheme = crate::scheme::UuidV8SqlServer;

            const NAME: &'static str = "Id";
            const PREFIX: Option<&'static str> = None;

            fn from_generated(generated: Generated<Self::Scheme>) -> Self {
                Self(generated.into_raw())
            }

            fn to_raw(self) -> Uuid {
                self.0
            }

            fn from_raw(raw: Uuid) -> Result<Self, Error> {
                Ok(Self(raw))
            }
        }

        impl fmt::Display for Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl PartialOrd for Id {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for Id {
            fn cmp(&self, other: &Self) -> Ordering {
                <Self as KeyType>::Scheme::cmp(&self.0, &other.0)
            }
        }

        let key = |id: u128, number: i32| CompositeKey((Id(Uuid::from_u128(id)), number));
        // The second has the greater bytes, and the smaller last six.
        let (later, earlier) = (key(2, -1), key(1 << 96 | 1, 7));
        let cmp = |left: CompositeKey<(Id, i32)>, right: CompositeKey<(Id, i32)>| {
            CompositeScheme::<(Id, i32)>::cmp(&left.to_raw(), &right.to_raw())
        };
        assert_eq!(cmp(earlier, later), Ordering::Less);
        assert_eq!(cmp(later, earlier), Ordering::Greater);
        assert_eq!(cmp(key(2, -1), key(2, 1)), Ordering::Less);
        assert_eq!(cmp(key(2, 1), key(2, 1)), Ordering::Equal);
        assert!(earlier < later);
    }

    #[test]
    fn a_key_is_read_from_its_own_text_only() {
        type Three = CompositeKey<(Uuid, i16, u64)>;

        let id = Uuid::from_u128(1);
        let key = CompositeKey((id, -7_i16, u64::MAX));
        let text = key.to_string();
        assert_eq!(__private::parse(&text), Ok(key));
        for (wrong, message) in [
            (format!("({id}, -7)"), "expected a key of 3 columns, in"),
            (format!("({id}, -7, 1, 2)"), "expected a key of 3 columns"),
            (id.to_string(), "expected a key of 3 columns"),
            (format!("{id}, -7, 1"), "expected a key of 3 columns"),
            (format!("({id},-7,1)"), "expected a key of 3 columns"),
            (
                format!("({id}, +7, 1)"),
                "expected a number (`i16`), found \"+7\"",
            ),
            (
                format!("({id}, 7, 01)"),
                "expected a number (`u64`), found \"01\"",
            ),
            (
                format!("({id}, 7, -1)"),
                "expected a number (`u64`), found \"-1\"",
            ),
            (format!("({id}, 32768, 1)"), "expected a number (`i16`)"),
            (format!("(7, {id}, 1)"), "expected a UUID"),
            (format!(" {text}"), "expected a key of 3 columns"),
            (String::new(), "expected a key of 3 columns"),
        ] {
            let error = __private::parse::<Three>(&wrong).unwrap_err();
            assert!(error.is_parse(), "{wrong}: {error}");
            assert!(error.to_string().starts_with(message), "{wrong}: {error}");
        }
    }

    #[test]
    fn bytes_of_another_key_are_refused() {
        let wide = CompositeKey((Uuid::from_u128(1), 1_i32, 2_u16)).to_raw();
        assert!(Line::from_raw(wide).is_err());
        assert!(!CompositeScheme::<(Uuid, i32)>::check(&wide));
        assert_eq!(KeyBytes::of(Uuid::from_u128(1)).to_key::<Line>(), None);
    }

    /// Under the model checker there is no generator for the process.
    #[cfg(not(loom))]
    #[test]
    fn a_field_without_a_value_gets_one_and_the_others_keep_theirs() {
        let fields = KeyFields((Uuid::from_u128(1), None::<Uuid>, 7_u64));
        assert_eq!(fields.get(), None);
        let key = fields.ensured().expect("it can be made");
        assert_eq!((key.0.0, key.0.2), (Uuid::from_u128(1), 7));
        assert!(!key.0.1.is_nil());
        let fields = KeyFields::<(Uuid, Option<Uuid>, u64)>::with(key);
        assert_eq!((fields.get(), fields.ensured()), (Some(key), Ok(key)));
        let numberless = KeyFields((Uuid::from_u128(1), None::<i32>));
        assert_eq!(numberless.ensured(), Err(1));
    }
}
