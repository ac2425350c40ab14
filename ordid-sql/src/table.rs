//! What planning needs to know of an entity type.

use std::any::TypeId;

use crate::Action;
use ordid_core::entity::Parent;

/// A table, and how many of its rows a unit of work writes.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) entity: TypeId,
    pub(crate) key: TypeId,
    pub(crate) schema: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) key_column: &'static str,
    pub(crate) columns: &'static [&'static str],
    pub(crate) parents: &'static [Parent],
    /// Whether the database has to take each row that is inserted.
    pub(crate) counts_inserts: bool,
    pub(crate) rows: usize,
    pub(crate) updates: usize,
    /// The last of them.
    pub(crate) column_sets: Vec<ColumnSet>,
    pub(crate) deletes: usize,
}

/// Rows of which the same columns are updated, and no others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnSet {
    /// The columns, without the key: positions in [`Table::columns`] that rise.
    pub columns: Vec<usize>,
    /// How many rows there are.
    pub rows: usize,
}

impl Table {
    /// Returns the schema, unquoted, where the entity names one.
    pub const fn schema(&self) -> Option<&'static str> {
        self.schema
    }

    /// Returns the table's name, unquoted.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the key's column, unquoted.
    pub const fn key_column(&self) -> &'static str {
        self.key_column
    }

    /// Returns the columns in the order in which a row's values are written, unquoted.
    pub const fn columns(&self) -> &'static [&'static str] {
        self.columns
    }

    /// Returns the foreign keys.
    pub const fn parents(&self) -> &'static [Parent] {
        self.parents
    }

    /// Returns the number of rows to insert.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows to update, all columns of them or some.
    pub const fn updates(&self) -> usize {
        self.updates
    }

    /// Returns of which columns some of the [`updates`](Self::updates) are.
    pub fn column_sets(&self) -> &[ColumnSet] {
        &self.column_sets
    }

    /// Returns the number of rows of an action; `None` for those that are some of another action's.
    pub(crate) fn rows_of(&self, action: Action) -> Option<usize> {
        match action {
            Action::Insert => Some(self.rows),
            Action::Update => Some(self.first_of_set(0)),
            Action::UpdateColumns { set } => Some(self.column_sets[set].rows),
            Action::Delete => Some(self.deletes),
            Action::FixUp { .. } | Action::Unlink { .. } => None,
        }
    }

    /// Returns where the rows of a column set begin among those to update: behind those of which all columns are.
    pub(crate) fn first_of_set(&self, set: usize) -> usize {
        let behind: usize = self.column_sets[set..].iter().map(|it| it.rows).sum();
        self.updates - behind
    }

    /// Returns the number of rows to delete.
    pub const fn deletes(&self) -> usize {
        self.deletes
    }

    /// Returns the number of rows of all lists.
    pub(crate) const fn all_rows(&self) -> usize {
        self.rows + self.updates + self.deletes
    }

    /// Returns which columns the rows of an action hand over: positions in
    /// [`columns`](Self::columns), rising.
    pub fn columns_of(&self, action: Action) -> Vec<usize> {
        let position = |name: &str| self.columns.iter().position(|column| *column == name);
        let mut columns: Vec<usize> = match action {
            Action::Insert | Action::Update => (0..self.columns.len()).collect(),
            Action::UpdateColumns { set } => {
                let mut columns = self.column_sets[set].columns.clone();
                columns.extend(position(self.key_column));
                columns
            }
            Action::FixUp { parent } => [self.key_column, self.parents[parent].column()]
                .into_iter()
                .filter_map(position)
                .collect(),
            Action::Unlink { .. } | Action::Delete => {
                position(self.key_column).into_iter().collect()
            }
        };
        columns.sort_unstable();
        columns
    }

    /// Returns the position of a column in [`columns`](Self::columns), or 0 of one that is not there, which
    /// no key and no foreign key is.
    pub(crate) fn position_of(&self, column: &str) -> usize {
        let position = self.columns.iter().position(|it| *it == column);
        position.unwrap_or_default()
    }

    pub(crate) fn refers_to(&self, parent: &Self) -> bool {
        self.parents
            .iter()
            .any(|it| it.is(parent.entity, parent.key))
    }

    /// Returns whether a foreign key can be NULL, so that a circle can be broken there. The key
    /// cannot, even where its field is an `Option`.
    pub(crate) fn can_be_null(&self, parent: usize) -> bool {
        let parent = &self.parents[parent];
        parent.is_nullable() && parent.column() != self.key_column
    }
}
