//! The names that statements use for a table and its columns.

use super::READ_VERSION;
use crate::{Action, EngineProfile, Table};

/// The names that statements use for a table and its columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableNames {
    /// The quoted name of the table, after that of its schema if it has one.
    pub table: String,
    /// The quoted names of its columns, in the order of [`Table::columns`].
    pub columns: Vec<String>,
    /// The positions of the key's columns.
    pub keys: Vec<usize>,
    /// The position of the version's column, if the rows have a version.
    pub version: Option<usize>,
    /// The text before and after a value of each column, such as a cast. Most columns have none.
    pub around: Vec<Option<[String; 2]>>,
    /// The expressions that read the columns that the database fills: their names, or casts of them.
    pub returning: Vec<String>,
}

impl TableNames {
    /// Returns the names that the entity has.
    pub fn of(table: &Table, engine: &EngineProfile) -> Self {
        let columns = table.columns().iter().map(|it| engine.quote(it));
        let names = Self::new(
            engine.quote_table(table.schema(), table.name()),
            columns.collect(),
            table,
        );
        let returning = table.returning().iter().map(|it| engine.quote(it));
        names.returning(returning.collect())
    }

    /// Sets the expressions that read the columns that the database fills.
    #[must_use]
    pub fn returning(self, returning: Vec<String>) -> Self {
        Self { returning, ..self }
    }

    /// Makes the names of a table from names that are quoted already.
    pub fn new(table_name: String, columns: Vec<String>, table: &Table) -> Self {
        Self {
            table: table_name,
            columns,
            keys: table.key_positions(),
            version: table.version(),
            around: Vec::new(),
            returning: Vec::new(),
        }
    }

    /// Returns the name of the column at a position. The position after the last column is that of the version with
    /// which a row was read.
    pub(super) fn column(&self, position: usize) -> &str {
        match self.columns.get(position) {
            Some(column) => column,
            None => READ_VERSION,
        }
    }

    /// Returns those of `columns` that an action's update sets.
    pub(super) fn set_of(&self, table: &Table, action: Action, columns: &[usize]) -> Vec<usize> {
        let is_set = |it: &usize| match action {
            // These may be among those by which the row is found.
            Action::Upsert { set, .. } => table.column_sets()[set].columns.contains(it),
            _ => *it < self.columns.len() && !self.keys.contains(it),
        };
        columns.iter().copied().filter(is_set).collect()
    }

    /// Returns the columns by which an action finds rows, each with the position of the value that it has to have.
    /// These are the columns of the key and, if it is checked, of the version; an upsert has its own.
    pub(crate) fn found_by(&self, table: &Table, action: Action) -> Vec<(usize, usize)> {
        if let Action::Upsert { set, .. } = action {
            return pairs(table.upserted_by(set));
        }
        let version = self.version.filter(|_| table.checks_version(action));
        let version = version.map(|version| (version, self.columns.len()));
        self.key().into_iter().chain(version).collect()
    }

    /// Does the same as [`found_by`](Self::found_by), but only for the key.
    pub(super) fn key(&self) -> Vec<(usize, usize)> {
        pairs(&self.keys)
    }
}

/// Returns columns, each with its own position as that of the value.
pub(super) fn pairs(columns: &[usize]) -> Vec<(usize, usize)> {
    columns.iter().map(|column| (*column, *column)).collect()
}
