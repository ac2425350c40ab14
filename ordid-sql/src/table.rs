//! What planning needs to know of an entity type.

use std::{any::TypeId, sync::Arc};

use crate::{Action, UpsertStep};
use ordid_core::entity::Parent;

/// A table, and how many of its rows a unit of work writes.
#[derive(Debug, Clone)]
pub struct Table {
    pub(crate) entity: TypeId,
    pub(crate) key: TypeId,
    pub(crate) schema: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) key_columns: &'static [&'static str],
    /// The key type of the key's first column.
    pub(crate) leading: TypeId,
    /// Whether that is a raw key, such as a `Uuid`, which keys of other tables may be as well.
    pub(crate) is_raw: bool,
    /// How many bytes of a raw key are those of its first column.
    pub(crate) leading_bytes: usize,
    pub(crate) columns: &'static [&'static str],
    pub(crate) parents: &'static [Parent],
    /// The position of the version's column.
    pub(crate) version: Option<usize>,
    /// The columns that the database fills.
    pub(crate) returning: &'static [&'static str],
    /// Whether the database has to take each row that is inserted.
    pub(crate) counts_inserts: bool,
    /// Whether the keys are made of names.
    pub(crate) is_named: bool,
    /// Whether later keys are greater, byte by byte.
    pub(crate) rises: bool,
    pub(crate) rows: usize,
    pub(crate) updates: usize,
    /// The last of them.
    pub(crate) column_sets: Arc<Vec<ColumnSet>>,
    pub(crate) deletes: usize,
}

/// Rows of which the same columns are updated, and no others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnSet {
    /// The columns that are written, without the key: positions in [`Table::columns`] that rise. Rows that are upserted are
    /// left alone if there are none.
    pub columns: Vec<usize>,
    /// If the rows are upserted, the columns by which it is found out whether they are there: positions that rise.
    pub found_by: Option<Vec<usize>>,
    /// Whether the rows are upserted and nobody wants to know what became of them.
    pub is_unreported: bool,
    /// How many rows there are.
    pub rows: usize,
}

impl ColumnSet {
    /// Returns whether the engine's own statement may upsert the rows: nobody wants to know what became of them, and those
    /// that are there are updated. One for rows that are left alone would be an update all the same on MySQL, which triggers
    /// see and which needs the privilege.
    pub(crate) const fn may_be_written(&self) -> bool {
        self.is_unreported && !self.columns.is_empty()
    }
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

