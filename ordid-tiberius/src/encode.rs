//! Values of fields as tiberius sends them.

use std::borrow::Cow;

use ordid_core::uuid::Uuid;
use tiberius::{ColumnData, numeric::Numeric, xml::XmlData};

use crate::flavour::Flavour;

/// A type of field that the server stores: integers, floats, `bool`, text, bytes, `Uuid`, key types,
/// and what tiberius' features `chrono`, `time`, `rust_decimal` and `bigdecimal` add; each also in
/// an `Option`.
///
/// `u64` is not one of them, since `bigint` is signed. For a type of your own, give what tiberius'
/// `IntoSql` gives:
///
/// ```
/// use ordid_tiberius::{Encode, Flavour};
/// use tiberius::ColumnData;
///
/// struct Cents(i64);
///
/// impl<D: Flavour> Encode<D> for Cents {
///     fn encode(&self) -> ColumnData<'_> { ColumnData::I64(Some(self.0)) }
///     fn null() -> ColumnData<'static> { ColumnData::I64(None) }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a field of type `{Self}` cannot be written to {D}",
    label = "`{Self}` has no column type here",
    note = "for a key type, name its column: `#[ordid(tiberius(sql_server = unique_identifier))]`; \
            for another type of your own, implement `ordid_tiberius::Encode`"
)]
pub trait Encode<D: Flavour> {
    /// Returns the value; text and bytes are borrowed.
    fn encode(&self) -> ColumnData<'_>;

    /// Returns NULL of this type.
    fn null() -> ColumnData<'static>;
}

impl<D: Flavour, T: Encode<D>> Encode<D> for Option<T> {
    fn encode(&self) -> ColumnData<'_> {
        match self {
            Some(value) => value.encode(),
            None => T::null(),
        }
    }

    fn null() -> ColumnData<'static> {
        T::null()
    }
}

impl<D: Flavour, T: Encode<D> + ?Sized> Encode<D> for &T {
    fn encode(&self) -> ColumnData<'_> {
        (**self).encode()
    }

    fn null() -> ColumnData<'static> {
        T::null()
    }
}

macro_rules! encode {
    ($($type:ty: $variant:ident, |$value:ident| $data:expr;)+) => {
        $(impl<D: Flavour> Encode<D> for $type {
            fn encode(&self) -> ColumnData<'_> {
                let $value = self;
                ColumnData::$variant(Some($data))
            }

            fn null() -> ColumnData<'static> {
                ColumnData::$variant(None)
            }
        })+
    };
}

encode! {
    bool: Bit, |value| *value;
    u8: U8, |value| *value;
    i8: I16, |value| (*value).into();
    i16: I16, |value| *value;
    u16: I32, |value| (*value).into();
    i32: I32, |value| *value;
    u32: I64, |value| (*value).into();
    i64: I64, |value| *value;
    f32: F32, |value| *value;
    f64: F64, |value| *value;
    str: String, |value| Cow::Borrowed(value);
    String: String, |value| Cow::Borrowed(value.as_str());
    Cow<'_, str>: String, |value| Cow::Borrowed(&**value);
    Box<str>: String, |value| Cow::Borrowed(&**value);
    [u8]: Binary, |value| Cow::Borrowed(value);
    Vec<u8>: Binary, |value| Cow::Borrowed(value.as_slice());
    Cow<'_, [u8]>: Binary, |value| Cow::Borrowed(&**value);
    Uuid: Guid, |value| *value;
    Numeric: Numeric, |value| *value;
    XmlData: Xml, |value| Cow::Borrowed(value);
}

impl<D: Flavour, const N: usize> Encode<D> for [u8; N] {
    fn encode(&self) -> ColumnData<'_> {
        ColumnData::Binary(Some(Cow::Borrowed(self)))
    }

    fn null() -> ColumnData<'static> {
        ColumnData::Binary(None)
    }
}

/// Types that tiberius knows behind a feature of its own, with the variant that they become.
#[cfg(any(
    feature = "bigdecimal",
    feature = "chrono",
    feature = "rust_decimal",
    feature = "time"
))]
macro_rules! encode_as_tiberius {
    ($($type:ty: $variant:ident),+) => {
        $(impl<D: Flavour> Encode<D> for $type {
            fn encode(&self) -> ColumnData<'_> {
                tiberius::ToSql::to_sql(self)
            }

            fn null() -> ColumnData<'static> {
                ColumnData::$variant(None)
            }
        })+
    };
}

#[cfg(feature = "chrono")]
encode_as_tiberius!(
    chrono::NaiveDate: Date,
    chrono::NaiveTime: Time,
    chrono::NaiveDateTime: DateTime2,
    chrono::DateTime<chrono::Utc>: DateTime2,
    chrono::DateTime<chrono::FixedOffset>: DateTimeOffset
);

#[cfg(feature = "time")]
encode_as_tiberius!(
    time::Date: Date,
    time::Time: Time,
    time::PrimitiveDateTime: DateTime2,
    time::OffsetDateTime: DateTimeOffset
);

#[cfg(feature = "rust_decimal")]
encode_as_tiberius!(tiberius::numeric::Decimal: Numeric);

#[cfg(feature = "bigdecimal")]
encode_as_tiberius!(tiberius::numeric::BigDecimal: Numeric);
