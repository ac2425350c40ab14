//! Values of columns that the database fills.

use ordid_core::{Reads, entity::AnyValue, uuid::Uuid};
use ordid_sql::spi::ReadRow;
use tiberius::{ColumnData, FromSqlOwned, Row, error::Error, numeric::Numeric, xml::XmlData};

use crate::binder::Binder;

/// A type that a flush reads from a column under `#[ordid(returning)]`: what tiberius reads, also in an `Option`.
///
/// Like tiberius, it reads the type of the column and no other: an `int` is an `i32`. For a type of your own:
///
/// ```
/// use ordid_tiberius::Decode;
/// use tiberius::ColumnData;
///
/// struct Cents(i64);
///
/// impl Decode for Cents {
///     fn decode(data: ColumnData<'static>) -> tiberius::Result<Self> {
///         i64::decode(data).map(Self)
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "a value of type `{Self}` cannot be read back from SQL Server",
    label = "not read back",
    note = "implement `ordid_tiberius::Decode` for it"
)]
pub trait Decode: Sized + Send + Sync + 'static {
    /// Reads the value.
    ///
    /// # Errors
    ///
    /// A value of another type, and NULL where the type is no `Option`.
    fn decode(data: ColumnData<'static>) -> tiberius::Result<Self>;
}

impl<T: FromSqlOwned + Send + Sync + 'static> Decode for Option<T> {
    fn decode(data: ColumnData<'static>) -> tiberius::Result<Self> {
        T::from_sql_owned(data)
    }
}

/// Reads a value that is not NULL.
#[doc(hidden)]
pub fn not_null<T: FromSqlOwned>(data: ColumnData<'static>) -> tiberius::Result<T> {
    T::from_sql_owned(data)?.ok_or_else(|| {
        let text =
            "a column under `returning` is NULL: its field has to be an `Assigned<Option<..>>`";
        Error::Conversion(text.into())
    })
}

macro_rules! decode {
    ($($type:ty),+) => {
        $(impl Decode for $type {
            fn decode(data: ColumnData<'static>) -> tiberius::Result<Self> {
                not_null(data)
            }
        })+
    };
}

decode!(
    bool,
    u8,
    i16,
    i32,
    i64,
    f32,
    f64,
    String,
    Vec<u8>,
    Uuid,
    Numeric,
    XmlData
);

#[cfg(feature = "chrono")]
decode!(
    chrono::NaiveDate,
    chrono::NaiveTime,
    chrono::NaiveDateTime,
    chrono::DateTime<chrono::Utc>,
    chrono::DateTime<chrono::FixedOffset>
);

#[cfg(feature = "time")]
decode!(
    time::Date,
    time::Time,
    time::PrimitiveDateTime,
    time::OffsetDateTime
);

#[cfg(feature = "rust_decimal")]
decode!(tiberius::numeric::Decimal);

#[cfg(feature = "bigdecimal")]
decode!(tiberius::numeric::BigDecimal);

/// A function that reads the value of a column.
pub(crate) type ReadValue = fn(ColumnData<'static>) -> tiberius::Result<AnyValue>;

impl<D, T: Decode> Reads<T> for Binder<D> {
    fn expect(&mut self) {
        self.readers.push(|data| Ok(Box::new(T::decode(data)?)));
    }
}

/// Reads a row: its text, and then the columns that the database fills.
pub(crate) fn read_row(readers: &[ReadValue], row: Row) -> tiberius::Result<ReadRow> {
    let mut columns = row.into_iter();
    let text = columns.next().map(String::from_sql_owned).transpose()?;
    let values = readers.iter().zip(columns).map(|(read, data)| read(data));
    Ok(ReadRow {
        text: text.flatten().unwrap_or_default(),
        values: values.collect::<tiberius::Result<_>>()?,
    })
}