    /// Returns the key's columns, unquoted, in the order of [`columns`](Self::columns).
    pub const fn key_columns(&self) -> &'static [&'static str] {
        self.key_columns
    }

    /// Returns the columns in the order in which a row's values are written, unquoted.
    pub const fn columns(&self) -> &'static [&'static str] {
        self.columns
    }

    /// Returns the foreign keys.
    pub const fn parents(&self) -> &'static [Parent] {
        self.parents
    }

    /// Returns the position in [`columns`](Self::columns) of the version's column, if the rows have a version.
    pub const fn version(&self) -> Option<usize> {
        self.version
    }

    /// Returns the columns that the database fills and a flush reads, unquoted.
    pub const fn returning(&self) -> &'static [&'static str] {
        self.returning
    }

    /// Returns whether a row that is there with one of the keys can only be a row of the flush that inserts it. Somebody
    /// else may write the same key if it has several columns, or is a foreign key, or is made of a name. If inserts are
    /// not counted, the row may have been there before.
    pub(crate) fn has_own_keys(&self) -> bool {
        match self.key_columns {
            [key] => {
                self.counts_inserts
                    && !self.is_named
                    && !self.parents.iter().any(|it| it.column() == *key)
            }
            _ => false,
        }
    }

    /// Returns the columns by which the rows of an action are read back, or `None` if they are not: no column is filled by
    /// the database, or the rows are gone, or others of the plan's chunks are of the same rows.
    pub(crate) fn read_by(&self, action: Action) -> Option<Vec<usize>> {
        if self.returning.is_empty() {
            return None;
        }
        match action {
            Action::Insert | Action::Update | Action::UpdateColumns { .. } => {
                Some(self.key_positions())
            }
            // The existing row may have another key.
            Action::Upsert { set, .. } => Some(self.upserted_by(set).to_vec()),
            Action::FixUp { .. } | Action::Unlink { .. } | Action::Delete => None,
        }
    }

    /// Returns whether an action finds rows only if they still have the version that they were read with. The others are
    /// done with rows that this flush inserts.
    pub(crate) fn checks_version(&self, action: Action) -> bool {
        let is_checked = match action {
            Action::Update
            | Action::UpdateColumns { .. }
            // In chunks, it is committed before the row is deleted.
            | Action::Unlink { .. }
            | Action::Delete => true,
            Action::Insert | Action::Upsert { .. } | Action::FixUp { .. } => false,
        };
        is_checked && self.version.is_some()
    }

    /// Returns the number of rows to insert.
    pub const fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of rows to update, all columns of them or some, or to upsert.
    pub const fn updates(&self) -> usize {
        self.updates
    }

    /// Returns of which columns some of the [`updates`](Self::updates) are, and which of them are upserts.
    pub fn column_sets(&self) -> &[ColumnSet] {
        &self.column_sets
    }

    /// Returns which column sets are upserted, each with its number of rows.
    pub(crate) fn upserts(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let sets = self.column_sets.iter().enumerate();
        sets.filter(|(_, it)| it.found_by.is_some())
            .map(|(set, it)| (set, it.rows))
    }

    /// Returns the number of rows of an action; `None` for those that are some of another action's.
    pub(crate) fn rows_of(&self, action: Action) -> Option<usize> {
        match action {
            Action::Insert => Some(self.rows),
            Action::Update => Some(self.first_of_set(0)),
            Action::UpdateColumns { set } | Action::Upsert { set, .. } => {
                Some(self.column_sets[set].rows)
            }
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
    /// [`columns`](Self::columns), rising. Behind them all is the version that a row was read with.
    pub fn columns_of(&self, action: Action) -> Vec<usize> {
        let mut columns: Vec<usize> = match action {
            Action::Insert
            | Action::Update
            | Action::Upsert {
                step: UpsertStep::Insert | UpsertStep::Write,
                ..
            } => (0..self.columns.len()).collect(),
            Action::Upsert {
                set,
                step: UpsertStep::Find | UpsertStep::Confirm,
            } => self.upserted_by(set).to_vec(),
            Action::Upsert {
                set,
                step: UpsertStep::Update,
            } => {
                let mut columns = self.column_sets[set].columns.clone();
                columns.extend(self.upserted_by(set));
                columns.sort_unstable();
                columns.dedup();
                columns
            }
            Action::UpdateColumns { set } => {
                let mut columns = self.column_sets[set].columns.clone();
                columns.extend(self.key_positions());
                columns.extend(self.version);
                columns
            }
            Action::FixUp { parent } => {
                let mut columns = self.key_positions();
                columns.push(self.position_of(self.parents[parent].column()));
                columns
            }
            Action::Unlink { .. } | Action::Delete => self.key_positions(),
        };
        if self.checks_version(action) {
            columns.push(self.columns.len());
        }
        columns.sort_unstable();
        columns
    }

    /// Returns the columns by which it is found out whether rows of a set are there; none if they are not upserted.
    pub(crate) fn upserted_by(&self, set: usize) -> &[usize] {
        self.column_sets[set]
            .found_by
            .as_deref()
            .unwrap_or_default()
    }

    /// Returns the positions of the key's columns.
    pub fn key_positions(&self) -> Vec<usize> {
        let positions = self.key_columns.iter().map(|it| self.position_of(it));
        positions.collect()
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
        parent.is_nullable() && !self.key_columns.contains(&parent.column())
    }
}

#[cfg(test)]
mod tests {
    use ordid_core::{Scheme as _, scheme::UuidV5, uuid::Uuid};

    use super::*;

    fn table(key_columns: &'static [&'static str]) -> Table {
        Table {
            entity: TypeId::of::<()>(),
            key: TypeId::of::<Uuid>(),
            schema: None,
            name: "orders",
            key_columns,
            leading: TypeId::of::<Uuid>(),
            is_raw: true,
            leading_bytes: 16,
            columns: &["id", "customer"],
            parents: &[],
            version: None,
            returning: &[],
            counts_inserts: true,
            is_named: false,
            rises: true,
            rows: 1,
            updates: 0,
            column_sets: Arc::default(),
            deletes: 0,
        }
    }

    #[test]
    fn others_may_write_keys_of_several_columns_foreign_keys_and_keys_of_names() {
        const CUSTOMER: &[Parent] = &[Parent::by_entity::<Uuid, ()>("customer")];
        let orders = table(&["id"]);
        assert!(orders.has_own_keys());
        let parents = Table {
            parents: CUSTOMER,
            ..orders.clone()
        };
        assert!(parents.has_own_keys());
        let shared = [
            table(&["id", "customer"]),
            Table {
                key_columns: &["customer"],
                ..parents
            },
            Table {
                is_named: UuidV5::IS_NAMED,
                ..orders.clone()
            },
            Table {
                counts_inserts: false,
                ..orders
            },
        ];
        assert!(!shared.iter().any(Table::has_own_keys));
    }
}
