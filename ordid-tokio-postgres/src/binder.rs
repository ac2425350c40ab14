//! How entities become parameters: a sink that keeps them, and what can be an entity here.

use std::{any::Any, fmt};

use bytes::BytesMut;
use ordid_core::{
    KeyField, OrderedKey, RawKeyOf, Reads, Sink, entity::AnyValue, storage::column, uuid::Uuid,
};
use ordid_sql::{
    ColumnMask, Columns, NotBulk, Registration, Row, RowEnd, RowSink, Take, copy,
    spi::{BoxedError, ReadRow, RowBinder, Statement},
};
use tokio_postgres::{
    Error,
    types::{FromSqlOwned, IsNull, ToSql, Type},
};

use crate::{
    copy::CopyPiece,
    stored::{Stored, StoredAs},
    types::{TableOf, encoded_as, usual},
};

/// An entity that PostgreSQL can take: every type with `#[derive(OrderedKey)]` whose key type has a
/// [column](StoredAs) there, and whose fields implement tokio-postgres' [`ToSql`] and are `Clone`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written to PostgreSQL by tokio-postgres",
    label = "cannot be written there",
    note = "it needs `#[derive(ordid::OrderedKey)]`, a key type with a column, `#[ordid(tokio_postgres)]`, and fields \
            that implement `tokio_postgres::types::ToSql`"
)]
pub trait Entity: Row<Binder> {
    /// Says in which order the database keeps the stored keys: rows are sent in that.
    #[doc(hidden)]
    fn __register() -> Registration<Binder, RawKeyOf<Self>>;
}

impl<E: Row<Binder> + OrderedKey<Field: KeyField<Leading: StoredAs>>> Entity for E {
    fn __register() -> Registration<Binder, RawKeyOf<E>> {
        let table = const {
            &TableOf {
                schema: E::SCHEMA,
                name: E::TABLE,
                columns: E::COLUMNS,
                version: E::VERSION,
            }
        };
        Registration::in_column::<E::Field, <Leading<E> as StoredAs>::Column>(Some(table))
    }
}

/// The key type of an entity's first key column.
type Leading<E> = <<E as OrderedKey>::Field as KeyField>::Leading;

/// Takes the fields of entities: as parameters of one statement, which are encoded when the types of the columns are
/// known, or as rows of a `COPY`.
#[derive(Default)]
pub struct Binder {
    pub(crate) table: Option<&'static TableOf>,
    columns: Vec<Box<dyn Column>>,
    /// How many rows it has, and for how many there is room.
    rows: usize,
    expected: usize,
    /// The column that comes next in the row.
    next: usize,
    mask: ColumnMask,
    /// The size of the values, and from which size on there is no room for more rows.
    bytes: usize,
    limit: Option<usize>,
    /// A buffer for a value whose size is to be known.
    scratch: BytesMut,
    pub(crate) copy: Option<CopyPiece>,
    /// The functions that read the columns that the database fills.
    readers: Vec<ReadValue>,
    error: Option<BoxedError>,
}

/// A function that reads the value of a column.
type ReadValue = fn(&tokio_postgres::Row, usize) -> Result<AnyValue, Error>;

/// A parameter and its type.
pub(crate) type Parameter<'b> = (&'b (dyn ToSql + Sync), Type);

impl Binder {
    pub(crate) fn of_copy(piece: CopyPiece) -> Self {
        Self {
            copy: Some(piece),
            ..Self::default()
        }
    }

    /// Returns the parameters of a statement, if there is a type for each. The marker's is known.
    pub(crate) fn parameters(
        &self,
        statement: &Statement,
        types: &[Option<Type>],
    ) -> Option<Vec<Parameter<'_>>> {
        let mut columns = Vec::with_capacity(statement.columns.len());
        for (column, position) in statement.columns.iter().zip(statement.positions()) {
            let values = &**self.columns.get(position)?;
            let ty = match self.table {
                Some(_) => types.get(*column)?.as_ref()?,
                None => &Type::UUID,
            };
            columns.push((values, values.encoded_as(ty)));
        }
        let mut parameters = Vec::with_capacity(self.rows * columns.len());
        for row in 0..self.rows {
            let values = columns.iter();
            parameters.extend(values.map(|(values, ty)| (values.get(row), Type::clone(ty))));
        }
        Some(parameters)
    }

    /// Reads a row: its text, and then the columns that the database fills.
    pub(crate) fn read(&self, row: &tokio_postgres::Row) -> Result<ReadRow, Error> {
        let readers = self.readers.iter().enumerate();
        let values = readers.map(|(position, read)| read(row, position + 1));
        Ok(ReadRow {
            values: values.collect::<Result<_, _>>()?,
            ..row
                .try_get::<_, Option<String>>(0)?
                .unwrap_or_default()
                .into()
        })
    }
}

