//! The parameters of one statement.

use std::fmt;

use ordid_core::{OrderedKey, RawKeyOf, Reads, Sink, entity::AnyValue, key::KeyField, uuid::Uuid};
use ordid_sql::{
    ColumnMask, Columns, Registration, Row, RowEnd, RowSink, Take,
    spi::{BoxedError, ReadRow, RowBinder},
};
use rusqlite::{
    Statement, ToSql,
    types::{FromSql, Null, ToSqlOutput, Value, ValueRef},
};

use crate::stored::StoredAs;

/// An entity that SQLite can take: every type with `#[derive(OrderedKey)]` whose key type has a [column](StoredAs) there,
/// and whose fields rusqlite can bind (`ToSql`).
pub trait Entity: Row<Binder> + OrderedKey<Field: KeyField<Leading: StoredAs>> {
    /// Says in which order SQLite keeps the stored keys: rows are sent in that.
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

/// Takes the fields of entities, as parameters of one statement.
///
/// All texts and blobs are in one buffer, from which SQLite takes them.
#[derive(Default)]
pub struct Binder {
    values: Vec<Bound>,
    buffer: Vec<u8>,
    /// From how many bytes on there is no room for more rows.
    limit: Option<usize>,
    mask: ColumnMask,
    /// The functions that read the columns that the database fills.
    readers: Vec<ReadValue>,
    error: Option<BoxedError>,
}

/// A value; a text or a blob is so many bytes of the buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    Null,
    Integer(i64),
    Real(f64),
    Text(usize),
    Blob(usize),
}

