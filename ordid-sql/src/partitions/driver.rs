//! The trait that an adapter implements for partitions.

use ordid_core::{
    OrderedKey, RawKeyOf,
    storage::{ColumnOn, Stores, dialect::Postgres},
};

use crate::table_driver::TableDriver;

/// A library with which an entity's table can be partitioned on PostgreSQL.
pub trait PartitionDriver<E: OrderedKey>: TableDriver {
    /// The column of the key.
    type Column: ColumnOn<Postgres> + Stores<RawKeyOf<E>>;
}
