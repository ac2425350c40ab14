//! What ordid asks of an adapter: a binder, a connection with its transaction, and a source of connections.

use std::{convert::Infallible, io, time::Duration};

use ordid::{
    KeyOf, KeyType, OrderedKey, Sink,
    entity::{Fields, Parent, RawKeyOf},
    storage::{Found, StoredValue as _, Stores},
    uuid::Uuid,
};
use ordid_sql::{
    Action, ColumnMask, Columns, DriverError, EngineProfile, Failure, Registration, RowEnd,
    RowSink, Take,
    spi::{
        Begin, Changed, Connected, ConnectionSource, FlushConnection, FlushTransaction, ReadRow,
        RowBinder, Statement, StatementFailure, StatementKind, TransactionScope,
    },
};

use crate::{
    ENGINE, FlushError, MARKERS,
    store::{Fault, Store, Transaction, Value},
};

/// A key type that the recorder stores: `engine!` implements it for what `#[ordid(adapter = recorder(memory = ..))]`
/// names.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no column in the recorder",
    note = "add it to the key type: `#[ordid(adapter = recorder(memory = blob))]`"
)]
pub trait KeyColumn: KeyType {
    /// The column.
    type Column: Stores<Self::Raw>;
}

/// A type whose values can be bound.
pub trait ToValue {
    /// Returns the value.
    fn to_value(&self) -> Value;
}

impl<K: KeyColumn> ToValue for K {
    fn to_value(&self) -> Value {
        match K::Column::encode(self.to_raw()).found() {
            Found::Bytes(bytes) => Value::Blob(bytes.into()),
            Found::Integer(integer) => Value::Integer(integer),
            other => unreachable!("SQLite has no {other:?}"),
        }
    }
}

impl ToValue for i64 {
    fn to_value(&self) -> Value {
        Value::Integer(*self)
    }
}

impl ToValue for String {
    fn to_value(&self) -> Value {
        Value::Text(self.clone())
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_value)
    }
}

/// An entity that the recorder takes.
pub trait Entity: OrderedKey + Fields<Binder> + Send + Sync + 'static {
    #[doc(hidden)]
    fn __register() -> Registration<Binder, RawKeyOf<Self>>;
}

impl<E> Entity for E
where
    E: OrderedKey + Fields<Binder> + Send + Sync + 'static,
    KeyOf<E>: KeyColumn,
{
    fn __register() -> Registration<Binder, RawKeyOf<E>> {
        Registration {
            // Also right for `unordered(..)`: rows go in the order of the index.
            compare: <<KeyOf<E> as KeyColumn>::Column as Stores<RawKeyOf<E>>>::compare,
            entity: Described {
                table: E::TABLE,
                columns: E::COLUMNS,
                version: E::VERSION,
                parents: E::PARENTS,
            },
        }
    }
}

/// What the store needs to know of an entity type.
#[derive(Debug, Clone, Copy)]
pub struct Described {
    pub(crate) table: &'static str,
    columns: &'static [&'static str],
    version: Option<usize>,
    parents: &'static [Parent],
}

impl Described {
    /// Returns the column that has to have a value, if this is the position of such a value: that of the version which a
    /// row was read with is behind all columns.
    pub(crate) fn checked(&self, position: usize) -> Option<usize> {
        self.version.filter(|_| position == self.columns.len())
    }
}

/// Binds the fields of entities.
#[derive(Debug)]
pub struct Binder {
    pub(crate) entity: Described,
    pub(crate) values: Vec<Value>,
    /// The position of the column that the rows' statement sets to NULL.
    pub(crate) unlinked: Option<usize>,
    mask: ColumnMask,
}

impl<T: ToValue> Sink<T> for Binder {
    fn put(&mut self, value: &T) {
        self.values.push(match self.mask.take() {
            Take::Value => value.to_value(),
            Take::Null => Value::Null,
            Take::Skip => return,
        });
    }
}

impl RowSink for Binder {
    type Entity = Described;

    fn begin_row(&mut self, columns: Columns<'_>) {
        self.mask.begin(columns);
    }

    fn end_row(&mut self) -> RowEnd {
        RowEnd::Taken
    }
}

impl RowBinder for Binder {
    fn with_room(entity: Described, rows: usize, values: usize) -> Self {
        Self {
            entity,
            values: Vec::with_capacity(rows * values),
            unlinked: None,
            mask: ColumnMask::default(),
        }
    }

    fn begin_rows(&mut self, action: Action) {
        if let Action::Unlink { parent } = action {
            let name = self.entity.parents[parent].column();
            self.unlinked = self.entity.columns.iter().position(|it| *it == name);
        }
    }