impl RowBinder for Binder {
    const BY_COLUMN: bool = true;

    fn with_room(table: Option<&'static TableOf>, rows: usize, _: usize) -> Self {
        Self {
            table,
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

    fn offers_bulk(rows: usize, _: usize) -> Result<(), NotBulk> {
        copy::offers(rows)
    }

    fn of_marker(id: Uuid) -> Self {
        let id: Stored<Uuid, column::Uuid> = id.into();
        Self {
            columns: vec![Box::new(vec![Some(id)])],
            rows: 1,
            ..Self::default()
        }
    }

    fn take_error(&mut self) -> Option<BoxedError> {
        self.error.take()
    }
}

impl fmt::Debug for Binder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binder")
            .field("table", &self.table)
            .field("columns", &self.columns.len())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

#[diagnostic::do_not_recommend]
impl<T: ToSql + Clone + Send + Sync + 'static> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        let value = match self.mask.take() {
            Take::Value => Some(value),
            Take::Null => None,
            Take::Skip => return,
        };
        if let Some(piece) = &mut self.copy {
            if let Err(error) = piece.put(value) {
                self.error.get_or_insert(error);
            }
            return;
        }
        if self.columns.len() == self.next {
            let column = Vec::<Option<T>>::with_capacity(self.expected);
            self.columns.push(Box::new(column));
        }
        let column: &mut dyn Any = &mut *self.columns[self.next];
        column
            .downcast_mut::<Vec<Option<T>>>()
            .expect("a field has one type in all rows")
            .push(value.cloned());
        self.next += 1;
        if let (Some(value), Some(_), Some(ty)) = (value, self.limit, usual::<T>()) {
            self.scratch.clear();
            // An error is reported when the value is sent.
            let _ = value.to_sql(ty, &mut self.scratch);
            self.bytes += self.scratch.len();
        }
    }
}

#[diagnostic::do_not_recommend]
impl<T: FromSqlOwned + Send + Sync + 'static> Reads<T> for Binder {
    fn expect(&mut self) {
        self.readers
            .push(|row, at| Ok(Box::new(row.try_get::<_, T>(at)?)));
    }
}

impl RowSink for Binder {
    /// There is none of a marker row.
    type Entity = Option<&'static TableOf>;

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
        self.next = 0;
        if let Some(piece) = &mut self.copy {
            piece.begin_row();
        }
    }

    fn end_row(&mut self) -> RowEnd {
        if self.error.is_some() {
            return RowEnd::Refused;
        }
        match &mut self.copy {
            Some(piece) => piece.end_row(),
            None => {
                self.rows += 1;
                match self.limit {
                    Some(limit) if self.bytes >= limit => RowEnd::TakenLast,
                    _ => RowEnd::Taken,
                }
            }
        }
    }

    /// The bytes of each value, as it is usually encoded; of a type that PostgreSQL itself does not have, its debug text.
    fn sent(
        table: Self::Entity,
        columns: Columns<'_>,
        write: &mut dyn FnMut(&mut Self),
    ) -> Option<String> {
        let mut binder = Self::with_room(table, 1, 0);
        binder.begin_row(columns);
        write(&mut binder);
        let values = binder.columns.iter();
        let texts = values.map(|values| values.text()).collect::<Vec<_>>();
        Some(texts.join(", "))
    }
}

/// The values of one column.
trait Column: Any + Send + Sync {
    fn get(&self, row: usize) -> &(dyn ToSql + Sync);

    /// Returns the type that they are encoded as for a column of this type.
    fn encoded_as<'t>(&self, column: &'t Type) -> &'t Type;

    /// Returns what is sent of them, as text.
    fn text(&self) -> String;
}

impl<T: ToSql + Send + Sync + 'static> Column for Vec<Option<T>> {
    fn get(&self, row: usize) -> &(dyn ToSql + Sync) {
        &self[row]
    }

    fn encoded_as<'t>(&self, column: &'t Type) -> &'t Type {
        encoded_as::<Option<T>>(column)
    }

    fn text(&self) -> String {
        let Some(ty) = usual::<T>() else {
            return format!("{self:?}");
        };
        let texts = self.iter().map(|value| {
            let mut bytes = BytesMut::new();
            match value.to_sql(ty, &mut bytes) {
                Ok(IsNull::Yes) => "NULL".to_owned(),
                Ok(IsNull::No) => format!("{bytes:?}"),
                Err(error) => error.to_string(),
            }
        });
        texts.collect()
    }
}
