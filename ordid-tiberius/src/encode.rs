//! Values of fields as tiberius sends them.

use std::borrow::Cow;

#[cfg(feature = "chrono")]
use chrono::Datelike as _;
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

    /// Returns why the server has no such value, if it has none. Then [`encode`](Self::encode) is not called, and the flush
    /// returns an error with the row.
    fn refusal(&self) -> Option<String> {
        None
    }
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

    fn refusal(&self) -> Option<String> {
        self.as_ref().and_then(T::refusal)
    }
}

impl<D: Flavour, T: Encode<D> + ?Sized> Encode<D> for &T {
    fn encode(&self) -> ColumnData<'_> {
        (**self).encode()
    }

    fn null() -> ColumnData<'static> {
        T::null()
    }

    fn refusal(&self) -> Option<String> {
        (**self).refusal()
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
    ($($type:ty: $variant:ident $(, |$value:ident| $refusal:expr)?;)+) => {
        $(impl<D: Flavour> Encode<D> for $type {
            fn encode(&self) -> ColumnData<'_> {
                tiberius::ToSql::to_sql(self)
            }

            fn null() -> ColumnData<'static> {
                ColumnData::$variant(None)
            }

            $(fn refusal(&self) -> Option<String> {
                let $value = self;
                $refusal
            })?
        })+
    };
}

/// tiberius panics at years before 1, or takes the connection for lost.
#[cfg(any(feature = "chrono", feature = "time"))]
fn refused_year(year: i32) -> Option<String> {
    let is_there = (1..=9999).contains(&year);
    (!is_there).then(|| format!("the server has the years 1 to 9999, and not {year}"))
}

#[cfg(feature = "chrono")]
encode_as_tiberius! {
    chrono::NaiveDate: Date, |date| refused_year(date.year());
    chrono::NaiveTime: Time;
    chrono::NaiveDateTime: DateTime2, |at| refused_year(at.year());
    chrono::DateTime<chrono::Utc>: DateTime2, |at| refused_year(at.year());
    chrono::DateTime<chrono::FixedOffset>: DateTimeOffset,
        |at| refused_year(at.year()).or_else(|| refused_year(at.naive_utc().year()));
}

#[cfg(feature = "time")]
encode_as_tiberius! {
    time::Date: Date, |date| refused_year(date.year());
    time::Time: Time;
    time::PrimitiveDateTime: DateTime2, |at| refused_year(at.year());
    time::OffsetDateTime: DateTimeOffset, |at| refused_year(at.year())
        .or_else(|| at.checked_to_offset(time::UtcOffset::UTC).map_or(Some(0), |at| Some(at.year())).and_then(refused_year));
}

#[cfg(feature = "rust_decimal")]
encode_as_tiberius! { tiberius::numeric::Decimal: Numeric; }

#[cfg(feature = "bigdecimal")]
encode_as_tiberius! {
    tiberius::numeric::BigDecimal: Numeric, |value| {
        let (digits, scale) = match value.as_bigint_and_exponent() {
            (_, scale) if scale < 0 => value.with_scale(0).into_bigint_and_exponent(),
            whole => whole,
        };
        let is_there = scale <= 38 && i128::try_from(digits).is_ok();
        (!is_there).then(|| format!("{value} has more digits than the 38 of the server"))
    };
}