    fn of_marker(id: Uuid) -> Self {
        let entity = Described {
            table: MARKERS,
            columns: &["id"],
            version: None,
            parents: &[],
        };
        let mut binder = Self::with_room(entity, 1, 1);
        binder.values.push(Value::Blob(id.as_bytes().into()));
        binder
    }
}

impl FlushConnection for Store {
    type Error = io::Error;
    type Binder = Binder;
    type Bulk = Infallible;
    type Transaction<'c> = Transaction;

    const ADAPTER: &'static str = "recorder";

    async fn check(&mut self, wanted: TransactionScope) -> Result<TransactionScope, FlushError> {
        match (wanted, self.has_transaction()) {
            (TransactionScope::Transaction, true) => Err(FlushError::open_transaction("store")),
            _ => Ok(wanted),
        }
    }

    async fn begin(&mut self, _: Begin<'_>) -> Result<Transaction, FlushError> {
        Ok(Store::begin(self))
    }
}

impl FlushTransaction for Transaction {
    type Error = io::Error;
    type Binder = Binder;
    type Bulk = Infallible;

    async fn execute(
        &mut self,
        statement: &Statement,
        values: Binder,
    ) -> Result<Changed, StatementFailure<io::Error>> {
        Ok(Changed::Rows(self.store.execute(statement, values)?))
    }

    /// Asks by the key, or by the key and the version with which the row was read.
    async fn exists(&mut self, _: &Statement, key: Binder) -> Result<bool, DriverError<io::Error>> {
        let table = key.entity.table;
        match (key.values.get(1), key.entity.version) {
            (Some(read), Some(version)) => {
                let found = self.store.value(table, &key.values[0], version)?;
                Ok(found.as_ref() == Some(read))
            }
            _ => self.store.has_row(table, &key.values[0]),
        }
    }

    /// Returns the rows of a query, which asks for a row's version or for the existing rows.
    async fn read(
        &mut self,
        query: &Statement,
        key: Binder,
    ) -> Result<Vec<ReadRow>, DriverError<io::Error>> {
        if query.kind == StatementKind::Find {
            if *query.columns != [0] {
                let error = io::Error::other("rows are found by their key alone");
                return Err(DriverError::new(error, Failure::Refused));
            }
            let mut found = Vec::new();
            for (number, value) in key.values.iter().enumerate() {
                if self.store.has_row(key.entity.table, value)? {
                    found.push(number.to_string().into());
                }
            }
            return Ok(found);
        }
        let version = key.entity.version.expect("nothing else is asked for");
        let found = self
            .store
            .value(key.entity.table, &key.values[0], version)?;
        let text = found.map(|version| match version {
            Value::Integer(version) => version.to_string(),
            other => format!("{other:?}"),
        });
        Ok(text.into_iter().map(ReadRow::from).collect())
    }

    async fn commit(self) -> Result<(), DriverError<io::Error>> {
        let fault = match self.is_savepoint {
            true => None,
            false => self.store.fault(&[Fault::BeforeCommit, Fault::AfterCommit]),
        };
        if fault != Some(Fault::BeforeCommit) {
            Transaction::commit(self);
        }
        let lost = |_| {
            Err(DriverError::new(
                io::Error::other("no answer"),
                Failure::Lost,
            ))
        };
        fault.map_or(Ok(()), lost)
    }

    async fn rollback(self, _: bool) -> Result<(), DriverError<io::Error>> {
        Ok(())
    }
}

/// The store as a source of connections, each of which is the store itself.
pub(crate) struct Source {
    pub(crate) store: Store,
    pub(crate) is_open: bool,
    /// Whether it can open others, as a pool does.
    pub(crate) may_reconnect: bool,
}

impl Source {
    pub(crate) fn of(store: &Store) -> Self {
        Self {
            store: store.clone(),
            is_open: false,
            may_reconnect: true,
        }
    }
}

impl ConnectionSource for Source {
    type Connection = Store;

    fn engine(&self) -> EngineProfile {
        ENGINE
    }

    async fn get(&mut self, _: bool) -> Connected<'_, Store> {
        if !self.is_open && self.store.fault(&[Fault::Unreachable]).is_some() {
            return Err(FlushError::connect("nobody answers"));
        }
        let is_new = !std::mem::replace(&mut self.is_open, true);
        Ok((&mut self.store, is_new))
    }

    fn discard(&mut self) {
        self.is_open = false;
    }

    fn may_reconnect(&self) -> bool {
        self.may_reconnect
    }

    /// The tests do not wait.
    async fn pause(&self, _: Duration) {}
}
