//! Reads the values of columns that the database fills.
//!
//! Diesel reads a row into a type that is known at compile time. A flush reads rows of any entity with one query. So it
//! takes the raw value of each column, and calls a function of the column that reads this value.

use diesel::{
    Expression,
    backend::Backend as DieselBackend,
    deserialize::{self, FromSql},
    query_source::Column,
    result::{Error as DieselError, QueryResult},
    row::{Field as _, Row},
};
use ordid_core::{Reads, entity::AnyValue};
use ordid_sql::spi::ReadRow;

use crate::{backend::Backend, entity::Binder};

/// A column of `table!` whose values a flush can read as values of the type `T`.
#[diagnostic::on_unimplemented(
    message = "the column `{Self}` is not read as a value of type `{T}` in this database",
    label = "of another type than the column in `table!`"
)]
pub trait ReadAs<T, DB: Backend>: Column {
    /// The function that reads its values.
    #[doc(hidden)]
    const READ: ReadValue<DB>;
}

#[diagnostic::do_not_recommend]
impl<C, T, DB> ReadAs<T, DB> for C
where
    C: Column + Expression,
    T: FromSql<C::SqlType, DB> + Send + Sync + 'static,
    DB: Backend,
{
    const READ: ReadValue<DB> = read::<C::SqlType, T, DB>;
}

/// A function that reads the value of a column. It gets `None` for NULL.
#[doc(hidden)]
pub type ReadValue<DB> =
    for<'v> fn(Option<<DB as DieselBackend>::RawValue<'v>>) -> deserialize::Result<AnyValue>;

fn read<ST, T, DB>(value: Option<DB::RawValue<'_>>) -> deserialize::Result<AnyValue>
where
    T: FromSql<ST, DB> + Send + Sync + 'static,
    DB: Backend,
{
    Ok(Box::new(T::from_nullable_sql(value)?))
}

/// Reads a row: its text, and then the columns that the database fills. If there are no readers, the text is its last column.
pub(crate) fn read_row<'r, DB: Backend>(
    row: &impl Row<'r, DB>,
    readers: Option<&[ReadValue<DB>]>,
) -> QueryResult<ReadRow> {
    let failed = DieselError::DeserializationError;
    let field = |at: usize| match row.get(at) {
        Some(field) => Ok(field),
        None => Err(failed(
            "the row has fewer columns than were asked for".into(),
        )),
    };
    let mut values = Vec::with_capacity(readers.map_or(0, <[_]>::len));
    for (position, read) in readers.into_iter().flatten().enumerate() {
        values.push(read(field(position + 1)?.value()).map_err(failed)?);
    }
    let text_at = match readers {
        Some(_) => 0,
        None => row.field_count().saturating_sub(1),
    };
    let text = match field(text_at)?.value() {
        None => String::new(),
        text => match DB::text(text) {
            // An id that another program has given to a prepared transaction may be any bytes.
            Err(error) if text_at > 0 && error.is::<std::str::Utf8Error>() => String::new(),
            text => text.map_err(failed)?,
        },
    };
    Ok(ReadRow { text, values })
}

/// Does nothing, because the columns of `table!` already name the types of their values.
impl<DB: Backend, T> Reads<T> for Binder<DB> {
    fn expect(&mut self) {}
}
