//! How entities become parameters: a sink that keeps the values of one statement, and what can be an entity here.

use std::fmt::{self, Write as _};

use mysql_async::{
    DriverError, Error, FromValueError, Row, Value,
    prelude::{FromValue, ToValue},
};
use ordid_core::{KeyField, OrderedKey, RawKeyOf, Reads, Sink, entity::AnyValue, uuid::Uuid};
use ordid_sql::{
    ColumnMask, Columns, Registration, RowEnd, RowSink, Take,
    spi::{ReadRow, RowBinder, StatementKind},
};

use crate::stored::StoredAs;

/// An entity that MySQL and MariaDB can take: every type with `#[derive(OrderedKey)]` whose key type has a
/// [column](StoredAs) there, and whose fields implement mysql_async's [`ToValue`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to MySQL or MariaDB by mysql_async",
    label = "cannot be written there",
    note = "it needs `#[derive(ordid::OrderedKey)]`, a key type with a column, `#[ordid(mysql_async)]`, and fields that \
            implement `mysql_async::prelude::ToValue`"
)]
pub trait Entity: ordid_sql::Row<Binder> {
    /// Says in which order the database keeps the stored keys: rows are sent in that.
    #[doc(hidden)]
    fn __register() -> Registration<Binder, RawKeyOf<Self>>;
}

impl<E> Entity for E
where
    E: ordid_sql::Row<Binder> + OrderedKey<Field: KeyField<Leading: StoredAs>>,
{
    fn __register() -> Registration<Binder, RawKeyOf<E>> {
        Registration::in_column::<E::Field, <Leading<E> as StoredAs>::Column>(())
    }
}

/// The key type of an entity's first key column.
type Leading<E> = <<E as OrderedKey>::Field as KeyField>::Leading;

/// Takes the fields of entities, as parameters of one statement.
#[derive(Default)]
pub struct Binder {
    pub(crate) values: Vec<Value>,
    /// The size of the values, and from which size on there is no room for more rows.
    bytes: usize,
    limit: Option<usize>,
    mask: ColumnMask,
    /// The functions that read the columns that the database fills.
    readers: Vec<ReadValue>,
}

/// A function that reads the value of a column.
type ReadValue = fn(Value) -> Result<AnyValue, FromValueError>;

impl Binder {
    /// Takes the parameters of a statement that is not one of a flush.
    pub(crate) fn of(values: Vec<Value>) -> Self {
        Self {
            values,
            ..Self::default()
        }
    }

    fn push(&mut self, value: Value) {
        self.bytes += match &value {
            Value::Bytes(bytes) => bytes.len(),
            _ => size_of::<i64>(),
        };
        self.values.push(value);
    }

    /// Reads a row: its text, and then the columns that the database fills. A query that is not of the kind `Read` has its
    /// text last.
    pub(crate) fn read(&self, kind: StatementKind, row: Row) -> Result<ReadRow, Error> {
        let mut values = row.unwrap();
        let text = match kind {
            StatementKind::Read => values.drain(..1).next(),
            _ => values.pop(),
        };
        let readers = self.readers.iter().zip(values);
        let read = readers.map(|(read, value)| read(value));
        let values = read.collect::<Result<_, _>>();
        Ok(ReadRow {
            text: match text {
                None | Some(Value::NULL) => String::new(),
                Some(Value::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
                Some(other) => other.as_sql(true),
            },
            values: values.map_err(|FromValueError(value)| DriverError::FromValue { value })?,
        })
    }
}

impl RowBinder for Binder {
    /// A flush of one row takes one round trip less with its `INSERT` prepared. The server needs some memory for each
    /// parameter of a statement that is kept, so the long ones are closed.
    const KEEPS_UP_TO: usize = 1_024;
    const BEGINS_XA: bool = true;

    fn with_room((): (), rows: usize, values: usize) -> Self {
        Self {
            values: Vec::with_capacity(rows * values),
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
        let mut binder = Self::default();
        binder.push(id.to_value());
        binder
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToValue> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        match self.mask.take() {
            Take::Value => self.push(value.to_value()),
            Take::Null => self.push(Value::NULL),
            Take::Skip => {}
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: FromValue + Send + Sync + 'static> Reads<T> for Binder {
    fn expect(&mut self) {
        self.readers
            .push(|value| Ok(Box::new(T::from_value_opt(value)?)));
    }
}

impl RowSink for Binder {
    type Entity = ();

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        match self.limit {
            Some(limit) if self.bytes >= limit => RowEnd::TakenLast,
            _ => RowEnd::Taken,
        }
    }

    /// mysql_async's own text of a value shortens long ones, and has one text for all that are no numbers.
    fn sent((): (), columns: Columns<'_>, write: &mut dyn FnMut(&mut Self)) -> Option<String> {
        let mut binder = Self::default();
        binder.begin_row(columns);
        write(&mut binder);
        let mut text = String::new();
        for value in &binder.values {
            let written = match value {
                Value::Bytes(bytes) => write!(text, "'{}', ", bytes.escape_ascii()),
                Value::Float(float) => write!(text, "{:#x}_f32, ", float.to_bits()),
                Value::Double(double) => write!(text, "{:#x}_f64, ", double.to_bits()),
                other => write!(text, "{}, ", other.as_sql(true)),
            };
            written.ok()?;
        }
        Some(text)
    }
}

impl fmt::Debug for Binder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("values", &self.values.len())
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
