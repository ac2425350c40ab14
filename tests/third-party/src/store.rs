//! The database: tables in memory that check keys and foreign keys, and fail when a test asks for it.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ordid_sql::{
    DriverError, Failure, Violation,
    spi::{Statement, StatementKind},
};

use crate::adapter::Binder;

/// A value of a column.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

/// A failure that a test asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is lost before the next COMMIT is applied.
    BeforeCommit,
    /// The connection is lost after the next COMMIT was applied.
    AfterCommit,
    /// The next connection cannot be opened.
    Unreachable,
}

/// By the first column, which is the primary key.
type Rows = BTreeMap<Value, Vec<Value>>;
/// The positions of foreign keys, and the tables that they refer to.
type References = Vec<(usize, &'static str)>;
type Tables = BTreeMap<&'static str, (References, Rows)>;

/// The text of a statement, and the values of each row.
pub type Sent = (String, Vec<Vec<Value>>);

#[derive(Debug, Default)]
struct State {
    tables: Tables,
    sent: Vec<Sent>,
    faults: VecDeque<Fault>,
    /// How many transactions and savepoints are open.
    open: usize,
}

/// A database in memory. Clones are the same one.
#[derive(Debug, Clone, Default)]
pub struct Store(Arc<Mutex<State>>);

impl Store {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a table, with the positions of its foreign keys and the tables that they refer to.
    pub fn create_table(&self, name: &'static str, references: &[(usize, &'static str)]) {
        let table = (references.to_vec(), Rows::new());
        self.state().tables.insert(name, table);
    }

    /// Returns the rows of a table, by their keys.
    pub fn rows(&self, table: &str) -> Vec<Vec<Value>> {
        self.state().tables[table].1.values().cloned().collect()
    }

    /// Returns what was sent since this was last called.
    pub fn sent(&self) -> Vec<Sent> {
        std::mem::take(&mut self.state().sent)
    }

    /// Makes something fail, after what was asked for before.
    pub fn fail(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// Takes the next fault if it is one of these.
    pub(crate) fn fault(&self, of: &[Fault]) -> Option<Fault> {
        self.state().faults.pop_front_if(|it| of.contains(it))
    }

    pub(crate) fn has_transaction(&self) -> bool {
        self.state().open > 0
    }

    /// Begins a transaction, or a savepoint in the one that is open.
    pub fn begin(&self) -> Transaction {
        let mut state = self.state();
        state.open += 1;
        Transaction {
            before: Some(state.tables.clone()),
            store: self.clone(),
            is_savepoint: state.open > 1,
        }
    }

    pub(crate) fn has_row(&self, table: &str, key: &Value) -> Result<bool, DriverError<io::Error>> {
        let state = self.state();
        let (_, rows) = state.tables.get(table).ok_or_else(no_table)?;
        Ok(rows.contains_key(key))
    }

    pub(crate) fn value(
        &self,
        table: &str,
        key: &Value,
        column: usize,
    ) -> Result<Option<Value>, DriverError<io::Error>> {
        let state = self.state();
        let (_, rows) = state.tables.get(table).ok_or_else(no_table)?;
        Ok(rows.get(key).map(|row| row[column].clone()))
    }

    /// Carries a statement out, and returns how many rows it changed.
    pub(crate) fn execute(
        &self,
        statement: &Statement,
        bound: Binder,
    ) -> Result<u64, DriverError<io::Error>> {
        let mut state = self.state();
        let columns = &statement.columns;
        let rows: Vec<_> = bound.values.chunks(columns.len()).map(Vec::from).collect();
        state.sent.push((statement.sql.to_string(), rows.clone()));
        let key = columns.iter().position(|it| *it == 0);
        let key = key.expect("the key is the first column of the entity");
        let mut changed = 0;
        for row in rows {
            let table = state.tables.get_mut(bound.entity.table);
            let (_, table) = table.ok_or_else(no_table)?;
            let (key, values) = (row[key].clone(), columns.iter().copied().zip(row));
            let (checked, values): (Vec<_>, Vec<_>) =
                values.partition(|(column, _)| bound.entity.checked(*column).is_some());
            let is_stale = |row: &Vec<Value>| {
                checked.iter().any(|(column, value)| {
                    let column = bound.entity.checked(*column);
                    column.is_some_and(|column| row[column] != *value)
                })
            };
            if table.get(&key).is_some_and(is_stale) {
                continue;
            }
            let values = values.into_iter();
            match (statement.kind, table.get_mut(&key)) {
                (StatementKind::Insert, Some(_)) => {
                    return Err(of_row(Failure::Duplicate, Violation::Unique));
                }
                (StatementKind::Insert, None) => {
                    table.insert(key, values.map(|(_, value)| value).collect());
                }
                (_, None) => continue,
                (StatementKind::Update, Some(found)) => {
                    values.for_each(|(column, value)| found[column] = value);
                }
                (StatementKind::Delete, Some(_)) => drop(table.remove(&key)),
                // The statement has values for the key alone: the column is known from the action.
                (_, Some(found)) => {
                    found[bound.unlinked.expect("it sets a column to NULL")] = Value::Null;
                }
            }
            // Row by row, as InnoDB does: an order within a statement is one, too.
            check_references(&state.tables)?;
            changed += 1;
        }
        Ok(changed)
    }
}

/// Checks that each foreign key has its row.
fn check_references(tables: &Tables) -> Result<(), DriverError<io::Error>> {
    for (references, rows) in tables.values() {
        for (column, parent) in references {
            let (_, parents) = tables.get(parent).ok_or_else(no_table)?;
            let mut keys = rows.values().map(|row| &row[*column]);
            if !keys.all(|key| *key == Value::Null || parents.contains_key(key)) {
                return Err(of_row(Failure::Refused, Violation::ForeignKey));
            }
        }
    }
    Ok(())
}

fn no_table() -> DriverError<io::Error> {
    DriverError::new(io::Error::other("there is no such table"), Failure::Refused)
}

/// An error that is about a row, which ordid then looks for.
fn of_row(failure: Failure, violation: Violation) -> DriverError<io::Error> {
    let mut error = DriverError::new(io::Error::other("a constraint is violated"), failure);
    error.refuses_a_row = true;
    error.violation = Some(violation);
    error
}

/// A transaction or a savepoint. Dropped, it is rolled back.
#[derive(Debug)]
pub struct Transaction {
    pub(crate) store: Store,
    pub(crate) is_savepoint: bool,
    before: Option<Tables>,
}

impl Transaction {
    /// Commits it.
    pub fn commit(mut self) {
        self.before = None;
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let mut state = self.store.state();
        state.open -= 1;
        if let Some(before) = self.before.take() {
            state.tables = before;
        }
    }
}
