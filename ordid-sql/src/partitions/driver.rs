//! The trait that an adapter implements for partitions.

use ordid_core::{
    OrderedKey, RawKeyOf,
    storage::{ColumnOn, Stores, dialect::Postgres},
};

use super::text::Names;
use crate::table_driver::TableDriver;

/// The names of an entity's table, unquoted.
#[derive(Debug, Clone)]
pub struct PartitionNames {
    /// The schema, if the library knows one.
    pub schema: Option<String>,
    /// The table.
    pub table: String,
    /// The column of the key.
    pub key: String,
}

impl PartitionNames {
    /// Returns the names that the entity has.
    pub fn of<E: OrderedKey>() -> Self {
        Self {
            schema: E::SCHEMA.map(str::to_owned),
            table: E::TABLE.to_owned(),
            key: E::KEY_COLUMN.to_owned(),
        }
    }

    pub(super) fn borrowed(&self) -> Names<'_> {
        Names {
            schema: self.schema.as_deref(),
            table: &self.table,
            key: &self.key,
        }
    }
}

/// A library with which an entity's table can be partitioned on PostgreSQL.
pub trait PartitionDriver<E: OrderedKey>: TableDriver {
    /// The column of the key.
    type Column: ColumnOn<Postgres> + Stores<RawKeyOf<E>>;

    /// Returns the names by which statements know the table.
    fn names() -> PartitionNames {
        PartitionNames::of::<E>()
    }
}
