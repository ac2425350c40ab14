//! The rows of one chunk, column by column.

use std::{any::Any, collections::BTreeSet};

use oracle::{
    Batch, Connection, SqlValue,
    sql_type::{FromSql, OracleType, ToSql},
};
use ordid_core::{
    OrderedKey, RawKeyOf, Reads, Sink, entity::AnyValue, key::KeyField, storage::column::Raw16,
    uuid::Uuid,
};
use ordid_sql::{
    ColumnMask, Columns, Registration, Row, RowEnd, RowSink, Take,
    spi::{ReadRow, RowBinder},
};

use crate::stored::{Stored, StoredAs};

/// An entity that Oracle can take: every type with `#[derive(OrderedKey)]` whose key type has a
/// column there, and whose fields the `oracle` crate can bind.
pub trait Entity: Row<Binder> + OrderedKey<Field: KeyField<Leading: StoredAs>> {
    /// Says in which order Oracle keeps the stored keys: rows are sent in that.
    #[doc(hidden)]
    fn __register() -> Registration<Binder, RawKeyOf<Self>>;
}

impl<E: Row<Binder> + OrderedKey<Field: KeyField<Leading: StoredAs>>> Entity for E {
    fn __register() -> Registration<Binder, RawKeyOf<E>> {
        Registration::in_column::<E::Field, <Leading<E> as StoredAs>::Column>(())
    }
}

/// The key type of an entity's first key column.
type Leading<E> = <<E as OrderedKey>::Field as KeyField>::Leading;

/// A function that reads the value of a column.
type ReadValue = fn(&SqlValue<'_>) -> oracle::Result<AnyValue>;

/// Takes the fields of entities: one array per column, to be bound to one statement.
#[derive(Default)]
pub struct Binder {
    columns: Vec<Box<dyn Column>>,
    rows: usize,
    /// The column that comes next in the row.
    next: usize,
    /// For how many rows there will be room.
    expected: usize,
    /// How many bytes the values have, about, and after how many a statement is large enough.
    bytes: usize,
    limit: Option<usize>,
    mask: ColumnMask,
    /// The rows and columns that are NULL whatever the value.
    nulls: BTreeSet<(usize, usize)>,
    /// The functions that read the columns of a query.
    readers: Vec<ReadValue>,
}

impl Binder {
    /// Copies the arrays into those of a batch. `positions` has the column of each parameter of the batch. An error
    /// comes with the number of its row.
    pub(crate) fn append_to(
        &self,
        batch: &mut Batch<'_>,
        positions: &[usize],
    ) -> Result<(), (usize, oracle::Error)> {
        for row in 0..self.rows {
            for (number, column) in (1..).zip(positions) {
                let value = self.columns[*column].get(row);
                let set = if self.nulls.contains(&(row, *column)) {
                    batch.set::<usize>(number, &Null(value))
                } else {
                    batch.set::<usize>(number, value)
                };
                set.map_err(|error| (row, error))?;
            }
            batch.append_row(&[]).map_err(|error| (row, error))?;
        }
        Ok(())
    }

    /// Returns the values of a row, as parameters of one statement.
    pub(crate) fn row(&self, row: usize) -> Vec<&dyn ToSql> {
        self.columns.iter().map(|column| column.get(row)).collect()
    }

    /// Reads a row: its text, and then the columns that the database fills.
    pub(crate) fn read(&self, row: &oracle::Row) -> oracle::Result<ReadRow> {
        let columns = row.sql_values().iter().skip(1);
        let values = self.readers.iter().zip(columns);
        Ok(ReadRow {
            text: row.get::<_, Option<String>>(0)?.unwrap_or_default(),
            values: values
                .map(|(read, value)| read(value))
                .collect::<oracle::Result<_>>()?,
        })
    }
}

impl RowBinder for Binder {
    const BY_COLUMN: bool = true;

    fn with_room((): (), rows: usize, _values: usize) -> Self {
        Self {
            expected: rows,
            ..Self::default()
        }
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn of_marker(id: Uuid) -> Self {
        let id: Stored<Uuid, Raw16> = id.into();
        Self {
            columns: vec![Box::new(vec![id])],
            rows: 1,
            ..Self::default()
        }
    }
}

impl std::fmt::Debug for Binder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Binder")
            .field("columns", &self.columns.len())
            .field("rows", &self.rows)
            .finish()
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToSql + Clone + Send + 'static> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        match self.mask.take() {
            Take::Value => {}
            Take::Null => {
                self.nulls.insert((self.rows, self.next));
            }
            Take::Skip => return,
        }
        if self.columns.len() == self.next {
            let column = Vec::<T>::with_capacity(self.expected);
            self.columns.push(Box::new(column));
        }
        self.bytes += bytes_of(value);
        let column: &mut dyn Any = &mut *self.columns[self.next];
        column
            .downcast_mut::<Vec<T>>()
            .expect("a field has one type in all rows")
            .push(value.clone());
        self.next += 1;
    }
}

#[diagnostic::do_not_recommend]
impl<T: FromSql + Send + Sync + 'static> Reads<T> for Binder {
    fn expect(&mut self) {
        self.readers.push(|value| Ok(Box::new(value.get::<T>()?)));
    }
}

impl RowSink for Binder {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        self.next = 0;
    }

    fn end_row(&mut self) -> RowEnd {
        self.rows += 1;
        match self.limit {
            Some(limit) if self.bytes >= limit => RowEnd::TakenLast,
            _ => RowEnd::Taken,
        }
    }
}

/// Returns about how many bytes a value has. Of a type of the program's own nothing is known.
fn bytes_of(value: &dyn Any) -> usize {
    fn of<T: AsRef<[u8]> + 'static>(value: &dyn Any) -> Option<usize> {
        let alone = || value.downcast_ref::<T>().map(|it| it.as_ref().len());
        let wrapped = || value.downcast_ref::<Option<T>>();
        alone().or_else(|| wrapped().map(|it| it.as_ref().map_or(0, |it| it.as_ref().len())))
    }
    let text_or_bytes = of::<String>(value).or_else(|| of::<Vec<u8>>(value));
    text_or_bytes.unwrap_or(16)
}

/// NULL in the place of a value, and of its type.
struct Null<'a>(&'a dyn ToSql);

impl ToSql for Null<'_> {
    fn oratype(&self, connection: &Connection) -> oracle::Result<OracleType> {
        self.0.oratype(connection)
    }

    fn to_sql(&self, value: &mut SqlValue<'_>) -> oracle::Result<()> {
        value.set_null()
    }
}

/// The values of one column.
trait Column: Any + Send {
    fn get(&self, row: usize) -> &dyn ToSql;
}

impl<T: ToSql + Send + 'static> Column for Vec<T> {
    fn get(&self, row: usize) -> &dyn ToSql {
        &self[row]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_array_per_column() {
        let mut binder = Binder::with_room((), 3, 2);
        for (name, total) in [("a", Some(1_i64)), ("b", None), ("c", Some(3))] {
            binder.begin_row(Columns::All);
            binder.put(&name.to_owned());
            binder.put(&total);
            assert_eq!(binder.end_row(), RowEnd::Taken);
        }
        assert_eq!((binder.rows, binder.columns.len()), (3, 2));
        let column = |number: usize| -> &dyn Any { &*binder.columns[number] };
        assert_eq!(
            column(0).downcast_ref(),
            Some(&["a", "b", "c"].map(str::to_owned).to_vec())
        );
        assert_eq!(
            column(1).downcast_ref(),
            Some(&vec![Some(1_i64), None, Some(3)])
        );
    }
}