/// A function that reads the value of a column.
type ReadValue = fn(&rusqlite::Row<'_>, usize) -> rusqlite::Result<AnyValue>;

impl Binder {
    #[inline]
    fn push(&mut self, value: ValueRef<'_>) {
        let value = match value {
            ValueRef::Null => Bound::Null,
            ValueRef::Integer(integer) => Bound::Integer(integer),
            ValueRef::Real(real) => Bound::Real(real),
            ValueRef::Text(bytes) => Bound::Text(self.keep(bytes)),
            ValueRef::Blob(bytes) => Bound::Blob(self.keep(bytes)),
        };
        self.values.push(value);
    }

    fn keep(&mut self, bytes: &[u8]) -> usize {
        self.buffer.extend_from_slice(bytes);
        bytes.len()
    }

    fn values(&self) -> impl Iterator<Item = ValueRef<'_>> {
        let mut rest = &*self.buffer;
        let mut next = move |length| {
            let (bytes, behind) = rest.split_at(length);
            rest = behind;
            bytes
        };
        self.values.iter().map(move |value| match *value {
            Bound::Null => ValueRef::Null,
            Bound::Integer(integer) => ValueRef::Integer(integer),
            Bound::Real(real) => ValueRef::Real(real),
            Bound::Text(length) => ValueRef::Text(next(length)),
            Bound::Blob(length) => ValueRef::Blob(next(length)),
        })
    }

    /// Binds the parameters of a statement; an error comes with the number of the parameter, counted from 0.
    pub(crate) fn bind_to(
        &self,
        statement: &mut Statement<'_>,
    ) -> Result<(), (usize, rusqlite::Error)> {
        for (number, value) in self.values().enumerate() {
            let bound = match value {
                // rusqlite binds values of a known type in fewer steps than a `ToSqlOutput`.
                ValueRef::Integer(integer) => statement.raw_bind_parameter(number + 1, integer),
                ValueRef::Null => statement.raw_bind_parameter(number + 1, Null),
                value => statement.raw_bind_parameter(number + 1, ToSqlOutput::Borrowed(value)),
            };
            bound.map_err(|error| (number, error))?;
        }
        Ok(())
    }

    /// Reads a row: its text, which is empty for NULL, and then the columns that the database fills.
    pub(crate) fn read(&self, row: &rusqlite::Row<'_>) -> rusqlite::Result<ReadRow> {
        let text: Option<String> = row.get(0)?;
        let readers = (1..).zip(&self.readers);
        Ok(ReadRow {
            text: text.unwrap_or_default(),
            values: readers
                .map(|(at, read)| read(row, at))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl RowBinder for Binder {
    /// A flush of one row takes a quarter less of the processor's time with its `INSERT` prepared.
    const KEEPS_UP_TO: usize = 1_024;

    fn with_room((): (), rows: usize, values: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows * values),
            buffer: Vec::with_capacity(rows * values * 16),
            ..Self::default()
        }
    }

    fn limit(&mut self, bytes: usize) {
        self.limit = Some(bytes);
    }

    fn bytes(&self) -> usize {
        self.buffer.len() + self.values.len() * size_of::<i64>()
    }

    fn of_marker(id: Uuid) -> Self {
        let mut binder = Self::default();
        binder.push(ValueRef::Blob(id.as_bytes()));
        binder
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        self.error.take()
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToSql> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        match self.mask.take() {
            Take::Value => {}
            Take::Null => return self.values.push(Bound::Null),
            Take::Skip => return,
        }
        match value.to_sql() {
            Ok(ToSqlOutput::Borrowed(value)) => self.push(value),
            Ok(ToSqlOutput::Owned(value)) => self.push(ValueRef::from(&value)),
            // A blob of zeros, a pointer: they are no values that could be kept.
            Ok(other) => {
                let message = format!("ordid-rusqlite does not bind {other:?}");
                self.error.get_or_insert_with(|| message.into());
            }
            Err(error) => {
                self.error.get_or_insert_with(|| error.into());
            }
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: FromSql + Send + Sync + 'static> Reads<T> for Binder {
    fn expect(&mut self) {
        self.readers
            .push(|row, at| Ok(Box::new(row.get::<_, T>(at)?)));
    }
}

impl RowSink for Binder {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        match self.limit {
            _ if self.error.is_some() => RowEnd::Refused,
            Some(limit) if self.bytes() >= limit => RowEnd::TakenLast,
            _ => RowEnd::Taken,
        }
    }

    fn sent((): (), columns: Columns<'_>, write: &mut dyn FnMut(&mut Self)) -> Option<String> {
        let mut binder = Self::default();
        binder.begin_row(columns);
        write(&mut binder);
        let values: Vec<_> = binder.values().map(Value::try_from).collect();
        binder.error.is_none().then(|| format!("{values:?}"))
    }
}

impl fmt::Debug for Binder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("values", &self.values.len())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_as_they_are() {
        let mut binder = Binder::with_room((), 2, 6);
        for _ in 0..2 {
            binder.begin_row(Columns::Without(&[5]));
            binder.put(&1_i64);
            binder.put(&"text".to_owned());
            binder.put(&Some(vec![0_u8, 255]));
            binder.put(&0.5_f64);
            binder.put(&Null);
            binder.put(&"left out");
            assert_eq!(binder.end_row(), RowEnd::Taken);
        }
        let row = [
            ValueRef::Integer(1),
            ValueRef::Text(b"text"),
            ValueRef::Blob(&[0, 255]),
            ValueRef::Real(0.5),
            ValueRef::Null,
            ValueRef::Null,
        ];
        let values: Vec<_> = binder.values().collect();
        assert_eq!(values, [row, row].concat());
        assert_eq!(binder.bytes(), 2 * (6 + 6 * 8));
    }

    #[test]
    fn a_full_statement_takes_no_more_rows() {
        let mut binder = Binder::with_room((), 2, 1);
        binder.limit(20);
        let mut end = |text: &str| {
            binder.begin_row(Columns::All);
            binder.put(&text);
            binder.end_row()
        };
        assert_eq!([end(""), end("12345")], [RowEnd::Taken, RowEnd::TakenLast]);
    }

    /// A journal compares these texts. They differ if a value differs in a bit, or is NULL.
    #[test]
    fn sent_values_differ_as_the_values_do() {
        let sent = |name: &str, number: Option<i64>, float: f64, bytes: &[u8]| {
            Binder::sent((), Columns::All, &mut |binder| {
                binder.put(&name);
                binder.put(&number);
                binder.put(&float);
                binder.put(&bytes);
            })
        };
        let row = sent("a", Some(1), 0.5, &[1, 2]);
        assert!(row.is_some());
        assert_eq!(sent("a", Some(1), 0.5, &[1, 2]), row);
        for other in [
            sent("[redacted]", Some(1), 0.5, &[1, 2]),
            sent("a", None, 0.5, &[1, 2]),
            sent("a", Some(1), 0.500_000_000_000_000_1, &[1, 2]),
            sent("a", Some(1), 0.5, &[1, 3]),
        ] {
            assert_ne!(other, row);
        }
    }
}
