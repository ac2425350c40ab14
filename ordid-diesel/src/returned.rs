//! Columns that the database fills: what reads their values.
//!
//! Diesel reads a row into a type that is known when a program is compiled. A flush reads rows of any entity by one
//! query, so it takes the raw value of each column, and the column's function reads that.

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

/// A column of `table!` whose values a flush reads as values of a type.
#[diagnostic::on_unimplemented(
    message = "the column `{Self}` is not read as a value of type `{T}` in this database",
    label = "of another type than the column in `table!`"
)]
pub trait ReadAs<T, DB: Backend>: Column {
    /// What reads its values.
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

/// Reads the value of a column; `None` is NULL.
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

/// Reads a row: behind its text, the columns of a table that the database fills.
pub(crate) fn read_row<'r, DB: Backend>(
    row: &impl Row<'r, DB>,
    readers: &[ReadValue<DB>],
) -> QueryResult<ReadRow> {
    let failed = DieselError::DeserializationError;
    let field = |at: usize| match row.get(at) {
        Some(field) => Ok(field),
        None => Err(failed(
            "the row has fewer columns than were asked for".into(),
        )),
    };
    let mut values = Vec::with_capacity(readers.len());
    for (position, read) in readers.iter().enumerate() {
        values.push(read(field(position + 1)?.value()).map_err(failed)?);
    }
    let text = match field(0)?.value() {
        None => String::new(),
        text => DB::text(text).map_err(failed)?,
    };
    Ok(ReadRow { text, values })
}

/// The types are those of the columns, which the table names.
impl<DB: Backend, T> Reads<T> for Binder<DB> {
    fn expect(&mut self) {}
}
